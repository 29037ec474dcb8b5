// What a run does next, decided by a pure function: control flow without a model, a store or a clock.
import type { ToolErrorCode } from '../tools/tool-definition.js';
import { isIdentical } from './call-identity.js';
import type { ProviderTurn, ToolCall } from './provider/provider-types.js';

/** Why a run that was not stopped from outside is FAILED. */
export type StopCode = 'PROVIDER_ERROR' | 'PROVIDER_PROTOCOL' | 'MAX_TURNS_EXCEEDED' | 'CONTEXT_OVERFLOW';

/** What to do with one call: execute it, or answer it with this error. Either way it gets exactly one result. */
export type PlannedCall =
  { kind: 'execute'; call: ToolCall } | { kind: 'refuse'; call: ToolCall; code: ToolErrorCode; reason: string };

export type NextStep =
  /** Ask the model; `offerTools` is false in the last permitted turn, so that it has to conclude. */
  | { kind: 'ask'; turnNumber: number; offerTools: boolean }
  /** Answer every call of the last turn, in this order. */
  | { kind: 'answer-calls'; calls: PlannedCall[] }
  | { kind: 'finish'; text: string }
  | { kind: 'stop'; code: StopCode; message: string };

export interface LoopState {
  maxTurns: number;
  /** Completed turns. */
  turnsTaken: number;
  /** The last completed turn, until its calls are answered. */
  openTurn: ProviderTurn | undefined;
  /** Every call before the open turn, oldest first; the last few are enough. */
  earlierCalls: readonly ToolCall[];
}

/** A call that would be this one in a row of identical ones is not executed any more. */
const repetitionLimit = 3;
/** As many earlier calls as a decision looks at. */
export const rememberedCalls = repetitionLimit - 1;

function planCalls(turn: ProviderTurn, state: LoopState): PlannedCall[] {
  if (turn.finishReason === 'length') {
    const reason =
      'Your message was cut off at the length limit, so none of its calls was executed. Make fewer or shorter calls.';
    return turn.toolCalls.map((call) => ({ kind: 'refuse', call, code: 'TRUNCATED_CALL', reason }));
  }
  if (state.turnsTaken >= state.maxTurns) {
    const reason = 'This was the last turn: no tool is executed any more.';
    return turn.toolCalls.map((call) => ({ kind: 'refuse', call, code: 'NO_TURNS_LEFT', reason }));
  }
  const all = [...state.earlierCalls, ...turn.toolCalls];
  return turn.toolCalls.map((call, place): PlannedCall => {
    const before = all.slice(0, state.earlierCalls.length + place).slice(-rememberedCalls);
    const isRepeated = before.length === rememberedCalls && before.every((earlier) => isIdentical(earlier, call));
    if (!isRepeated) return { kind: 'execute', call };
    const reason = `You made this same call ${repetitionLimit} times in a row, so it was not executed. Use what you have, or try something else.`;
    return { kind: 'refuse', call, code: 'REPEATED_CALL', reason };
  });
}

export function nextStep(state: LoopState): NextStep {
  const turn = state.openTurn;
  if (turn && turn.toolCalls.length > 0) return { kind: 'answer-calls', calls: planCalls(turn, state) };
  if (turn?.finishReason === 'length') {
    // Half an answer is not an answer.
    return { kind: 'stop', code: 'PROVIDER_ERROR', message: "The answer was cut off at the provider's length limit." };
  }
  if (turn) return { kind: 'finish', text: turn.text };
  if (state.turnsTaken >= state.maxTurns) {
    const message = `No final answer after ${state.maxTurns} turn${state.maxTurns === 1 ? '' : 's'}.`;
    return { kind: 'stop', code: 'MAX_TURNS_EXCEEDED', message };
  }
  const turnNumber = state.turnsTaken + 1;
  return { kind: 'ask', turnNumber, offerTools: turnNumber < state.maxTurns };
}
