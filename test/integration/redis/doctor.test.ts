// The doctor finds every key without a row, and nothing else.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inspect, type Rows } from '../../../src/scratchpads/doctor.js';
import { createPadPurger } from '../../../src/scratchpads/pad-purger.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { newPad, openPlanes, type Planes } from './support.js';

let server: TestRedis;
let planes: Planes;

beforeAll(async () => {
  server = await startRedis();
  planes = await openPlanes(server);
});
afterAll(async () => {
  await planes.close();
  await server.stop();
});

test('finds and removes what has no row, of every family, and leaves the rest', async () => {
  const admin = server.client();
  const kept = Array.from({ length: 30 }, newPad);
  const orphaned = Array.from({ length: 30 }, newPad);
  for (const pad of [...kept, ...orphaned]) {
    await planes.dataPlane.setContent(pad, { text: 'x', idempotencyKey: 'k:1' });
    await planes.dataPlane.appendEntry(pad, { content: 'x' });
  }
  const deleted = newPad();
  await createPadPurger(planes.redis)(deleted);
  const blocked = kept[0]!;
  await admin.set(`tombstone:${blocked.scratchpadId}`, '1');
  const stranger = { ownerId: newPad().ownerId, scratchpadId: kept[1]!.scratchpadId };
  await planes.dataPlane.appendEntry(stranger, { content: 'under the wrong owner' });
  await admin.mset('scratchpad:thread_kept:notebook', '{}', 'scratchpad:thread_gone:notebook', '{}');
  const foreign = [
    'bull:jobs:id',
    'scratchpad',
    'scratchpad:x',
    'sequence:x',
    'idempotency:x',
    'events:a:b',
    'run:x:y',
    'rate:user',
  ];
  for (const key of foreign) await admin.set(key, 'x');
  const rows: Rows = {
    scratchpadsAmong: (ids) =>
      Promise.resolve(
        new Map(kept.filter((pad) => ids.includes(pad.scratchpadId)).map((pad) => [pad.scratchpadId, pad.ownerId])),
      ),
    threadsAmong: (ids) => Promise.resolve(new Set(ids.filter((id) => id === 'thread_kept'))),
  };
  const expected = [
    ...orphaned.flatMap(({ ownerId, scratchpadId }) => [
      `scratchpad:${ownerId}:${scratchpadId}:content`,
      `scratchpad:${ownerId}:${scratchpadId}:entries`,
      `sequence:${ownerId}:${scratchpadId}`,
      `idempotency:${ownerId}:${scratchpadId}`,
      `idempotency:${ownerId}:${scratchpadId}:k:1`,
    ]),
    `scratchpad:${stranger.ownerId}:${stranger.scratchpadId}:entries`,
    `sequence:${stranger.ownerId}:${stranger.scratchpadId}`,
    `tombstone:${blocked.scratchpadId}`,
    'scratchpad:thread_gone:notebook',
  ].toSorted();
  const before = (await admin.keys('*')).length;

  const found = await inspect({ redis: planes.redis, rows, fix: false });
  expect(found.map(({ key }) => key).toSorted()).toEqual(expected);
  expect(await admin.dbsize()).toBe(before);
  const removed = await inspect({ redis: planes.redis, rows, fix: true });
  expect(removed.map(({ key }) => key).toSorted()).toEqual(expected);
  expect(await admin.dbsize()).toBe(before - expected.length);
  expect(await inspect({ redis: planes.redis, rows, fix: false })).toEqual([]);
  await planes.dataPlane.appendEntry(blocked, { content: 'not blocked any more' });
});

test('says UNAVAILABLE when Redis is away', async () => {
  const other = await startRedis();
  const away = await openPlanes(other);
  await other.kill();
  const rows: Rows = {
    scratchpadsAmong: () => Promise.resolve(new Map()),
    threadsAmong: () => Promise.resolve(new Set()),
  };
  await expect(inspect({ redis: away.redis, rows, fix: true })).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await away.close();
  await other.stop();
});
