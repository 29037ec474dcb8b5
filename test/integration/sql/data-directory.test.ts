// Who may live in a data directory. The stores inside do not matter here.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type * as FileSystem from 'node:fs/promises';
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import {
  DataDirectoryInUseError,
  lockDataDirectory,
  type DataDirectoryLock,
} from '../../../src/infra/data-directory.js';
import { createTemporaryDirectory } from '../../support/template-cache.js';

const pause = vi.hoisted(() => ({ beforeLink: (): Promise<void> => Promise.resolve() }));

vi.mock('node:fs/promises', async (importOriginal) => {
  const original = await importOriginal<typeof FileSystem>();
  const link: typeof original.link = async (from, to) => {
    await pause.beforeLink();
    await original.link(from, to);
  };
  return { ...original, link };
});

let directory: string;

beforeEach(async () => {
  directory = await createTemporaryDirectory();
});

afterEach(() => rm(directory, { recursive: true, force: true }));

const lockFiles = async () => (await readdir(join(directory, 'lock'))).filter((name) => /^\d+$/.test(name));
const lockFile = async () => join(directory, 'lock', (await lockFiles())[0]!);
const readLock = async () => JSON.parse(await readFile(await lockFile(), 'utf8')) as Record<string, unknown>;

/** The lock that another holder would have left, made from one of ours. */
async function leaveLock(changes: Record<string, unknown>): Promise<string> {
  const lock = await lockDataDirectory(directory);
  const holder = await readLock();
  await lock.release();
  const file = await lockFile();
  await writeFile(file, JSON.stringify({ ...holder, ...changes }));
  return file;
}

it('is made with its parents, for its owner only', async () => {
  directory = join(directory, 'a', 'b');
  const lock = await lockDataDirectory(directory);
  expect((await stat(directory)).mode & 0o777).toBe(0o700);
  await lock.release();
});

it('has one holder at a time, and is free after its release', async () => {
  const lock = await lockDataDirectory(directory);
  await expect(lockDataDirectory(directory)).rejects.toThrow(DataDirectoryInUseError);
  await expect(lockDataDirectory(directory)).rejects.toThrow(
    new RegExp(`in use by process ${process.pid} on ${hostname()}`),
  );
  await lock.release();
  await lock.release();
  const again = await lockDataDirectory(directory);
  expect(await lockFiles()).toHaveLength(1);
  await lock.release();
  await expect(lockDataDirectory(directory)).rejects.toThrow(DataDirectoryInUseError);
  await again.release();
});

it('is taken over at once from a process that is gone', async () => {
  const child = spawn('true');
  await once(child, 'exit');
  await leaveLock({ pid: child.pid });
  const before = Date.now();
  const lock = await lockDataDirectory(directory);
  expect(Date.now() - before).toBeLessThan(1000);
  await lock.release();
});

it('is taken over at once when the process id is used again by another process', async () => {
  await leaveLock({ pid: process.pid, startedAt: '1' });
  const before = Date.now();
  await (await lockDataDirectory(directory)).release();
  expect(Date.now() - before).toBeLessThan(1000);
});

it('is taken over from a lock that a power failure cut off', async () => {
  await writeFile(await leaveLock({}), '{"pid": 1');
  await expect(lockDataDirectory(directory)).resolves.toBeDefined();
});

it('is taken over from another machine once its heart has stopped, also with the same process id and host name', async () => {
  await leaveLock({ machine: 'another container' });
  const before = Date.now();
  await (await lockDataDirectory(directory)).release();
  expect(Date.now() - before).toBeLessThan(8000);
});

it('is refused while another machine keeps its heart beating, whatever its clock says', async () => {
  const file = await leaveLock({ machine: 'another container', hostName: 'elsewhere', pid: 1 });
  let wrongTime = 1_000_000;
  const beat = setInterval(() => void utimes(file, wrongTime, (wrongTime += 1)), 1000);
  try {
    await expect(lockDataDirectory(directory)).rejects.toThrow(/process 1 on elsewhere/);
  } finally {
    clearInterval(beat);
  }
});

it('beats, and tells when another machine has taken over', async () => {
  let lost = 0;
  const lock = await lockDataDirectory(directory, { onLost: () => (lost += 1) });
  const file = await lockFile();
  const before = (await stat(file)).mtimeMs;
  await expect.poll(async () => (await stat(file)).mtimeMs, { timeout: 3000 }).toBeGreaterThan(before);
  expect(lost).toBe(0);
  const successor = join(directory, 'lock', '999');
  await writeFile(successor, 'somebody');
  await rm(file);
  await expect.poll(() => lost, { timeout: 3000 }).toBe(1);
  await lock.release();
  expect(await readFile(successor, 'utf8')).toBe('somebody');
});

it('goes to exactly one of many who find a dead holder at the same moment', async () => {
  await mkdir(directory, { recursive: true });
  for (let round = 0; round < 20; round += 1) {
    const locks: DataDirectoryLock[] = [];
    const starters = Array.from({ length: 12 }, () =>
      lockDataDirectory(directory).then(
        (lock) => locks.push(lock),
        (error: unknown) => expect(error).toBeInstanceOf(DataDirectoryInUseError),
      ),
    );
    await Promise.all(starters);
    expect(locks).toHaveLength(1);
    expect(await lockFiles()).toHaveLength(1);
    const left = await readLock();
    await locks[0]!.release();
    await writeFile(await lockFile(), JSON.stringify({ ...left, startedAt: '1' }));
  }
  expect((await readdir(join(directory, 'lock'))).length).toBe(1);
});

it('is never held twice while many come and go', async () => {
  const until = Date.now() + 3000;
  let holders = 0;
  let most = 0;
  let rounds = 0;
  const comeAndGo = async () => {
    while (Date.now() < until) {
      const lock = await lockDataDirectory(directory).catch(() => undefined);
      if (lock === undefined) continue;
      holders += 1;
      most = Math.max(most, holders);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
      holders -= 1;
      rounds += 1;
      await lock.release();
    }
  };
  await Promise.all(Array.from({ length: 16 }, comeAndGo));
  expect(most).toBe(1);
  expect(rounds).toBeGreaterThan(20);
});

it('is refused to a starter who slept while two others had it', async () => {
  await leaveLock({ startedAt: '1' });
  let wake = () => {};
  let asleep = () => {};
  const sleeping = new Promise<void>((resolve) => (asleep = resolve));
  pause.beforeLink = () => {
    pause.beforeLink = () => Promise.resolve();
    asleep();
    return new Promise((resolve) => (wake = resolve));
  };
  const sleeper = lockDataDirectory(directory);
  await sleeping;
  await lockDataDirectory(directory);
  await writeFile(await lockFile(), JSON.stringify({ ...(await readLock()), startedAt: '1' }));
  const second = await lockDataDirectory(directory);
  wake();
  await expect(sleeper).rejects.toThrow(DataDirectoryInUseError);
  expect(await lockFiles()).toHaveLength(1);
  await second.release();
});
