// A purge leaves nothing behind and happens, whatever is away or dies in between.
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { createPurge, type Purge, type PurgeQueue, type PurgeTask } from '../../../src/scratchpads/purge.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { listen, newPad, openPlanes, silent, until, type Planes } from './support.js';
import type { PadAddress } from '../../../src/scratchpads/data-plane.js';

/** Runs have tests of their own. */
const noRuns = (): Promise<never> => Promise.reject(new Error('no run was deleted'));

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** The SQL side as a list, which may be away; the real one is tested with the services. */
interface TestQueue extends PurgeQueue {
  tasks: PurgeTask[];
  isAway: boolean;
  add(kind: PurgeTask['kind'], ownerId: string, resourceId: string): void;
}

function createQueue(): TestQueue {
  let lastId = 0n;
  const queue: TestQueue = {
    tasks: [],
    isAway: false,
    add(kind, ownerId, resourceId) {
      lastId += 1n;
      queue.tasks.push({ id: lastId, kind, ownerId, resourceId });
    },
    list({ ownerId, limit }) {
      if (queue.isAway) return Promise.reject(new Error('SQL is away'));
      return Promise.resolve(
        queue.tasks.filter((task) => ownerId === undefined || task.ownerId === ownerId).slice(0, limit),
      );
    },
    remove(ids) {
      if (queue.isAway) return Promise.reject(new Error('SQL is away'));
      queue.tasks = queue.tasks.filter(({ id }) => !ids.includes(id));
      return Promise.resolve();
    },
    count: () => Promise.resolve(queue.tasks.length),
  };
  return queue;
}

async function start(): Promise<{ server: TestRedis; planes: Planes; queue: TestQueue; purge: Purge }> {
  const server = await startRedis({ appendFsync: 'always' });
  cleanups.push(() => server.stop());
  const planes = await openPlanes(server);
  cleanups.push(() => planes.close());
  const queue = createQueue();
  const purge = createPurge({ queue, redis: planes.redis, purgeRun: noRuns, logger: silent, intervalMs: 50 });
  cleanups.push(() => purge.close());
  return { server, planes, queue, purge };
}

async function fill({ dataPlane }: Planes, pad: PadAddress, keys: number): Promise<void> {
  await dataPlane.setContent(pad, { text: 'x', idempotencyKey: 'the content' });
  await Promise.all(
    Array.from({ length: keys }, (_, index) =>
      dataPlane.appendEntry(pad, { content: 'x', idempotencyKey: `k:${index}` }),
    ),
  );
}

test('removes content, entries, sequence and every idempotency key of the pad, and only its own', async () => {
  const { server, planes, queue, purge } = await start();
  const pad = newPad();
  const sibling = { ...newPad(), ownerId: pad.ownerId };
  await fill(planes, pad, 1300);
  await fill(planes, sibling, 3);
  const admin = server.client();
  const siblingKeys = (await admin.keys(`*${sibling.scratchpadId}*`)).toSorted();
  queue.add('SCRATCHPAD', pad.ownerId, pad.scratchpadId);
  await purge.drainOwner(pad.ownerId);
  expect(queue.tasks).toEqual([]);
  expect(await admin.keys(`*${pad.scratchpadId}*`)).toEqual([`tombstone:${pad.scratchpadId}`]);
  expect(await admin.ttl(`tombstone:${pad.scratchpadId}`)).toBeGreaterThan(3590);
  expect((await admin.keys(`*${sibling.scratchpadId}*`)).toSorted()).toEqual(siblingKeys);
});

test('finds idempotency keys also when the state has expired before', async () => {
  const { server, planes, queue, purge } = await start();
  const pad = newPad();
  const short = await openPlanes(server, { limits: { scratchpadTtlSeconds: 1 } });
  await fill(short, pad, 5);
  await delay(1100);
  await short.close();
  const admin = server.client();
  expect(await admin.exists(`sequence:${pad.ownerId}:${pad.scratchpadId}`)).toBe(0);
  expect((await admin.keys(`idempotency:*`)).length).toBe(7);
  queue.add('SCRATCHPAD', pad.ownerId, pad.scratchpadId);
  await purge.drainOwner(pad.ownerId);
  expect(await admin.keys('*')).toEqual([`tombstone:${pad.scratchpadId}`]);
  await planes.close();
});

test('removes the legacy notebook of a thread', async () => {
  const { server, queue, purge } = await start();
  const admin = server.client();
  await admin.set('scratchpad:thread_1:notebook', '{}');
  await admin.set('scratchpad:thread_2:notebook', '{}');
  queue.add('THREAD', 'user_1', 'thread_1');
  await purge.drainOwner('user_1');
  expect(await admin.keys('*')).toEqual(['scratchpad:thread_2:notebook']);
});

test('tells DELETE once, whichever processes run the task however often', async () => {
  const { server, planes } = await start();
  const pad = newPad();
  await fill(planes, pad, 3);
  const heard: string[] = [];
  const subscriber = server.client();
  await subscriber.subscribe(`events:${pad.ownerId}:${pad.scratchpadId}`);
  subscriber.on('message', (_, message: string) => heard.push(message));
  const others = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const own = await openPlanes(server);
      cleanups.push(() => own.close());
      const queue = createQueue();
      queue.add('SCRATCHPAD', pad.ownerId, pad.scratchpadId);
      return createPurge({ queue, redis: own.redis, purgeRun: noRuns, logger: silent, intervalMs: 50 });
    }),
  );
  await Promise.all(others.map((one) => one.drainOwner(pad.ownerId)));
  await delay(50);
  expect(heard.map((message) => (JSON.parse(message) as { operation: string }).operation)).toEqual(['DELETE']);
});

test('with Redis away the request is not failed and soon answered, and the loop makes it good', async () => {
  const { server, planes, queue, purge } = await start();
  const pad = newPad();
  await fill(planes, pad, 3);
  const listener = listen(await planes.eventPlane.subscribe(pad, {}));
  purge.start();
  await server.kill();
  queue.add('SCRATCHPAD', pad.ownerId, pad.scratchpadId);
  const begin = performance.now();
  await purge.drainOwner(pad.ownerId);
  expect(performance.now() - begin).toBeLessThan(2500);
  expect(await purge.backlog()).toBe(1);
  await server.restart();
  await until('the purge has happened', () => queue.tasks.length === 0);
  const admin = server.client();
  expect(await admin.keys('*')).toEqual([`tombstone:${pad.scratchpadId}`]);
  await until('its subscriber was told', () => listener.ended !== undefined);
  expect(listener.changes.map(({ operation }) => operation)).toEqual(['DELETE']);
}, 20_000);

test('a start finds what an earlier process left', async () => {
  const { server, planes, queue, purge } = await start();
  const pads = Array.from({ length: 250 }, newPad);
  await Promise.all(pads.map((pad) => planes.dataPlane.appendEntry(pad, { content: 'x' })));
  for (const pad of pads) queue.add('SCRATCHPAD', pad.ownerId, pad.scratchpadId);
  purge.start();
  await until('all is purged', () => queue.tasks.length === 0);
  expect(await server.client().keys('scratchpad:*')).toEqual([]);
});

test('with SQL away the loop goes on until it is back', async () => {
  const { queue, purge } = await start();
  queue.isAway = true;
  queue.add('THREAD', 'user_1', 'thread_1');
  purge.start();
  await purge.drainOwner('user_1');
  await delay(300);
  queue.isAway = false;
  await until('it has happened', () => queue.tasks.length === 0);
  expect(await purge.backlog()).toBe(0);
});
