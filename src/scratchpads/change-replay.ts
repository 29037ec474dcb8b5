// Tells what a pad's state has beyond a position: the way a subscription starts, resumes, and is repaired.
import { createEventCursorCodec, startOfHistory, type EventPosition } from './event-cursor.js';
import { askRedis, type RedisAccess } from '../redis/redis-access.js';
import { parseContent, parseEntry } from './schemas.js';
import { createDelivery, type Delivery, type ScratchpadOperation, type Told } from './scratchpad-change.js';
import { contentKey, entriesKey, sequenceKey, tombstoneKey, type PadAddress } from '../redis/redis-keys.js';
import { replayScript } from './scripts/replay.js';
import { defineScript } from '../redis/run-script.js';

/** From where to tell: only what comes from now on, the whole state, or what is beyond a position. */
export type ReplayFrom = 'now' | 'start' | EventPosition;

/** One page of a replay. */
export interface Replay {
  readonly deliveries: readonly Delivery[];
  /** Where a subscriber is once it has the deliveries. */
  readonly position: EventPosition;
  /** Nothing is left to tell: `position` is where the state is. If false, go on from `position`. */
  readonly complete: boolean;
  /** The pad was deleted: the last delivery says so, and nothing follows. */
  readonly deleted: boolean;
  /** When the state ends; null when there is none or it never does. */
  readonly expiresAtMs: number | null;
}

type ReplayReply =
  | ['GONE']
  | [
      'AT',
      entries: string,
      content: string,
      expiresAtMs: string,
      expired: '0' | '1',
      fromEntries: string,
      fromContent: string,
      clearedEntries: string | null,
      clearedContent: string | null,
      rows: string[],
      complete: '0' | '1',
      content: string | null,
    ];

const mostRows = 200;
const pageBytes = 524_288;

const clearOperation = (entries: boolean, content: boolean): ScratchpadOperation =>
  entries && content ? 'CLEAR' : entries ? 'CLEAR_ENTRIES' : 'CLEAR_CONTENT';

/** Numbers are microseconds of the clock, unless writes came faster than it ticks. */
const timeOf = (number: number): Date => (number > 0 ? new Date(Math.floor(number / 1000)) : new Date());

function toReplay(pad: PadAddress, from: ReplayFrom, reply: ReplayReply): Replay {
  const codec = createEventCursorCodec(pad);
  if (reply[0] === 'GONE') {
    const position = typeof from === 'string' ? startOfHistory : from;
    const told = { operation: 'DELETE', occurredAt: new Date(), replayed: true, expiresAt: null } as const;
    const deliveries = [createDelivery(told, position, codec)];
    return { deliveries, position, complete: true, deleted: true, expiresAtMs: null };
  }
  const [, entries, content, expiresAtText, expired, fromEntries, fromContent, ...told] = reply;
  const [clearedEntries, clearedContent, rows, complete, contentRow] = told;
  const state: EventPosition = { entries: Number(entries), content: Number(content) };
  const expiresAtMs = expiresAtText === 'null' || expiresAtText === '0' ? null : Number(expiresAtText);
  const expiresAt = expiresAtMs === null ? null : new Date(expiresAtMs);

  let position: EventPosition = { entries: Number(fromEntries), content: Number(fromContent) };
  const deliveries: Delivery[] = [];
  const tell = (change: Omit<Told, 'expiresAt' | 'replayed'>, next: EventPosition): void => {
    position = next;
    deliveries.push(createDelivery({ ...change, expiresAt, replayed: true }, next, codec));
  };

  // A client that drops right behind EXPIRE has seen nothing of the state that there is now.
  if (expired === '1') {
    const gone = createDelivery(
      { operation: 'EXPIRE', occurredAt: new Date(), expiresAt: null, replayed: true },
      startOfHistory,
      codec,
    );
    deliveries.push(gone);
  }
  if (clearedEntries !== null || clearedContent !== null) {
    const next = {
      entries: clearedEntries === null ? position.entries : Number(clearedEntries),
      content: clearedContent === null ? position.content : Number(clearedContent),
    };
    const occurredAt = timeOf(Math.max(Number(clearedEntries), Number(clearedContent)));
    tell({ operation: clearOperation(clearedEntries !== null, clearedContent !== null), occurredAt }, next);
  }
  for (const row of rows) {
    const entry = parseEntry(row);
    const next = { entries: entry.sequence, content: position.content };
    tell({ operation: 'APPEND', entry, runId: entry.runId, occurredAt: new Date(entry.createdAt) }, next);
  }
  if (contentRow !== null) {
    const newContent = parseContent(contentRow);
    tell({ operation: 'UPDATE', content: newContent, occurredAt: new Date(newContent.updatedAt ?? Date.now()) }, state);
  }
  if (complete === '1') position = state;
  return { deliveries, position, complete: complete === '1', deleted: false, expiresAtMs };
}

/** Reads one page. @throws DomainError UNAVAILABLE */
export type ReadReplay = (pad: PadAddress, from: ReplayFrom) => Promise<Replay>;

export function createReplayReader(redis: RedisAccess): ReadReplay {
  const run = defineScript(redis.commands, replayScript);

  return async (pad, from) => {
    const keys = [contentKey(pad), entriesKey(pad), sequenceKey(pad), tombstoneKey(pad.scratchpadId)];
    const [mode, { entries, content }] = typeof from === 'string' ? [from, startOfHistory] : (['after', from] as const);
    const reply = await askRedis(redis, () => run(keys, [mode, entries, content, mostRows, pageBytes]));
    return toReplay(pad, from, reply as ReplayReply);
  };
}
