// Ids: a prefix for each kind and a ULID, so that ids of one kind sort in the order of their creation.
import { randomFillSync } from 'node:crypto';
import { monotonicFactory } from 'ulidx';

const prefixes = {
  user: 'user_',
  apiKey: 'key_',
  agentToken: 'agt_',
  thread: 'thread_',
  message: 'msg_',
  scratchpad: 'sp_',
  entry: 'entry_',
  assistant: 'asst_',
  run: 'run_',
  call: 'call_',
} as const;

export type IdKind = keyof typeof prefixes;

const ulid = '[0-7][0-9A-HJKMNP-TV-Z]{25}';
const patterns = Object.fromEntries(
  Object.entries(prefixes).map(([kind, prefix]) => [kind, new RegExp(`^${prefix}${ulid}$`)]),
) as Record<IdKind, RegExp>;

/** The library asks the operating system for each of its sixteen characters by itself; random bytes in stock cost a tenth. */
function createRandom(): () => number {
  const stock = new Uint8Array(4096);
  let used = stock.length;
  return () => {
    if (used === stock.length) {
      randomFillSync(stock);
      used = 0;
    }
    return stock[used++]! / 256;
  };
}

const nextUlid = monotonicFactory(createRandom());

/** A new id of this kind. Ids made by one process sort strictly in the order in which they were made. */
export const createId = (kind: IdKind): string => prefixes[kind] + nextUlid();

/** Whether `text` has the form of an id of this kind; asks no store. */
export const isId = (kind: IdKind, text: string): boolean => patterns[kind].test(text);

/** The kind that `text` has the form of, or undefined. */
export const kindOfId = (text: string): IdKind | undefined =>
  (Object.keys(prefixes) as IdKind[]).find((kind) => isId(kind, text));
