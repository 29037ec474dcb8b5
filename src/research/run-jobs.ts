// The jobs of runs in the queue, on BullMQ, over the connection that fails fast.
import type * as BullMq from 'bullmq';
import type { Queue } from 'bullmq';
import { askRedis, type RedisAccess } from '../redis/redis-access.js';
import { jobKey, jobLockKey, jobPrefix, jobQueueName } from '../redis/redis-keys.js';
import type { Logger } from '../shared/logger.js';

/** Every method but `close` throws DomainError UNAVAILABLE when Redis is away. */
export interface RunJobs {
  /** Once, however often. */
  add(runId: string): Promise<void>;
  /** A job that is being executed stays. Safe to repeat. */
  remove(runId: string): Promise<void>;
  /** Of these runs, those that have a job, and those that some process executes. */
  look(runIds: readonly string[]): Promise<{ queued: ReadonlySet<string>; held: ReadonlySet<string> }>;
  /** How many runs wait for a free place. */
  waiting(): Promise<number>;
  close(): Promise<void>;
}

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

export function createRunJobs(redis: RedisAccess, logger: Logger): RunJobs {
  let opening: Promise<Queue> | undefined;

  /** One whose connection failed while it was opened stays broken: then there is a new one. */
  async function open(bullmq: Pick<typeof BullMq, 'Queue'>): Promise<Queue> {
    const queue = new bullmq.Queue(jobQueueName, {
      connection: redis.commands,
      prefix: jobPrefix,
      streams: { events: { maxLen: keptQueueEvents } },
      defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
    });
    queue.on('error', (error) => logger.debug({ err: error }, 'the queue of runs reports an error'));
    try {
      await queue.waitUntilReady();
      return queue;
    } catch (error) {
      opening = undefined;
      throw error;
    }
  }
  const ask = <Answer>(work: (queue: Queue) => Promise<Answer>): Promise<Answer> =>
    askRedis(redis, async () => {
      // Loaded when it is wanted first, since it would hold up the start of every server. That may take seconds, and is no fault of Redis.
      const bullmq = await import('bullmq');
      return await withinTime((opening ??= open(bullmq)).then(work));
    });

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

    async close() {
      const queue = await opening?.catch(() => undefined);
      await queue?.close();
    },
  };
}
