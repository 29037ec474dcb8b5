// A server with our transport and a small schema whose sources a test holds in its hands: what is open, what was returned, what comes next.
import { buildSchema, type GraphQLSchema } from 'graphql';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { createHttpServer, type HttpServerOptions } from '../../../src/infra/http.js';
import { createMetrics } from '../../../src/infra/metrics.js';
import type { Principal } from '../../../src/identity/principal.js';
import { DomainError, notFound, unauthenticated, unavailable, type ErrorCode } from '../../../src/shared/errors.js';
import { createLogger } from '../../../src/shared/logger.js';
import { createGraphqlServer, type GraphqlServerOptions } from '../../../src/surfaces/graphql/server.js';

export const aliceSecret = 'key_of_alice_0123456789abcdef';
export const bobSecret = 'key_of_bob_0123456789abcdefgh';

const typeDefinitions = /* GraphQL */ `
  type Query {
    hello(name: String): String!
    me: String!
    slow(milliseconds: Int!): String!
    fail(code: String!): String
    bug: String
    large(bytes: Int!): String!
    viewer: Viewer
    shape: Shape
    node(id: ID!): Node
  }
  enum Color {
    RED
    GREEN
  }
  interface Node {
    id: ID!
  }
  interface Shape {
    name: String!
    children(first: Int, last: Int): ShapeConnection!
  }
  type Circle implements Shape {
    name: String!
    children(first: Int, last: Int): ShapeConnection!
    color(of: Color): String
  }
  type ShapeConnection {
    nodes: [Shape!]!
  }
  type Viewer {
    id: ID!
    threads(first: Int, after: String, last: Int, before: String): ThreadConnection!
    apiKeys: [Key!]!
  }
  type Key {
    id: ID!
    owner: Viewer!
  }
  type ThreadConnection {
    edges: [ThreadEdge!]!
    pageInfo: PageInfo!
    totalCount: Int!
  }
  type ThreadEdge {
    cursor: String!
    node: Thread!
  }
  type Thread implements Node {
    id: ID!
    owner: Viewer!
    scratchpad: Scratchpad
  }
  type Scratchpad implements Node {
    id: ID!
    thread: Thread
    content: Content
    entryCount: Int
    entries(first: Int, after: String, last: Int, before: String): EntryConnection
  }
  type Content {
    text: String!
  }
  type EntryConnection {
    edges: [EntryEdge!]!
    pageInfo: PageInfo!
  }
  type EntryEdge {
    cursor: String!
    node: Entry!
  }
  type Entry {
    id: ID!
    content: String!
  }
  type PageInfo {
    hasNextPage: Boolean!
  }
  type Mutation {
    increment(by: Int = 1): Int!
  }
  type Subscription {
    events: Event!
    count(to: Int!): Int!
    refused(code: String!): Int!
    late(milliseconds: Int!): Int!
    large(bytes: Int!): String!
  }
  type Event {
    number: Int!
    contextNumber: Int!
    bug: String
    payload: String
  }
`;

type Pushed = { event: unknown } | { error: unknown } | { end: true };

/** A source that waits for the test. Its return() is counted, and wakes it. */
function createSource(onReturn: () => void) {
  const queue: Pushed[] = [];
  let wake: (() => void) | undefined;
  let isReturned = false;
  const iterator: AsyncIterableIterator<unknown> = {
    async next() {
      if (queue.length === 0 && !isReturned) await new Promise<void>((resolve) => (wake = resolve));
      const item = queue.shift();
      if (isReturned || !item || 'end' in item) return { done: true, value: undefined };
      if ('error' in item) throw item.error;
      return { done: false, value: item.event };
    },
    async return() {
      onReturn();
      isReturned = true;
      wake?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
  return {
    iterator,
    push(item: Pushed) {
      queue.push(item);
      wake?.();
    },
  };
}

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function createSources() {
  const open = new Set<ReturnType<typeof createSource>>();
  const counts = { opened: 0, returned: 0, pulled: 0, slow: 0 };
  return {
    open,
    counts,
    start() {
      counts.opened += 1;
      const source = createSource(() => {
        counts.returned += 1;
        open.delete(source);
      });
      open.add(source);
      return source.iterator;
    },
    push(item: Pushed) {
      for (const source of open) source.push(item);
    },
  };
}

export type Sources = ReturnType<typeof createSources>;

const throwCode = (code: string): never => {
  if (code === 'BUG') throw new TypeError('password=hunter2 at /srv/secret/path.js');
  if (code === 'NOT_FOUND') throw notFound();
  if (code === 'STORE') throw new Error('connect ECONNREFUSED 10.0.0.5:5432');
  throw new DomainError(code as ErrorCode, `This is ${code}.`, {
    ...(code === 'INVALID_INPUT' && { issues: [{ path: ['code'], message: 'is one' }] }),
    ...(code === 'CONFLICT' && { currentVersion: '7' }),
    ...(code === 'RATE_LIMITED' && { retryAfterSeconds: 3 }),
    ...(code === 'SUBSCRIBER_TOO_SLOW' && { lastCursor: 'c9' }),
  });
};

interface ToyContext {
  principal: Principal;
  contextNumber: number;
}

function createSchema(sources: Sources): GraphQLSchema {
  const schema = buildSchema(typeDefinitions);
  let total = 0;
  const field = (type: string, name: string) => {
    const object = schema.getType(type);
    if (!object || !('getFields' in object)) throw new Error(`no type ${type}`);
    return object.getFields()[name] as { resolve?: unknown; subscribe?: unknown };
  };
  const resolve = (
    type: string,
    name: string,
    resolver: (parent: never, args: never, context: ToyContext) => unknown,
  ) => {
    field(type, name).resolve = resolver;
  };
  resolve('Query', 'hello', (_parent, { name }: { name?: string }) => `Hello ${name ?? 'world'}`);
  resolve('Query', 'me', (_parent, _args, { principal }) =>
    principal.kind === 'user' ? principal.userId : 'administrator',
  );
  resolve('Query', 'slow', async (_parent, { milliseconds }: { milliseconds: number }) => {
    sources.counts.slow += 1;
    await sleep(milliseconds);
    return 'done';
  });
  resolve('Query', 'fail', (_parent, { code }: { code: string }) => throwCode(code));
  resolve('Query', 'bug', () => throwCode('BUG'));
  resolve('Query', 'large', (_parent, { bytes }: { bytes: number }) => 'x'.repeat(bytes));
  resolve('Mutation', 'increment', (_parent, { by }: { by: number }) => (total += by));
  resolve('Event', 'contextNumber', (_parent, _args, { contextNumber }) => contextNumber);
  resolve('Event', 'bug', () => throwCode('BUG'));
  const subscribe = (name: string, source: (parent: never, args: never) => unknown) => {
    field('Subscription', name).subscribe = source;
    field('Subscription', name).resolve = (event: unknown) => event;
  };
  subscribe('events', () => sources.start());
  subscribe('count', async function* count(_parent, { to }: { to: number }) {
    for (let number = 1; number <= to; number += 1) yield number;
  });
  subscribe('refused', (_parent, { code }: { code: string }) => throwCode(code));
  subscribe('late', async (_parent, { milliseconds }: { milliseconds: number }) => {
    sources.counts.slow += 1;
    await sleep(milliseconds);
    return sources.start();
  });
  subscribe('large', (_parent, { bytes }: { bytes: number }) => {
    const iterator = sources.start();
    return {
      ...iterator,
      async next() {
        sources.counts.pulled += 1;
        await sleep(0);
        return { done: false, value: 'x'.repeat(bytes) };
      },
      return: () => iterator.return?.(),
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  });
  return schema;
}

export interface ToyOptions {
  graphql?: Partial<GraphqlServerOptions>;
  http?: Partial<HttpServerOptions>;
}

export async function startToyService({ graphql, http }: ToyOptions = {}) {
  const sources = createSources();
  const logLines: string[] = [];
  const logger = createLogger(
    'info',
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        logLines.push(chunk.toString('utf8'));
        done();
      },
    }),
  );
  const metrics = createMetrics();
  const principals = new Map<string, Principal>([
    [aliceSecret, { kind: 'user', userId: 'user_alice', apiKeyId: 'key_alice' }],
    [bobSecret, { kind: 'user', userId: 'user_bob', apiKeyId: 'key_bob' }],
  ]);
  const watchers = new Map<Principal, Set<(error: DomainError) => void>>();
  let contexts = 0;
  const stores = { sql: true, redis: true, authentication: true };
  const identify = async (secret: string | undefined): Promise<Principal> => {
    if (!stores.authentication) throw unavailable('SQL', new Error('connect ECONNREFUSED 10.0.0.5:5432'));
    const principal = principals.get(secret ?? '');
    if (!principal) throw unauthenticated();
    return principal;
  };
  const surface = createGraphqlServer({
    schema: createSchema(sources),
    authentication: {
      authenticate: identify,
      identify,
      watch(principal, onEnd) {
        const set = watchers.get(principal) ?? new Set();
        watchers.set(principal, set.add(onEnd));
        return () => set.delete(onEnd);
      },
    },
    createContext: (principal) => ({ principal, contextNumber: (contexts += 1) }) satisfies ToyContext,
    introspection: true,
    graphiql: { enabled: true, developmentSecret: aliceSecret },
    maxMessageBytes: 100_000,
    logger,
    metrics,
    translateError: (error) =>
      error instanceof Error && error.message.includes('ECONNREFUSED') ? unavailable('SQL', error) : error,
    ...graphql,
  });
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    maxBodyBytes: 100_000,
    corsOrigins: ['https://app.example.com'],
    surfaces: [{ path: '/graphql', surface }],
    readiness: async () => ({ sql: stores.sql, redis: stores.redis }),
    logger,
    metrics,
    ...http,
  });
  const { url } = await server.listen();
  const graphqlUrl = `${url}/graphql`;

  /** POSTs a query as Alice, as a well-behaved client does. */
  async function post(
    query: string,
    { variables, headers }: { variables?: unknown; headers?: Record<string, string> } = {},
  ) {
    const response = await fetch(graphqlUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${aliceSecret}`, ...headers },
      body: JSON.stringify({ query, variables }),
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as ToyBody };
  }

  return {
    url,
    graphqlUrl,
    wsUrl: graphqlUrl.replace('http', 'ws'),
    port: Number(new URL(url).port) satisfies AddressInfo['port'],
    sources,
    logLines,
    metrics,
    stores,
    watchers,
    post,
    revoke(secret: string) {
      const principal = principals.get(secret);
      principals.delete(secret);
      if (!principal) return;
      for (const onEnd of watchers.get(principal) ?? [])
        onEnd(new DomainError('UNAUTHENTICATED', 'The key was revoked.'));
    },
    close: () => server.close(),
  };
}

export type ToyService = Awaited<ReturnType<typeof startToyService>>;

export interface ToyBody {
  data?: Record<string, unknown> | null;
  errors?: { message: string; path?: unknown; extensions?: Record<string, unknown> }[];
}

/** Waits, briefly and boundedly, for what happens in its own time. */
export async function eventually(
  isTrue: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 5000,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await sleep(10);
  }
}
