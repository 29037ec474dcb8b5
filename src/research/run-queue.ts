// The queue of runs, on BullMQ: which run a free place in some process takes next. What a run is, and how it ended, is in SQL alone.
import { Queue, Worker } from 'bullmq';
import { askRedis, type RedisAccess, type RedisCommands } from '../scratchpads/redis-access.js';
import { jobKey, jobLockKey, jobPrefix, jobQueueName } from '../scratchpads/scratchpad-keys.js';
import type { Logger } from '../shared/logger.js';

/** Every method but `start` and `close` throws DomainError UNAVAILABLE when Redis is away. */
export interface RunQueue {
  /** Once, however often. */
  add(runId: string): Promise<void>;
  /** A job that is being executed stays. Safe to repeat. */
  remove(runId: string): Promise<void>;
  /** Of these runs, those that have a job, and those that some process executes. */
  look(runIds: readonly string[]): Promise<{ queued: ReadonlySet<string>; held: ReadonlySet<string> }>;
  /** How many runs wait for a free place. */
  waiting(): Promise<number>;
  /** Begins to take jobs. */
  start(): void;
  /** Takes no more jobs; resolves when those taken are done. */
  stopTaking(): Promise<void>;
  /** Waits for nothing any more. */
  close(): Promise<void>;
}

interface Dependencies {
  redis: RedisAccess & { openQueueConnection(): RedisCommands };
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
/** Seconds for which a worker blocks for its next job. */
const blockSeconds = 5;
/** BullMQ keeps a stream of its own events, which nobody reads. */
const keptQueueEvents = 100;
const answerTimeoutMs = 3000;

/** Waits for a Redis that went away in between no longer than others do. */
function withinTime<Answer>(work: Promise<Answer>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${answerTimeoutMs} ms`)), answerTimeoutMs);
  });
  return Promise.race([work, tooLate]).finally(() => clearTimeout(timer));
}

export function createRunQueue(dependencies: Dependencies): RunQueue {
  const { redis, execute, onLost, concurrency, logger, timing = defaultTiming } = dependencies;
  const onError = (error: Error): void => logger.debug({ err: error }, 'the queue of runs reports an error');

  /** Over the connection that fails fast. One whose connection failed while it was opened stays broken: then there is a new one. */
  let opening: Promise<Queue> | undefined;
  async function open(): Promise<Queue> {
    const queue = new Queue(jobQueueName, {
      connection: redis.commands,
      prefix: jobPrefix,
      streams: { events: { maxLen: keptQueueEvents } },
      defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
    });
    queue.on('error', onError);
    try {
      await queue.waitUntilReady();
      return queue;
    } catch (error) {
      opening = undefined;
      throw error;
    }
  }
  const ask = <Answer>(work: (queue: Queue) => Promise<Answer>): Promise<Answer> =>
    askRedis(redis, () => withinTime((opening ??= open()).then(work)));

  let worker: Worker | undefined;
  let connection: RedisCommands | undefined;
  let stopping: Promise<void> | undefined;

  const stopTaking = (): Promise<void> => (stopping ??= worker?.close() ?? Promise.resolve());

  return {
    async add(runId) {
      await ask((queue) => queue.add('run', {}, { jobId: runId }));
    },

    async remove(runId) {
      await ask((queue) => queue.remove(runId));
    },

    async look(runIds) {
      const { commands } = redis;
      const among = async (keyOf: (runId: string) => string): Promise<Set<string>> => {
        const found = await Promise.all(runIds.map((runId) => commands.exists(keyOf(runId))));
        return new Set(runIds.filter((_, index) => found[index] === 1));
      };
      return await askRedis(redis, async () => ({ queued: await among(jobKey), held: await among(jobLockKey) }));
    },

    waiting: () => ask((queue) => queue.getWaitingCount()),

    start() {
      if (concurrency === 0 || worker || stopping) return;
      connection = redis.openQueueConnection();
      worker = new Worker(jobQueueName, async ({ id }) => (id === undefined ? undefined : await execute(id)), {
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
    },

    stopTaking,

    async close() {
      void stopTaking().catch(onError);
      // What still hangs on a Redis that is away comes back with an error.
      void worker?.disconnect().catch(onError);
      connection?.disconnect();
      const queue = await opening?.catch(() => undefined);
      await queue?.close();
    },
  };
}
