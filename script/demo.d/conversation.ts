// Reads a request as a model does: who am I, what was I asked, what have I called, what came of it.
import type { RequestBody, WireMessage } from './model-server.js';

export interface PastCall {
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  /** Undefined while it is unanswered. */
  result: string | undefined;
  /** Which message of the request made it. */
  messageIndex: number;
}

export const textOf = (message: WireMessage | undefined): string => message?.content ?? '';

function parseArguments(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** In the order in which they were made. */
export function callsIn(messages: readonly WireMessage[]): PastCall[] {
  return messages.flatMap((message, messageIndex) => {
    const rest = messages.slice(messageIndex + 1);
    return (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => {
      // An id may be used again in a later message: the nearest answer is its own.
      const answer = rest.find((other) => other.role === 'tool' && other.tool_call_id === id);
      return { id, name, arguments: parseArguments(text), result: answer && textOf(answer), messageIndex };
    });
  });
}

/** The question, or the delegated task with its requirements. */
export const assignmentOf = ({ messages }: RequestBody): string => textOf(messages.find(({ role }) => role === 'user'));

/** By its tools; in its last turn, in which it has none, by what it is told to be. */
export function isSupervisor({ tools = [], messages }: RequestBody): boolean {
  if (tools.length > 0) return tools.some((tool) => tool.function.name === 'delegate_research_task');
  return !/\bresearch worker\b/i.test(textOf(messages[0]));
}

export const isErrorResult = (result: string): boolean => /^\{"is_error":true\b/.test(result);

/** What is quoted in the view of a scratchpad, without the quotation marks and everything of the view's own. */
export const quotedIn = (view: string): string =>
  view
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.slice(2))
    .join('\n');
