// Makes Redis follow the deletes that SQL committed: at once for the request that deleted, and again in the background until it is done.
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../shared/logger.js';
import { createPadPurger } from './pad-purger.js';
import { askRedis, type RedisAccess } from '../redis/redis-access.js';
import { legacyNotebookKey } from '../redis/redis-keys.js';

/** What Redis still has to forget; triggers write one in the transaction that deletes the row. */
export interface PurgeTask {
  readonly id: bigint;
  readonly kind: 'SCRATCHPAD' | 'THREAD' | 'RUN';
  readonly ownerId: string;
  readonly resourceId: string;
}

/** The SQL side. */
export interface PurgeQueue {
  /** The oldest tasks first; of one owner, or of all. */
  list(query: { ownerId?: string; limit: number }): Promise<PurgeTask[]>;
  remove(ids: readonly bigint[]): Promise<void>;
  count(): Promise<number>;
}

export interface Purge {
  /**
   * Runs the owner's tasks, for two seconds at most. Never throws: what fails or is left over stays in the queue for the
   * background loop.
   */
  drainOwner(ownerId: string): Promise<void>;
  /** Starts the background loop, which begins with what an earlier process left. */
  start(): void;
  /** Tasks that still wait, of all processes. */
  backlog(): Promise<number>;
  /** Ends the loop; resolves when nothing is under way any more. */
  close(): Promise<void>;
}

interface Dependencies {
  queue: PurgeQueue;
  redis: RedisAccess;
  /** Lets Redis forget a deleted run; safe to repeat. */
  purgeRun: (ownerId: string, runId: string) => Promise<void>;
  logger: Logger;
  /** How often the background loop looks for what is left. */
  intervalMs: number;
}

const batchSize = 100;
const longestBackOffMs = 5000;
/** A request that deleted very much does not wait until Redis has forgotten all of it. */
const longestWaitMs = 2000;

export function createPurge({ queue, redis, purgeRun, logger, intervalMs }: Dependencies): Purge {
  const purgePad = createPadPurger(redis);
  const ending = new AbortController();
  let loop: Promise<void> = Promise.resolve();

  const run = async (task: PurgeTask): Promise<void> => {
    switch (task.kind) {
      case 'SCRATCHPAD':
        return await purgePad({ ownerId: task.ownerId, scratchpadId: task.resourceId });
      case 'THREAD':
        await askRedis(redis, () => redis.commands.unlink(legacyNotebookKey(task.resourceId)));
        return;
      case 'RUN':
        await purgeRun(task.ownerId, task.resourceId);
    }
  };

  /** Tasks go only after Redis has forgotten; a task that fails keeps its place and does not hold up the others of its batch. */
  const drain = async (ownerId?: string, untilMs = Infinity): Promise<void> => {
    while (Date.now() < untilMs) {
      const tasks = await queue.list({ limit: batchSize, ...(ownerId !== undefined && { ownerId }) });
      const outcomes = await Promise.allSettled(tasks.map(run));
      const done = tasks.filter((_, index) => outcomes[index]?.status === 'fulfilled');
      if (done.length > 0) await queue.remove(done.map(({ id }) => id));
      const failure = outcomes.find((outcome) => outcome.status === 'rejected');
      if (failure) throw failure.reason;
      if (tasks.length < batchSize || ending.signal.aborted) return;
    }
  };

  const drainForEver = async (): Promise<void> => {
    let failures = 0;
    while (!ending.signal.aborted) {
      try {
        await drain();
        failures = 0;
      } catch (error) {
        failures += 1;
        logger.warn({ reason: String(error), failures }, 'A purge waits: a store does not answer');
      }
      const pauseMs = failures === 0 ? intervalMs : Math.min(250 * 2 ** failures, longestBackOffMs);
      await delay(pauseMs, undefined, { signal: ending.signal, ref: false }).catch(() => undefined);
    }
  };

  return {
    async drainOwner(ownerId) {
      try {
        await drain(ownerId, Date.now() + longestWaitMs);
      } catch (error) {
        logger.warn({ reason: String(error), ownerId }, 'A purge was put off: a store does not answer');
      }
    },
    start() {
      loop = drainForEver();
    },
    backlog: () => queue.count(),
    async close() {
      ending.abort();
      await loop;
    },
  };
}
