// `cli research`: one run against a server, shown as it happens, with an exit code that says whether it completed.
import { ScratchpadError } from '../client/client-error.js';
import type { GraphqlClient } from '../client/graphql-client.js';
import {
  cancelRun,
  fetchRun,
  startResearch,
  watchRun,
  type ResearchWishes,
  type RunResult,
} from '../client/run-events.js';
import type { RunView } from './run-view.js';
import { duration, withoutControls } from './text.js';

export interface ResearchOrder extends ResearchWishes {
  question: string;
}

export interface ResearchDependencies {
  client: GraphqlClient;
  view: RunView;
  /** Takes the answer where it did not stream. */
  writeAnswer: (text: string) => void;
  /** Calls back each time that the person presses Ctrl-C. Returns what ends that. */
  onInterrupt: (callback: () => void) => () => void;
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

function summary(run: RunResult, tookMs: number): string {
  const workers = run.childRuns.length;
  const failed = run.childRuns.filter(({ status }) => status !== 'COMPLETED').length;
  const parts = [
    `${run.status} after ${duration(tookMs)}`,
    plural(run.turnCount, 'turn'),
    `${plural(workers, 'worker')}${failed > 0 ? ` (${failed} of them not completed)` : ''}`,
  ];
  return parts.join(', ');
}

function conclude(run: RunResult, view: RunView): void {
  for (const worker of run.childRuns) {
    if (worker.lastError) view.say(`A worker failed: ${worker.lastError.code}. ${worker.lastError.message}`);
  }
  if (run.lastError) {
    view.say(`The research failed: ${run.lastError.code}. ${run.lastError.message}`);
    view.say('docs/guides/providers.md says what each code means and what helps.');
  }
  if (run.unverifiedCitations.length > 0) {
    view.say('Unverified: the answer cites what no worker has read:');
    for (const url of run.unverifiedCitations) view.say(`  ${url}`);
  }
}

/**
 * Resolves when the run has ended. The first interruption cancels it, the second one leaves at once.
 * @returns the exit code: 0 COMPLETED, 1 for any other end, 130 when the person left before the end
 * @throws ScratchpadError
 */
export async function research(
  { question, ...wishes }: ResearchOrder,
  { client, view, writeAnswer, onInterrupt }: ResearchDependencies,
): Promise<number> {
  const startedAt = Date.now();
  const { runId, threadId } = await startResearch(client, question, wishes);
  view.say(`Run ${runId} on thread ${threadId}`);

  const leaving = new AbortController();
  let interruptions = 0;
  const stopListening = onInterrupt(() => {
    interruptions += 1;
    if (interruptions > 1) {
      leaving.abort();
      return;
    }
    view.say('Cancelling the run. Ctrl-C again leaves at once.');
    cancelRun(client, runId).catch((error: unknown) => view.say(`Could not cancel it: ${String(error)}`));
  });
  try {
    const onReconnect = ({ message }: ScratchpadError): void => view.say(`${message} Trying again.`);
    for await (const event of watchRun(client, runId, { signal: leaving.signal, onReconnect })) view.show(event);
    view.close();
    if (leaving.signal.aborted) {
      if (view.answer() !== '') view.say('No answer: the text above is unfinished.');
      return 130;
    }
    const run = await fetchRun(client, runId);
    if (run.status === 'COMPLETED') {
      // What streamed is the answer; the row has it also where nothing streamed, or the events were gone.
      if (run.output !== null && run.output !== view.answer()) writeAnswer(`${withoutControls(run.output)}\n`);
    } else if (view.answer() !== '') {
      view.say(`No answer: the text above did not hold (${run.lastError?.code ?? run.status}).`);
    }
    conclude(run, view);
    view.say(summary(run, Date.now() - startedAt));
    return run.status === 'COMPLETED' ? 0 : 1;
  } finally {
    stopListening();
  }
}

/** What a person reads of an error, without a stack. */
export const describeFailure = (error: unknown): string =>
  error instanceof ScratchpadError && error.code === 'UNAUTHENTICATED'
    ? 'The server does not know this key: give one with --key or SCRATCHPAD_API_KEY.'
    : error instanceof Error
      ? error.message
      : String(error);
