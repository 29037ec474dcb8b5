// Makes one request's messages out of a stored conversation: whole units only, oldest left out first, never over the budget.
import type { ProviderMessage } from '../provider/provider-types.js';
import type { StoredMessage } from './conversation-message.js';
import { toUnits, type ConversationUnit, type GroupUnit } from './protocol-groups.js';
import { shortenResults } from './shorten-results.js';
import { estimateMessageTokens } from './token-estimate.js';

export interface ContextInput {
  /** The system message. Survives always. */
  system: string;
  /** The stored message that holds the question or the delegated task. Survives always. */
  taskId: string;
  messages: readonly StoredMessage[];
  /** Said by the user at the end, and not stored. Survives always. */
  note?: string;
  /** For the messages alone: what tool definitions cost is subtracted by the caller. */
  budgetTokens: number;
}

export type Context =
  | { kind: 'fits'; messages: ProviderMessage[] }
  /** System message, task and what was said last are too large even with shortened tool results. */
  | { kind: 'overflow' };

function toProviderMessages(unit: ConversationUnit): ProviderMessage[] {
  if (unit.kind === 'ordinary') return [{ role: unit.message.role, content: unit.message.content }];
  const { content, toolCalls, reasoning } = unit.caller;
  return [
    { role: 'assistant', content, toolCalls, ...(reasoning ? { reasoning } : {}) },
    ...unit.results.map(({ toolCallId, content }) => ({ role: 'tool' as const, toolCallId, content })),
  ];
}

const sumOf = (messages: readonly ProviderMessage[]): number =>
  messages.reduce((sum, message) => sum + estimateMessageTokens(message), 0);

const tokensOf = (unit: ConversationUnit): number => sumOf(toProviderMessages(unit));

/** Neighbours of one role become one message, since some providers want roles to alternate. Protocol messages stay as they are. */
function mergeOrdinary(messages: ProviderMessage[]): ProviderMessage[] {
  const merged: ProviderMessage[] = [];
  const isOrdinary = (message: ProviderMessage): boolean =>
    message.role === 'user' || (message.role === 'assistant' && !message.toolCalls?.length);
  for (const message of messages) {
    const before = merged.at(-1);
    if (before && before.role === message.role && isOrdinary(before) && isOrdinary(message)) {
      merged[merged.length - 1] = { ...before, content: `${before.content}\n\n${message.content}` };
    } else {
      merged.push(message);
    }
  }
  return merged;
}

export function buildContext({ system, taskId, messages, note, budgetTokens }: ContextInput): Context {
  const systemMessage: ProviderMessage = { role: 'system', content: system };
  const notes: ProviderMessage[] = note === undefined ? [] : [{ role: 'user', content: note }];
  const units = toUnits(messages);
  const last = units.at(-1);
  const stays = (unit: ConversationUnit): boolean =>
    unit === last || (unit.kind === 'ordinary' && unit.message.id === taskId);

  let total = sumOf([systemMessage, ...notes]) + units.reduce((sum, unit) => sum + tokensOf(unit), 0);
  let kept = units.filter((unit) => {
    if (total <= budgetTokens || stays(unit)) return true;
    total -= tokensOf(unit);
    return false;
  });

  if (total > budgetTokens) {
    const shortened = last?.kind === 'group' ? shortenLast(last, budgetTokens - (total - tokensOf(last))) : undefined;
    if (!shortened) return { kind: 'overflow' };
    kept = kept.map((unit) => (unit === last ? shortened : unit));
  }
  return { kind: 'fits', messages: mergeOrdinary([systemMessage, ...kept.flatMap(toProviderMessages), ...notes]) };
}

/** The group with its results cut so that it costs at most `roomTokens`; undefined when it cannot. */
function shortenLast(group: GroupUnit, roomTokens: number): GroupUnit | undefined {
  const withoutText = { ...group, results: group.results.map((result) => ({ ...result, content: '' })) };
  const contents = shortenResults(
    group.results.map((result) => result.content),
    roomTokens - tokensOf(withoutText),
  );
  if (!contents) return undefined;
  return { ...group, results: group.results.map((result, place) => ({ ...result, content: contents[place] ?? '' })) };
}
