// One run as a client sees it: started, watched over reconnects without a gap, asked for its result.
import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionError, GraphqlError, type GraphqlClient } from './graphql-client.js';

interface EventBase {
  cursor: string;
  runId: string;
  /** The run that did it: the watched one, or a worker that it delegated to. */
  originRunId: string;
  occurredAt: string;
}

export type RunEvent = EventBase &
  (
    | { __typename: 'ResearchStatusEvent'; phase: string; activity: string; state: string; tool: string | null }
    | {
        __typename: 'ScratchpadEvent';
        operation: string;
        state: string;
        tool: string | null;
        assistantId: string | null;
        entry: { id: string; content: string; author: string | null; runId: string | null } | null;
        content: { text: string } | null;
      }
    | { __typename: 'ContentEvent' | 'ReasoningEvent'; delta: string }
  );

const eventsDocument = `subscription ($runId: ID!, $after: String) {
  runEvents(runId: $runId, after: $after) {
    __typename cursor runId originRunId occurredAt
    ... on ResearchStatusEvent { phase activity state tool }
    ... on ScratchpadEvent {
      operation state tool assistantId
      entry { id content author runId }
      content { text }
    }
    ... on ContentEvent { delta }
    ... on ReasoningEvent { delta }
  }
}`;

export interface RunResult {
  id: string;
  status: 'QUEUED' | 'IN_PROGRESS' | 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'EXPIRED';
  output: string | null;
  unverifiedCitations: string[];
  lastError: { code: string; message: string } | null;
  turnCount: number;
  childRuns: { id: string; status: string; task: string; lastError: { code: string; message: string } | null }[];
}

const resultDocument = `query ($runId: ID!) {
  run(id: $runId) {
    id status output unverifiedCitations turnCount
    lastError { code message }
    childRuns { id status task lastError { code message } }
  }
}`;

/** @throws GraphqlError; ConnectionError */
export async function fetchRun(client: GraphqlClient, runId: string): Promise<RunResult> {
  const { run } = await client.request<{ run: RunResult | null }>(resultDocument, { runId });
  if (!run) throw new GraphqlError([{ message: `There is no run ${runId}.`, extensions: { code: 'NOT_FOUND' } }]);
  return run;
}

export const hasEnded = ({ status }: Pick<RunResult, 'status'>): boolean =>
  status !== 'QUEUED' && status !== 'IN_PROGRESS';

export interface ResearchWishes {
  model?: string;
  maxTurns?: number;
  maxWorkers?: number;
}

/** On a thread of its own. @throws GraphqlError, of which UNAVAILABLE says that there is no model; ConnectionError */
export async function startResearch(
  client: GraphqlClient,
  question: string,
  wishes: ResearchWishes = {},
): Promise<{ runId: string; threadId: string }> {
  const { createThread } = await client.request<{ createThread: { thread: { id: string } } }>(
    'mutation { createThread(input: {}) { thread { id } } }',
  );
  const threadId = createThread.thread.id;
  const { startResearch } = await client.request<{ startResearch: { run: { id: string } } }>(
    'mutation ($input: StartResearchInput!) { startResearch(input: $input) { run { id } } }',
    { input: { threadId, question, ...wishes } },
  );
  return { runId: startResearch.run.id, threadId };
}

export async function cancelRun(client: GraphqlClient, runId: string): Promise<void> {
  await client.request('mutation ($runId: ID!) { cancelRun(input: { runId: $runId }) { run { id } } }', { runId });
}

export interface WatchOptions {
  signal?: AbortSignal;
  /** Called before each new attempt, with what went wrong. */
  onReconnect?: (reason: string) => void;
  /** How long the server may stay away. */
  patienceMs?: number;
}

const passingCodes = new Set(['UNAVAILABLE', 'SUBSCRIBER_TOO_SLOW', 'INTERNAL', 'RATE_LIMITED']);
const mayPass = (error: unknown): error is Error =>
  error instanceof ConnectionError || (error instanceof GraphqlError && passingCodes.has(error.code ?? ''));

const firstDelayMs = 250;
const longestDelayMs = 5000;

/**
 * Every event of a root run from its first one to its terminal one, each once, whatever happens to the connection meanwhile. Ends early when the
 * signal is aborted, and when the run has ended but its events are not kept any more.
 * @throws GraphqlError for what waiting does not mend; ConnectionError when the server stays away
 */
export async function* watchRun(
  client: GraphqlClient,
  runId: string,
  { signal, onReconnect, patienceMs = 120_000 }: WatchOptions = {},
): AsyncGenerator<RunEvent, undefined> {
  let cursor = '';
  let awaySince = Infinity;
  let delayMs = firstDelayMs;
  for (;;) {
    try {
      const variables = { runId, after: cursor };
      for await (const { runEvents } of client.subscribe<{ runEvents: RunEvent }>(eventsDocument, variables, signal)) {
        ({ cursor } = runEvents);
        [awaySince, delayMs] = [Infinity, firstDelayMs];
        yield runEvents;
        const isStatus = runEvents.__typename === 'ResearchStatusEvent';
        if (isStatus && runEvents.phase === 'FINISHED' && runEvents.originRunId === runId) return undefined;
      }
      // A server that shuts down completes its subscriptions, too.
      if (signal?.aborted || hasEnded(await fetchRun(client, runId))) return undefined;
      onReconnect?.('The server ended the subscription before the run.');
    } catch (error) {
      if (signal?.aborted) return undefined;
      awaySince = Math.min(awaySince, Date.now());
      if (!mayPass(error) || Date.now() - awaySince > patienceMs) throw error;
      onReconnect?.(error.message);
    }
    await sleep(delayMs, undefined, signal ? { signal } : {}).catch(() => {});
    delayMs = Math.min(delayMs * 2, longestDelayMs);
  }
}
