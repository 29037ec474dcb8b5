// Performs a run's steps: build the context, stream a turn, answer its calls, store, until step.ts says that it is over.
import { toStorableText } from '../shared/text.js';
import { refusal, type ToolResult } from '../tools/tool-definition.js';
import type { Toolbox } from '../tools/toolbox.js';
import { buildContext } from './conversation/build-context.js';
import type { ConversationStore } from './conversation/conversation-message.js';
import { closingResults } from './conversation/protocol-groups.js';
import { estimateToolTokens } from './conversation/token-estimate.js';
import { ProviderError } from './provider/provider-error.js';
import type { Provider, ProviderTurn, ToolCall } from './provider/provider-types.js';
import { stopStatus } from './run-stop.js';
import { nextStep, rememberedCalls, type LoopState, type PlannedCall, type StopCode } from './step.js';

/** What happens, in order, as it happens. Methods return at once and must not throw; who listens keeps the order and writes. */
export interface LoopListener {
  turnStarted?(turnNumber: number): void;
  text?(delta: string): void;
  reasoning?(delta: string): void;
  /** The turn ended normally; its calls, if it has any, come next. */
  turnEnded?(turn: ProviderTurn): void;
  callStarted?(call: ToolCall): void;
  /** Once for each call, when its result is there: not in call order. Refused calls are reported here alone. */
  callFinished?(call: ToolCall, result: ToolResult): void;
}

export interface TurnLoopOptions {
  provider: Provider;
  /** The run's own conversation, which holds its task already. */
  conversation: ConversationStore;
  toolbox: Toolbox;
  listener: LoopListener;
  /** Aborted with a RunStop. */
  signal: AbortSignal;
  system: string;
  /** The id of the stored message that holds the question or the delegated task. */
  taskId: string;
  /** At least 1. */
  maxTurns: number;
  contextMaxTokens: number;
  /** Said to the model in its last permitted turn, and not stored. */
  lastTurnNote: string;
}

export type LoopOutcome =
  | { kind: 'completed'; text: string; turnCount: number }
  | { kind: 'failed'; code: StopCode; message: string; detail?: string; turnCount: number }
  | { kind: 'stopped'; status: 'CANCELLED' | 'EXPIRED'; turnCount: number };

type Asked = { kind: 'turn'; turn: ProviderTurn } | { kind: 'overflow' };

/**
 * Runs until an outcome. A provider's failure is an outcome; what the conversation store throws is not, and comes out. Nothing of a turn that
 * did not end is stored, nor the text of the last one: that is the outcome. When it returns, every stored call is answered.
 */
export async function runTurnLoop(options: TurnLoopOptions): Promise<LoopOutcome> {
  const { provider, conversation, toolbox, listener, signal } = options;

  async function ask(offerTools: boolean): Promise<Asked> {
    const tools = offerTools ? toolbox.definitions : [];
    const context = buildContext({
      system: options.system,
      taskId: options.taskId,
      messages: await conversation.read(),
      note: offerTools ? undefined : options.lastTurnNote,
      budgetTokens: options.contextMaxTokens - estimateToolTokens(tools),
    });
    if (context.kind === 'overflow') return { kind: 'overflow' };
    const turn = await provider.streamTurn(
      { messages: context.messages, tools },
      {
        onText: (delta) => listener.text?.(delta),
        onReasoning: (delta) => listener.reasoning?.(delta),
      },
      signal,
    );
    return { kind: 'turn', turn };
  }

  async function resultOf(planned: PlannedCall): Promise<ToolResult> {
    if (planned.kind === 'execute') listener.callStarted?.(planned.call);
    const result =
      planned.kind === 'execute' ? await toolbox.execute(planned.call, signal) : refusal(planned.code, planned.reason);
    listener.callFinished?.(planned.call, result);
    return result;
  }

  /** All at once; stored in call order, each as soon as those before it are. */
  async function answer(calls: PlannedCall[]): Promise<void> {
    const running = calls.map((planned) => ({ call: planned.call, result: resultOf(planned) }));
    try {
      for (const { call, result } of running) {
        const { content, isError } = await result;
        await conversation.append({ role: 'tool', toolCallId: call.id, content: toStorableText(content), isError });
      }
    } finally {
      // Also when the store fails: nothing of this run goes on behind its back.
      await Promise.allSettled(running.map(({ result }) => result));
    }
  }

  await closeOpenCalls(conversation);

  const state: LoopState = { maxTurns: options.maxTurns, turnsTaken: 0, openTurn: undefined, earlierCalls: [] };
  for (;;) {
    const turnCount = state.turnsTaken;
    const step = nextStep(state);
    // Open calls are answered first, cancelled or not.
    if (signal.aborted && step.kind !== 'answer-calls')
      return { kind: 'stopped', status: stopStatus(signal), turnCount };
    if (step.kind === 'finish') return { kind: 'completed', text: step.text, turnCount };
    if (step.kind === 'stop') return { kind: 'failed', code: step.code, message: step.message, turnCount };

    if (step.kind === 'answer-calls') {
      await answer(step.calls);
      state.earlierCalls = [...state.earlierCalls, ...step.calls.map(({ call }) => call)].slice(-rememberedCalls);
      state.openTurn = undefined;
      continue;
    }

    listener.turnStarted?.(step.turnNumber);
    try {
      const asked = await ask(step.offerTools);
      if (asked.kind === 'overflow') {
        const message = 'The task and the last results do not fit into the context, even shortened.';
        return { kind: 'failed', code: 'CONTEXT_OVERFLOW', message, turnCount };
      }
      state.openTurn = asked.turn;
      state.turnsTaken = step.turnNumber;
    } catch (error) {
      if (signal.aborted) return { kind: 'stopped', status: stopStatus(signal), turnCount };
      if (!(error instanceof ProviderError)) throw error;
      return { kind: 'failed', code: error.code, message: error.message, detail: error.detail, turnCount };
    }
    listener.turnEnded?.(state.openTurn);
    await store(conversation, state.openTurn);
  }
}

/** Answers what a run that died left unanswered, so that the conversation can be read, and continued. */
async function closeOpenCalls(conversation: ConversationStore): Promise<void> {
  for (const result of closingResults(await conversation.read())) await conversation.append(result);
}

/** A turn without calls is the last one: whether what it says holds is decided later, and it is stored with the run's end. */
async function store(conversation: ConversationStore, { text, toolCalls, reasoning }: ProviderTurn): Promise<void> {
  if (toolCalls.length > 0) await conversation.append({ role: 'assistant', content: text, toolCalls, reasoning });
}
