// Runs are executed once each, no more at a time than there are places, and stop when they are told to.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { RunRow } from '../../../src/research/run-store.js';
import { startRunProcesses, type RunProcess, type RunProcesses } from '../../support/run-processes.js';
import { until } from '../redis/support.js';

let service: RunProcesses;
const started: RunProcess[] = [];

beforeAll(async () => {
  service = await startRunProcesses();
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((process) => process.kill()));
});
afterAll(() => service.close());

async function start(...runWorkers: number[]): Promise<RunProcess[]> {
  const processes = await Promise.all(runWorkers.map((count) => service.start(count)));
  started.push(...processes);
  return processes;
}

const untilStatus = (run: RunRow, status: RunRow['status'], timeoutMs = 30_000): Promise<void> =>
  until(`${run.id} is ${status}`, async () => (await service.row(run))?.status === status, timeoutMs);

test('executes 20 runs over two processes with two places each: four at a time, none lost, none twice', async () => {
  await start(2, 2);
  const runs = await Promise.all(Array.from({ length: 20 }, () => service.startRun('sleep 300')));
  for (const run of runs) await untilStatus(run, 'COMPLETED', 20_000);
  const ids = new Set(runs.map(({ id }) => id));
  const log = (await service.log()).filter(({ runId }) => ids.has(runId));
  expect(log.filter(({ what }) => what === 'begin').map(({ runId }) => runId)).toHaveLength(20);
  expect(new Set(log.filter(({ what }) => what === 'begin').map(({ runId }) => runId)).size).toBe(20);
  let atOnce = 0;
  let most = 0;
  for (const { what } of log) {
    atOnce += what === 'begin' ? 1 : -1;
    most = Math.max(most, atOnce);
  }
  expect(most).toBe(4);
  const streams = await Promise.all(runs.map((run) => service.stream(run)));
  for (const events of streams) {
    expect(events.map((event) => event.type === 'status' && event.phase)).toEqual(['QUEUED', 'STARTED', 'FINISHED']);
  }
  // Nothing of a run stays but its events, for their time.
  await until('the jobs are gone', async () => (await service.keysOf(runs)).length === 20);
  expect(await service.keysOf(runs)).toEqual(runs.map(({ ownerId, id }) => `run:${ownerId}:${id}:events`).toSorted());
});

test('a process with no places executes nothing, and a run waits until there is one', async () => {
  const run = await service.startRun('sleep 10');
  await delay(1000);
  expect(await service.row(run)).toMatchObject({ status: 'QUEUED' });
  expect(await service.runtime.waiting()).toBe(1);
  await start(1);
  await untilStatus(run, 'COMPLETED');
  await until('nothing waits', async () => (await service.runtime.waiting()) === 0);
});

test('a cancelled run stops within two seconds, in whichever process, and one that waits never begins', async () => {
  await start(1);
  const run = await service.startRun('sleep 600000');
  await untilStatus(run, 'IN_PROGRESS');
  const waiting = await service.startRun('sleep 1');
  const startedAt = Date.now();
  await service.cancellation.cancel(run);
  await untilStatus(run, 'CANCELLED', 2000);
  expect(Date.now() - startedAt).toBeLessThan(900);
  await service.cancellation.cancel(waiting);
  expect(await service.row(waiting)).toMatchObject({ status: 'CANCELLED' });
  for (const ended of [run, waiting]) {
    const events = await service.stream(ended);
    expect(events.filter((event) => event.type === 'status' && event.phase === 'FINISHED')).toHaveLength(1);
  }
  await untilStatus(await service.startRun('sleep 1'), 'COMPLETED');
  expect((await service.log()).filter(({ runId }) => runId === waiting.id)).toEqual([]);
  await until('the job is gone', async () => (await service.keysOf([waiting])).length === 1);
});

test('a cancellation arrives within two seconds when its signal is lost', async () => {
  await start(1);
  const run = await service.startRun('sleep 600000');
  await untilStatus(run, 'IN_PROGRESS');
  expect(await service.runStore.askToCancel(run.id)).toBe(true);
  await untilStatus(run, 'CANCELLED', 2000);
});

test('a run stops when its row is deleted, and nothing of it stays in Redis', async () => {
  await start(1);
  const run = await service.startRun('sleep 600000');
  await untilStatus(run, 'IN_PROGRESS');
  await service.database.prisma.thread.delete({ where: { id: run.threadId! } });
  await service.runtime.purge(run.ownerId, run.id);
  await until(
    'it stopped',
    async () => (await service.log()).some(({ what, runId }) => what === 'end' && runId === run.id),
    3000,
  );
  await until('only the tombstone is left', async () => (await service.keysOf([run])).length === 1);
  expect(await service.keysOf([run])).toEqual([`tombstone:${run.id}`]);
});

test('with Redis away a start is refused within a few seconds, and works again when it is back', async () => {
  const ownerId = (await service.startRun('sleep 1')).ownerId;
  const run = await service.startRun('sleep 1', { ownerId, queued: false });
  await service.redis.kill();
  for (const pauseMs of [0, 2000]) {
    await delay(pauseMs);
    const startedAt = Date.now();
    await expect(service.runtime.dispatcher.enqueue(run)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(Date.now() - startedAt).toBeLessThan(4000);
  }
  await service.redis.restart();
  await until('Redis is back', () => service.connections.commands.status === 'ready');
  await service.runtime.dispatcher.enqueue(run);
  await start(1);
  await untilStatus(run, 'COMPLETED');
});

test('a run that waits in SQL without a job gets one', async () => {
  await start(1);
  const run = await service.startRun('sleep 1', { queued: false });
  await untilStatus(run, 'COMPLETED', 25_000);
  expect((await service.log()).filter(({ what, runId }) => what === 'begin' && runId === run.id)).toHaveLength(1);
}, 40_000);

test('runs that were waiting survive a Redis that is killed', async () => {
  await start(1);
  const runs = await Promise.all(Array.from({ length: 5 }, () => service.startRun('sleep 300')));
  await untilStatus(runs[0]!, 'IN_PROGRESS');
  await service.redis.kill();
  await delay(500);
  await service.redis.restart();
  for (const run of runs) await untilStatus(run, 'COMPLETED', 20_000);
  const begun = (await service.log()).filter(
    ({ what, runId }) => what === 'begin' && runs.some(({ id }) => id === runId),
  );
  expect(begun.length).toBeLessThanOrEqual(5);
}, 40_000);
