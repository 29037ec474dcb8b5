// One run as a client sees it: started, watched over reconnects without a gap, asked for its result.
import { ScratchpadError } from './client-error.js';
import type { CallOptions, GraphqlClient } from './graphql-client.js';
import {
  cancelRunOperation,
  createThreadOperation,
  runEventsOperation,
  runOperation,
  startResearchOperation,
  type RunEventsSubscription,
  type RunQuery,
} from './operations.js';
import { performed } from './performed.js';
import { resumed, type FollowOptions } from './resumed.js';

/** The server names the run in every event of a run's stream; the type that it shares with a scratchpad's stream does not say so. */
type OfRun<Event> = Event extends object
  ? Omit<Event, 'runId' | 'originRunId'> & { runId: string; originRunId: string }
  : never;
export type RunEvent = OfRun<RunEventsSubscription['runEvents']>;

export type RunResult = NonNullable<RunQuery['run']>;

/** @throws ScratchpadError, of which NOT_FOUND says that there is no such run */
export async function fetchRun(client: GraphqlClient, runId: string, options?: CallOptions): Promise<RunResult> {
  const { run } = await performed(client, runOperation, { id: runId }, options);
  if (!run) throw new ScratchpadError('NOT_FOUND', `There is no run ${runId}.`);
  return run;
}

const hasEnded = ({ status }: Pick<RunResult, 'status'>): boolean => status !== 'QUEUED' && status !== 'IN_PROGRESS';

export interface ResearchWishes {
  model?: string | undefined;
  maxTurns?: number | undefined;
  maxWorkers?: number | undefined;
  /** Where the question goes. Default: a thread of its own. */
  threadId?: string | undefined;
}

/** @throws ScratchpadError, of which UNAVAILABLE says that there is no model */
export async function startResearch(
  client: GraphqlClient,
  question: string,
  { threadId: given, ...wishes }: ResearchWishes = {},
  options?: CallOptions,
): Promise<{ runId: string; threadId: string }> {
  const threadId = given ?? (await performed(client, createThreadOperation, {}, options)).createThread.thread.id;
  const { startResearch } = await performed(client, startResearchOperation, { threadId, question, ...wishes }, options);
  return { runId: startResearch.run.id, threadId };
}

/** What has ended stays as it is. */
export async function cancelRun(client: GraphqlClient, runId: string, options?: CallOptions): Promise<void> {
  await performed(client, cancelRunOperation, { id: runId }, options);
}

export interface WatchOptions extends FollowOptions {
  /** Only what comes behind this cursor. Default: from the first event. */
  after?: string | undefined;
  /** How long the server may stay away. Default 2 minutes. */
  patienceMs?: number | undefined;
}

/**
 * Every event of a root run from its first one to its terminal one, each once, whatever happens to the connection meanwhile. Ends early when the
 * signal is aborted, and when the run has ended but its events are not kept any more.
 * @throws ScratchpadError for what waiting does not mend, and when the server stays away
 */
export function watchRun(
  client: GraphqlClient,
  runId: string,
  { after = '', patienceMs = 120_000, ...options }: WatchOptions = {},
): AsyncGenerator<RunEvent, undefined> {
  return resumed<RunEvent>(
    {
      begin: () => after,
      async *open(cursor, connection) {
        const results = client.subscribe<{ runEvents: RunEvent }>(
          runEventsOperation,
          { id: runId, after: cursor },
          connection,
        );
        for await (const { runEvents } of results) yield runEvents;
      },
      isLast: (event) =>
        event.__typename === 'ResearchStatusEvent' && event.phase === 'FINISHED' && event.originRunId === runId,
      isOver: async () => hasEnded(await fetchRun(client, runId, options)),
    },
    { ...options, patienceMs },
  );
}
