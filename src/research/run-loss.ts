// Ends a run whose process cannot: it died, lost its hold, or is told to end. Nobody goes on with it.
import type { Logger } from '../shared/logger.js';
import type { RunEventStreams } from './run-events.js';
import { hasEnded } from './run-events.js';
import type { RunHooks } from './run-executions.js';
import type { RunJobs } from './run-jobs.js';
import type { RunEnd, RunRow, RunStore } from './run-store.js';

/** Safe to call for any run, by any number of processes: one that has ended stays as it is, one that still waits goes on waiting. */
export type LoseRun = (runId: string, reason?: string) => Promise<void>;

interface Dependencies {
  runStore: Pick<RunStore, 'find' | 'finish' | 'activeRuns' | 'removeEphemera'>;
  events: Pick<RunEventStreams, 'seal'>;
  jobs: Pick<RunJobs, 'remove'>;
  hooks: Pick<RunHooks, 'runLost'>;
  logger: Logger;
}

/** Which of the two it was, nobody can tell from outside. */
const lostHold =
  'The hold on the run was lost: its process died or stood still, or Redis was away for longer than a hold lives. Start it again.';
export const wasShutDown = 'The process that executed the run was shut down. Start it again.';

export function createLoseRun({ runStore, events, jobs, hooks, logger }: Dependencies): LoseRun {
  const lost = (reason: string): RunEnd => ({ status: 'FAILED', error: { code: 'WORKER_LOST', message: reason } });

  /** What Redis is told comes second: whoever reads the stream later makes up for it. */
  async function tell(what: string, run: RunRow, send: () => Promise<void>): Promise<void> {
    try {
      await send();
    } catch (error) {
      logger.warn({ err: error, runId: run.id }, what);
    }
  }
  const seal = (run: RunRow): Promise<void> => tell('could not end the stream of a run', run, () => events.seal(run));

  async function loseWorkersOf(run: RunRow, reason: string): Promise<void> {
    const active = await runStore.activeRuns();
    for (const worker of active.filter(({ parentRunId }) => parentRunId === run.id)) {
      const ended = await runStore.finish(worker.id, lost(reason));
      if (ended) await seal(ended);
      await runStore.removeEphemera(worker.id);
    }
  }

  return async (runId, reason = lostHold) => {
    const run = await runStore.find(runId);
    if (!run || run.status === 'QUEUED') return;
    await loseWorkersOf(run, reason);
    const ended = await runStore.finish(runId, lost(reason));
    if (ended) {
      logger.warn({ runId, reason }, 'a run was lost');
      hooks.runLost();
    }
    const last = ended ?? (await runStore.find(runId));
    if (last && hasEnded(last)) {
      await seal(last);
      if (last.parentRunId === null) await tell('could not remove the job of a run', last, () => jobs.remove(runId));
    }
  };
}
