// Research over HTTP as a tenant sees it: started, watched over both transports, resumed, cancelled, and private.
import { createClient as createEventStreamClient } from 'graphql-sse';
import { createClient as createWebSocketClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createThread, deleteThread, startResearch } from '../../support/operations.js';
import {
  append,
  delegate,
  expectAnsweredCalls,
  isSupervisor,
  isWorkerOn,
  providerKey,
  readPad,
  until,
  update,
} from '../../support/research-runtime.js';
import {
  callsReply,
  chunkOf,
  startScriptedModelServer,
  textReply,
  type ModelRequest,
  type Reply,
  type ScriptedModelServer,
} from '../../support/scripted-model-server.js';
import { startService, type Service, type Tenant } from '../../support/service.js';
import { startSmallWeb, type SmallWeb } from '../../support/small-web.js';
import { transports, type Transport } from '../../support/subscriber.js';

let model: ScriptedModelServer;
let web: SmallWeb;
let service: Service;
let alice: Tenant;
let bob: Tenant;

beforeAll(async () => {
  model = await startScriptedModelServer();
  web = await startSmallWeb();
  service = await startService({
    environment: {
      LLM_BASE_URL: model.baseUrl,
      LLM_API_KEY: providerKey,
      LLM_MODEL: 'house-model',
      SEARXNG_URL: web.searchUrl,
      WEB_ALLOW_PRIVATE_HOSTS: 'true',
    },
  });
  alice = await service.createTenant('Alice');
  bob = await service.createTenant('Bob');
});
afterEach(() => {
  model.verify();
  expectAnsweredCalls(model.requests.splice(0));
});
afterAll(async () => {
  await service.close();
  await Promise.all([model.close(), web.close()]);
});

interface StreamEvent {
  __typename: string;
  cursor: string;
  runId: string;
  originRunId: string;
  phase?: string;
  state?: string;
  operation?: string;
  delta?: string;
  entry?: { content: string; author: string } | null;
}

const eventsDocument = `subscription ($id: ID!, $after: String) { runEvents(runId: $id, after: $after) {
  __typename cursor runId originRunId
  ... on ResearchStatusEvent { phase state }
  ... on ScratchpadEvent { operation state entry { content author } }
  ... on ContentEvent { delta } ... on ReasoningEvent { delta }
} }`;
const statusDocument = `subscription ($id: ID!, $after: String) { researchStatus(runId: $id, after: $after) {
  __typename cursor runId originRunId phase state
} }`;

/** Everything from the cursor on, until the server completes. */
async function watch(
  tenant: Tenant,
  id: string,
  {
    transport = 'WebSocket',
    after = '',
    query = eventsDocument,
  }: { transport?: Transport; after?: string; query?: string } = {},
): Promise<{ events: StreamEvent[]; errors: { extensions?: { code?: string } }[] }> {
  const headers = { authorization: `Bearer ${tenant.secret}` };
  const url = `${service.url}/graphql`;
  const client =
    transport === 'SSE'
      ? createEventStreamClient({ url, headers, retryAttempts: 0 })
      : createWebSocketClient({
          url: url.replace('http', 'ws'),
          connectionParams: headers,
          webSocketImpl: WebSocket,
          retryAttempts: 0,
        });
  const events: StreamEvent[] = [];
  const errors: { extensions?: { code?: string } }[] = [];
  await new Promise<void>((resolve) => {
    client.subscribe(
      { query, variables: { id, after } },
      {
        next(result: { data?: unknown; errors?: readonly unknown[] }) {
          errors.push(...((result.errors ?? []) as typeof errors));
          const data = result.data as Record<string, StreamEvent> | null | undefined;
          if (data) events.push(...Object.values(data));
        },
        error(error: unknown) {
          errors.push(...((Array.isArray(error) ? error : [error]) as typeof errors));
          resolve();
        },
        complete: resolve,
      },
    );
  });
  await client.dispose();
  return { events, errors };
}

const supervisor = (...replies: Reply[]): void =>
  model.script(...replies.map((reply) => ({ when: isSupervisor, reply })));
const worker = (task: string, ...replies: Reply[]): void =>
  model.script(...replies.map((reply) => ({ when: isWorkerOn(task), reply })));

const readRun = async (tenant: Tenant, id: string) =>
  (
    await tenant.client.run<{
      run: {
        status: string;
        output: string | null;
        lastError: { code: string } | null;
        thread: object | null;
        childRuns: { id: string; status: string; thread: object | null; assistant: object | null }[];
      } | null;
    }>(
      `query ($id: ID!) { run(id: $id) { status output lastError { code } thread { id }
        childRuns { id status thread { id } assistant { id } } } }`,
      { id },
    )
  ).run;

describe('a research run over HTTP', () => {
  it.each(transports)('is watched to its end over %s, and read again from any place', async (transport) => {
    const answer = `The tower is 49 metres high, see ${web.siteUrl}/eddystone. `.repeat(20);
    supervisor(
      callsReply([update('s1', '[STRATEGY] one')], { text: 'First the plan.' }),
      callsReply([delegate('s2', 'height')]),
      callsReply([readPad('s3')]),
      textReply(answer),
    );
    worker(
      'height',
      callsReply([{ id: 'w1', name: 'read_web_page', arguments: { url: `${web.siteUrl}/eddystone` } }]),
      callsReply([append('w2', '[VERIFIED] 49 m')]),
      textReply('49 metres.'),
    );
    const id = await startResearch(alice.client, await createThread(alice.client));
    const { events, errors } = await watch(alice, id, { transport });
    expect(errors).toEqual([]);
    // What the last event says can be read the moment it arrives.
    const run = (await readRun(alice, id))!;
    expect(run).toMatchObject({
      status: 'COMPLETED',
      output: answer,
      childRuns: [{ status: 'COMPLETED', thread: null }],
    });
    const said = events.filter((event) => event.__typename === 'ContentEvent' && event.originRunId === id);
    expect(said.map(({ delta }) => delta).join('')).toBe(answer);
    expect(new Set(events.map(({ runId }) => runId))).toEqual(new Set([id]));
    expect(new Set(events.map(({ originRunId }) => originRunId))).toEqual(new Set([id, run.childRuns[0]!.id]));
    const phases = events.flatMap(({ phase }) => phase ?? []);
    expect(phases.filter((phase, place) => phase !== phases[place - 1])).toEqual([
      'QUEUED',
      'STARTED',
      'PLANNING',
      'SCRATCHPAD_UPDATED',
      'DELEGATED',
      'RESEARCHING',
      'SCRATCHPAD_UPDATED',
      'WORKER_COMPLETED',
      'SYNTHESISING',
      'FINISHED',
    ]);
    expect(events.find(({ entry }) => entry)).toMatchObject({
      operation: 'APPEND',
      state: 'SUCCESS',
      entry: { content: '[VERIFIED] 49 m', author: 'worker-1' },
    });

    expect((await watch(alice, id, { transport })).events).toEqual(events);
    const middle = Math.floor(events.length / 2);
    const rest = await watch(alice, id, { transport, after: events[middle]!.cursor });
    expect(rest.events).toEqual(events.slice(middle + 1));
    const status = await watch(alice, id, { transport, query: statusDocument });
    expect(status.events.map(({ cursor }) => cursor)).toEqual(
      events.filter(({ __typename }) => __typename === 'ResearchStatusEvent').map(({ cursor }) => cursor),
    );
  });

  it('is cancelled with everything below it within two seconds', async () => {
    const endless: Reply = { chunks: Array(1000).fill(chunkOf({ content: 'x' })), pauseMsBetweenChunks: 20 };
    supervisor(callsReply([delegate('a', 'one'), delegate('b', 'two'), delegate('c', 'three')]));
    for (const task of ['one', 'two', 'three']) worker(task, endless);
    const id = await startResearch(alice.client, await createThread(alice.client));
    const watched = watch(alice, id);
    await until('three workers streaming', () => model.requests.length === 4);
    const streams: ModelRequest[] = model.requests.slice(1);
    const atMs = Date.now();
    await alice.client.run('mutation ($id: ID!) { cancelRun(input: { runId: $id }) { run { id } } }', { id });
    await Promise.all(streams.map(({ hungUp }) => hungUp));
    expect(Date.now() - atMs).toBeLessThan(2000);
    const { events } = await watched;
    const ends = events.filter(({ phase }) => phase === 'FINISHED' || phase === 'WORKER_FAILED');
    expect(ends.map(({ phase }) => phase)).toEqual(['WORKER_FAILED', 'WORKER_FAILED', 'WORKER_FAILED', 'FINISHED']);
    const run = (await readRun(alice, id))!;
    expect([run.status, ...run.childRuns.map(({ status }) => status)]).toEqual(Array(4).fill('CANCELLED'));
    expect(model.requests).toHaveLength(4);
  });

  it("keeps a worker's conversation and assistant out of sight while they exist, and everything from other tenants", async () => {
    supervisor(callsReply([delegate('a', 'hidden work')]));
    worker('hidden work', callsReply([append('w', 'found')]), {
      chunks: [chunkOf({ content: 'I am' })],
      ending: 'hang',
    });
    const threadId = await createThread(alice.client);
    const id = await startResearch(alice.client, threadId);
    await until('the worker streaming', () => model.requests.length === 3);

    const hidden = await service.psql<{ id: string }>(
      'SELECT id FROM threads WHERE ephemeral UNION ALL SELECT id FROM assistants WHERE ephemeral',
    );
    expect(hidden).toHaveLength(2);
    const messages = await service.psql<{ id: string }>(
      'SELECT m.id FROM messages m JOIN threads t ON t.id = m.thread_id WHERE t.ephemeral',
    );
    expect(messages.length).toBeGreaterThan(2);
    for (const { id: hiddenId } of [...hidden, ...messages]) {
      const { data } = await alice.client.send('query ($id: ID!) { node(id: $id) { id } }', { id: hiddenId });
      expect(data).toEqual({ node: null });
    }
    const lists = await alice.client.run<object>(
      `query { viewer {
        threads(first: 100) { totalCount edges { node { id } } }
        assistants(first: 100) { totalCount edges { node { id } } }
        runs(first: 10) { edges { node { thread { id messages(first: 50) { edges { node { id } } } } assistant { id } } } }
      } }`,
    );
    for (const { id: hiddenId } of [...hidden, ...messages]) expect(JSON.stringify(lists)).not.toContain(hiddenId);
    const [child] = (await readRun(alice, id))!.childRuns;
    expect(child).toMatchObject({ status: 'IN_PROGRESS', thread: null });

    for (const runId of [id, child!.id]) {
      expect(await readRun(bob, runId)).toBeNull();
      expect((await watch(bob, runId)).errors).toMatchObject([{ extensions: { code: 'NOT_FOUND' } }]);
      const cancel = 'mutation ($id: ID!) { cancelRun(input: { runId: $id }) { run { id } } }';
      expect((await bob.client.fail(cancel, { id: runId })).extensions.code).toBe('NOT_FOUND');
    }
    expect((await readRun(alice, id))!.status).toBe('IN_PROGRESS');

    const stream = model.requests.at(-1)!;
    await deleteThread(alice.client, threadId);
    await stream.hungUp;
    expect(await readRun(alice, id)).toBeNull();
    await until('nothing is left', async () => {
      const left = await service.psql(
        'SELECT 1 FROM threads WHERE ephemeral UNION ALL SELECT 1 FROM assistants WHERE ephemeral',
      );
      return left.length === 0;
    });
  });

  it("has the provider's key in no row, no Redis key, no event and no answer", async () => {
    supervisor({ status: 401, body: JSON.stringify({ error: { message: `bad key ${providerKey}` } }) });
    const id = await startResearch(alice.client, await createThread(alice.client));
    const { events } = await watch(alice, id);
    const run = await readRun(alice, id);
    expect(run).toMatchObject({ status: 'FAILED', lastError: { code: 'PROVIDER_ERROR' } });
    const tables = await service.psql<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
    );
    const rows = await Promise.all(tables.map(({ name }) => service.psql(`SELECT t::text FROM "${name}" t`)));
    const redis = service.redis.client();
    const keys = await redis.keys('*');
    expect(keys.some((key) => key.includes(id))).toBe(true);
    const values = await Promise.all(
      keys.map(async (key) => {
        const type = await redis.type(key);
        if (type === 'string') return await redis.get(key);
        if (type === 'hash') return await redis.hgetall(key);
        if (type === 'list') return await redis.lrange(key, '0', '-1');
        if (type === 'stream') return await redis.xrange(key, '-', '+');
        return type === 'zset' ? await redis.zrange(key, '0', '-1') : await redis.smembers(key);
      }),
    );
    const all = JSON.stringify({ events, run, rows, keys, values });
    expect(all).toContain('PROVIDER_ERROR');
    expect(all).not.toContain(providerKey);
  });
});
