// Drives one research run through the public API and keeps everything that crossed it: what the judges judge.
import type { GraphqlClient } from '../../src/client/graphql-client.js';
import { startResearch, watchRun, type RunEvent } from '../../src/client/run-events.js';
import type { RequestBody } from './model-server.js';

export interface RecordedWorker {
  id: string;
  kind: string;
  status: string;
  task: string;
  thread: { id: string } | null;
  assistant: { id: string } | null;
  lastError: { code: string; message: string } | null;
}

export interface RecordedRun {
  id: string;
  status: string;
  output: string | null;
  /** Oldest first. */
  childRuns: RecordedWorker[];
}

export interface RunRecording {
  question: string;
  /** All of this as it was after the end of the run. */
  run: RecordedRun;
  threadMessages: { role: string; content: string }[];
  notes: { content: string; author: string | null; runId: string | null }[];
  /** What the user's lists show beside what the demo itself has created. */
  strayThreads: string[];
  strayAssistants: string[];
  /** What the database still holds of workers' conversations and assistants, after both runs. */
  ephemeralRows: string[];
  events: RunEvent[];
  /** Every document that the client sent, and every result that it received. */
  operations: string[];
  results: unknown[];
  /** What the model server was sent in the course of this run. */
  requests: RequestBody[];
  /** What it had streamed before a connection of its died. */
  cutOff: string[];
}

/** Everything on the wire between the demo and the server. */
export interface WireLog {
  operations: string[];
  results: unknown[];
}

interface Source {
  client: GraphqlClient;
  wire: WireLog;
  model: { requests: readonly { body: RequestBody }[]; cutOff: readonly string[] };
  /** Threads that the demo has created; gets this run's as well. */
  ownThreads: string[];
  show: (event: RunEvent) => void;
}

const stateDocument = `query ($runId: ID!, $threadId: ID!) {
  run(id: $runId) {
    id status output
    childRuns { id kind status task thread { id } assistant { id } lastError { code message } }
  }
  thread(id: $threadId) {
    messages(first: 100) { edges { node { role content } } }
    scratchpad { entries(first: 100) { edges { node { content author runId } } } }
  }
  viewer {
    threads(first: 100) { edges { node { id } } }
    assistants(first: 100) { edges { node { id } } }
  }
}`;

type Connection<Node> = { edges: { node: Node }[] };
const nodesOf = <Node>({ edges }: Connection<Node>): Node[] => edges.map(({ node }) => node);

interface State {
  run: RecordedRun;
  thread: {
    messages: Connection<RunRecording['threadMessages'][number]>;
    scratchpad: { entries: Connection<RunRecording['notes'][number]> };
  };
  viewer: { threads: Connection<{ id: string }>; assistants: Connection<{ id: string }> };
}

/** The assistants that events named and that can still be looked up. */
async function assistantsStillThere(client: GraphqlClient, events: readonly RunEvent[]): Promise<string[]> {
  const named = events.map((event) => (event.__typename === 'ScratchpadEvent' ? event.assistantId : null));
  const ids = [...new Set(named.filter((id) => id !== null))];
  const found = await Promise.all(
    ids.map((id) =>
      client.request<{ node: { id: string } | null }>('query ($id: ID!) { node(id: $id) { id } }', { id }),
    ),
  );
  return found.flatMap(({ node }) => (node ? [node.id] : []));
}

/** Resolves when the run has ended. */
export async function recordRun(question: string, source: Source): Promise<RunRecording> {
  const { client, wire, model, ownThreads, show } = source;
  const [firstOperation, firstResult] = [wire.operations.length, wire.results.length];
  const [firstRequest, firstCutOff] = [model.requests.length, model.cutOff.length];

  const { runId, threadId } = await startResearch(client, question);
  ownThreads.push(threadId);
  const events: RunEvent[] = [];
  for await (const event of watchRun(client, runId)) {
    events.push(event);
    show(event);
  }
  const { run, thread, viewer } = await client.request<State>(stateDocument, { runId, threadId });
  const looked = await assistantsStillThere(client, events);
  const listed = nodesOf(viewer.assistants).map(({ id }) => id);
  return {
    question,
    run,
    threadMessages: nodesOf(thread.messages),
    notes: nodesOf(thread.scratchpad.entries),
    strayThreads: nodesOf(viewer.threads).flatMap(({ id }) => (ownThreads.includes(id) ? [] : [id])),
    strayAssistants: [...new Set([...listed, ...looked])],
    ephemeralRows: [],
    events,
    operations: wire.operations.slice(firstOperation),
    results: wire.results.slice(firstResult),
    requests: model.requests.slice(firstRequest).map(({ body }) => body),
    cutOff: model.cutOff.slice(firstCutOff),
  };
}
