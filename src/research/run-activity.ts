// What a run does at the moment, in one line for a person.
import type { ToolCall } from './provider/provider-types.js';

const maxLength = 160;

/** The text as one line of a bounded length. */
export function inOneLine(text: string): string {
  const line = text.trim().replace(/\s+/g, ' ');
  return line.length > maxLength ? `${line.slice(0, maxLength - 1).toWellFormed()}…` : line;
}

function argumentOf(call: ToolCall, name: string): string {
  try {
    const value = (JSON.parse(call.arguments) as Record<string, unknown> | null)?.[name];
    return typeof value === 'string' || typeof value === 'number' ? inOneLine(String(value)) : '';
  } catch {
    return '';
  }
}

const webActivities: Record<string, (call: ToolCall) => string> = {
  perform_web_search: (call) => `Searching the web: ${argumentOf(call, 'query')}`,
  read_web_page: (call) => `Reading ${argumentOf(call, 'url')}`,
  search_web_page: (call) => `Looking for "${argumentOf(call, 'query')}" in ${argumentOf(call, 'url')}`,
  scroll_web_page: (call) => `Reading page ${argumentOf(call, 'page')} of ${argumentOf(call, 'url')}`,
};

/** Undefined for a call that is no research on the web: others are told of where they happen. */
export const webActivityOf = (call: ToolCall): string | undefined =>
  Object.hasOwn(webActivities, call.name) ? webActivities[call.name]?.(call) : undefined;

export const scratchpadActivities = {
  READ: 'Reading the scratchpad',
  UPDATE: 'Rewriting the content of the scratchpad',
  APPEND: 'Appending to the scratchpad',
} as const;
