// The private server: starts with all data, whatever ended the process before, and ends with its process.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startPrivateRedis } from '../../../src/infra/private-redis.js';
import { openRedis } from '../../../src/infra/redis.js';
import { silent, until } from './support.js';

let folder: string;
const cleanups: (() => unknown)[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'private-redis-'));
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  await rm(folder, { recursive: true, force: true });
});

interface Holder {
  child: ChildProcess;
  length: number;
  processId: number;
}

/** A process of its own that holds the private server. */
async function startHolder(dataDirectory = folder): Promise<Holder> {
  const child = spawn(process.execPath, ['--import', 'tsx', 'test/fixtures/private-redis.ts'], {
    env: { ...process.env, DATA_DIR: dataDirectory },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanups.push(() => child.kill('SIGKILL'));
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const holder = { child, ...(JSON.parse(line.toString()) as { length: number; processId: number }) };
  cleanups.push(() => isAlive(holder.processId) && process.kill(holder.processId, 'SIGKILL'));
  return holder;
}

const isAlive = (processId: number): boolean => {
  try {
    process.kill(processId, 0);
    return true;
  } catch {
    return false;
  }
};

/** A process that has ended and that nobody has waited for is not running. */
const isRunning = async (processId: number): Promise<boolean> => {
  const status = await readFile(`/proc/${processId}/stat`, 'utf8').catch(() => '');
  return isAlive(processId) && !/\) Z /.test(status);
};

test('ends with its process and keeps its data for the next one', async () => {
  const first = await startHolder();
  first.child.kill('SIGTERM');
  await once(first.child, 'exit');
  expect(await isRunning(first.processId)).toBe(false);
  const second = await startHolder();
  expect(second.length).toBe(2);
});

test('after kill -9 of its process the next one starts with all data and without the orphan', async () => {
  const first = await startHolder();
  first.child.kill('SIGKILL');
  await once(first.child, 'exit');
  expect(await isRunning(first.processId)).toBe(true);
  const second = await startHolder();
  expect(second.length).toBe(2);
  expect(await isRunning(first.processId)).toBe(false);
  second.child.kill('SIGKILL');
  process.kill(second.processId, 'SIGKILL');
  await once(second.child, 'exit');
  const third = await startHolder();
  expect(third.length).toBe(3);
});

test('an orphan that hangs is ended as well', async () => {
  const first = await startHolder();
  first.child.kill('SIGKILL');
  process.kill(first.processId, 'SIGSTOP');
  const second = await startHolder();
  expect(second.length).toBe(2);
  expect(await isRunning(first.processId)).toBe(false);
}, 40_000);

test('a number in the pid file that is another process by now is left alone', async () => {
  const bystander = spawn('sleep', ['60']);
  cleanups.push(() => bystander.kill());
  await mkdir(join(folder, 'redis'), { recursive: true });
  await writeFile(join(folder, 'redis', 'redis.pid'), `${bystander.pid}\n`);
  const redis = await openRedis({ dataDirectory: folder }, silent);
  expect(await redis.commands.ping()).toBe('PONG');
  await redis.close();
  expect(bystander.exitCode).toBeNull();
  expect(isAlive(bystander.pid!)).toBe(true);
});

test('is started again when it dies', async () => {
  const redis = await openRedis({ dataDirectory: folder }, silent);
  cleanups.push(() => redis.close());
  await redis.commands.set('kept', 'x');
  const processId = Number(/process_id:(\d+)/.exec(await redis.commands.info('server'))![1]);
  process.kill(processId, 'SIGKILL');
  await until('it answers again', () =>
    redis.ping().then(
      () => true,
      () => false,
    ),
  );
  expect(await redis.commands.get('kept')).toBe('x');
});

test('nobody else can reach it: a private folder, a private socket, no port', async () => {
  await chmod(folder, 0o755);
  const server = await startPrivateRedis(folder, silent);
  cleanups.push(() => server.stop());
  expect((await stat(join(folder, 'redis'))).mode & 0o777).toBe(0o700);
  expect((await stat(server.socketPath)).mode & 0o777).toBe(0o700);
  const client = new Redis(server.socketPath);
  cleanups.push(() => client.disconnect());
  expect(await client.config('GET', 'port')).toEqual(['port', '0']);
  expect(await client.config('GET', 'appendfsync')).toEqual(['appendfsync', 'everysec']);
  expect(await client.config('GET', 'appendonly')).toEqual(['appendonly', 'yes']);
});

test('works in a folder whose path is too long for a socket, and one with spaces and quotes', async () => {
  for (const name of ['x'.repeat(120), 'with space "and quotes" ü']) {
    const server = await startPrivateRedis(join(folder, name), silent);
    expect(Buffer.byteLength(server.socketPath)).toBeLessThan(104);
    await server.stop();
  }
});

test('says what to do when no server is installed', async () => {
  const path = process.env['PATH'];
  process.env['PATH'] = folder;
  try {
    await expect(startPrivateRedis(folder, silent)).rejects.toThrow(/redis-server.*install.*REDIS_URL/s);
  } finally {
    process.env['PATH'] = path;
  }
});

test('says what the server said when it does not start', async () => {
  await mkdir(join(folder, 'redis', 'appendonlydir'), { recursive: true });
  await writeFile(join(folder, 'redis', 'appendonlydir', 'appendonly.aof.manifest'), 'nonsense\n');
  await expect(startPrivateRedis(folder, silent)).rejects.toThrow(/did not start.*manifest/is);
});
