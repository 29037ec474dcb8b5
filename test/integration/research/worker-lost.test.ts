// A run whose process is gone ends as WORKER_LOST within a minute, is never executed twice, and leaves nothing behind.
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
  for (const process of started) process.thaw();
  await Promise.all(started.splice(0).map((process) => process.kill()));
});
afterAll(() => service.close());

async function start(runWorkers: number): Promise<RunProcess> {
  const process = await service.start(runWorkers);
  started.push(process);
  return process;
}

const untilStatus = (run: Pick<RunRow, 'id'>, status: RunRow['status'], timeoutMs = 30_000): Promise<void> =>
  until(`${run.id} is ${status}`, async () => (await service.row(run))?.status === status, timeoutMs);
const begun = async (run: RunRow): Promise<number> =>
  (await service.log()).filter(({ what, runId }) => what === 'begin' && runId === run.id).length;
const phasesOf = async (run: RunRow): Promise<unknown[]> =>
  (await service.stream(run)).map((event) => (event.type === 'status' ? event.phase : event.type));

const workersOf = (run: RunRow): Promise<RunRow[]> =>
  service.database.prisma.run.findMany({ where: { parentRunId: run.id } });

test('kill -9 of the executing process: lost within a minute, its workers too, and the thread is usable', async () => {
  const victim = await start(1);
  const run = await service.startRun('delegate');
  await until('it has a worker', async () => (await workersOf(run))[0]?.status === 'IN_PROGRESS', 30_000);
  const live = service.stream(run);
  const other = await start(1);
  // A survivor whose places are all taken notices, too.
  const busy = await service.startRun('sleep 600000');
  await untilStatus(busy, 'IN_PROGRESS');
  await delay(300);
  await victim.kill();
  await untilStatus(run, 'FAILED', 60_000);
  // The stream ends when everything is put away.
  const events = await live;
  expect(await service.row(run)).toMatchObject({
    lastErrorCode: 'WORKER_LOST',
    lastErrorMessage: expect.stringContaining('The hold on the run was lost') as string,
  });
  const [worker] = await workersOf(run);
  expect(worker).toMatchObject({ status: 'FAILED', lastErrorCode: 'WORKER_LOST', threadId: null, assistantId: null });
  expect(await service.database.prisma.thread.count({ where: { ephemeral: true } })).toBe(0);
  expect(await service.database.prisma.assistant.count({ where: { ephemeral: true } })).toBe(0);
  expect(events.map((event) => (event.type === 'status' ? event.phase : event.type))).toEqual([
    'QUEUED',
    'STARTED',
    'DELEGATED',
    'WORKER_FAILED',
    'FINISHED',
  ]);
  expect(events.map(({ originRunId }) => originRunId === worker!.id)).toEqual([false, false, false, true, false]);
  await until(
    'only its events are left',
    async () => (await service.keysOf([run])).join() === `run:${run.ownerId}:${run.id}:events`,
  );
  await service.cancellation.cancel(busy);
  const next = await service.startRun('sleep 1', { threadId: run.threadId!, ownerId: run.ownerId });
  await untilStatus(next, 'COMPLETED');
  await delay(1000);
  expect(await begun(run)).toBe(1);
  expect(await other.stop()).toBe(0);
}, 120_000);

test('a process that stood still does not go on with a run that others have given up', async () => {
  const victim = await start(1);
  const run = await service.startRun('sleep 600000');
  await untilStatus(run, 'IN_PROGRESS');
  await delay(300);
  victim.freeze();
  await untilStatus(run, 'FAILED', 60_000);
  victim.thaw();
  await until(
    'it stopped',
    async () => (await service.log()).some(({ what, runId }) => what === 'end' && runId === run.id),
    5000,
  );
  expect(await service.row(run)).toMatchObject({ status: 'FAILED', lastErrorCode: 'WORKER_LOST' });
  expect(await phasesOf(run)).toEqual(['QUEUED', 'STARTED', 'FINISHED']);
  await untilStatus(await service.startRun('sleep 1'), 'COMPLETED', 20_000);
  expect(await begun(run)).toBe(1);
}, 120_000);

test('SIGTERM: short runs end, the others are lost at once, waiting ones are left to others, and the process ends', async () => {
  const victim = await start(2);
  const [long, short] = [await service.startRun('delegate'), await service.startRun('sleep 1500')];
  await untilStatus(long, 'IN_PROGRESS');
  await until('it has a worker', async () => (await workersOf(long))[0]?.status === 'IN_PROGRESS', 30_000);
  await untilStatus(short, 'IN_PROGRESS');
  const waiting = await service.startRun('sleep 1');
  const startedAt = Date.now();
  expect(await victim.stop()).toBe(0);
  expect(Date.now() - startedAt).toBeLessThan(8000);
  expect(await service.row(short)).toMatchObject({ status: 'COMPLETED' });
  expect(await service.row(long)).toMatchObject({ status: 'FAILED', lastErrorCode: 'WORKER_LOST' });
  expect(await service.row(waiting)).toMatchObject({ status: 'QUEUED' });
  expect((await phasesOf(long)).at(-1)).toBe('FINISHED');
  expect((await workersOf(long))[0]).toMatchObject({ status: 'FAILED', lastErrorCode: 'WORKER_LOST' });
  await start(1);
  await untilStatus(waiting, 'COMPLETED', 20_000);
}, 60_000);

test('SIGTERM with Redis away: the process ends all the same, and its run is lost', async () => {
  const victim = await start(1);
  const run = await service.startRun('sleep 600000');
  await untilStatus(run, 'IN_PROGRESS');
  await service.redis.kill();
  const startedAt = Date.now();
  expect(await victim.stop()).toBe(0);
  expect(Date.now() - startedAt).toBeLessThan(9000);
  await service.redis.restart();
  await until('Redis is back', () => service.connections.subscriber.status === 'ready');
  await untilStatus(run, 'FAILED', 60_000);
  expect(await service.row(run)).toMatchObject({ lastErrorCode: 'WORKER_LOST' });
  expect((await phasesOf(run)).at(-1)).toBe('FINISHED');
}, 120_000);

test('a process that dies between the end of a run in SQL and its last event leaves a stream that ends', async () => {
  const victim = await start(1);
  const run = await service.startRun('stubborn');
  await untilStatus(run, 'IN_PROGRESS');
  await delay(300);
  await victim.kill();
  await service.runStore.finish(run.id, { status: 'COMPLETED', output: 'Done.' });
  expect(await phasesOf(run)).toEqual(['QUEUED', 'STARTED', 'FINISHED']);
}, 30_000);
