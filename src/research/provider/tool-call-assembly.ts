// Puts tool calls together from the fragments of a stream. Providers disagree on almost everything, so identity is decided by evidence.
import { toStorableText } from '../../shared/text.js';
import type { CallFragment } from './chunk-shape.js';
import { redact } from './provider-error.js';
import type { ToolCall } from './provider-types.js';

interface GrowingCall {
  index: number | undefined;
  id: string;
  name: string;
  arguments: string;
}

export interface ToolCallAssembly {
  add(fragment: CallFragment): void;
  /** How many calls have begun. */
  count(): number;
  /** The calls in the order in which they began, each with an id of its own. */
  finish(): ToolCall[];
}

/** A complete JSON object that says something: an empty one may be a placeholder before the real arguments. */
function isWhole(text: string | undefined): boolean {
  if (!text || !text.trimStart().startsWith('{') || isPlaceholder(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const isPlaceholder = (text: string): boolean => text.trim() === '{}';

/**
 * Whether a fragment that is addressed to `call` begins another one. The name is the strongest sign: it comes once, or is repeated. A new id
 * alone is not one, since some servers make up an id for every fragment, unless the call before it was complete already.
 */
function beginsAnother(call: GrowingCall, fragment: CallFragment): boolean {
  if (fragment.name && call.name && fragment.name !== call.name) return true;
  const hasNewId = fragment.id !== undefined && call.id !== '' && fragment.id !== call.id;
  if (hasNewId && fragment.name) return true;
  if (hasNewId) return fragment.arguments !== undefined && isWhole(call.arguments);
  // Two calls of one tool, each sent whole, by a server that numbers and names neither of them.
  return fragment.name !== undefined && isWhole(fragment.arguments) && isWhole(call.arguments);
}

/** Whether a server says once more what it has said already. */
const repeats = (call: GrowingCall, fragment: CallFragment): boolean =>
  fragment.id !== undefined &&
  fragment.id === call.id &&
  (fragment.name === undefined || fragment.name === call.name) &&
  fragment.arguments === call.arguments &&
  isWhole(call.arguments);

/**
 * @param newCallId makes an id for a call that came without one, or with one that is taken
 * @param secrets are cut out
 */
export function createToolCallAssembly(newCallId: () => string, secrets: readonly string[]): ToolCallAssembly {
  const clean = (text: string): string => redact(toStorableText(text), secrets);
  const calls: GrowingCall[] = [];

  function addressee({ index, id }: CallFragment): GrowingCall | undefined {
    const numbered = index === undefined ? calls : calls.filter((call) => call.index === index);
    return (id !== undefined ? numbered.findLast((call) => call.id === id) : undefined) ?? numbered.at(-1);
  }

  function begin({ index, id, name, arguments: text }: CallFragment): void {
    calls.push({ index, id: id ?? '', name: name ?? '', arguments: text ?? '' });
  }

  return {
    add(fragment) {
      const call = addressee(fragment);
      if (!call) return begin(fragment);
      if (repeats(call, fragment)) return undefined;
      if (beginsAnother(call, fragment)) return begin(fragment);
      call.id ||= fragment.id ?? '';
      call.name ||= fragment.name ?? '';
      if (fragment.arguments === undefined) return undefined;
      const replaces = isPlaceholder(call.arguments) && fragment.arguments.trim() !== '';
      call.arguments = replaces ? fragment.arguments : call.arguments + fragment.arguments;
      return undefined;
    },

    count: () => calls.length,

    finish() {
      const taken = new Set<string>();
      return calls
        .filter((call) => call.name !== '' || call.arguments.trim() !== '')
        .map((call) => {
          const own = clean(call.id);
          const id = own === '' || taken.has(own) ? newCallId() : own;
          taken.add(id);
          const name = clean(call.name) || 'unnamed';
          return { id, name, arguments: call.arguments.trim() === '' ? '{}' : clean(call.arguments) };
        });
    },
  };
}
