// Writes whose answer was lost: with an idempotency key a retry finds the first result, whatever died in between; without one nobody
// of ours sends it again.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createGraphqlClient, type GraphqlClient } from '../support/graphql-client.js';
import {
  createScratchpad,
  createThread,
  createToken,
  readLedger,
  readState,
  setContentDocument,
} from '../support/operations.js';
import { watchRedis, type RedisWatch } from '../support/redis-watch.js';
import { startArena, type Arena } from './support/arena.js';
import type { ServerSlot } from './support/server-slot.js';
import { settle } from './support/settle.js';
import { startTcpProxy, type TcpProxy } from './support/tcp-proxy.js';
import { appendDocument } from './support/writers.js';

let folder: string;
let arena: Arena;
let tenant: Awaited<ReturnType<Arena['createTenant']>>;
let redisLine: TcpProxy;
let sqlLine: TcpProxy;
/** Reaches its stores through lines that can be cut. */
let fragile: ServerSlot;
let throughFragile: GraphqlClient;
let watch: RedisWatch;
let scratchpadId: string;

const addressOf = (url: string): { host: string; port: number } => {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scratchpad-chaos-'));
  arena = await startArena({ folder, servers: 1 });
  const { redis, databaseUrl } = arena.cluster;
  redisLine = await startTcpProxy(addressOf(redis.url));
  sqlLine = await startTcpProxy(addressOf(databaseUrl));
  const throughLine = new URL(databaseUrl);
  throughLine.port = String(sqlLine.port);
  fragile = await arena.addServer({
    environment: { REDIS_URL: `redis://127.0.0.1:${redisLine.port}`, DATABASE_URL: throughLine.href },
  });
  tenant = await arena.createTenant('retrier');
  throughFragile = createGraphqlClient(fragile.url, tenant.secret);
  watch = await watchRedis(redis);
});
beforeEach(async () => {
  scratchpadId = await createScratchpad(tenant.client);
  await fragile.start();
  if (!(await settle(() => arena.isReady(), { withinMs: 15_000 }))) throw new Error('a server is not ready');
  // Its caches know the pad and the key: what follows is one command to Redis.
  await readState(throughFragile, scratchpadId);
});
afterAll(async () => {
  watch.close();
  await arena.close();
  await Promise.all([redisLine.close(), sqlLine.close()]);
  await rm(folder, { recursive: true, force: true });
});

const append = (client: GraphqlClient, content: string, idempotencyKey?: string) =>
  client.send<{ appendScratchpadEntry: { entry: { id: string } } }>(appendDocument, {
    input: { scratchpadId, content, idempotencyKey },
  });
const set = (client: GraphqlClient, text: string, idempotencyKey?: string) =>
  client.send<{ setScratchpadContent: { content: { version: string } } }>(setContentDocument, {
    input: { scratchpadId, text, idempotencyKey },
  });
const contents = async (): Promise<string[]> =>
  (await readLedger(tenant.client, scratchpadId)).map(({ content }) => content);

/** Runs a write whose command reaches Redis and whose answer does not come back. @returns what the client was told */
async function loseAnswer<Told>(text: string, write: () => Promise<Told>): Promise<Told> {
  const sent = redisLine.holdAnswerTo(text);
  const told = write();
  await sent;
  redisLine.cut();
  return await told;
}

/** Commands of anybody that carried this text. */
const executions = async (text: string): Promise<string[]> =>
  (await watch.take()).filter((command) => command.includes(text));

describe('a Redis connection that is lost in mid-command', () => {
  it('ends an append without a key as UNAVAILABLE, and nobody sends it again', async () => {
    const { errors } = await loseAnswer('append without a key', () => append(throughFragile, 'append without a key'));
    expect(errors.map(({ extensions }) => extensions.code)).toEqual(['UNAVAILABLE']);
    await settle(() => arena.isReady(), { withinMs: 15_000 });
    await append(throughFragile, 'the next one');
    expect(await contents()).toEqual(['append without a key', 'the next one']);
    expect(await executions('append without a key')).toHaveLength(1);
  });

  it('ends a rewrite and a clear without a key as UNAVAILABLE, and nobody sends them again', async () => {
    const rewrite = await loseAnswer('rewrite without a key', () => set(throughFragile, 'rewrite without a key'));
    expect(rewrite.errors.map(({ extensions }) => extensions.code)).toEqual(['UNAVAILABLE']);
    await settle(() => arena.isReady(), { withinMs: 15_000 });
    await set(tenant.client, 'a later one');
    await readState(throughFragile, scratchpadId);
    const { content } = await readState(tenant.client, scratchpadId);
    expect(content.text).toBe('a later one');
    expect(await executions('rewrite without a key')).toHaveLength(1);

    const document = 'mutation ($id: ID!) { clearScratchpad(input: { scratchpadId: $id }) { scratchpad { id } } }';
    const clear = await loseAnswer('\r\nALL\r\n', () => throughFragile.send(document, { id: scratchpadId }));
    expect(clear.errors.map(({ extensions }) => extensions.code)).toEqual(['UNAVAILABLE']);
    await set(tenant.client, 'after the clear');
    await settle(() => arena.isReady(), { withinMs: 15_000 });
    await readState(throughFragile, scratchpadId);
    expect((await readState(tenant.client, scratchpadId)).content.text).toBe('after the clear');
    expect(await executions(' ALL ')).toHaveLength(1);
  });

  it('lets a retry with the same key find the first entry and the first version, through any server', async () => {
    const lost = await loseAnswer('append with a key', () => append(throughFragile, 'append with a key', 'k'));
    expect(lost.errors.map(({ extensions }) => extensions.code)).toEqual(['UNAVAILABLE']);
    const [first] = await readLedger(tenant.client, scratchpadId);
    await settle(() => arena.isReady(), { withinMs: 15_000 });
    for (const client of [tenant.client, throughFragile]) {
      const { data } = await append(client, 'append with a key', 'k');
      expect(data?.appendScratchpadEntry.entry.id).toBe(first?.id);
    }
    expect(await contents()).toEqual(['append with a key']);

    await loseAnswer('rewrite with a key', () => set(throughFragile, 'rewrite with a key', 'k of the rewrite'));
    const { version } = (await readState(tenant.client, scratchpadId)).content;
    await set(tenant.client, 'a later one');
    const again = await set(tenant.client, 'rewrite with a key', 'k of the rewrite');
    expect(again.data?.setScratchpadContent.content.version).toBe(version);
    expect((await readState(tenant.client, scratchpadId)).content.text).toBe('a later one');
  });

  it('ends the append of an agent as UNAVAILABLE, and neither MCP nor a tool sends it again', async () => {
    const { secret } = await createToken(tenant.client, scratchpadId, 'WORKER');
    const agent = new Client({ name: 'a test', version: '1.0.0' });
    const headers = { authorization: `Bearer ${secret}` };
    await agent.connect(new StreamableHTTPClientTransport(new URL(`${fragile.url}/mcp`), { requestInit: { headers } }));
    const told = await loseAnswer('append of an agent', () =>
      agent.callTool({ name: 'append_scratchpad', arguments: { note: 'append of an agent' } }),
    );
    expect(JSON.stringify(told)).toContain('UNAVAILABLE');
    await settle(() => arena.isReady(), { withinMs: 15_000 });
    expect(await contents()).toEqual(['append of an agent']);
    expect(await executions('append of an agent')).toHaveLength(1);
    await agent.close();
  });
});

describe('a server that is killed between a write and its answer', () => {
  it('leaves a write that a retry with the same key finds, through another server', async () => {
    for (let round = 0; round < 5; round += 1) {
      await fragile.start();
      await settle(() => arena.isReady(), { withinMs: 15_000 });
      await readState(throughFragile, scratchpadId);
      const text = `round ${round}`;
      const sent = redisLine.holdAnswerTo(text);
      const told = append(throughFragile, text, text).catch(() => 'no answer');
      await sent;
      expect(await settle(async () => (await contents()).includes(text), { withinMs: 5000, everyMs: 10 })).toBe(true);
      await fragile.kill();
      expect(await told).toBe('no answer');
      const before = await readLedger(tenant.client, scratchpadId);
      const { data } = await append(tenant.client, text, text);
      expect(data?.appendScratchpadEntry.entry.id).toBe(before.at(-1)?.id);
    }
    expect(await contents()).toEqual(Array.from({ length: 5 }, (_, round) => `round ${round}`));
  });
});

describe('a PostgreSQL connection that is lost in mid-statement', () => {
  it('ends a creation as UNAVAILABLE, and nobody sends it again', async () => {
    const countThreads = async (): Promise<number> =>
      Number((await arena.cluster.psql<{ count: string }>('SELECT count(*) FROM threads'))[0]?.count);
    const before = await countThreads();
    const sent = sqlLine.holdAnswerTo('INSERT INTO "public"."threads"');
    const told = throughFragile.send('mutation { createThread(input: {}) { thread { id } } }');
    await sent;
    // The statement has reached the database; its row is there or will be.
    expect(await settle(async () => (await countThreads()) > before, { withinMs: 5000, everyMs: 10 })).toBe(true);
    sqlLine.cut();
    const { errors } = await told;
    expect(errors.map(({ extensions }) => extensions.code)).toEqual(['UNAVAILABLE']);
    await settle(() => arena.isReady(), { withinMs: 15_000 });
    await createThread(throughFragile);
    expect(await countThreads()).toBe(before + 2);
  });
});

it('has had servers that ended when they were told to, and logged no error', async () => {
  expect(await arena.stopServers()).toEqual([]);
});
