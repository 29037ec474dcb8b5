// A delegated worker: made for one task, executed inside its parent's run, and gone at its end but for its row and what it appended.
import { delegateResearchTask } from '../tools/delegation/delegation-tool.js';
import { runAgent, type AgentDependencies } from './agent.js';
import { workerPrompt } from './prompts/worker-prompt.js';
import { inOneLine } from './run-activity.js';
import { endOf, finishRun } from './run-end.js';
import type { RunEventPublisher } from './run-event.js';
import { RESEARCH_WORKER_MAX_TURNS } from './run-limits.js';
import type { RunReporter } from './run-reporter.js';
import { RunStop } from './run-stop.js';
import { workerTools, type RunRow, type RunStore } from './run-store.js';
import { terminalEventOf } from './terminal-event.js';

export interface WorkerDependencies extends AgentDependencies {
  runStore: Pick<RunStore, 'setTurnCount' | 'createWorker' | 'begin' | 'finish' | 'find' | 'removeEphemera'>;
  /** Runs that can be cancelled by themselves while they are executed here. */
  cancellable: Map<string, () => void>;
}

export interface WorkerTask {
  parent: RunRow;
  /** Of the parent's stream. */
  publisher: RunEventPublisher;
  parentReporter: Pick<RunReporter, 'status'>;
  /** The parent's, shared by all of its workers. */
  signal: AbortSignal;
  name: string;
  task: string;
  requirements: string | undefined;
  /** The parent is not in progress any more: somebody else has ended it, or it is gone. */
  onParentGone: () => void;
}

export interface WorkerResult {
  /** The row at its end, whoever ended it; null when there is none any more. */
  run: Pick<RunRow, 'status' | 'output' | 'lastErrorCode' | 'lastErrorMessage'> | null;
  appendedEntries: number;
  fetchedUrls: string[];
}

const nothing: WorkerResult = { run: null, appendedEntries: 0, fetchedUrls: [] };

/** @throws what the store throws when it stays away; whatever happens, nothing of the worker goes on behind it */
export async function runWorker(dependencies: WorkerDependencies, order: WorkerTask): Promise<WorkerResult> {
  const { runStore, logger, now } = dependencies;
  const maxTurns = Math.min(RESEARCH_WORKER_MAX_TURNS, order.parent.maxTurns);
  const instructions = workerPrompt({ maxTurns });
  const { name, task, requirements } = order;
  const worker = await runStore.createWorker(order.parent, { task, requirements, name, instructions, maxTurns });
  if (!worker) {
    order.onParentGone();
    return nothing;
  }
  order.parentReporter.status('DELEGATED', `Delegated to ${name}: ${inOneLine(task)}`, {
    tool: delegateResearchTask.name,
  });
  const runId = worker.run.id;
  let executed: { result: WorkerResult; ended: RunRow | null };
  try {
    executed = await execute(dependencies, order, runId, instructions);
  } finally {
    // The sweep takes what stays because SQL is away.
    await runStore
      .removeEphemera(runId)
      .catch((error: unknown) => logger.warn({ err: error, runId }, 'could not remove what a worker ran on'));
  }
  if (executed.ended) order.publisher.publish(terminalEventOf(executed.ended, now()));
  return executed.result;
}

/** `ended` is the row when it was ended here. */
async function execute(
  dependencies: WorkerDependencies,
  { name, task, publisher, signal }: WorkerTask,
  runId: string,
  system: string,
): Promise<{ result: WorkerResult; ended: RunRow | null }> {
  const { runStore, cancellable, logger } = dependencies;
  const own = new AbortController();
  cancellable.set(runId, () => own.abort(new RunStop('CANCELLED')));
  try {
    const run = await runStore.begin(runId);
    // Cancelled before it began: whoever did that tells the stream.
    if (!run) return { result: { ...nothing, run: await runStore.find(runId) }, ended: null };
    const agent = await runAgent(dependencies, {
      run,
      name,
      system,
      placeholders: workerTools,
      publisher,
      signal: AbortSignal.any([signal, own.signal]),
      onStart: (reporter) => reporter.status('RESEARCHING', `${name} is at work: ${inOneLine(task)}`),
    });
    const { appendedEntries, fetchedUrls } = agent;
    const ended = await finishRun(
      runStore,
      runId,
      endOf(run.kind, agent, { evidence: appendedEntries, fetchedUrls }),
      logger,
    );
    return { result: { run: ended ?? (await runStore.find(runId)), appendedEntries, fetchedUrls }, ended };
  } finally {
    cancellable.delete(runId);
  }
}
