// Looks every few seconds for runs that SQL and the queue do not agree on, and for what processes that died left behind.
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../shared/logger.js';
import type { LoseRun } from './run-loss.js';
import type { RunJobs } from './run-jobs.js';
import type { RunRow, RunStore } from './run-store.js';

export interface RunSweeper {
  /** Begins with what an earlier process left. */
  start(): void;
  /** One round. @throws when a store does not answer */
  sweep(): Promise<void>;
  /** Resolves when nothing is under way any more. */
  close(): Promise<void>;
}

interface Dependencies {
  runStore: Pick<RunStore, 'activeRuns' | 'removeStaleEphemera'>;
  jobs: Pick<RunJobs, 'add' | 'look'>;
  lose: LoseRun;
  intervalMs: number;
  logger: Logger;
}

/** What ended workers left behind is looked for in one round of so many: whoever ends a worker removes it at once, as a rule. */
const roundsForEphemera = 6;
/** Whoever starts a run puts it into the queue right after SQL knows it. */
const enqueueGraceMs = 5000;

export function createRunSweeper({ runStore, jobs, lose, intervalMs, logger }: Dependencies): RunSweeper {
  const ending = new AbortController();
  let loop: Promise<void> = Promise.resolve();
  let round = 0;
  let orphansBefore: ReadonlySet<string> = new Set();

  /** Runs that SQL says are executed, and whose hold in the queue is gone: their process cannot get it back. */
  async function sweepRoots(runs: readonly RunRow[]): Promise<void> {
    if (runs.length === 0) return;
    const { queued, held } = await jobs.look(runs.map(({ id }) => id));
    for (const { id, status, createdAt } of runs) {
      if (status === 'IN_PROGRESS' && !held.has(id)) await lose(id);
      else if (status === 'QUEUED' && !queued.has(id) && Date.now() - createdAt.getTime() > enqueueGraceMs) {
        logger.warn({ runId: id }, 'a run that waits had no job');
        await jobs.add(id);
      }
    }
  }

  /** Workers whose supervisor ended without them. Seen twice: a supervisor that is just ending takes care of them itself. */
  async function sweepWorkers(runs: readonly RunRow[], active: ReadonlySet<string>): Promise<void> {
    const orphans = runs.filter(({ parentRunId }) => parentRunId !== null && !active.has(parentRunId));
    const known = orphansBefore;
    orphansBefore = new Set(orphans.map(({ id }) => id));
    for (const { id, parentRunId } of orphans) if (known.has(id) && parentRunId !== null) await lose(parentRunId);
  }

  async function sweep(): Promise<void> {
    const runs = await runStore.activeRuns();
    await sweepWorkers(runs, new Set(runs.map(({ id }) => id)));
    await sweepRoots(runs.filter(({ parentRunId }) => parentRunId === null));
    if (round % roundsForEphemera === 0) await runStore.removeStaleEphemera();
    round += 1;
  }

  async function sweepForEver(): Promise<void> {
    while (!ending.signal.aborted) {
      try {
        await sweep();
      } catch (error) {
        logger.warn({ err: error }, 'A sweep of the runs was put off: a store does not answer');
      }
      // Several processes are not to look at the same moment.
      const pauseMs = intervalMs * (0.75 + Math.random() / 2);
      await delay(pauseMs, undefined, { signal: ending.signal, ref: false }).catch(() => undefined);
    }
  }

  return {
    start() {
      loop = sweepForEver();
    },
    sweep,
    async close() {
      ending.abort();
      await loop;
    },
  };
}
