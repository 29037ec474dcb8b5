// A subscription outlives the loss of its Redis connection, and of Redis itself, and ends with exactly the state.
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { createPadPurger } from '../../../src/scratchpads/pad-purger.js';
import type { PadAddress } from '../../../src/scratchpads/data-plane.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import {
  applyChanges,
  listen,
  newPad,
  openPlanes,
  readView,
  until,
  type PlaneOptions,
  type Planes,
} from './support.js';

const cleanups: (() => unknown)[] = [];
// An unhandled rejection fails the run by itself: vitest reports it.
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function start(options?: Parameters<typeof startRedis>[0]): Promise<TestRedis> {
  const server = await startRedis(options);
  cleanups.push(() => server.stop());
  return server;
}

async function open(server: TestRedis, options?: PlaneOptions): Promise<Planes> {
  const planes = await openPlanes(server, options);
  cleanups.push(() => planes.close());
  return planes;
}

const killSubscribers = (server: TestRedis): Promise<unknown> =>
  server.client().call('CLIENT', 'KILL', 'TYPE', 'pubsub');

/** Appends until it is acknowledged, with a key: however often the answer is lost, there is one entry. */
async function appendSurely(planes: Planes, pad: PadAddress, content: string): Promise<string> {
  for (;;) {
    try {
      return (await planes.dataPlane.appendEntry(pad, { content, idempotencyKey: content })).entry.id;
    } catch {
      await delay(20);
    }
  }
}

test('what is written while the subscriber’s connection is cut is made good, in order and once', async () => {
  const server = await start();
  const writer = await open(server);
  const reader = await open(server);
  const pads = Array.from({ length: 10 }, newPad);
  const listeners = await Promise.all(
    pads.map(async (pad) => {
      await writer.dataPlane.setContent(pad, { text: 'start' });
      return listen(await reader.eventPlane.subscribe(pad, { after: '' }));
    }),
  );
  const stop = new AbortController();
  const writers = pads.map(async (pad, index) => {
    for (let count = 0; !stop.signal.aborted; count += 1) {
      await writer.dataPlane.appendEntry(pad, { content: `${count}` });
      if (count % 7 === index % 7) await writer.dataPlane.setContent(pad, { text: `${count}` });
      if (count % 31 === 30) await writer.dataPlane.clear(pad, 'ENTRIES');
      await delay(2);
    }
  });
  for (let round = 0; round < 5; round += 1) {
    await delay(150);
    await killSubscribers(server);
  }
  await delay(300);
  stop.abort();
  await Promise.all(writers);
  for (const [index, pad] of pads.entries()) {
    const { changes } = listeners[index]!;
    await writer.dataPlane.appendEntry(pad, { content: 'the end' });
    await until('the last has come', () => changes.at(-1)?.entry?.content === 'the end');
    expect(applyChanges(changes)).toEqual(await readView(writer.dataPlane, pad));
    expect(changes.some(({ replayed, cursor }) => replayed && cursor !== changes[0]!.cursor)).toBe(true);
    await listeners[index]!.stop();
  }
}, 30_000);

test('a gap with nothing behind it shows at the next event and is made good', async () => {
  const server = await start();
  const writer = await open(server);
  const reader = await open(server);
  const pad = newPad();
  const listener = listen(await reader.eventPlane.subscribe(pad, {}));
  await writer.dataPlane.appendEntry(pad, { content: 'a' });
  await until('it has come', () => listener.changes.length === 1);
  // Another client takes the channel away, as a lost message would.
  await reader.redis.subscriber.unsubscribe(`events:${pad.ownerId}:${pad.scratchpadId}`);
  await writer.dataPlane.appendEntry(pad, { content: 'missed' });
  await reader.redis.subscriber.subscribe(`events:${pad.ownerId}:${pad.scratchpadId}`);
  await writer.dataPlane.appendEntry(pad, { content: 'c' });
  await until('all have come', () => listener.changes.length === 3);
  expect(listener.changes.map(({ entry, replayed }) => `${entry!.content} ${replayed}`)).toEqual([
    'a false',
    'missed true',
    'c true',
  ]);
  await writer.dataPlane.appendEntry(pad, { content: 'd' });
  await until('it has come', () => listener.changes.length === 4);
  expect(listener.changes[3]!.replayed).toBe(false);
});

test('a pad that was deleted while nobody could hear of it is told DELETE, out of its tombstone or out of SQL', async () => {
  const server = await start();
  const writer = await open(server);
  const withTombstone = newPad();
  const withoutRow = newPad();
  const kept = newPad();
  const reader = await open(server, {
    padExists: (pad) => Promise.resolve(pad.scratchpadId !== withoutRow.scratchpadId),
  });
  const listeners = await Promise.all(
    [withTombstone, withoutRow, kept].map(async (pad) => listen(await reader.eventPlane.subscribe(pad, {}))),
  );
  server.freeze();
  reader.redis.subscriber.stream.destroy();
  await delay(50);
  server.thaw();
  await createPadPurger(writer.redis)(withTombstone);
  await until('two have ended', () => listeners.filter(({ ended }) => ended !== undefined).length === 2);
  expect(listeners.map(({ changes }) => changes.map(({ operation }) => operation))).toEqual([
    ['DELETE'],
    ['DELETE'],
    [],
  ]);
  await writer.dataPlane.appendEntry(kept, { content: 'x' });
  await until('the other one goes on', () => listeners[2]!.changes.length === 1);
});

test('with SQL away as well, the changes come at once and the deletion when SQL answers', async () => {
  const server = await start();
  const writer = await open(server);
  let sqlAnswers = false;
  const reader = await open(server, {
    padExists: () => (sqlAnswers ? Promise.resolve(false) : Promise.reject(new Error('SQL is away'))),
  });
  const pad = newPad();
  const listener = listen(await reader.eventPlane.subscribe(pad, {}));
  await killSubscribers(server);
  await delay(20);
  await writer.dataPlane.appendEntry(pad, { content: 'x' });
  await until('it has come', () => listener.changes.length === 1);
  sqlAnswers = true;
  await until('it has ended', () => listener.ended !== undefined);
  expect(listener.changes.map(({ operation }) => operation)).toEqual(['APPEND', 'DELETE']);
});

test('a SQL that hangs holds up the repair for a second only', async () => {
  const server = await start();
  const writer = await open(server);
  const reader = await open(server, { padExists: () => new Promise(() => undefined) });
  const pad = newPad();
  const listener = listen(await reader.eventPlane.subscribe(pad, {}));
  const dropped = new Promise((resolve) => reader.redis.subscriber.once('close', resolve));
  reader.redis.subscriber.stream.destroy();
  await dropped;
  await writer.dataPlane.appendEntry(pad, { content: 'missed' });
  await until('it has come', () => listener.changes.length === 1, 3000);
  expect(listener.changes[0]).toMatchObject({ operation: 'APPEND', replayed: true });
});

test('Redis killed and restarted again and again loses nothing that was acknowledged', async () => {
  const server = await start({ appendFsync: 'always' });
  const writer = await open(server);
  const reader = await open(server);
  const pad = newPad();
  const listener = listen(await reader.eventPlane.subscribe(pad, { after: '' }));
  const acknowledged: string[] = [];
  const stop = new AbortController();
  const writing = [0, 1, 2].map(async (lane) => {
    for (let count = 0; !stop.signal.aborted; count += 1)
      acknowledged.push(await appendSurely(writer, pad, `${lane}/${count}`));
  });
  for (let round = 0; round < 4; round += 1) {
    await delay(200);
    await server.kill();
    await delay(50 * round);
    await server.restart();
  }
  await delay(500);
  stop.abort();
  await Promise.all(writing);
  await appendSurely(writer, pad, 'the end');
  await until('the last has come', () => listener.changes.at(-1)?.entry?.content === 'the end');
  const view = await readView(writer.dataPlane, pad);
  expect(applyChanges(listener.changes)).toEqual(view);
  expect(listener.changes.every(({ operation }) => operation === 'APPEND')).toBe(true);
  expect(view.entryIds).toHaveLength(acknowledged.length + 1);
  expect(view.entryIds).toEqual(expect.arrayContaining(acknowledged));
}, 60_000);

test('a Redis that came back without its last second is told exactly as it is now', async () => {
  const server = await start();
  const writer = await open(server);
  const admin = server.client();
  for (const lost of ['entries', 'content', 'both', 'everything', 'everything and written again'] as const) {
    const pad = newPad();
    const reader = await open(server);
    const [entries, content, sequence] = [
      `scratchpad:${pad.ownerId}:${pad.scratchpadId}:entries`,
      `scratchpad:${pad.ownerId}:${pad.scratchpadId}:content`,
      `sequence:${pad.ownerId}:${pad.scratchpadId}`,
    ] as const;
    await writer.dataPlane.setContent(pad, { text: 'old' });
    await writer.dataPlane.appendEntry(pad, { content: 'kept' });
    const saved = await Promise.all([admin.dumpBuffer(entries), admin.dumpBuffer(content), admin.dumpBuffer(sequence)]);
    const listener = listen(await reader.eventPlane.subscribe(pad, { after: '' }));
    if (lost !== 'content') await writer.dataPlane.appendEntry(pad, { content: 'lost' });
    if (lost !== 'entries') await writer.dataPlane.setContent(pad, { text: 'lost' });
    await until('it was heard', () => listener.changes.length >= 3);

    reader.redis.subscriber.disconnect(true);
    await admin.del(entries, content, sequence);
    if (!lost.startsWith('everything')) {
      await admin.restore(entries, 0, saved[0]);
      await admin.restore(content, 0, saved[1]);
      await admin.restore(sequence, 0, saved[2]);
    }
    if (lost === 'both' || lost.endsWith('again')) await writer.dataPlane.appendEntry(pad, { content: 'newer' });
    await until('it was heard again', async () => {
      const view = applyChanges(listener.changes);
      return JSON.stringify(view) === JSON.stringify(await readView(writer.dataPlane, pad));
    });
    await writer.dataPlane.appendEntry(pad, { content: 'live' });
    await until('it goes on', () => listener.changes.at(-1)?.entry?.content === 'live');
    expect(applyChanges(listener.changes)).toEqual(await readView(writer.dataPlane, pad));
    await listener.stop();
  }
}, 30_000);

test('while Redis is away a new subscription fails as UNAVAILABLE and leaves nothing, an open one waits', async () => {
  const server = await start({ appendFsync: 'always' });
  const planes = await open(server);
  const pad = newPad();
  const listener = listen(await planes.eventPlane.subscribe(pad, {}));
  await server.kill();
  await until('it is noticed', () => planes.redis.subscriber.status !== 'ready');
  await expect(planes.eventPlane.subscribe(newPad(), {})).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await expect(planes.eventPlane.subscribe(pad, { after: '' })).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await delay(1500);
  await expect(planes.eventPlane.subscribe(newPad(), {})).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await server.restart();
  await until('it works again', () =>
    planes.dataPlane.appendEntry(pad, { content: 'x' }).then(
      () => true,
      () => false,
    ),
  );
  await until('it has come', () => listener.changes.length > 0);
  expect(listener.ended).toBeUndefined();
  const admin = server.client();
  expect(await admin.pubsub('CHANNELS')).toEqual([`events:${pad.ownerId}:${pad.scratchpadId}`]);
  await listener.stop();
  await until('no channel is left', async () => (await admin.pubsub('CHANNELS')).length === 0);
}, 20_000);

test('closing subscriptions while Redis is away harms nobody', async () => {
  const server = await start();
  const planes = await open(server);
  const pads = Array.from({ length: 5 }, newPad);
  const listeners = await Promise.all(pads.map(async (pad) => listen(await planes.eventPlane.subscribe(pad, {}))));
  await server.kill();
  await until('it is noticed', () => planes.redis.subscriber.status !== 'ready');
  for (const listener of listeners.slice(0, 3)) await listener.stop();
  await server.restart();
  const admin = server.client();
  await until('the others are subscribed again', async () => (await admin.pubsub('CHANNELS')).length === 2);
  for (const listener of listeners) await listener.stop();
  expect(listeners.map(({ ended }) => ended)).toEqual(pads.map(() => ({})));
});

test('a frozen Redis is noticed by an idle subscriber, which goes on when it thaws', async () => {
  const server = await start();
  const writer = await open(server);
  const reader = await open(server);
  const pad = newPad();
  const listener = listen(await reader.eventPlane.subscribe(pad, {}));
  const dropped = new Promise((resolve) => reader.redis.subscriber.once('close', resolve));
  server.freeze();
  await dropped;
  server.thaw();
  await until('it is written', () =>
    writer.dataPlane.appendEntry(pad, { content: 'x' }).then(
      () => true,
      () => false,
    ),
  );
  await until('it has come', () => listener.changes.length === 1);
  await listener.stop();
  expect(listener.ended).toEqual({});
}, 20_000);

test('an outbuffer that Redis cuts off is made good', async () => {
  const server = await start();
  const admin = server.client();
  await admin.config('SET', 'client-output-buffer-limit', 'pubsub 200000 100000 1');
  const writer = await open(server);
  const reader = await open(server);
  const pad = newPad();
  const listener = listen(await reader.eventPlane.subscribe(pad, {}));
  const sum = 60;
  reader.redis.subscriber.stream.pause();
  for (let index = 0; index < sum; index += 1)
    await writer.dataPlane.appendEntry(pad, { content: `${index} ${'x'.repeat(60_000)}` });
  reader.redis.subscriber.stream.resume();
  await until('all have come', () => listener.changes.length >= sum, 15_000);
  expect(applyChanges(listener.changes)).toEqual(await readView(writer.dataPlane, pad));
  await listener.stop();
}, 30_000);
