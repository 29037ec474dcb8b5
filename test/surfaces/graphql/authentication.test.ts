// Who is let in, with what, and for how long: over HTTP, SSE and WebSockets, and over two processes.
import { createHash, randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { startCluster, type Cluster, type ClusterTenant, type ServerProcess } from '../../support/cluster.js';
import type { GraphqlClient } from '../../support/graphql-client.js';
import { appendEntry, createScratchpad } from '../../support/operations.js';
import { administratorSecret, startService, type Service, type Tenant } from '../../support/service.js';
import { subscribe, transports, type Subscriber } from '../../support/subscriber.js';
import { bearer, wires, wireNames, type WireAnswer, type WireName } from '../../support/wire.js';

const viewerDocument = '{ viewer { id } }';
const createKeyDocument =
  'mutation ($expiresAt: DateTime) { createApiKey(input: { name: "another", expiresAt: $expiresAt }) { secret apiKey { id } } }';
const revokeDocument = 'mutation ($id: ID!) { revokeApiKey(input: { apiKeyId: $id }) { apiKey { id } } }';

interface Key {
  id: string;
  secret: string;
}

async function createKey(client: GraphqlClient, expiresAt?: Date): Promise<Key> {
  const { createApiKey } = await client.run<{ createApiKey: { secret: string; apiKey: { id: string } } }>(
    createKeyDocument,
    { expiresAt },
  );
  return { id: createApiKey.apiKey.id, secret: createApiKey.secret };
}

const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');

describe('one service', () => {
  let service: Service;
  let alice: Tenant;
  let bob: Tenant;

  beforeAll(async () => {
    service = await startService();
    alice = await service.createTenant('Alice');
    bob = await service.createTenant('Bob');
  });
  afterAll(() => service.close());

  /** Headers exactly as given, also several of one name. */
  async function sendRaw(headers: [string, string][]): Promise<{ status: number; body: string; headers: object }> {
    const { hostname, port } = new URL(service.url);
    const given = [['Host', `${hostname}:${port}`], ['Content-Type', 'application/json'], ...headers];
    return await new Promise((resolve, reject) => {
      const outgoing = request(
        { hostname, port, path: '/graphql', method: 'POST', headers: given.flat() },
        (response) => {
          let body = '';
          response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
          response.on('end', () => {
            const { date: _date, 'x-request-id': _requestId, ...rest } = response.headers;
            resolve({ status: response.statusCode ?? 0, body, headers: rest });
          });
        },
      );
      outgoing.on('error', reject).end(JSON.stringify({ query: viewerDocument }));
    });
  }

  const ask = (wire: WireName, credentials: Record<string, unknown>): Promise<WireAnswer> =>
    wires[wire]({ url: service.url, credentials, document: viewerDocument });

  const isAlice = (answer: WireAnswer): boolean =>
    JSON.stringify(answer.results) === JSON.stringify([{ data: { viewer: { id: alice.userId } } }]);

  it.each([
    ['a bearer token', () => ({ authorization: `Bearer ${alice.secret}` })],
    ['a bearer token in other cases', () => ({ Authorization: `bEaReR ${alice.secret}` })],
    ['X-API-Key alone', () => ({ 'X-API-Key': alice.secret })],
    ['x-api-key in lower case', () => ({ 'x-api-key': alice.secret })],
    ['both, with the same key', () => ({ authorization: `Bearer ${alice.secret}`, 'x-api-key': alice.secret })],
    ['a key beside another scheme', () => ({ authorization: 'Basic cHJveHk6eA==', 'x-api-key': alice.secret })],
  ])('lets in who sends %s, on every transport', async (_what, credentials) => {
    for (const wire of wireNames) expect(isAlice(await ask(wire, credentials())), wire).toBe(true);
  });

  it('lets in who sends one key in two headers of one name, and nobody with two different ones', async () => {
    const [good, other] = [`Bearer ${alice.secret}`, `Bearer ${bob.secret}`];
    for (const [status, headers] of [
      [
        200,
        [
          ['Authorization', good],
          ['authorization', good],
        ],
      ],
      [
        200,
        [
          ['X-API-Key', alice.secret],
          ['x-api-key', alice.secret],
        ],
      ],
      [
        401,
        [
          ['Authorization', good],
          ['Authorization', other],
        ],
      ],
      [
        401,
        [
          ['Authorization', other],
          ['Authorization', good],
        ],
      ],
      [
        401,
        [
          ['X-API-Key', alice.secret],
          ['X-API-Key', bob.secret],
        ],
      ],
      [
        401,
        [
          ['Authorization', good],
          ['X-API-Key', bob.secret],
        ],
      ],
      [401, [['X-API-Key', `${alice.secret}, ${bob.secret}`]]],
    ] as [number, [string, string][]][]) {
      expect((await sendRaw(headers)).status, JSON.stringify(headers)).toBe(status);
    }
  });

  describe('who is not let in', () => {
    let revoked: Key;
    let expired: Key;
    let deletedSecret: string;

    beforeAll(async () => {
      revoked = await createKey(alice.client);
      expired = await createKey(alice.client);
      await alice.client.run(revokeDocument, { id: revoked.id });
      await service.psql(`UPDATE api_keys SET expires_at = now() - interval '1 millisecond' WHERE id = $1`, [
        expired.id,
      ]);
      const carol = await service.createTenant('Carol');
      deletedSecret = carol.secret;
      const { administrator } = service;
      await administrator.run('mutation ($id: ID!) { deleteUser(input: { userId: $id }) { deletedUserId } }', {
        id: carol.userId,
      });
    });

    const attempts: [string, () => Record<string, string>][] = [
      ['nothing', () => ({})],
      ['an empty key', () => ({ 'x-api-key': ' ' })],
      ['a bearer without a key', () => ({ authorization: 'Bearer ' })],
      ['a key without Bearer', () => ({ authorization: alice.secret })],
      ['a key under another scheme', () => ({ authorization: `Basic ${alice.secret}` })],
      ['two words after Bearer', () => ({ authorization: `Bearer ${alice.secret} ${alice.secret}` })],
      ['a key in another header', () => ({ 'x-auth-token': alice.secret, cookie: `key=${alice.secret}` })],
      ['an unknown key', () => bearer(`spk_${randomBytes(32).toString('base64url')}`)],
      ['a key with a wrong prefix', () => bearer(alice.secret.replace('spk_', 'agt_'))],
      ['a key without its prefix', () => bearer(alice.secret.replace('spk_', ''))],
      ['a key that lacks its last character', () => bearer(alice.secret.slice(0, -1))],
      ['a key with one more character', () => bearer(`${alice.secret}x`)],
      ['a key in upper case', () => bearer(alice.secret.toUpperCase())],
      ['the prefix that is shown of a key', () => bearer(alice.secret.slice(0, 12))],
      ['the hash of a key', () => bearer(hashOf(alice.secret))],
      ['an id', () => bearer(alice.userId)],
      ['a very long key', () => bearer('x'.repeat(8000))],
      ['a revoked key', () => bearer(revoked.secret)],
      ['an expired key', () => bearer(expired.secret)],
      ["a deleted user's key", () => bearer(deletedSecret)],
    ];

    it.each(wireNames)('gets the same answer to the byte over %s, whatever is wrong', async (wire) => {
      const answers = new Map<string, string[]>();
      for (const [what, credentials] of attempts) {
        const { status, headers, body } = await ask(wire, credentials());
        const bytes = JSON.stringify({ status, headers, body });
        answers.set(bytes, [...(answers.get(bytes) ?? []), what]);
      }
      expect([...answers.values()]).toEqual([attempts.map(([what]) => what)]);
      const [bytes = ''] = answers.keys();
      expect((JSON.parse(bytes) as WireAnswer).status).toBe(wire === 'WebSocket' ? 4401 : 401);
      expect(bytes.includes('"www-authenticate":"Bearer realm')).toBe(wire !== 'WebSocket');
    });

    it('has no other way to send a key: not in the address', async () => {
      for (const name of ['authorization', 'api_key', 'x-api-key', 'access_token', 'key']) {
        const query = new URLSearchParams({ query: viewerDocument, [name]: alice.secret });
        expect((await fetch(`${service.url}/graphql?${query.toString()}`)).status, name).toBe(401);
      }
    });
  });

  it.each([
    ['nothing', undefined, false],
    ['an empty object', () => ({}), false],
    ['a key under a name of its own', () => ({ token: alice.secret }), false],
    ['headers in an object', () => ({ headers: bearer(alice.secret) }), false],
    ['a list', () => ({ authorization: [`Bearer ${alice.secret}`] }), false],
    ['an object', () => ({ authorization: { token: alice.secret } }), false],
    ['null', () => ({ authorization: null, 'x-api-key': null }), false],
    ['two keys that differ', () => ({ ...bearer(alice.secret), 'X-API-Key': bob.secret }), false],
    [
      'two keys under one name in two cases',
      () => ({ ...bearer(alice.secret), Authorization: `Bearer ${bob.secret}` }),
      false,
    ],
    ['Authorization', () => ({ Authorization: `Bearer ${alice.secret}` }), true],
    ['X-API-Key', () => ({ 'X-API-Key': alice.secret }), true],
    ['a key and more', () => ({ ...bearer(alice.secret), locale: 'de', __proto__: { x: 1 } }), true],
  ] as [string, (() => object) | undefined, boolean][])(
    'takes the connection parameters %s for what they are',
    async (_what, parameters, isIn) => {
      const answer = await wires.WebSocket({
        url: service.url,
        credentials: parameters?.() as Record<string, unknown>,
        document: viewerDocument,
      });
      expect([answer.status, isAlice(answer)]).toEqual(isIn ? [0, true] : [4401, false]);
    },
  );

  it('takes the key of a WebSocket from its handshake when the parameters have none', async () => {
    const socket = new WebSocket(`${service.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', {
      headers: bearer(alice.secret),
    });
    socket.on('open', () => socket.send('{"type":"connection_init"}'));
    const message = await new Promise<string>((resolve) =>
      socket.once('message', (data: Buffer) => resolve(data.toString('utf8'))),
    );
    expect(message).toContain('connection_ack');
    socket.close();
  });

  it('lets a key work until the moment of its expiry, and ends what is open then', async () => {
    const expiresAt = new Date(Date.now() + 4000);
    const short = await createKey(alice.client, expiresAt);
    const client = service.clientFor(short.secret);
    const scratchpadId = await createScratchpad(client);
    const options = { url: service.url, secret: short.secret, scratchpadId, after: '' };
    const subscribers = await Promise.all(transports.map((transport) => subscribe({ ...options, transport })));
    await appendEntry(client, scratchpadId, 'in time');
    for (const subscriber of subscribers) await subscriber.received(1);
    // A busy client: its key is in the cache all the time.
    while (Date.now() < expiresAt.getTime() - 50) expect((await client.send('{ __typename }')).status).toBe(200);
    while (Date.now() <= expiresAt.getTime()) await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await client.send('{ __typename }')).status).toBe(401);
    for (const subscriber of subscribers) {
      await subscriber.ended;
      expect(subscriber.errors.map((error) => error.extensions?.code)).toEqual(['UNAUTHENTICATED']);
    }
    expect(Date.now() - expiresAt.getTime()).toBeLessThan(2500);
  });

  it('refuses a key that is made to expire in the past', async () => {
    const error = await alice.client.fail(createKeyDocument, { expiresAt: new Date(Date.now() - 1000) });
    expect(error.extensions.code).toBe('BAD_USER_INPUT');
  });

  it('remembers no failure: a key that is made after a failed try works at once', async () => {
    const secret = `spk_${randomBytes(32).toString('base64url')}`;
    const client = service.clientFor(secret);
    for (let attempt = 0; attempt < 3; attempt += 1) expect((await client.send(viewerDocument)).status).toBe(401);
    await service.psql(
      `INSERT INTO api_keys (id, owner_id, name, prefix, secret_hash) VALUES ('key_01ARZ3NDEKTSV4RRFFQ69G5FAV', $1, 'late', 'spk_', $2)`,
      [alice.userId, hashOf(secret)],
    );
    expect(await client.run(viewerDocument)).toEqual({ viewer: { id: alice.userId } });
  });

  it('asks SQL about a busy client once a second, not for each request, and once for many at a time', async () => {
    const busy = service.clientFor((await createKey(alice.client)).secret);
    const requests = 300;
    service.takeStatementCount();
    const begin = Date.now();
    await Promise.all(Array.from({ length: 50 }, () => busy.run('{ __typename }')));
    for (let index = 50; index < requests; index += 1) await busy.run('{ __typename }');
    const seconds = (Date.now() - begin) / 1000;
    // One for the key each second; the purge loop and the notes of the last use come on top.
    expect(service.takeStatementCount()).toBeLessThanOrEqual(Math.ceil(seconds) * 2 + 4);
    expect(seconds).toBeLessThan(requests / 10);
  });

  it('notes when a key was last used, without telling so to anybody else', async () => {
    const key = await createKey(bob.client);
    await service.clientFor(key.secret).run(viewerDocument);
    const lastUse = async (): Promise<unknown> => {
      const { viewer } = await bob.client.run<{ viewer: { apiKeys: { id: string; lastUsedAt: string | null }[] } }>(
        '{ viewer { apiKeys { id lastUsedAt } } }',
      );
      return viewer.apiKeys.find(({ id }) => id === key.id)?.lastUsedAt;
    };
    await expect.poll(lastUse, { timeout: 12_000, interval: 200 }).toMatch(/^\d{4}-/);
  });
});

describe('one key whose last use cannot be written', () => {
  it('does not keep those of the others from being written, and is written once it can be', async () => {
    const own = await startService();
    try {
      const tenant = await own.createTenant('Alice');
      const keys: { id: string; secret: string }[] = [];
      for (let index = 0; index < 4; index += 1) keys.push(await createKey(tenant.client));
      const [stubborn] = keys;
      await own.psql(
        `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$`,
      );
      await own.psql(
        `CREATE TRIGGER refuse BEFORE UPDATE ON api_keys FOR EACH ROW WHEN (OLD.id = '${stubborn?.id}') EXECUTE FUNCTION refuse()`,
      );
      for (const { secret } of keys) await own.clientFor(secret).run(viewerDocument);
      const unwritten = async (): Promise<string[]> =>
        (await own.psql<{ id: string }>('SELECT id FROM api_keys WHERE last_used_at IS NULL')).map(({ id }) => id);
      await expect.poll(unwritten, { timeout: 20_000, interval: 200 }).toEqual([stubborn?.id]);
      await own.psql('DROP TRIGGER refuse ON api_keys');
      await expect.poll(unwritten, { timeout: 12_000, interval: 200 }).toEqual([]);
    } finally {
      await own.close();
    }
  });
});

describe('two processes', () => {
  let cluster: Cluster;
  let one: ServerProcess;
  let other: ServerProcess;
  let alice: ClusterTenant;

  beforeAll(async () => {
    cluster = await startCluster();
    const environment = { LOG_LEVEL: 'trace' };
    [one, other] = await Promise.all([cluster.startServer(environment), cluster.startServer(environment)]);
    alice = await cluster.createTenant(one, 'Alice');
  });
  afterAll(() => cluster.close());

  const limitMs = 2000;

  /** Uses a key at the other process in every way, so that whatever could be remembered of it is. */
  async function openEverything(secret: string): Promise<{ client: GraphqlClient; subscribers: Subscriber[] }> {
    const client = other.clientFor(secret);
    const scratchpadId = await createScratchpad(client);
    const options = { url: other.url, secret, scratchpadId, after: '' };
    const subscribers = await Promise.all(transports.map((transport) => subscribe({ ...options, transport })));
    await appendEntry(client, scratchpadId, 'a finding');
    for (const subscriber of subscribers) await subscriber.received(1);
    return { client, subscribers };
  }

  /** How long it took until requests are refused and the subscriptions over. */
  async function untilTheEnd(client: GraphqlClient, subscribers: Subscriber[], since: number): Promise<number> {
    const requestsEnd = async (): Promise<number> => {
      while ((await client.send('{ __typename }')).status !== 401) expect(Date.now() - since).toBeLessThan(20_000);
      return Date.now() - since;
    };
    const took = await Promise.all([
      requestsEnd(),
      ...subscribers.map(async (subscriber) => {
        await subscriber.ended;
        return Date.now() - since;
      }),
    ]);
    return Math.max(...took);
  }

  // A machine that is busy with something else may make one try late, but not three.
  const patiently = { retry: 2 };

  it('ends a revoked key on the other process, and what was opened with it', patiently, async () => {
    const key = await createKey(one.clientFor(alice.secret));
    const { client, subscribers } = await openEverything(key.secret);
    const bystander = await openEverything(alice.secret);
    const since = Date.now();
    await one.clientFor(alice.secret).run(revokeDocument, { id: key.id });
    expect(await untilTheEnd(client, subscribers, since)).toBeLessThan(limitMs);
    for (const subscriber of subscribers) {
      expect(subscriber.errors.map((error) => error.extensions?.code)).toEqual(['UNAUTHENTICATED']);
    }
    for (const subscriber of bystander.subscribers) {
      expect(subscriber.isOver).toBe(false);
      subscriber.close();
    }
  });

  it('ends a key that is revoked or deleted in psql', patiently, async () => {
    for (const sql of ['UPDATE api_keys SET revoked_at = now() WHERE id = $1', 'DELETE FROM api_keys WHERE id = $1']) {
      const key = await createKey(one.clientFor(alice.secret));
      const { client, subscribers } = await openEverything(key.secret);
      const since = Date.now();
      await cluster.psql(sql, [key.id]);
      expect(await untilTheEnd(client, subscribers, since)).toBeLessThan(limitMs);
    }
  });

  it('ends every key of a user that is deleted', patiently, async () => {
    const bob = await cluster.createTenant(one, 'Bob');
    const { client, subscribers } = await openEverything(bob.secret);
    const since = Date.now();
    await one
      .clientFor(administratorSecret)
      .run('mutation ($id: ID!) { deleteUser(input: { userId: $id }) { deletedUserId } }', { id: bob.userId });
    expect(await untilTheEnd(client, subscribers, since)).toBeLessThan(limitMs);
    // The pad went, too: its DELETE may come before the end of the key.
    for (const { events } of subscribers)
      expect(events.slice(1).every((event) => event.operation === 'DELETE')).toBe(true);
  });

  it('refuses the next operation on an open socket', patiently, async () => {
    const key = await createKey(one.clientFor(alice.secret));
    const socket = new WebSocket(`${other.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
    const messages: { type: string; id?: string; payload?: unknown }[] = [];
    socket.on('message', (data: Buffer) =>
      messages.push(JSON.parse(data.toString('utf8')) as (typeof messages)[number]),
    );
    const arrived = async (type: string): Promise<void> =>
      expect.poll(() => messages.some((message) => message.type === type), { timeout: 5000 }).toBe(true);
    await new Promise((resolve) => socket.once('open', resolve));
    socket.send(JSON.stringify({ type: 'connection_init', payload: bearer(key.secret) }));
    await arrived('connection_ack');
    socket.send(JSON.stringify({ type: 'subscribe', id: 'before', payload: { query: viewerDocument } }));
    await arrived('complete');
    await one.clientFor(alice.secret).run(revokeDocument, { id: key.id });
    await new Promise((resolve) => setTimeout(resolve, limitMs));
    socket.send(JSON.stringify({ type: 'subscribe', id: 'after', payload: { query: viewerDocument } }));
    await arrived('error');
    const refused = messages.find((message) => message.type === 'error');
    expect(JSON.stringify(refused?.payload)).toContain('UNAUTHENTICATED');
    socket.close();
  });

  it('keeps secrets nowhere but as a hash: not in SQL, not in Redis, not in the logs', async () => {
    const key = await createKey(one.clientFor(alice.secret));
    const wrong = `spk_${randomBytes(32).toString('base64url')}`;
    for (const server of [one, other]) {
      const { subscribers } = await openEverything(key.secret);
      for (const subscriber of subscribers) subscriber.close();
      for (const secret of [key.secret, alice.secret, wrong]) {
        await server.clientFor(secret).send(viewerDocument);
        await server.clientFor(secret).send('{ syntax error');
        await fetch(`${server.url}/graphql`, { headers: { 'x-api-key': secret, accept: 'text/event-stream' } });
      }
    }
    const tables = await cluster.psql<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`,
    );
    const rows = await Promise.all(
      tables.map(({ name }) => cluster.psql<{ row: string }>(`SELECT t::text AS row FROM "${name}" t`)),
    );
    const redis = cluster.redis.client();
    const keys = await redis.keys('*');
    const values = await Promise.all(keys.map(async (name) => (await redis.dumpBuffer(name)).toString('latin1')));
    const places = {
      SQL: JSON.stringify(rows),
      Redis: JSON.stringify([keys, values]),
      'the logs': one.output() + other.output(),
    };
    expect(places.SQL).toContain(hashOf(key.secret));
    expect(places['the logs'].length).toBeGreaterThan(1000);
    for (const [place, text] of Object.entries(places)) {
      for (const secret of [key.secret, alice.secret, wrong, administratorSecret]) {
        // Nothing of it beyond the part that is shown.
        expect(text.includes(secret.slice(13, 25)), place).toBe(false);
      }
    }
    expect(places['the logs']).not.toContain(hashOf(key.secret));
  });
});
