// The doctor finds every key without a row, and nothing else.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inspect, type Rows } from '../../../src/scratchpads/doctor.js';
import { createRunJobs } from '../../../src/research/run-jobs.js';
import { createPadPurger } from '../../../src/scratchpads/pad-purger.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { newPad, openPlanes, silent, type Planes } from './support.js';

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
  const jobs = createRunJobs(planes.redis, silent);
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
  const runKeys = ['run:user_1:run_kept:events', 'run:user_1:run_gone:events', 'run:user_2:run_kept:events'];
  for (const key of runKeys) await admin.rpush(key, '{}');
  await admin.set('tombstone:run_gone', '1');
  await jobs.add('run_kept');
  await jobs.add('run_gone');
  const foreign = [
    'jobs:other:run_gone',
    'scratchpad',
    'scratchpad:x',
    'sequence:x',
    'idempotency:x',
    'events:a:b',
    'run:x:y',
    'rate:user',
  ];
  for (const key of foreign) await admin.set(key, 'x');
  const removeJob = (runId: string): Promise<void> => jobs.remove(runId);
  const rows: Rows = {
    scratchpadsAmong: (ids) =>
      Promise.resolve(
        new Map(kept.filter((pad) => ids.includes(pad.scratchpadId)).map((pad) => [pad.scratchpadId, pad.ownerId])),
      ),
    threadsAmong: (ids) => Promise.resolve(new Set(ids.filter((id) => id === 'thread_kept'))),
    runsAmong: (ids) => Promise.resolve(new Map(ids.filter((id) => id === 'run_kept').map((id) => [id, 'user_1']))),
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
    'run:user_1:run_gone:events',
    'run:user_2:run_kept:events',
    'jobs:runs:run_gone',
  ].toSorted();
  const before = (await admin.keys('*')).length;

  const found = await inspect({ redis: planes.redis, rows, removeJob, fix: false });
  expect(found.map(({ key }) => key).toSorted()).toEqual(expected);
  expect(await admin.dbsize()).toBe(before);
  const removed = await inspect({ redis: planes.redis, rows, removeJob, fix: true });
  expect(removed.map(({ key }) => key).toSorted()).toEqual(expected);
  expect(await admin.dbsize()).toBe(before - expected.length);
  expect(await inspect({ redis: planes.redis, rows, removeJob, fix: false })).toEqual([]);
  await planes.dataPlane.appendEntry(blocked, { content: 'not blocked any more' });
});

test('says UNAVAILABLE when Redis is away', async () => {
  const other = await startRedis();
  const away = await openPlanes(other);
  await other.kill();
  const rows: Rows = {
    scratchpadsAmong: () => Promise.resolve(new Map()),
    threadsAmong: () => Promise.resolve(new Set()),
    runsAmong: () => Promise.resolve(new Map()),
  };
  await expect(inspect({ redis: away.redis, rows, removeJob: async () => {}, fix: true })).rejects.toMatchObject({
    code: 'UNAVAILABLE',
  });
  await away.close();
  await other.stop();
});
