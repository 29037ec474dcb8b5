// Ends runs from outside: one that a tenant cancels, and all those whose thread, scratchpad, assistant or user is about to go.
import type { PrismaClient } from '../generated/prisma/client.js';
import type { Logger } from '../shared/logger.js';
import { activeRun } from '../threads/idle-thread.js';
import type { RunRow, RunStore } from './run-store.js';

/** Whoever executes runs, seen from those who start and stop them. */
export interface RunDispatcher {
  /** Durable when it resolves. @throws DomainError UNAVAILABLE when it may not have arrived */
  enqueue(run: RunRow): Promise<void>;
  /** Stops the execution within 2 s, wherever it is. It may not arrive: executing processes look at cancelRequestedAt as well. */
  requestCancel(run: RunRow): Promise<void>;
  /** The run ended without ever having been executed: writes the last event of its stream, and drops its job. */
  endedUnexecuted(run: RunRow): Promise<void>;
}

/** Whose runs: those of one owner that hang on one thing, or all of them. */
export interface RunScope {
  ownerId: string;
  threadId?: string;
  scratchpadId?: string;
  assistantId?: string;
}

export interface RunCancellation {
  /** A waiting run is CANCELLED when it resolves; an executing one has been asked to stop, its delegated workers with it. One that has ended stays. */
  cancel(run: RunRow): Promise<void>;
  /** The same for every active run in scope. */
  cancelAll(scope: RunScope): Promise<void>;
}

interface Dependencies {
  prisma: Pick<PrismaClient, 'run'>;
  runStore: Pick<RunStore, 'cancelQueued' | 'askToCancel'>;
  dispatcher: Pick<RunDispatcher, 'requestCancel' | 'endedUnexecuted'>;
  logger: Logger;
}

export function createRunCancellation({ prisma, runStore, dispatcher, logger }: Dependencies): RunCancellation {
  /** SQL has the word already, and what executes or sweeps reads it there: a signal that is lost costs time only. */
  async function signal(runId: string, send: () => Promise<void>): Promise<void> {
    try {
      await send();
    } catch (error) {
      logger.warn({ err: error, runId }, 'could not signal the cancellation of a run');
    }
  }

  async function cancel(run: RunRow): Promise<void> {
    const cancelled = await runStore.cancelQueued(run.id);
    if (cancelled) await signal(run.id, () => dispatcher.endedUnexecuted(cancelled));
    else if (await runStore.askToCancel(run.id)) await signal(run.id, () => dispatcher.requestCancel(run));
  }

  return {
    cancel,
    async cancelAll(scope) {
      // Workers end with their supervisors.
      const runs = await prisma.run.findMany({ where: { ...scope, ...activeRun, parentRunId: null } });
      await Promise.all(runs.map(cancel));
    },
  };
}
