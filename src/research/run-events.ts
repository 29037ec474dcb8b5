// The streams of runs: who writes them, who reads them, and how they end whatever dies in between.
import { createChannelHub, type SubscriberAccess } from '../redis/channel-hub.js';
import type { RedisAccess } from '../redis/redis-access.js';
import type { Clock } from '../shared/clock.js';
import { DomainError } from '../shared/errors.js';
import type { Logger } from '../shared/logger.js';
import type { RunAddress, RunEventPublisher, RunEventRecord, RunEvents } from './run-event.js';
import { createRunCursorCodec } from './run-event-cursor.js';
import { createRunEventFeed, type RunEventFeed } from './run-event-feed.js';
import { createRunEventLog, type EventPage, type StreamAddress } from './run-event-log.js';
import { createRunEventPublisher } from './run-event-publisher.js';
import { createRunEventReader, type RunEventReader } from './run-event-reader.js';
import type { RunRow, RunStore } from './run-store.js';
import { terminalEventOf } from './terminal-event.js';

type RunOfStream = Pick<RunRow, 'id' | 'ownerId' | 'parentRunId'>;

export interface RunEventStreams extends RunEvents {
  /**
   * The way into the run's stream; for a delegated worker, into its parent's. With Redis away events wait in memory, bounded, and are
   * written when it is back, in order and once; what does not fit, and what waits for more than five minutes, is given up. The events are no
   * reason to stop a run; that its hold in the queue was lost meanwhile is one, and the sweep's.
   */
  publisher(run: RunOfStream): RunEventPublisher;
  /** The first event of a run that waits. @throws DomainError UNAVAILABLE */
  announce(run: RunOfStream): Promise<void>;
  /** Ends the stream of a run that has ended, unless it has ended already. @throws DomainError UNAVAILABLE */
  seal(run: RunRow): Promise<void>;
  /** Forgets the stream of a deleted run, for ever. Safe to repeat. @throws DomainError UNAVAILABLE */
  purge(ownerId: string, runId: string): Promise<void>;
  /** Completes every subscription, takes no new ones, and writes nothing any more. */
  close(): void;
}

interface Dependencies {
  redis: RedisAccess & SubscriberAccess;
  runStore: Pick<RunStore, 'find'>;
  /** How long a stream stays after its last event. */
  ttlSeconds: number;
  /** The longest time between two events of a run that goes on. */
  quietSeconds: number;
  now: Clock;
  logger: Logger;
}

/** Whoever ends a run writes its last event right after SQL knows; so long nobody else does. */
const sealGraceMs = 3000;
const terminalStates: RunRow['status'][] = ['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED'];

export const hasEnded = ({ status }: Pick<RunRow, 'status'>): boolean => terminalStates.includes(status);

const streamOf = ({ ownerId, id, parentRunId }: RunOfStream): StreamAddress => ({ ownerId, runId: parentRunId ?? id });

export function createRunEvents(dependencies: Dependencies): RunEventStreams {
  const { redis, runStore, ttlSeconds, quietSeconds, now, logger } = dependencies;
  const log = createRunEventLog(redis, {
    activeMs: (quietSeconds + ttlSeconds) * 1000,
    endedMs: ttlSeconds * 1000,
  });
  const hub = createChannelHub(redis, logger);
  const feeds = new Map<string, RunEventFeed>();
  const readers = new Set<RunEventReader>();
  const ending = new AbortController();

  const feedOf = (stream: StreamAddress): RunEventFeed => {
    const key = `${stream.ownerId}:${stream.runId}`;
    let feed = feeds.get(key);
    if (!feed) {
      const created = createRunEventFeed(hub, stream, () => {
        if (feeds.get(key) === created) feeds.delete(key);
      });
      feed = created;
      feeds.set(key, feed);
    }
    return feed;
  };

  async function seal(run: RunRow): Promise<void> {
    await log.append(streamOf(run), [terminalEventOf(run, run.finishedAt ?? now())]);
  }

  async function ask(runId: string): Promise<RunRow | null | 'unknown'> {
    try {
      return await runStore.find(runId);
    } catch (error) {
      logger.warn({ err: error, runId }, 'could not ask whether a run has ended');
      return 'unknown';
    }
  }

  /** Those who watch one run ask together. */
  const asked = new Map<string, Promise<RunRow | null | 'unknown'>>();
  const findRun = (runId: string): Promise<RunRow | null | 'unknown'> => {
    const known = asked.get(runId);
    if (known) return known;
    const asking = ask(runId).finally(() => asked.delete(runId));
    asked.set(runId, asking);
    return asking;
  };

  /** Whoever should have ended the stream may have died, or Redis was away: then whoever notices does it. */
  async function isOver({ runId }: RunAddress, { state }: EventPage, quietMs: number): Promise<boolean> {
    const run = await findRun(runId);
    if (run === 'unknown') return false;
    if (!run) return true;
    if (!hasEnded(run) || now().getTime() - (run.finishedAt?.getTime() ?? 0) < sealGraceMs) return false;
    // Expired, or lost: there is nothing to tell.
    if (state === 'none') return true;
    // Events that waited for Redis come first.
    if (quietMs < sealGraceMs) return false;
    if (run.parentRunId !== null) return true;
    await seal(run);
    return false;
  }

  return {
    publisher: (run) => createRunEventPublisher(streamOf(run), { log, logger, ending: ending.signal }),
    seal,

    async announce(run) {
      await log.append(streamOf(run), [
        {
          type: 'status',
          originRunId: run.id,
          phase: 'QUEUED',
          activity: 'Waiting for a free place.',
          state: 'IN_PROGRESS',
          tool: null,
          occurredAt: now(),
        },
      ]);
    },

    purge: (ownerId, runId) => log.purge({ ownerId, runId }),

    async subscribe(run, { after }) {
      if (ending.signal.aborted) throw new DomainError('UNAVAILABLE', 'The server is shutting down: connect again.');
      const codec = createRunCursorCodec(run.runId);
      const from = after === undefined ? 'now' : after === '' ? 0 : codec.decode(after);
      const stream: StreamAddress = { ownerId: run.ownerId, runId: run.parentRunId ?? run.runId };
      const feed = feedOf(stream);
      const wake = (): void => reader?.wake();
      let reader: RunEventReader | undefined;
      try {
        await feed.join(wake);
        const start = from === 'now' ? (await log.read(stream, 'now')).lastNumber : from;
        const created = createRunEventReader(
          {
            read: (position) => log.read(stream, position),
            toRecord: ({ number, event }): RunEventRecord | undefined =>
              event && (run.parentRunId === null || event.originRunId === run.runId)
                ? { ...event, cursor: codec.encode(number), runId: run.runId }
                : undefined,
            isLast: (event) =>
              run.parentRunId !== null &&
              event.type === 'status' &&
              (event.phase === 'WORKER_COMPLETED' || event.phase === 'WORKER_FAILED'),
            isOver: (page, quietMs) => isOver(run, page, quietMs),
            leave() {
              readers.delete(created);
              feed.leave(wake);
            },
          },
          start,
        );
        reader = created;
        readers.add(created);
        return created;
      } catch (error) {
        feed.leave(wake);
        throw error;
      }
    },

    close() {
      ending.abort();
      for (const reader of readers) reader.complete();
      hub.close();
    },
  };
}
