// How a run ends, decided by a pure function out of how its execution ended; and the way of that into SQL.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../shared/logger.js';
import type { AgentResult } from './agent.js';
import { unverifiedCitations } from './citations.js';
import type { RunEnd, RunErrorCode, RunRow, RunStore } from './run-store.js';

export interface Findings {
  /** What successful workers appended, for a supervisor. */
  evidence: number;
  /** What the run and its workers have read. */
  fetchedUrls: readonly string[];
}

const failed = (code: RunErrorCode, message: string): RunEnd => ({ status: 'FAILED', error: { code, message } });

/** Text alone never makes a success, and what failed already keeps its own code. */
function decide(kind: RunRow['kind'], result: AgentResult, { evidence, fetchedUrls }: Findings): RunEnd {
  const { outcome, appendedEntries } = result;
  if (outcome.kind === 'crashed')
    return failed('INTERNAL', 'Something unexpected happened; the log of the server says what.');
  if (outcome.kind === 'stopped') return { status: outcome.status };
  if (outcome.kind === 'failed') return failed(outcome.code, outcome.message);
  const saysNothing = outcome.text.trim() === '';
  if (saysNothing && !(kind === 'RESEARCH_WORKER' && appendedEntries > 0)) {
    return failed('EMPTY_RESULT', 'The last turn had no text.');
  }
  if (kind === 'RESEARCH' && evidence === 0) {
    return failed('NO_EVIDENCE', 'No worker that finished had appended anything to the scratchpad.');
  }
  // The last turn alone: what was said before it is no answer.
  const { text } = outcome;
  return { status: 'COMPLETED', output: text, unverifiedCitations: unverifiedCitations(text, fetchedUrls) };
}

export function endOf(kind: RunRow['kind'], result: AgentResult, findings: Findings): RunEnd {
  const end = decide(kind, result, findings);
  return 'turnCount' in result.outcome ? { ...end, turnCount: result.outcome.turnCount } : end;
}

const retryDelaysMs = [200, 1000, 3000, 5000, 10_000];

/**
 * Moves the run to its terminal state, also over a short absence of SQL. Null when somebody else had ended it, or it is gone: then the terminal
 * event is not ours.
 * @throws when SQL stays away: the run is then found and ended by a sweep
 */
export async function finishRun(
  runStore: Pick<RunStore, 'finish' | 'find'>,
  runId: string,
  end: RunEnd,
  logger: Logger,
): Promise<RunRow | null> {
  for (let attempt = 0; ; attempt++) {
    try {
      const ended = await runStore.finish(runId, end);
      if (ended || attempt === 0) return ended;
      // An earlier try may have been made, and its answer lost.
      const row = await runStore.find(runId);
      return row?.status === end.status ? row : null;
    } catch (error) {
      const delayMs = retryDelaysMs[attempt];
      if (delayMs === undefined) throw error;
      logger.warn({ err: error, runId, retryInMs: delayMs }, 'could not store the end of a run');
      await sleep(delayMs);
    }
  }
}
