// Puts one turn together from a stream's chunks, and decides whether it ended as a turn must end.
import { toStorableText } from '../../shared/text.js';
import { MOST_TURN_CALLS, MOST_TURN_CHARACTERS, tooLong } from './answer-limits.js';
import { readChunk, type ChunkContent } from './chunk-shape.js';
import { ProviderError, redact } from './provider-error.js';
import type { FinishReason, ProviderTurn, Reasoning, TurnListener } from './provider-types.js';
import { createSecretFilter } from './secret-filter.js';
import { createToolCallAssembly } from './tool-call-assembly.js';

export interface TurnAssembly {
  /** @throws ProviderError PROVIDER_PROTOCOL when the turn becomes larger than one may be; nothing of this chunk is told then */
  push(chunk: unknown): void;
  /** @throws ProviderError PROVIDER_PROTOCOL without a finish reason or with promised calls that never came; PROVIDER_ERROR for an abnormal end */
  finish(): ProviderTurn;
}

const normalEnds = new Set(['stop', 'eos', 'end_turn', 'stop_sequence', 'tool_calls', 'function_call', 'tool_use']);
const callEnds = new Set(['tool_calls', 'function_call', 'tool_use']);
const lengthEnds = new Set(['length', 'max_tokens']);

/** Passes text on in well-formed pieces, without secrets: what is split over two chunks is held back until it is whole. */
function createTextChannel(secrets: readonly string[], emit: ((delta: string) => void) | undefined) {
  const filter = createSecretFilter(secrets);
  let whole = '';
  let held = '';
  const release = (text: string): void => {
    if (text === '') return;
    whole += text;
    emit?.(text);
  };
  return {
    push(piece: string) {
      const text = held + piece;
      held = /[\uD800-\uDBFF]$/.test(text) ? text.slice(-1) : '';
      release(filter.push(toStorableText(held === '' ? text : text.slice(0, -1))));
    },
    end(): string {
      release(filter.push(toStorableText(held)) + filter.end());
      held = '';
      return whole;
    },
  };
}

/** @param secrets never come out of here, in no part of a turn and no error */
export function createTurnAssembly(
  listener: TurnListener,
  newCallId: () => string,
  secrets: readonly string[],
): TurnAssembly {
  const text = createTextChannel(secrets, listener.onText?.bind(listener));
  const thoughts = createTextChannel(secrets, listener.onReasoning?.bind(listener));
  const calls = createToolCallAssembly(newCallId, secrets);
  let reasoningField: Reasoning['field'] | undefined;
  let characters = 0;
  let reason: string | undefined;

  function finishReason(callCount: number): FinishReason {
    if (reason === undefined) {
      throw new ProviderError(
        'PROVIDER_PROTOCOL',
        "The model provider's answer ended in the middle: no reason to finish was given.",
      );
    }
    if (lengthEnds.has(reason)) return 'length';
    if (!normalEnds.has(reason)) {
      throw new ProviderError(
        'PROVIDER_ERROR',
        reason === 'content_filter'
          ? "The model provider's content filter cut the answer off."
          : 'The model provider ended the answer for a reason that is no normal end.',
        `finish_reason: ${redact(reason, secrets).slice(0, 100)}`,
      );
    }
    if (callCount === 0 && callEnds.has(reason)) {
      throw new ProviderError('PROVIDER_PROTOCOL', 'The model provider announced tool calls and sent none.');
    }
    return callCount > 0 ? 'tool_calls' : 'stop';
  }

  function checkSize({ text, reasoning, calls }: ChunkContent): void {
    characters += text.length + (reasoning?.text.length ?? 0);
    for (const { id = '', name = '', arguments: written = '' } of calls)
      characters += id.length + name.length + written.length;
    if (characters > MOST_TURN_CHARACTERS) throw tooLong(`it has more than ${MOST_TURN_CHARACTERS} characters`);
  }

  return {
    push(chunk) {
      const content = readChunk(chunk);
      checkSize(content);
      if (content.reasoning) {
        reasoningField ??= content.reasoning.field;
        thoughts.push(content.reasoning.text);
      }
      text.push(content.text);
      for (const fragment of content.calls) calls.add(fragment);
      if (calls.count() > MOST_TURN_CALLS) throw tooLong(`it has more than ${MOST_TURN_CALLS} tool calls`);
      reason = content.finishReason ?? reason;
    },

    finish() {
      const toolCalls = calls.finish();
      const reasoningText = thoughts.end();
      return {
        text: text.end(),
        reasoning: reasoningField && reasoningText !== '' ? { field: reasoningField, text: reasoningText } : undefined,
        toolCalls,
        finishReason: finishReason(toolCalls.length),
      };
    },
  };
}
