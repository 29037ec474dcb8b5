// What executes runs in this process and keeps their events: queue, executions, streams and sweep, put together.
import type { PrismaClient } from '../generated/prisma/client.js';
import { createChannelHub, type SubscriberAccess } from '../redis/channel-hub.js';
import { askRedis, type RedisAccess, type RedisCommands } from '../redis/redis-access.js';
import { runCancelChannel } from '../redis/redis-keys.js';
import type { Clock } from '../shared/clock.js';
import type { Logger } from '../shared/logger.js';
import type { RunDispatcher } from './run-cancellation.js';
import { createRunEvents, type RunEventStreams } from './run-events.js';
import { createRunExecutions, type RunHooks, type Executor } from './run-executions.js';
import { createLoseRun, wasShutDown } from './run-loss.js';
import { createRunJobs } from './run-jobs.js';
import { createRunQueue, type QueueTiming } from './run-queue.js';
import type { RunStore } from './run-store.js';
import { createRunSweeper } from './run-sweeper.js';

export interface RunRuntime {
  readonly dispatcher: RunDispatcher;
  readonly events: RunEventStreams;
  /** Lets Redis forget a deleted run. Safe to repeat. @throws DomainError UNAVAILABLE */
  purge(ownerId: string, runId: string): Promise<void>;
  /** Runs that wait for a free place. @throws DomainError UNAVAILABLE */
  waiting(): Promise<number>;
  /** Begins to execute and to sweep. */
  start(): void;
  /** Takes no more runs; lets those end that do so within a moment, and ends the others as lost. Then completes every subscription. */
  close(): Promise<void>;
}

export interface RunRuntimeOptions {
  prisma: PrismaClient;
  runStore: RunStore;
  redis: RedisAccess & SubscriberAccess & { openQueueConnection(): RedisCommands };
  createExecutor: (events: Pick<RunEventStreams, 'publisher'>) => Executor;
  limits: { runWorkers: number; runMaxSeconds: number; runEventsTtlSeconds: number };
  hooks: RunHooks;
  now: Clock;
  logger: Logger;
  /** For tests. */
  timing?: QueueTiming & { sweepMs: number };
}

const defaultSweepMs = 10_000;
/** What ends by itself within this time is not lost when the process is told to end. */
const shutdownGraceMs = 3000;
/** What is stopped gets this long to put things in order. */
const stopLimitMs = 2000;

export function createRunRuntime(options: RunRuntimeOptions): RunRuntime {
  const { prisma, runStore, redis, createExecutor, limits, hooks, now, logger, timing } = options;
  const events = createRunEvents({
    redis,
    runStore,
    ttlSeconds: limits.runEventsTtlSeconds,
    quietSeconds: limits.runMaxSeconds,
    now,
    logger,
  });
  const hub = createChannelHub(redis, logger);
  const executions = createRunExecutions({
    prisma,
    hub,
    executor: createExecutor(events),
    wallClockMs: limits.runMaxSeconds * 1000,
    hooks,
    logger,
  });
  const jobs = createRunJobs(redis, logger);
  const queue = createRunQueue({
    redis,
    // What was taken at the last moment still waits in SQL: a sweep puts it into the queue again.
    execute: (runId) => (isClosing ? Promise.resolve() : executions.execute(runId)),
    onLost: (runId) => void loseHere(runId),
    concurrency: limits.runWorkers,
    logger,
    ...(timing && { timing }),
  });
  const lose = createLoseRun({ runStore, events, jobs, hooks, logger });
  const sweeper = createRunSweeper({ runStore, jobs, lose, intervalMs: timing?.sweepMs ?? defaultSweepMs, logger });

  let isClosing = false;

  /** SQL first: what is stopped would otherwise call itself cancelled. */
  async function loseHere(runId: string, reason?: string): Promise<void> {
    try {
      await lose(runId, reason);
    } catch (error) {
      logger.error({ err: error, runId }, 'could not end a run that was lost; a sweep will');
    }
    executions.stop(runId);
  }

  return {
    events,
    dispatcher: {
      async enqueue(run) {
        await events.announce(run);
        await jobs.add(run.id);
      },
      async requestCancel(run) {
        await askRedis(redis, () => redis.commands.publish(runCancelChannel, JSON.stringify(run.id)));
      },
      async endedUnexecuted(run) {
        await events.seal(run);
        if (run.parentRunId === null) await jobs.remove(run.id);
      },
    },
    async purge(ownerId, runId) {
      await events.purge(ownerId, runId);
      await jobs.remove(runId);
    },
    waiting: () => jobs.waiting(),
    start() {
      executions.start();
      queue.start();
      sweeper.start();
    },
    async close() {
      isClosing = true;
      const taking = queue.stopTaking();
      taking.catch(() => undefined);
      const [left] = await Promise.all([executions.settled(shutdownGraceMs), sweeper.close()]);
      await Promise.all(left.map((runId) => loseHere(runId, wasShutDown)));
      await executions.settled(stopLimitMs);
      await executions.close();
      // With Redis away the last jobs cannot be taken off the queue: their runs have ended, so nobody executes them again.
      await Promise.race([taking.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, 500).unref())]);
      events.close();
      hub.close();
      queue.close();
      await jobs.close();
    },
  };
}
