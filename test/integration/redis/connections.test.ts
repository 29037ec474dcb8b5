// With Redis away nothing hangs, nothing is sent twice, nothing is applied after its caller was told that it failed.
import { createServer, connect, type Server, type Socket } from 'node:net';
import { setImmediate, setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { openRedis } from '../../../src/infra/redis.js';
import { createChannelHub } from '../../../src/redis/channel-hub.js';
import { createDataPlane } from '../../../src/scratchpads/data-plane.js';
import { DomainError } from '../../../src/shared/errors.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { defaultLimits, newPad, openPlanes, silent, until } from './support.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function start(options?: Parameters<typeof startRedis>[0]): Promise<TestRedis> {
  const server = await startRedis(options);
  cleanups.push(() => server.stop());
  return server;
}

async function open(server: TestRedis): Promise<ReturnType<typeof openPlanes>> {
  const planes = await openPlanes(server);
  cleanups.push(() => planes.close());
  return planes;
}

/** How a promise ended, and after how long. */
async function timed(promise: Promise<unknown>): Promise<{ code: string | undefined; ms: number }> {
  const begin = performance.now();
  const outcome = await promise.then(
    () => 'fulfilled',
    (error: unknown) => (error instanceof DomainError ? error.code : String(error)),
  );
  return { code: outcome, ms: performance.now() - begin };
}

test('a command fails as UNAVAILABLE within two seconds when Redis is dead, and at once later', async () => {
  const server = await start();
  const { dataPlane } = await open(server);
  const pad = newPad();
  await dataPlane.appendEntry(pad, { content: 'before' });
  await server.kill();
  const first = await timed(dataPlane.appendEntry(pad, { content: 'away' }));
  expect(first).toMatchObject({ code: 'UNAVAILABLE' });
  expect(first.ms).toBeLessThan(2000);
  await delay(1200);
  const later = await timed(dataPlane.read([{ pad, content: true }]));
  expect(later).toMatchObject({ code: 'UNAVAILABLE' });
  expect(later.ms).toBeLessThan(50);
});

test('a subscription that fails is told to everybody who waits for it, and the next one begins anew', async () => {
  const server = await start({ appendFsync: 'always' });
  const { eventPlane, redis, dataPlane } = await open(server);
  const pad = newPad();
  await server.kill();
  // They share one SUBSCRIBE: also whoever joins while the others are being told.
  const channel = 'events:shared';
  const hub = createChannelHub(redis, silent);
  const listener = { onMessage: () => {}, onRestored: () => {} };
  const joined: Promise<unknown>[] = [];
  const first = hub.open(channel, listener);
  first.catch(() => joined.push(hub.open(channel, listener)));
  const outcomes = await Promise.all([first, hub.open(channel, listener), hub.open(channel, listener)].map(timed));
  expect(outcomes.map(({ code }) => code)).toEqual(['UNAVAILABLE', 'UNAVAILABLE', 'UNAVAILABLE']);
  expect(await Promise.all(joined.map(timed))).toMatchObject([{ code: 'UNAVAILABLE' }]);
  await Promise.all(
    [1, 2, 3].map(() => expect(eventPlane.subscribe(pad, {})).rejects.toMatchObject({ code: 'UNAVAILABLE' })),
  );
  await server.restart();
  await until('Redis is back', () => redis.subscriber.status === 'ready' && redis.commands.status === 'ready');
  const heard: unknown[] = [];
  const stop = await hub.open(channel, { onMessage: (message) => heard.push(message), onRestored: () => {} });
  await redis.commands.publish(channel, '1');
  await until('it is heard', () => heard.length === 1);
  stop();
  hub.close();
  const changes = await eventPlane.subscribe(pad, {});
  await dataPlane.appendEntry(pad, { content: 'after' });
  expect((await changes.next()).value).toMatchObject({ operation: 'APPEND' });
  await changes.return?.();
});

test('a frozen Redis is given up after two seconds, and used again when it thaws', async () => {
  const server = await start();
  const { dataPlane } = await open(server);
  const pad = newPad();
  await dataPlane.appendEntry(pad, { content: 'before' });
  server.freeze();
  const many = await Promise.all(Array.from({ length: 50 }, () => timed(dataPlane.read([{ pad, entryCount: true }]))));
  for (const { code, ms } of many) {
    expect(code).toBe('UNAVAILABLE');
    expect(ms).toBeLessThan(2500);
  }
  const during = await timed(dataPlane.read([{ pad, entryCount: true }]));
  expect(during.code).toBe('UNAVAILABLE');
  expect(during.ms).toBeLessThan(2500);
  server.thaw();
  await until('Redis is used again', async () => {
    const { code } = await timed(dataPlane.read([{ pad, entryCount: true }]));
    return code === 'fulfilled';
  });
});

test('a short reconnect is bridged: commands wait for it instead of failing', async () => {
  const server = await start();
  const { dataPlane, redis } = await open(server);
  const pad = newPad();
  const admin = server.client();
  for (let round = 0; round < 5; round += 1) {
    await dataPlane.appendEntry(pad, { content: `round ${round}` });
    const closed = new Promise((resolve) => redis.commands.once('close', resolve));
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await closed;
    await dataPlane.appendEntry(pad, { content: `after the kill ${round}` });
  }
  const [reading] = await dataPlane.read([{ pad, entryCount: true }]);
  expect(reading!.entryCount).toBe(10);
});

test('a dead Redis that comes back with its file is used again without help', async () => {
  const server = await start({ appendFsync: 'always' });
  const { dataPlane } = await open(server);
  const pad = newPad();
  for (let index = 0; index < 20; index += 1) await dataPlane.appendEntry(pad, { content: `entry ${index}` });
  await server.kill();
  await server.restart();
  await until('Redis is used again', async () => (await timed(dataPlane.read([{ pad }]))).code === 'fulfilled');
  const [reading] = await dataPlane.read([{ pad, entryCount: true }]);
  expect(reading!.entryCount).toBe(20);
});

/** A relay in front of Redis that passes commands on and, while `isMute`, drops the answers. */
async function startRelay(port: number): Promise<{ url: string; mute(): void; cut(): void; close(): void }> {
  let isMute = false;
  const sockets = new Set<Socket>();
  const relay: Server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
        sockets.delete(socket);
      });
    }
    client.pipe(upstream);
    upstream.on('data', (data) => {
      if (!isMute) client.write(data);
    });
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  const address = relay.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    url: `redis://127.0.0.1:${address.port}`,
    mute: () => {
      isMute = true;
    },
    cut: () => {
      isMute = false;
      for (const socket of sockets) socket.destroy();
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
      relay.close();
    },
  };
}

test('a write whose answer was lost is not sent again, and a retry with its key finds it', async () => {
  const server = await start();
  const relay = await startRelay(Number(new URL(server.url).port));
  cleanups.push(() => relay.close());
  const redis = await openRedis({ redisUrl: relay.url }, silent);
  cleanups.push(() => redis.close());
  const dataPlane = createDataPlane({ redis, limits: defaultLimits });
  const pad = newPad();
  const direct = await open(server);
  await dataPlane.appendEntry(pad, { content: 'first' });

  relay.mute();
  const lost = timed(dataPlane.appendEntry(pad, { content: 'lost answer', idempotencyKey: 'once' }));
  const lostToo = timed(dataPlane.setContent(pad, { text: 'lost answer' }));
  await until('the writes were applied', async () => {
    const [reading] = await direct.dataPlane.read([{ pad, entryCount: true, content: true }]);
    return reading!.entryCount === 2 && reading!.content!.text === 'lost answer';
  });
  relay.cut();
  expect((await lost).code).toBe('UNAVAILABLE');
  expect((await lostToo).code).toBe('UNAVAILABLE');
  await direct.dataPlane.setContent(pad, { text: 'newer' });

  const retried = await dataPlane.appendEntry(pad, { content: 'lost answer', idempotencyKey: 'once' });
  expect(retried.position).toBe(1);
  await delay(300);
  const [reading] = await direct.dataPlane.read([{ pad, entryCount: true, content: true }]);
  expect(reading).toMatchObject({ entryCount: 2, content: { text: 'newer' } });
});

test('nothing that failed is applied later', async () => {
  const server = await start({ appendFsync: 'always' });
  const { dataPlane } = await open(server);
  const pad = newPad();
  await dataPlane.appendEntry(pad, { content: 'before' });
  await server.kill();
  const failed = await Promise.all(
    Array.from({ length: 20 }, (_, index) => timed(dataPlane.appendEntry(pad, { content: `failed ${index}` }))),
  );
  expect(failed.map(({ code }) => code)).toEqual(Array.from({ length: 20 }, () => 'UNAVAILABLE'));
  await server.restart();
  await until('Redis is used again', async () => (await timed(dataPlane.read([{ pad }]))).code === 'fulfilled');
  await delay(300);
  const [reading] = await dataPlane.read([{ pad, entryCount: true }]);
  expect(reading!.entryCount).toBe(1);
});

test('a server that has forgotten the scripts is given them again', async () => {
  const server = await start();
  const { dataPlane } = await open(server);
  const pad = newPad();
  await dataPlane.appendEntry(pad, { content: 'one' });
  await server.client().script('FLUSH');
  await dataPlane.appendEntry(pad, { content: 'two' });
  const [reading] = await dataPlane.read([{ pad, entryCount: true }]);
  expect(reading!.entryCount).toBe(2);
});

test('starts while Redis is away, and serves once it is there', async () => {
  const server = await start();
  await server.kill();
  const begin = performance.now();
  const { dataPlane } = await open(server);
  expect(performance.now() - begin).toBeLessThan(2000);
  expect((await timed(dataPlane.appendEntry(newPad(), { content: 'x' }))).code).toBe('UNAVAILABLE');
  await server.restart();
  await until('Redis is used', async () => {
    return (await timed(dataPlane.appendEntry(newPad(), { content: 'x' }))).code === 'fulfilled';
  });
});

test('a Redis that refuses writes for want of memory is UNAVAILABLE, and nothing is half written', async () => {
  const server = await start();
  const { dataPlane } = await open(server);
  const pad = newPad();
  const admin = server.client();
  await admin.config('SET', 'maxmemory', '1');
  expect((await timed(dataPlane.appendEntry(pad, { content: 'x', idempotencyKey: 'k' }))).code).toBe('UNAVAILABLE');
  expect((await timed(dataPlane.setContent(pad, { text: 'x' }))).code).toBe('UNAVAILABLE');
  expect(await admin.keys('*')).toEqual([]);
  await admin.config('SET', 'maxmemory', '0');
  await dataPlane.appendEntry(pad, { content: 'x', idempotencyKey: 'k' });
});

test('the commands of one turn of the event loop leave together', async () => {
  const server = await start();
  const redis = await openRedis({ redisUrl: server.url }, silent);
  cleanups.push(() => redis.close());
  await redis.commands.set('first', '1');
  const { stream } = redis.commands;
  const systemCalls = [vi.spyOn(stream, '_write'), vi.spyOn(stream, '_writev')];
  const answers = Promise.all(Array.from({ length: 50 }, (_, index) => redis.commands.incrby('count', index)));
  const countCalls = (): number => systemCalls.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  expect(countCalls()).toBe(0);
  await setImmediate();
  expect(countCalls()).toBe(1);
  expect((await answers).at(-1)).toBe((49 * 50) / 2);
});

test('what is written with others keeps its order, bytes among texts, and is not lost when the connection is closed', async () => {
  const server = await start();
  const redis = await openRedis({ redisUrl: server.url }, silent);
  await redis.commands.set('first', '1');
  const { commands } = redis;
  const written = ['a', Buffer.from('b'), 'c'].map((part) => commands.append('text', part));
  commands.disconnect();
  await Promise.allSettled(written);
  const other = server.client();
  await expect.poll(() => other.get('text')).toBe('abc');
  await redis.close();
});
