// The runs that this process executes at the moment, and everything that stops them from outside.
import { setTimeout as delay } from 'node:timers/promises';
import type { PrismaClient } from '../generated/prisma/client.js';
import type { ChannelHub } from '../redis/channel-hub.js';
import { runCancelChannel } from '../redis/redis-keys.js';
import type { Logger } from '../shared/logger.js';
import { activeRun } from '../threads/idle-thread.js';
import { createStopSignal, type StopSignal } from './run-stop.js';

/** What executes runs. */
export interface Executor {
  /** @throws when SQL stays away */
  execute(runId: string, stop: Pick<StopSignal, 'signal' | 'cancel'>): Promise<void>;
  /** False when that worker is not executed here. */
  cancelWorker(workerRunId: string): boolean;
}

export interface RunExecutions {
  /** Never rejects: what an execution left undone is for the sweep. */
  execute(runId: string): Promise<void>;
  /** Stops a run that is somebody else's business by now. */
  stop(runId: string): void;
  /** Begins to listen and to look for runs that are to stop. */
  start(): void;
  /** Resolves when nothing is executed any more, or after that time; then names what still is. */
  settled(longestMs: number): Promise<string[]>;
  close(): Promise<void>;
}

/** What the metrics want to know. */
export interface RunHooks {
  runStarted(): void;
  /** @param outcome its status, or the code of its failure */
  runEnded(outcome: string, seconds: number): void;
  /** It was ended in the place of the process that executed it. */
  runLost(): void;
}

interface Dependencies {
  prisma: Pick<PrismaClient, 'run'>;
  hub: ChannelHub;
  executor: Executor;
  wallClockMs: number;
  hooks: Pick<RunHooks, 'runStarted' | 'runEnded'>;
  logger: Logger;
}

interface Execution {
  stop: StopSignal;
  done: Promise<void>;
}

/** A signal may be lost: SQL has the word as well. */
const pollMs = 1000;
const retryMs = 1000;

export function createRunExecutions(dependencies: Dependencies): RunExecutions {
  const { prisma, hub, executor, wallClockMs, hooks, logger } = dependencies;
  const executions = new Map<string, Execution>();
  let polling: NodeJS.Timeout | undefined;
  let poll: Promise<void> = Promise.resolve();
  let isClosed = false;

  const cancel = (runId: string): void => {
    const execution = executions.get(runId);
    if (execution) execution.stop.cancel();
    else executor.cancelWorker(runId);
  };

  /** Stops what is to be cancelled, and what has ended or gone in SQL while it is still executed here. */
  async function look(): Promise<void> {
    const runIds = [...executions.keys()];
    if (runIds.length === 0) return;
    const rows = await prisma.run.findMany({
      where: {
        OR: [
          { id: { in: runIds }, ...activeRun },
          { parentRunId: { in: runIds }, cancelRequestedAt: { not: null }, ...activeRun },
        ],
      },
      select: { id: true, cancelRequestedAt: true },
    });
    const active = new Set(rows.map(({ id }) => id));
    for (const { id, cancelRequestedAt } of rows) if (cancelRequestedAt) cancel(id);
    for (const runId of runIds) if (!active.has(runId)) cancel(runId);
  }

  const lookLater = (): void => {
    if (isClosed) return;
    polling = setTimeout(() => {
      poll = look().then(lookLater, (error: unknown) => {
        logger.warn({ err: error }, 'could not ask which runs are to stop');
        lookLater();
      });
    }, pollMs).unref();
  };

  let closeChannel: (() => void) | undefined;
  /** Until Redis is there; the hub keeps it open from then on. */
  async function listen(): Promise<void> {
    const onMessage = (message: unknown): void => {
      if (typeof message === 'string') cancel(message);
    };
    for (;;) {
      if (isClosed) return;
      try {
        closeChannel = await hub.open(runCancelChannel, { onMessage, onRestored: () => undefined });
        if (isClosed) closeChannel();
        return;
      } catch {
        await delay(retryMs, undefined, { ref: false });
      }
    }
  }

  async function outcomeOf(runId: string): Promise<string> {
    const row = await prisma.run
      .findUnique({ where: { id: runId }, select: { status: true, lastErrorCode: true } })
      .catch(() => null);
    return row?.lastErrorCode ?? row?.status ?? 'UNKNOWN';
  }

  async function perform(runId: string, stop: StopSignal): Promise<void> {
    const startedAt = performance.now();
    hooks.runStarted();
    try {
      await executor.execute(runId, stop);
    } catch (error) {
      logger.error({ err: error, runId }, 'the execution of a run was given up');
    } finally {
      stop.dispose();
      executions.delete(runId);
      const seconds = (performance.now() - startedAt) / 1000;
      hooks.runEnded(await outcomeOf(runId), seconds);
    }
  }

  return {
    async execute(runId) {
      if (executions.has(runId)) return;
      const stop = createStopSignal(wallClockMs);
      const done = perform(runId, stop);
      executions.set(runId, { stop, done });
      await done;
    },
    stop: (runId) => executions.get(runId)?.stop.cancel(),
    start() {
      void listen();
      lookLater();
    },
    async settled(longestMs) {
      let timer: NodeJS.Timeout | undefined;
      const limit = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, longestMs);
      });
      await Promise.race([Promise.all([...executions.values()].map(({ done }) => done)), limit]);
      clearTimeout(timer);
      return [...executions.keys()];
    },
    async close() {
      isClosed = true;
      clearTimeout(polling);
      closeChannel?.();
      await poll;
    },
  };
}
