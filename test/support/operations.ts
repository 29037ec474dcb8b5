// The operations that most tests begin with, as one would write them against the public contract.
import type { GraphqlClient } from './graphql-client.js';

export async function createThread(client: GraphqlClient): Promise<string> {
  const data = await client.run<{ createThread: { thread: { id: string } } }>(
    'mutation { createThread(input: {}) { thread { id } } }',
  );
  return data.createThread.thread.id;
}

export async function createScratchpad(client: GraphqlClient, threadId?: string): Promise<string> {
  const data = await client.run<{ createScratchpad: { scratchpad: { id: string } } }>(
    'mutation ($threadId: ID!) { createScratchpad(input: { threadId: $threadId }) { scratchpad { id } } }',
    { threadId: threadId ?? (await createThread(client)) },
  );
  return data.createScratchpad.scratchpad.id;
}

export interface AppendedEntry {
  id: string;
  content: string;
  author: string | null;
  runId: string | null;
  createdAt: string;
}

export async function appendEntry(
  client: GraphqlClient,
  scratchpadId: string,
  content: string,
  idempotencyKey?: string,
): Promise<{ entry: AppendedEntry; entryEdge: { cursor: string } }> {
  const data = await client.run<{ appendScratchpadEntry: { entry: AppendedEntry; entryEdge: { cursor: string } } }>(
    `mutation ($input: AppendScratchpadEntryInput!) {
      appendScratchpadEntry(input: $input) { entry { id content author runId createdAt } entryEdge { cursor } }
    }`,
    { input: { scratchpadId, content, idempotencyKey } },
  );
  return data.appendScratchpadEntry;
}

export type AgentRole = 'SUPERVISOR' | 'WORKER' | 'OBSERVER';

export interface MadeToken {
  id: string;
  secret: string;
}

export const createTokenDocument = `mutation ($input: CreateAgentTokenInput!) {
  createAgentToken(input: $input) { secret agentToken { id name role prefix expiresAt } }
}`;

/** A token for an agent on one scratchpad, made by its owner. */
export async function createToken(
  client: GraphqlClient,
  scratchpadId: string,
  role: AgentRole = 'WORKER',
  more: { name?: string; expiresAt?: Date } = {},
): Promise<MadeToken> {
  const { createAgentToken } = await client.run<{ createAgentToken: { secret: string; agentToken: { id: string } } }>(
    createTokenDocument,
    { input: { scratchpadId, role, name: `${role.toLowerCase()} of a test`, ...more } },
  );
  return { id: createAgentToken.agentToken.id, secret: createAgentToken.secret };
}

export const revokeTokenDocument =
  'mutation ($id: ID!) { revokeAgentToken(input: { agentTokenId: $id }) { agentToken { id revokedAt } } }';

export interface WrittenContent {
  text: string;
  version: string;
  updatedAt: string | null;
}

export const setContentDocument = `mutation ($input: SetScratchpadContentInput!) {
  setScratchpadContent(input: $input) { content { text version updatedAt } }
}`;

export async function setContent(
  client: GraphqlClient,
  scratchpadId: string,
  text: string,
  more: { expectedVersion?: string; idempotencyKey?: string } = {},
): Promise<WrittenContent> {
  const data = await client.run<{ setScratchpadContent: { content: WrittenContent } }>(setContentDocument, {
    input: { scratchpadId, text, ...more },
  });
  return data.setScratchpadContent.content;
}

export interface PadState {
  content: WrittenContent;
  entries: {
    edges: { cursor: string; node: AppendedEntry }[];
    pageInfo: { hasNextPage: boolean; endCursor: string | null };
  };
  entryCount: number;
  eventCursor: string;
  expiresAt: string | null;
}

const stateDocument = `query ($id: ID!, $first: Int, $after: String) {
  scratchpad(id: $id) {
    content { text version updatedAt }
    entries(first: $first, after: $after) {
      edges { cursor node { id content author runId createdAt } }
      pageInfo { hasNextPage endCursor }
    }
    entryCount
    eventCursor
    expiresAt
  }
}`;

/** The first page of a pad's whole working state. */
export async function readState(client: GraphqlClient, id: string, page: { first?: number; after?: string } = {}) {
  const { scratchpad } = await client.run<{ scratchpad: PadState | null }>(stateDocument, { id, first: 100, ...page });
  if (scratchpad === null) throw new Error(`there is no scratchpad ${id}`);
  return scratchpad;
}

/** Every entry of the ledger, walked page by page. */
export async function readLedger(client: GraphqlClient, id: string): Promise<AppendedEntry[]> {
  const entries: AppendedEntry[] = [];
  for (let after: string | undefined; ;) {
    const { edges, pageInfo } = (await readState(client, id, after === undefined ? {} : { after })).entries;
    entries.push(...edges.map((edge) => edge.node));
    if (!pageInfo.hasNextPage || pageInfo.endCursor === null) return entries;
    after = pageInfo.endCursor;
  }
}

export async function createAssistant(
  client: GraphqlClient,
  tools: object[] = [{ type: 'scratchpad' }],
  model?: string,
): Promise<string> {
  const data = await client.run<{ createAssistant: { assistant: { id: string } } }>(
    'mutation ($input: CreateAssistantInput!) { createAssistant(input: $input) { assistant { id } } }',
    { input: { name: 'Librarian', instructions: 'Find it.', tools, model } },
  );
  return data.createAssistant.assistant.id;
}

export const startResearchDocument =
  'mutation ($input: StartResearchInput!) { startResearch(input: $input) { run { id status } } }';

export async function startResearch(client: GraphqlClient, threadId: string, more: object = {}): Promise<string> {
  const data = await client.run<{ startResearch: { run: { id: string } } }>(startResearchDocument, {
    input: { threadId, question: 'How far is the Moon?', ...more },
  });
  return data.startResearch.run.id;
}

export const deleteThread = (client: GraphqlClient, id: string): Promise<unknown> =>
  client.run('mutation ($id: ID!) { deleteThread(input: { threadId: $id }) { deletedThreadId } }', { id });
