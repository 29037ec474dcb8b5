// What both GraphQL baselines serve: the part of the contract that is measured, over the same Redis, without our guarantees.
import { randomUUID } from 'node:crypto';

export const typeDefs = /* GraphQL */ `
  type Query {
    viewer: User
    scratchpad(id: ID!): Scratchpad
  }
  type Mutation {
    appendScratchpadEntry(input: AppendScratchpadEntryInput!): AppendScratchpadEntryPayload!
  }
  type User {
    id: ID!
    name: String!
    threads(first: Int): ThreadConnection!
  }
  type ThreadConnection {
    edges: [ThreadEdge!]!
  }
  type ThreadEdge {
    node: Thread!
  }
  type Thread {
    id: ID!
    createdAt: String!
    scratchpad: Scratchpad
  }
  type Scratchpad {
    id: ID!
    content: ScratchpadContent
    entryCount: Int
    entries(first: Int): ScratchpadEntryConnection
  }
  type ScratchpadContent {
    text: String!
    updatedAt: String
  }
  type ScratchpadEntryConnection {
    edges: [ScratchpadEntryEdge!]!
  }
  type ScratchpadEntryEdge {
    node: ScratchpadEntry!
  }
  type ScratchpadEntry {
    id: ID!
    content: String!
    createdAt: String!
  }
  input AppendScratchpadEntryInput {
    scratchpadId: ID!
    content: String!
  }
  type AppendScratchpadEntryPayload {
    entry: ScratchpadEntry!
  }
`;

const owner = process.env.BENCH_OWNER;
export const contentKey = (id) => `scratchpad:${owner}:${id}:content`;
export const entriesKey = (id) => `scratchpad:${owner}:${id}:entries`;

export function toEntry(row) {
  const { id, content, created_at: createdAt } = JSON.parse(row);
  return { id, content, createdAt };
}

export function toContent(row) {
  if (row === null) return null;
  const { content: text, updated_at: updatedAt } = JSON.parse(row);
  return { text, updatedAt };
}

export const toConnection = (rows) => ({ edges: rows.map((row) => ({ node: toEntry(row) })) });

/** The two commands are written together; a pipeline object or MULTI would cost more. */
export const createResolvers = (redis) => ({
  Query: { scratchpad: (_root, { id }) => ({ id }) },
  Mutation: {
    async appendScratchpadEntry(_root, { input: { scratchpadId, content } }) {
      const entry = { id: randomUUID(), content, createdAt: new Date().toISOString() };
      const row = JSON.stringify({ id: entry.id, content, created_at: entry.createdAt });
      await Promise.all([
        redis.rpush(entriesKey(scratchpadId), row),
        redis.publish(`events:${owner}:${scratchpadId}`, row),
      ]);
      return { entry };
    },
  },
});
