// Batched reads of working state: one script for any number of pads and wishes.
import { DomainError } from '../shared/errors.js';
import type { PageRequest } from '../shared/pagination.js';
import { createEventCursorCodec } from './event-cursor.js';
import { formatView } from './formatted-view.js';
import { entryCursorCodec, pageWish, type EntryKey, type LedgerPage, type PageReply } from './ledger-page.js';
import { createPadStates, PadState } from './pad-state.js';
import { askRedis, type RedisAccess } from '../redis/redis-access.js';
import { parseEntry, type ContentState, type EntryState } from './schemas.js';
import { createReadLanes } from './read-lanes.js';
import { contentKey, entriesKey, sequenceKey, type PadAddress } from '../redis/redis-keys.js';
import { readScript } from './scripts/read.js';
import { defineScript } from '../redis/run-script.js';

/** What to read of one pad; what is not asked for is not read. */
export interface PadRead {
  readonly pad: PadAddress;
  readonly content?: boolean;
  readonly entryCount?: boolean;
  readonly eventCursor?: boolean;
  readonly expiresAt?: boolean;
  readonly formattedView?: boolean;
  readonly pages?: readonly PageRequest<EntryKey>[];
}

export interface PadReading {
  content?: ContentState;
  entryCount?: number;
  eventCursor?: string;
  /** Null when the state is empty or never expires. */
  expiresAt?: Date | null;
  formattedView?: string;
  /** In the order of the request; INVALID_INPUT for a page one of whose cursors names an entry that is gone. */
  pages?: (LedgerPage | DomainError)[];
}

type SequenceReply = [
  entries: string | null,
  content: string | null,
  expiresAtMs: string | null,
  entriesCleared: string | null,
  contentCleared: string | null,
];

type PadReply = [
  content: string | null,
  entryCount: number | null,
  sequence: SequenceReply | null,
  tail: string[] | null,
  pages: PageReply[],
  /** Of the state; null when the one that was named still holds, whose content and pages are left out then. */
  token: string | null,
];

/** What Redis said to a question, and what that means. */
interface Answer {
  reply: PadReply;
  state: PadState;
}

/** What several reads want of one pad, asked for once. */
interface Question {
  pad: PadAddress;
  wantsContent: boolean;
  wantsCount: boolean;
  wantsSequence: boolean;
  wantsTail: boolean;
  /** As the read script takes them, each once. */
  pages: string[];
}

/** A question as the read script takes it. JSON escapes double the bytes of ordinary text at most: twice the view fills it. */
function wishOf({ wantsContent, wantsCount, wantsSequence, wantsTail, pages }: Question, viewMaxBytes: number): string {
  const letters = `${wantsContent ? 'c' : ''}${wantsCount ? 'n' : ''}${wantsSequence ? 's' : ''}${wantsTail ? 't' : ''}`;
  return `${letters}:${wantsTail ? 2 * viewMaxBytes : ''}:${pages.join('')}:`;
}

/** Where the answer to a read is: the number of its question, and those of its pages there. */
interface Place {
  question: number;
  pages: readonly number[];
}

/** The number of a page among those of a question; whoever asks for the same has the same number. */
function numberOf(page: PageRequest<EntryKey>, pages: string[]): number {
  const wish = pageWish(page);
  const number = pages.indexOf(wish);
  return number === -1 ? pages.push(wish) - 1 : number;
}

/** Fields of one pad are read each by itself; Redis is asked for each pad once. */
function gather(reads: readonly PadRead[]): { questions: Question[]; places: Place[] } {
  const numbers = new Map<string, number>();
  const questions: Question[] = [];
  const places = reads.map(({ pad, content, entryCount, eventCursor, expiresAt, formattedView, pages = [] }) => {
    const key = contentKey(pad);
    let number = numbers.get(key);
    if (number === undefined) {
      number = questions.length;
      numbers.set(key, number);
      questions.push({
        pad,
        wantsContent: false,
        wantsCount: false,
        wantsSequence: false,
        wantsTail: false,
        pages: [],
      });
    }
    const question = questions[number]!;
    question.wantsContent ||= content === true || formattedView === true;
    question.wantsCount ||= entryCount === true || pages.length > 0;
    question.wantsSequence ||= eventCursor === true || expiresAt === true;
    question.wantsTail ||= formattedView === true;
    return { question: number, pages: pages.map((page) => numberOf(page, question.pages)) };
  });
  return { questions, places };
}

/** When the state ends; null when there is none (never written, or each plane was cleared last) or it never does. */
function expiryOf([entries, content, expiresAtMs, entriesCleared, contentCleared]: SequenceReply): Date | null {
  const isEmpty = entries === entriesCleared && content === contentCleared;
  return isEmpty || expiresAtMs === null || expiresAtMs === 'null' ? null : new Date(Number(expiresAtMs));
}

/** Rows are parsed one by one, as far as they are needed. */
function* parseEntries(rows: readonly string[]): Generator<EntryState> {
  for (const row of rows) yield parseEntry(row);
}

function toReading(
  read: PadRead,
  { reply, state }: Answer,
  pages: readonly number[],
  viewMaxBytes: number,
): PadReading {
  const [, entryCount, sequence, tail] = reply;
  const reading: PadReading = {};
  const { scratchpadId } = read.pad;
  if (read.content) reading.content = state.content;
  if (read.entryCount) reading.entryCount = entryCount ?? 0;
  if (read.eventCursor && sequence) {
    const position = { entries: Number(sequence[0] ?? 0), content: Number(sequence[1] ?? 0) };
    reading.eventCursor = createEventCursorCodec(read.pad).encode(position);
  }
  if (read.expiresAt && sequence) reading.expiresAt = expiryOf(sequence);
  if (read.formattedView) {
    const rows = tail ?? [];
    reading.formattedView = formatView(
      {
        content: state.content,
        newestEntries: { [Symbol.iterator]: () => parseEntries(rows) },
        entryCount: entryCount ?? 0,
      },
      viewMaxBytes,
    );
  }
  if (read.pages) {
    const codec = entryCursorCodec(scratchpadId);
    reading.pages = read.pages.map((request, index) => state.page(pages[index]!, request, codec));
  }
  return reading;
}

/** What another program has put there is no reason to withhold what else was asked for. The text itself may not get into a log. */
function toReadingOrError(
  read: PadRead,
  answer: Answer,
  pages: readonly number[],
  viewMaxBytes: number,
): PadReading | Error {
  try {
    return toReading(read, answer, pages, viewMaxBytes);
  } catch (error) {
    if (error instanceof DomainError) return error;
    return new Error(`Redis holds something under the keys of ${read.pad.scratchpadId} that is no scratchpad's state`);
  }
}

/** @param viewMaxBytes bound of a formatted view */
export function createPadReader({ redis, viewMaxBytes }: { redis: RedisAccess; viewMaxBytes: number }) {
  const run = defineScript(redis.commands, readScript);
  const states = createPadStates();
  const inTurn = createReadLanes();

  return async (reads: readonly PadRead[]): Promise<(PadReading | Error)[]> => {
    if (reads.length === 0) return [];
    const { questions, places } = gather(reads);
    const keys: string[] = [];
    for (const { pad } of questions) keys.push(contentKey(pad), entriesKey(pad), sequenceKey(pad));
    const asked = questions.map((question) => {
      const wish = wishOf(question, viewMaxBytes);
      const key = `${contentKey(question.pad)} ${wish}`;
      return { wish, key, known: states.get(key) };
    });
    const wishes = asked.map(({ wish, known }) => wish + (known?.token ?? ''));
    const replies = await inTurn(
      reads[0]!.pad.ownerId,
      async (mostBytes) => (await askRedis(redis, () => run(keys, [mostBytes, ...wishes]))) as PadReply[] | null,
    );
    const answers = replies.map((reply, number): Answer => {
      const [contentRow, entryCount, , , pages, token] = reply;
      const { key, known } = asked[number]!;
      if (known && token === null) return { reply, state: known };
      const state = new PadState(token ?? '', contentRow, pages, entryCount);
      if (state.token !== '') states.put(key, state);
      return { reply, state };
    });
    return reads.map((read, index) => {
      const { question, pages } = places[index]!;
      return toReadingOrError(read, answers[question]!, pages, viewMaxBytes);
    });
  };
}
