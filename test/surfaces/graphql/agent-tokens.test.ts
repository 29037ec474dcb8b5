// Agent tokens over HTTP, SSE and WebSockets: how they are made, how long they work, what is known of who wrote.
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  appendEntry,
  createScratchpad,
  createThread,
  createToken,
  createTokenDocument,
  deleteThread,
  readLedger,
  readState,
  revokeTokenDocument,
  setContent,
} from '../../support/operations.js';
import { startService, type Service, type Tenant } from '../../support/service.js';
import { subscribe, transports, type Subscriber } from '../../support/subscriber.js';
import { bearer, wires } from '../../support/wire.js';

let service: Service;
let alice: Tenant;
let padId: string;

beforeAll(async () => {
  service = await startService();
  alice = await service.createTenant('Alice');
  padId = await createScratchpad(alice.client);
});
afterAll(() => service.close());

const listen = (secret: string, scratchpadId = padId): Promise<Subscriber[]> =>
  Promise.all(
    transports.map((transport) => subscribe({ transport, url: service.url, secret, scratchpadId, after: '' })),
  );

const limitMs = 2000;

it('is made once, and listed without its secret', async () => {
  const pad = await createScratchpad(alice.client);
  const expiresAt = '2126-01-31T09:30:00.000Z';
  const { createAgentToken } = await alice.client.run<{
    createAgentToken: { secret: string; agentToken: { id: string } };
  }>(createTokenDocument, { input: { scratchpadId: pad, name: 'Reader 7', role: 'OBSERVER', expiresAt } });
  const { secret, agentToken } = createAgentToken;
  expect(secret).toMatch(/^spa_[\w-]{43}$/);
  expect(agentToken).toEqual({
    id: expect.stringMatching(/^agt_/),
    name: 'Reader 7',
    role: 'OBSERVER',
    prefix: secret.slice(0, 12),
    expiresAt,
  });
  const { node, scratchpad } = await alice.client.run<{ node: object; scratchpad: { agentTokens: object[] } }>(
    `query ($token: ID!, $pad: ID!) {
      node(id: $token) { id ... on AgentToken { name role } }
      scratchpad(id: $pad) { agentTokens { id name role prefix createdAt expiresAt lastUsedAt revokedAt } }
    }`,
    { token: agentToken.id, pad },
  );
  expect(node).toEqual({ id: agentToken.id, name: 'Reader 7', role: 'OBSERVER' });
  expect(scratchpad.agentTokens).toMatchObject([{ id: agentToken.id, expiresAt, revokedAt: null }]);
  expect(JSON.stringify(await service.psql('SELECT * FROM agent_tokens'))).not.toContain(secret);
});

it('refuses a blank name, an expiry in the past and a role that there is not', async () => {
  const input = { scratchpadId: padId, name: 'x', role: 'WORKER' };
  for (const wrong of [{ name: ' ' }, { expiresAt: new Date(Date.now() - 1000) }, { role: 'OWNER' }]) {
    const error = await alice.client.fail(createTokenDocument, { input: { ...input, ...wrong } });
    expect(error.extensions.code, JSON.stringify(wrong)).toBe('BAD_USER_INPUT');
  }
});

it('lets its holder work with its pad, and puts its name on what is appended', async () => {
  const pad = await createScratchpad(alice.client);
  const supervisor = service.clientFor((await createToken(alice.client, pad, 'SUPERVISOR', { name: 'Ada' })).secret);
  const worker = service.clientFor((await createToken(alice.client, pad, 'WORKER', { name: 'Worker 1' })).secret);
  const { version } = await setContent(supervisor, pad, '# Plan');
  const { entry } = await appendEntry(worker, pad, 'a finding');
  await appendEntry(supervisor, pad, 'a note');
  await appendEntry(alice.client, pad, 'the owner’s own');
  expect(entry.author).toBe('Worker 1');
  expect((await readLedger(worker, pad)).map(({ author }) => author)).toEqual(['Worker 1', 'Ada', null]);
  expect(await readState(worker, pad)).toMatchObject({ content: { text: '# Plan', version }, entryCount: 3 });
  const stale = await supervisor.fail(
    'mutation ($input: SetScratchpadContentInput!) { setScratchpadContent(input: $input) { content { version } } }',
    { input: { scratchpadId: pad, text: 'lost', expectedVersion: '0' } },
  );
  expect(stale.extensions).toMatchObject({ code: 'CONFLICT', currentVersion: version });
});

it('tells its holder of every change, and nothing of the run and the assistant that made it', async () => {
  const pad = await createScratchpad(alice.client);
  const { secret } = await createToken(alice.client, pad, 'OBSERVER');
  const [runId, assistantId] = ['run_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'asst_01ARZ3NDEKTSV4RRFFQ69G5FAV'];
  const query = `subscription ($id: ID!) { scratchpadEvents(scratchpadId: $id, after: "") {
    operation runId originRunId assistantId entry { content author runId }
    scratchpad { owner { id } thread { id } entries { edges { node { runId } } } }
  } }`;
  // A row as a run appends it.
  await appendEntry(alice.client, pad, 'by the owner');
  const key = `scratchpad:${alice.userId}:${pad}:entries`;
  const redis = service.redis.client();
  const row = JSON.parse((await redis.lindex(key, 0)) ?? '') as object;
  await redis.lset(key, 0, JSON.stringify({ ...row, run_id: runId, author: 'Librarian', assistant_id: assistantId }));
  expect((await readLedger(alice.client, pad)).map((entry) => entry.runId)).toEqual([runId]);
  expect((await readLedger(service.clientFor(secret), pad)).map((entry) => [entry.author, entry.runId])).toEqual([
    ['Librarian', null],
  ]);
  for (const wire of ['SSE', 'WebSocket'] as const) {
    const request = { url: service.url, document: query, variables: { id: pad }, untilFirstResult: true };
    const own = await wires[wire]({ ...request, credentials: bearer(alice.secret) });
    expect(own.body).toContain(runId);
    const agents = await wires[wire]({ ...request, credentials: bearer(secret) });
    expect(agents.body).toContain('Librarian');
    expect(agents.body).not.toMatch(/run_|asst_|user_|thread_/);
  }
});

it('ends within two seconds of its revocation, which its owner may repeat', async () => {
  const { id, secret } = await createToken(alice.client, padId);
  const agent = service.clientFor(secret);
  const subscribers = await listen(secret);
  await appendEntry(agent, padId, 'in time');
  for (const subscriber of subscribers) await subscriber.received(1);
  const other = await createToken(alice.client, padId);
  const since = Date.now();
  const first = await alice.client.run<object>(revokeTokenDocument, { id });
  expect((await agent.send('{ __typename }')).status).toBe(401);
  for (const subscriber of subscribers) {
    await subscriber.ended;
    expect(subscriber.errors.map((error) => error.extensions?.code)).toEqual(['UNAUTHENTICATED']);
  }
  expect(Date.now() - since).toBeLessThan(limitMs);
  expect(await alice.client.run(revokeTokenDocument, { id })).toEqual(first);
  expect((await service.clientFor(other.secret).send('{ __typename }')).status).toBe(200);
});

it('ends within two seconds when it is revoked behind the service’s back', async () => {
  const { id, secret } = await createToken(alice.client, padId);
  const agent = service.clientFor(secret);
  const subscribers = await listen(secret);
  await agent.run('{ __typename }');
  const since = Date.now();
  await service.psql('UPDATE agent_tokens SET revoked_at = now() WHERE id = $1', [id]);
  while ((await agent.send('{ __typename }')).status !== 401) expect(Date.now() - since).toBeLessThan(limitMs);
  for (const subscriber of subscribers) await subscriber.ended;
  expect(Date.now() - since).toBeLessThan(limitMs);
});

it('works until the moment of its expiry, and what is open ends then', async () => {
  const expiresAt = new Date(Date.now() + 3000);
  const { secret } = await createToken(alice.client, padId, 'WORKER', { expiresAt });
  const agent = service.clientFor(secret);
  const subscribers = await listen(secret);
  while (Date.now() < expiresAt.getTime() - 50) expect((await agent.send('{ __typename }')).status).toBe(200);
  while (Date.now() <= expiresAt.getTime()) await new Promise((resolve) => setTimeout(resolve, 5));
  expect((await agent.send('{ __typename }')).status).toBe(401);
  for (const subscriber of subscribers) {
    await subscriber.ended;
    expect(subscriber.errors.map((error) => error.extensions?.code)).toEqual(['UNAUTHENTICATED']);
  }
  expect(Date.now() - expiresAt.getTime()).toBeLessThan(limitMs + 500);
});

it.each(['scratchpad', 'thread', 'user'])(
  'goes with its pad when its %s is deleted, and ends what it opened',
  async (what) => {
    const carol = await service.createTenant('Carol');
    const threadId = await createThread(carol.client);
    const pad = await createScratchpad(carol.client, threadId);
    const { secret } = await createToken(carol.client, pad);
    const agent = service.clientFor(secret);
    const subscribers = await listen(secret, pad);
    await appendEntry(agent, pad, 'before');
    const since = Date.now();
    if (what === 'scratchpad') {
      await carol.client.run(
        'mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedScratchpadId } }',
        { id: pad },
      );
    } else if (what === 'thread') {
      await deleteThread(carol.client, threadId);
    } else {
      await carol.client.run('mutation ($id: ID!) { deleteViewer(input: { confirmUserId: $id }) { deletedUserId } }', {
        id: carol.userId,
      });
    }
    while ((await agent.send('{ __typename }')).status !== 401) {
      const [write, read] = await Promise.all([
        agent.send(
          'mutation ($id: ID!) { appendScratchpadEntry(input: { scratchpadId: $id, content: "late" }) { entry { id } } }',
          { id: pad },
        ),
        agent.send<{ scratchpad: null }>('query ($id: ID!) { scratchpad(id: $id) { id } }', { id: pad }),
      ]);
      expect(write.data?.appendScratchpadEntry ?? null).toBeNull();
      expect(read.data?.scratchpad ?? null).toBeNull();
      expect(Date.now() - since).toBeLessThan(limitMs);
    }
    for (const subscriber of subscribers) {
      await subscriber.ended;
      expect(subscriber.events.map(({ operation }) => operation)).toEqual(['APPEND', 'DELETE']);
    }
    expect(Date.now() - since).toBeLessThan(limitMs + 500);
    expect(await service.psql('SELECT 1 FROM agent_tokens WHERE scratchpad_id = $1', [pad])).toEqual([]);
  },
);

it('is noted when it was last used', async () => {
  const { id, secret } = await createToken(alice.client, padId);
  await service.clientFor(secret).run('{ __typename }');
  const lastUse = async (): Promise<unknown> =>
    (
      await alice.client.run<{ node: { lastUsedAt: string | null } }>(
        'query ($id: ID!) { node(id: $id) { ... on AgentToken { lastUsedAt } } }',
        { id },
      )
    ).node.lastUsedAt;
  await expect.poll(lastUse, { timeout: 12_000, interval: 200 }).toMatch(/^\d{4}-/);
});
