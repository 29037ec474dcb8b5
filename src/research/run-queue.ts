// Takes runs out of the queue, as many side by side as this process has places. What a run is, and how it ended, is in SQL alone.
import type { Worker } from 'bullmq';
import type { RedisCommands } from '../redis/redis-access.js';
import { jobPrefix, jobQueueName } from '../redis/redis-keys.js';
import type { Logger } from '../shared/logger.js';

export interface RunQueue {
  /** Begins to take runs. */
  start(): void;
  /** Takes no more; resolves when those taken are done. */
  stopTaking(): Promise<void>;
  /** Waits for nothing any more. */
  close(): void;
}

interface Dependencies {
  redis: { openQueueConnection(): RedisCommands };
  /** Never rejects. */
  execute: (runId: string) => Promise<void>;
  /** Whoever executed it renews its hold no more, or cannot: it may be said of a run that is executed here. */
  onLost: (runId: string) => void;
  /** Runs side by side in this process; 0 takes none. */
  concurrency: number;
  logger: Logger;
  /** For tests. */
  timing?: QueueTiming;
}

export interface QueueTiming {
  /** How long a process holds a run without a sign of life. */
  lockMs: number;
  /** How often somebody looks for runs that nobody holds. */
  stalledCheckMs: number;
}

const defaultTiming: QueueTiming = { lockMs: 20_000, stalledCheckMs: 10_000 };
/** How long a connection blocks for the next job. */
const blockSeconds = 5;

export function createRunQueue(dependencies: Dependencies): RunQueue {
  const { redis, execute, onLost, concurrency, logger, timing = defaultTiming } = dependencies;
  const onError = (error: Error): void => logger.debug({ err: error }, 'the queue of runs reports an error');
  let worker: Worker | undefined;
  let connection: RedisCommands | undefined;
  let starting: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;

  /** Loaded when it is wanted first: it would hold up the start of every server. */
  async function startWorker(): Promise<void> {
    const bullmq = await import('bullmq');
    if (stopping) return;
    connection = redis.openQueueConnection();
    worker = new bullmq.Worker(jobQueueName, async ({ id }) => (id === undefined ? undefined : await execute(id)), {
      connection,
      prefix: jobPrefix,
      concurrency,
      drainDelay: blockSeconds,
      lockDuration: timing.lockMs,
      lockRenewTime: timing.lockMs / 4,
      stalledInterval: timing.stalledCheckMs,
      // A run is never executed twice.
      maxStalledCount: 0,
    });
    worker.on('error', onError);
    worker.on('stalled', onLost);
    worker.on('lockRenewalFailed', (runIds: string[]) => runIds.forEach(onLost));
  }

  const stopTaking = (): Promise<void> => (stopping ??= worker?.close() ?? Promise.resolve());

  return {
    start() {
      if (concurrency === 0 || starting || stopping) return;
      starting = startWorker().catch((error: unknown) => logger.error({ err: error }, 'could not begin to take runs'));
    },

    stopTaking,

    close() {
      void stopTaking().catch(onError);
      // What still hangs on a Redis that is away comes back with an error.
      void worker?.disconnect().catch(onError);
      connection?.disconnect();
    },
  };
}
