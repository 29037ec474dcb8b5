// The client of the whole API, for programs and pages: needs fetch and nothing else.
import {
  createGraphqlClient,
  type CallOptions,
  type GraphqlClient,
  type GraphqlClientOptions,
} from './graphql-client.js';
import {
  cancelRun,
  fetchRun,
  startResearch,
  watchRun,
  type ResearchWishes,
  type RunEvent,
  type RunResult,
  type WatchOptions,
} from './run-events.js';
import { createScratchpads, type Scratchpads } from './scratchpads.js';
import { createThreads, type Threads } from './threads.js';

export interface ClientOptions extends Omit<GraphqlClientOptions, 'key'> {
  /** An API key, or an agent token. */
  apiKey: string;
}

/** @throws ScratchpadError, each of them */
export interface Research {
  /** On a thread of its own, unless one is named. UNAVAILABLE when the server has no model. */
  start(
    input: ResearchWishes & { question: string },
    options?: CallOptions,
  ): Promise<{ runId: string; threadId: string }>;
  retrieve(runId: string, options?: CallOptions): Promise<RunResult>;
  /** What has ended stays as it is. */
  cancel(runId: string, options?: CallOptions): Promise<void>;
  /** Every event of the run, once, from the first to the last one, over any disconnection. */
  events(runId: string, options?: WatchOptions): AsyncGenerator<RunEvent, undefined>;
}

export interface Client extends Pick<GraphqlClient, 'request'> {
  threads: Threads;
  scratchpads: Scratchpads;
  research: Research;
}

/** @throws TypeError when the address is none, or the key does not fit into a header */
export function createClient({ apiKey, ...options }: ClientOptions): Client {
  const client = createGraphqlClient({ ...options, key: apiKey });
  return {
    request: client.request,
    threads: createThreads(client),
    scratchpads: createScratchpads(client),
    research: {
      start: ({ question, ...wishes }, options) => startResearch(client, question, wishes, options),
      retrieve: (runId, options) => fetchRun(client, runId, options),
      cancel: (runId, options) => cancelRun(client, runId, options),
      events: (runId, options) => watchRun(client, runId, { patienceMs: Infinity, ...options }),
    },
  };
}
