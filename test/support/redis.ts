// A throw-away Redis server for one test file: start, stop, kill, restart, freeze.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis, type RedisOptions } from 'ioredis';

export interface TestRedis {
  /** redis://127.0.0.1:port */
  readonly url: string;
  readonly processId: number;
  /** A client of the test's own, closed by `stop`. */
  client(options?: RedisOptions): Redis;
  /** Ends the process without warning and without flushing. */
  kill(): Promise<void>;
  /** Starts it again at the same address with what its append-only file kept. Ends it first when it runs. */
  restart(): Promise<void>;
  /** SIGSTOP: it accepts connections and answers nothing. */
  freeze(): void;
  thaw(): void;
  /** Ends it and removes its files. */
  stop(): Promise<void>;
  /** Starts it again so that it outlives this process, at the same address with the same data. @returns its folder and the command that ends it */
  leaveRunning(): Promise<{ directory: string; stopCommand: string }>;
}

export interface TestRedisOptions {
  /** "always" loses nothing, whatever is killed. Default: no append-only file, so a restart begins empty. */
  appendFsync?: 'always' | 'everysec';
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function untilItAnswers(port: number, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 1000; attempt += 1) {
    if (child.exitCode !== null) throw new Error('redis-server ended before it answered');
    const probe = new Redis(port, '127.0.0.1', { lazyConnect: true, retryStrategy: () => null, connectTimeout: 1000 });
    probe.on('error', () => undefined);
    try {
      await probe.connect();
      return;
    } catch {
      await delay(10);
    } finally {
      probe.disconnect();
    }
  }
  throw new Error('redis-server did not answer within 10 s');
}

export async function startRedis({ appendFsync }: TestRedisOptions = {}): Promise<TestRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'test-redis-'));
  const clients = new Set<Redis>();
  const port = await freePort();
  const settings = ['--port', port, '--bind', '127.0.0.1', '--dir', directory, '--save', '', '--loglevel', 'warning'];
  if (appendFsync) settings.push('--appendonly', 'yes', '--appendfsync', appendFsync);
  let child: ChildProcess;
  let isLeft = false;

  const start = async (): Promise<void> => {
    child = spawn('redis-server', settings.map(String), { stdio: 'ignore' });
    await untilItAnswers(port, child);
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGCONT');
    child.kill(signal);
    await ended;
  };
  const endWithProcess = (): void => void child.kill('SIGKILL');
  process.once('exit', endWithProcess);
  await start();

  return {
    url: `redis://127.0.0.1:${port}`,
    get processId() {
      return child.pid!;
    },
    client(options = {}) {
      const client = new Redis(port, '127.0.0.1', options);
      client.on('error', () => undefined);
      clients.add(client);
      return client;
    },
    kill: () => end('SIGKILL'),
    async restart() {
      await end('SIGTERM');
      await start();
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    async stop() {
      for (const client of clients) client.disconnect();
      if (isLeft) return;
      await end('SIGKILL');
      process.off('exit', endWithProcess);
      await rm(directory, { recursive: true, force: true });
    },
    async leaveRunning() {
      await end('SIGTERM');
      process.off('exit', endWithProcess);
      isLeft = true;
      child = spawn('redis-server', settings.map(String), { stdio: 'ignore', detached: true });
      child.unref();
      await untilItAnswers(port, child);
      return { directory, stopCommand: `redis-cli -p ${port} shutdown` };
    },
  };
}
