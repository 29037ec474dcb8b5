// The embedded database belongs to one process, and survives that process.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openDatabase } from '../../../src/infra/postgres.js';
import { createLogger } from '../../../src/shared/logger.js';
import { prepareEmbeddedDirectory, type EmbeddedDirectory } from '../../support/embedded-postgres.js';

interface Told {
  readyMs?: number;
  cpuMs?: number;
  users?: number;
  id?: string;
  refused?: string;
}

vi.setConfig({ testTimeout: 120_000 });

let directory: EmbeddedDirectory;
const running = new Set<() => Promise<void>>();

beforeEach(async () => {
  directory = await prepareEmbeddedDirectory();
});

afterEach(async () => {
  for (const kill of running) await kill();
  await directory.remove();
});

function startProcess() {
  const child = spawn(process.execPath, ['--import', 'tsx', 'test/fixtures/embedded-database.ts'], {
    env: { ...process.env, DATA_DIR: directory.dataDirectory },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value as string) as Told;
  const kill = async () => {
    running.delete(kill);
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  running.add(kill);
  const restOfLines = async () => {
    const told: Told[] = [];
    for (let line = await lines.next(); !line.done; line = await lines.next())
      told.push(JSON.parse(line.value) as Told);
    return told;
  };
  return { pid: child.pid!, next, kill, restOfLines };
}

it('loses nothing that was answered when its process is killed, and starts at once, again and again', async () => {
  const written: string[] = [];
  for (let round = 0; round < 2; round += 1) {
    const owner = startProcess();
    const { readyMs, cpuMs, users } = await owner.next();
    console.log(`start ${round + 1}: ready after ${readyMs} ms, ${cpuMs} ms of CPU, with ${users} users`);
    expect(users).toBeGreaterThanOrEqual(written.length);
    // Of the processor, because a machine that runs tests is busy.
    expect(cpuMs).toBeLessThan(10_000);
    while (written.length < (round + 1) * 30) written.push((await owner.next()).id!);
    await owner.kill();
    written.push(...(await owner.restOfLines()).map(({ id }) => id!));
  }
  const database = await openDatabase({ dataDirectory: directory.dataDirectory, logger: createLogger('silent') });
  const found = new Set((await database.prisma.user.findMany({ select: { id: true } })).map(({ id }) => id));
  await database.close();
  expect(written.filter((id) => !found.has(id))).toEqual([]);
});

it('starts although the process that first made it was killed in the middle', async () => {
  await rm(directory.dataDirectory, { recursive: true });
  const cluster = join(directory.dataDirectory, 'postgres');
  for (const afterMs of [0, 500]) {
    const owner = startProcess();
    const draft = `${cluster}.new`;
    await expect.poll(() => existsSync(draft) || existsSync(cluster), { timeout: 20_000, interval: 10 }).toBe(true);
    await sleep(afterMs);
    await owner.kill();
  }
  expect(await startProcess().next()).toHaveProperty('readyMs');
});

it('refuses a second process and says who has it and what to do', async () => {
  const owner = startProcess();
  await owner.next();
  const second = await startProcess().next();
  expect(second.refused).toContain(`in use by process ${owner.pid}`);
  expect(second.refused).toContain('choose another DATA_DIR');
  expect((await owner.next()).id).toBeDefined();
});

it('is there again after it was closed', async () => {
  const logger = createLogger('silent');
  const first = await openDatabase({ ...directory, logger });
  await first.prisma.user.create({ data: { id: 'user_1', name: 'Ada' } });
  await first.close();
  await first.close();
  const second = await openDatabase({ ...directory, logger });
  expect(await second.prisma.user.findMany({ select: { name: true } })).toEqual([{ name: 'Ada' }]);
  await second.close();
});
