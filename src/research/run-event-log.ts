// The list and the channel of a run's events in Redis: what is written, read and forgotten, in one round trip each.
import { askRedis, type RedisAccess } from '../redis/redis-access.js';
import { runEventsChannel, runEventsKey, tombstoneKey } from '../redis/redis-keys.js';
import { defineScript } from '../redis/run-script.js';
import type { NewRunEvent } from './run-event.js';
import { decodeRow, encodeRow, type NumberedEvent } from './run-event-row.js';
import { appendEventsScript, purgeEventsScript, readEventsScript } from './run-event-scripts.js';

/** One stream. */
export interface StreamAddress {
  readonly ownerId: string;
  readonly runId: string;
}

/** What is behind a number. */
export interface EventPage {
  /** none: there is no list; more: read on behind the last one; open: that was all for now; ended: that was all for ever. */
  readonly state: 'none' | 'more' | 'open' | 'ended';
  readonly events: readonly NumberedEvent[];
  /** The last one in the list; 0 without a list. */
  readonly lastNumber: number;
}

/** Every method throws DomainError UNAVAILABLE when Redis is away. */
export interface RunEventLog {
  /**
   * @param lastKnown for a retry: the last number before the write was tried first, so that it is not applied twice
   * @returns the number of the last event; "over" when the stream has ended or its run was deleted: nothing was written
   */
  append(stream: StreamAddress, events: readonly NewRunEvent[], lastKnown?: number): Promise<number | 'over'>;
  /** @param after a number, or "now" for nothing but the state */
  read(stream: StreamAddress, after: number | 'now'): Promise<EventPage>;
  /** For a deleted run. Safe to repeat. */
  purge(stream: StreamAddress): Promise<void>;
}

interface Lifetimes {
  /** After each event but the last one. */
  activeMs: number;
  /** After the last one. */
  endedMs: number;
}

const rowsAtOnce = 100;
const bytesAtOnce = 1024 * 1024;
/** Outlives whatever still executes a deleted run. */
const tombstoneSeconds = 3600;

const states = { NONE: 'none', MORE: 'more', OPEN: 'open', ENDED: 'ended' } as const;

/** Whether it is the last one in the stream of this run. */
const isEndOf = (runId: string, event: NewRunEvent): boolean =>
  event.type === 'status' && event.phase === 'FINISHED' && event.originRunId === runId;

export function createRunEventLog(redis: RedisAccess, { activeMs, endedMs }: Lifetimes): RunEventLog {
  const appendEvents = defineScript(redis.commands, appendEventsScript);
  const readEvents = defineScript(redis.commands, readEventsScript);
  const purgeEvents = defineScript(redis.commands, purgeEventsScript);
  const keysOf = ({ ownerId, runId }: StreamAddress): [string, string] => [
    runEventsKey(ownerId, runId),
    tombstoneKey(runId),
  ];
  const channelOf = ({ ownerId, runId }: StreamAddress): string => runEventsChannel(ownerId, runId);

  return {
    async append(stream, events, lastKnown) {
      const rows = events.map((event) => encodeRow(event, isEndOf(stream.runId, event)));
      const values = [channelOf(stream), activeMs, endedMs, lastKnown ?? '', ...rows];
      const reply = (await askRedis(redis, () => appendEvents(keysOf(stream), values))) as string;
      return reply === 'ENDED' || reply === 'GONE' ? 'over' : Number(reply);
    },

    async read(stream, after) {
      const [list] = keysOf(stream);
      const reply = await askRedis(redis, () => readEvents([list], [after, rowsAtOnce, bytesAtOnce]));
      const [state, last, ...rows] = reply as [keyof typeof states, string?, ...string[]];
      return { state: states[state], lastNumber: Number(last ?? 0), events: rows.map(decodeRow) };
    },

    async purge(stream) {
      await askRedis(redis, () => purgeEvents(keysOf(stream), [channelOf(stream), tombstoneSeconds]));
    },
  };
}
