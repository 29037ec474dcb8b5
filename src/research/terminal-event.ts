// The one event that ends what a stream says of a run, whoever ended the run.
import type { NewRunEvent } from './run-event.js';
import type { RunRow } from './run-store.js';

type EndedRun = Pick<RunRow, 'id' | 'kind' | 'status' | 'lastErrorCode' | 'lastErrorMessage'>;

function describeEnd({ kind, status, lastErrorCode, lastErrorMessage }: EndedRun): string {
  const subject = kind === 'RESEARCH_WORKER' ? 'The worker' : kind === 'RESEARCH' ? 'The research' : 'The run';
  if (status === 'COMPLETED') return `${subject} is complete.`;
  if (status === 'CANCELLED') return `${subject} was cancelled.`;
  if (status === 'EXPIRED') return `${subject} took longer than it may.`;
  return `${subject} failed: ${lastErrorCode ?? 'INTERNAL'}. ${lastErrorMessage ?? ''}`.trim();
}

/**
 * FINISHED for the run that a stream belongs to; WORKER_COMPLETED or WORKER_FAILED for one that was delegated.
 * To be published exactly once, by whoever moved the run to its terminal state, after that is durable.
 */
export function terminalEventOf(run: EndedRun, occurredAt: Date): NewRunEvent {
  const isComplete = run.status === 'COMPLETED';
  const workerPhase = isComplete ? 'WORKER_COMPLETED' : 'WORKER_FAILED';
  return {
    type: 'status',
    originRunId: run.id,
    phase: run.kind === 'RESEARCH_WORKER' ? workerPhase : 'FINISHED',
    activity: describeEnd(run),
    state: isComplete ? 'COMPLETED' : 'ERROR',
    tool: null,
    occurredAt,
  };
}
