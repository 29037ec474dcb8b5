// Deletes leave nothing behind: whoever deletes, whatever is away or killed at that moment.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startCluster, type Cluster, type ClusterTenant, type ServerProcess } from '../../support/cluster.js';
import type { GraphqlClient } from '../../support/graphql-client.js';
import { appendEntry, createScratchpad, createThread, setContent } from '../../support/operations.js';

let cluster: Cluster;
let one: ServerProcess;
let other: ServerProcess;

beforeAll(async () => {
  cluster = await startCluster({ appendFsync: 'always' });
  [one, other] = await Promise.all([cluster.startServer(), cluster.startServer()]);
});
afterAll(() => cluster.close());

interface Pad {
  scratchpadId: string;
  threadId: string;
}

/** A pad with state in every key family, its legacy notebook included. */
async function fillPad(client: GraphqlClient): Promise<Pad> {
  const threadId = await createThread(client);
  const scratchpadId = await createScratchpad(client, threadId);
  await setContent(client, scratchpadId, 'plan', { idempotencyKey: 'set' });
  await appendEntry(client, scratchpadId, 'finding', 'append');
  await cluster.redis.client().set(`scratchpad:${threadId}:notebook`, '{"content":"old","last_updated":1}');
  return { scratchpadId, threadId };
}

/** Every key that names one of these ids, tombstones apart. */
async function keysOf(...ids: string[]): Promise<string[]> {
  const keys = await cluster.redis.client().keys('*');
  return keys.filter((key) => !key.startsWith('tombstone:') && ids.some((id) => key.includes(id))).sort();
}

const backlog = async (): Promise<number> =>
  Number((await cluster.psql<{ count: string }>('SELECT count(*) FROM purge_tasks'))[0]?.count);

const mutations = {
  deleteThread: 'mutation ($id: ID!) { deleteThread(input: { threadId: $id }) { deletedThreadId } }',
  deleteScratchpad: 'mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedScratchpadId } }',
  deleteViewer: 'mutation ($id: ID!) { deleteViewer(input: { confirmUserId: $id }) { deletedUserId } }',
  deleteUser: 'mutation ($id: ID!) { deleteUser(input: { userId: $id }) { deletedUserId } }',
};

async function tenant(): Promise<ClusterTenant & { client: GraphqlClient }> {
  const created = await cluster.createTenant(one, 'Alice');
  return { ...created, client: one.clientFor(created.secret) };
}

const administrator = (): GraphqlClient => one.clientFor('administrator-secret-of-the-tests');

it('fills every key family, so that the tests below have something to remove', async () => {
  const alice = await tenant();
  const { scratchpadId, threadId } = await fillPad(alice.client);
  const families = (await keysOf(scratchpadId, threadId)).map((key) =>
    key.replace(alice.userId, 'O').replace(scratchpadId, 'S').replace(threadId, 'T'),
  );
  for (const family of [
    'scratchpad:O:S:content',
    'scratchpad:O:S:entries',
    'sequence:O:S',
    'idempotency:O:S:append',
    'idempotency:O:S:set',
    'scratchpad:T:notebook',
  ]) {
    expect(families).toContain(family);
  }
});

it.each([
  [
    'its scratchpad',
    (client: GraphqlClient, pad: Pad) => client.run(mutations.deleteScratchpad, { id: pad.scratchpadId }),
  ],
  ['its thread', (client: GraphqlClient, pad: Pad) => client.run(mutations.deleteThread, { id: pad.threadId })],
])('removes the state of a pad before the answer to the deletion of %s', async (what, remove) => {
  const alice = await tenant();
  const pad = await fillPad(alice.client);
  await remove(alice.client, pad);
  const gone = what === 'its thread' ? [pad.scratchpadId, pad.threadId] : [pad.scratchpadId];
  expect(await keysOf(...gone)).toEqual([]);
});

it.each([
  [
    'itself',
    async (alice: ClusterTenant & { client: GraphqlClient }) =>
      alice.client.run(mutations.deleteViewer, { id: alice.userId }),
  ],
  [
    'the administrator',
    async (alice: ClusterTenant) => administrator().run(mutations.deleteUser, { id: alice.userId }),
  ],
])('removes everything of a user that is deleted by %s', async (_who, remove) => {
  const alice = await tenant();
  const pads = [await fillPad(alice.client), await fillPad(alice.client), await fillPad(alice.client)];
  await remove(alice);
  expect(await keysOf(alice.userId, ...pads.map((pad) => pad.threadId))).toEqual([]);
});

it.each([
  ['a scratchpad', (pad: Pad) => cluster.psql('DELETE FROM scratchpads WHERE id = $1', [pad.scratchpadId])],
  ['a thread', (pad: Pad) => cluster.psql('DELETE FROM threads WHERE id = $1', [pad.threadId])],
  ['a user', (_pad: Pad, userId: string) => cluster.psql('DELETE FROM users WHERE id = $1', [userId])],
])('removes the state of %s that somebody deletes in psql', async (_what, remove) => {
  const alice = await tenant();
  const pad = await fillPad(alice.client);
  await remove(pad, alice.userId);
  await expect.poll(() => keysOf(pad.scratchpadId), { timeout: 6000, interval: 100 }).toEqual([]);
});

it('removes a user with thousands of threads, in pieces that no time limit cuts', async () => {
  const alice = await tenant();
  await cluster.psql(
    `INSERT INTO threads (id, owner_id) SELECT 'thread_' || lpad(n::text, 26, '0'), $1 FROM generate_series(1, 2500) n`,
    [alice.userId],
  );
  await cluster.psql(
    `INSERT INTO scratchpads (id, owner_id, thread_id)
     SELECT 'sp_' || right(id, 26), owner_id, id FROM threads WHERE owner_id = $1`,
    [alice.userId],
  );
  await administrator().run(mutations.deleteUser, { id: alice.userId });
  expect(await cluster.psql('SELECT 1 FROM threads WHERE owner_id = $1', [alice.userId])).toEqual([]);
  await expect.poll(backlog, { timeout: 20_000, interval: 200 }).toBe(0);
});

it('succeeds with Redis away, and purges when it is back', async () => {
  const alice = await tenant();
  const pad = await fillPad(alice.client);
  await cluster.redis.kill();
  const begin = Date.now();
  await alice.client.run(mutations.deleteThread, { id: pad.threadId });
  expect(Date.now() - begin).toBeLessThan(5000);
  expect(await backlog()).toBeGreaterThan(0);
  await cluster.redis.restart();
  await expect.poll(() => keysOf(pad.scratchpadId, pad.threadId), { timeout: 8000, interval: 100 }).toEqual([]);
  await expect.poll(backlog, { timeout: 5000 }).toBe(0);
});

it('purges what a process that was killed between commit and purge left, from another process', async () => {
  const alice = await tenant();
  const pad = await fillPad(alice.client);
  const doomed = await cluster.startServer();
  cluster.redis.freeze();
  try {
    // The answer never comes: the delete is committed, the purge waits for the frozen Redis, and then the process dies.
    const cut = doomed
      .clientFor(alice.secret)
      .send(mutations.deleteThread, { id: pad.threadId })
      .catch(() => undefined);
    await expect
      .poll(async () => (await cluster.psql('SELECT 1 FROM threads WHERE id = $1', [pad.threadId])).length, {
        timeout: 4000,
        interval: 20,
      })
      .toBe(0);
    await doomed.kill();
    await cut;
  } finally {
    cluster.redis.thaw();
  }
  await expect.poll(() => keysOf(pad.scratchpadId, pad.threadId), { timeout: 8000, interval: 100 }).toEqual([]);
});

it('lets no append that races a delete bring a key back to life', async () => {
  const alice = await tenant();
  const through = [one.clientFor(alice.secret), other.clientFor(alice.secret)];
  const append =
    'mutation ($id: ID!, $c: String!) { appendScratchpadEntry(input: { scratchpadId: $id, content: $c, idempotencyKey: $c }) { entry { id } } }';
  const write =
    'mutation ($id: ID!, $c: String!) { setScratchpadContent(input: { scratchpadId: $id, text: $c }) { content { version } } }';
  const pads = await Promise.all(Array.from({ length: 10 }, () => createScratchpad(alice.client)));
  const codes = new Set<string>();
  await Promise.all(
    pads.map(async (id) => {
      let isGone = false;
      const writers = through.flatMap((client) =>
        [append, write].map(async (document) => {
          for (let index = 0; !isGone && index < 500; index += 1) {
            const { errors } = await client.send(document, {
              id,
              c: `${document.length}-${client === through[0]}-${index}`,
            });
            for (const error of errors) {
              codes.add(String(error.extensions.code));
              isGone = true;
            }
          }
        }),
      );
      await alice.client.run(mutations.deleteScratchpad, { id });
      await Promise.all(writers);
    }),
  );
  expect([...codes]).toEqual(['NOT_FOUND']);
  expect(await keysOf(...pads)).toEqual([]);
});
