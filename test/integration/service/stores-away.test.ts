// A store that is away takes with it what lives in it, and nothing else; it comes back without help.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startCluster, type Cluster, type ServerProcess } from '../../support/cluster.js';
import type { GraphqlClient } from '../../support/graphql-client.js';
import { appendEntry, createScratchpad, readLedger } from '../../support/operations.js';
import { subscribe } from '../../support/subscriber.js';

let cluster: Cluster;
let server: ServerProcess;
let secret: string;
let client: GraphqlClient;
let padId: string;

beforeAll(async () => {
  cluster = await startCluster({ appendFsync: 'always' });
  server = await cluster.startServer();
  ({ secret } = await cluster.createTenant(server, 'Alice'));
  client = server.clientFor(secret);
});
beforeEach(async () => {
  padId = await createScratchpad(client);
  await appendEntry(client, padId, 'before');
});
afterAll(() => cluster.close());

const pageDocument = `query ($id: ID!) {
  viewer { name }
  scratchpad(id: $id) { id metaData createdAt content { text } entries { edges { cursor } } entryCount formattedView eventCursor expiresAt }
}`;

async function timed<Answer>(promise: Promise<Answer>): Promise<Answer> {
  const begin = Date.now();
  const answer = await promise;
  expect(Date.now() - begin).toBeLessThan(5000);
  return answer;
}

const readiness = async (): Promise<{ status: number; body: unknown }> => {
  const response = await fetch(`${server.url}/readyz`);
  return { status: response.status, body: await response.json() };
};

describe.each([
  ['killed', () => cluster.redis.kill(), () => cluster.redis.restart()],
  ['frozen', async () => cluster.redis.freeze(), async () => cluster.redis.thaw()],
])('with Redis %s', (_how, takeAway, bringBack) => {
  it('answers SQL fields, and null with UNAVAILABLE for the rest, and heals', async () => {
    await takeAway();
    try {
      const { data, errors, status } = await timed(client.send<{ scratchpad: object }>(pageDocument, { id: padId }));
      expect(status).toBe(200);
      expect(data).toMatchObject({
        viewer: { name: 'Alice' },
        scratchpad: {
          id: padId,
          metaData: {},
          content: null,
          entries: null,
          entryCount: null,
          formattedView: null,
          eventCursor: null,
          expiresAt: null,
        },
      });
      expect(errors.map((error) => `${error.path?.at(-1)} ${error.extensions.code}`).toSorted()).toEqual(
        ['content', 'entries', 'entryCount', 'eventCursor', 'expiresAt', 'formattedView'].map(
          (field) => `${field} UNAVAILABLE`,
        ),
      );
      const append = await timed(
        client.send(
          'mutation ($id: ID!) { appendScratchpadEntry(input: { scratchpadId: $id, content: "x", idempotencyKey: "k" }) { entry { id } } }',
          { id: padId },
        ),
      );
      expect(append.errors.map((error) => error.extensions.code)).toEqual(['UNAVAILABLE']);
      expect(await timed(readiness())).toEqual({
        status: 503,
        body: { status: 'unavailable', sql: 'ok', redis: 'unavailable' },
      });
      // Identity lives in SQL: a pad can be made meanwhile.
      await timed(createScratchpad(client));
    } finally {
      await bringBack();
    }
    await expect.poll(async () => (await readiness()).status, { timeout: 15_000 }).toBe(200);
    await appendEntry(client, padId, 'x', 'k');
    expect((await readLedger(client, padId)).map((entry) => entry.content)).toEqual(['before', 'x']);
  });
});

it('tells subscribers what they missed while Redis was away, without a gap and without a duplicate', async () => {
  const other = await cluster.startServer();
  const subscribers = await Promise.all([
    subscribe({ transport: 'WebSocket', url: server.url, secret, scratchpadId: padId, after: '' }),
    subscribe({ transport: 'SSE', url: other.url, secret, scratchpadId: padId, after: '' }),
  ]);
  // Both listen before the first fault.
  for (const subscriber of subscribers) await subscriber.received(1);
  const written = ['before'];
  for (let round = 0; round < 3; round += 1) {
    await cluster.redis.client().call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    for (let index = 0; index < 20; index += 1) {
      written.push(`${round}-${index}`);
      await appendEntry(client, padId, `${round}-${index}`);
    }
    await cluster.redis.restart();
    await expect.poll(async () => (await readiness()).status, { timeout: 15_000 }).toBe(200);
  }
  for (const subscriber of subscribers) {
    const events = await subscriber.received(written.length, 30_000);
    expect(events.map((event) => event.entry?.content)).toEqual(written);
    expect(subscriber.errors).toEqual([]);
    subscriber.close();
  }
  await other.stop();
});

it('answers UNAVAILABLE with PostgreSQL away, keeps its subscriptions, and heals', async () => {
  const subscriber = await subscribe({
    transport: 'WebSocket',
    url: server.url,
    secret,
    scratchpadId: padId,
    after: '',
  });
  await subscriber.received(1);
  await cluster.postgres.stop('immediate');
  try {
    const { errors } = await timed(
      client.send('query ($id: ID!) { scratchpad(id: $id) { id createdAt } }', { id: padId }),
    );
    expect(errors.map((error) => error.extensions.code)).toEqual(['UNAVAILABLE']);
    expect(await timed(readiness())).toMatchObject({ status: 503, body: { sql: 'unavailable', redis: 'ok' } });
  } finally {
    await cluster.postgres.start();
  }
  await expect.poll(async () => (await readiness()).status, { timeout: 10_000 }).toBe(200);
  await appendEntry(client, padId, 'after');
  expect((await subscriber.received(2)).map((event) => event.entry?.content)).toEqual(['before', 'after']);
  subscriber.close();
});

it('starts while PostgreSQL is being restarted, instead of ending', async () => {
  await cluster.postgres.stop('immediate');
  const starting = cluster.startServer();
  starting.catch(() => undefined); // judged below, after PostgreSQL is back
  await delay(2500);
  await cluster.postgres.start();
  const late = await starting;
  await late.clientFor(secret).run('{ viewer { name } }');
  expect(await late.stop()).toBe(0);
});

it('loses no acknowledged append when a server is killed, and goes on through the other one', async () => {
  const doomed = await cluster.startServer();
  const acknowledged: string[] = [];
  const death = { hasCome: false };
  const writers = Array.from({ length: 8 }, async (_unused, writer) => {
    for (let index = 0; !death.hasCome; index += 1) {
      const content = `${writer}-${index}`;
      await appendEntry(doomed.clientFor(secret), padId, content).then(
        () => acknowledged.push(content),
        () => undefined,
      );
    }
  });
  await expect.poll(() => acknowledged.length, { timeout: 10_000 }).toBeGreaterThan(50);
  await doomed.kill();
  death.hasCome = true;
  await Promise.all(writers);
  const contents = (await readLedger(client, padId)).map((entry) => entry.content);
  expect(contents).toEqual(expect.arrayContaining(acknowledged));
  expect(new Set(contents).size).toBe(contents.length);
});

it('completes subscriptions and ends within ten seconds on SIGTERM', async () => {
  const ending = await cluster.startServer();
  const subscribers = await Promise.all(
    (['WebSocket', 'SSE'] as const).map((transport) =>
      subscribe({ transport, url: ending.url, secret, scratchpadId: padId, after: '' }),
    ),
  );
  for (const subscriber of subscribers) await subscriber.received(1);
  const begin = Date.now();
  expect(await ending.stop()).toBe(0);
  expect(Date.now() - begin).toBeLessThan(10_000);
  for (const subscriber of subscribers) {
    await subscriber.ended;
    expect(subscriber.errors).toEqual([]);
    subscriber.close();
  }
});
