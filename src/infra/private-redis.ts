// A redis-server of our own: spawned on a Unix socket, append-only file under the data directory, restarted when it dies.
import { spawn, execFile, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, readFile } from 'node:fs/promises';
import { platform, tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import type { Logger } from '../shared/logger.js';

export interface PrivateRedis {
  readonly socketPath: string;
  /** Flushes to disk and ends the server; resolves when its process is gone. */
  stop(): Promise<void>;
}

const programs = ['redis-server', 'valkey-server'] as const;
const startTimeoutMs = 30_000;
const stopTimeoutMs = 8_000;
/** The kernel's limit is 108 bytes on Linux and 104 on macOS, the final zero included. */
const longestSocketPathBytes = 100;

class ProgramMissing extends Error {}

/** The socket lies in the data directory when its path is short enough for the kernel, else in a private temporary folder. */
async function chooseSocketPath(directory: string): Promise<string> {
  const path = join(directory, 'redis.sock');
  if (Buffer.byteLength(path) <= longestSocketPathBytes) return path;
  const digest = createHash('sha256').update(directory).digest('hex').slice(0, 16);
  const folder = join(tmpdir(), `scratchpad-${digest}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const status = await lstat(folder);
  if (!status.isDirectory() || status.uid !== userInfo().uid) {
    throw new Error(`${folder} must be a folder of yours: remove it, or set DATA_DIR to a shorter path`);
  }
  await chmod(folder, 0o700);
  return join(folder, 'redis.sock');
}

const configuration = (directory: string, socketPath: string): string =>
  [
    'port 0',
    `unixsocket ${JSON.stringify(socketPath)}`,
    'unixsocketperm 700',
    `dir ${JSON.stringify(directory)}`,
    `pidfile ${JSON.stringify(join(directory, 'redis.pid'))}`,
    'appendonly yes',
    'appendfsync everysec',
    'save ""',
    'maxmemory-policy noeviction',
    'databases 1',
    '',
  ].join('\n');

async function commandLine(processId: number): Promise<string> {
  try {
    if (platform() === 'linux') return await readFile(`/proc/${processId}/cmdline`, 'utf8');
    return (await promisify(execFile)('ps', ['-o', 'args=', '-p', String(processId)])).stdout;
  } catch {
    return ''; // no such process
  }
}

/** Whether the process lives and is the Redis that listens on this socket: Redis shows the socket in its command line. */
async function isServerOf(processId: number, socketPath: string): Promise<boolean> {
  const line = await commandLine(processId);
  return /(redis|valkey)-server/.test(line) && line.includes(socketPath);
}

/** Asks the process to end, then insists. */
async function endProcess(processId: number, lives: () => boolean | Promise<boolean>): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!(await lives())) return;
    process.kill(processId, signal);
    const deadline = Date.now() + stopTimeoutMs;
    while ((await lives()) && Date.now() < deadline) await delay(20);
  }
}

/**
 * Ends the server that a killed process left behind: two on one append-only file would ruin it. Whoever calls this
 * holds the lock on the data directory, so that server belongs to nobody any more.
 */
async function endOrphan(directory: string, socketPath: string, logger: Logger): Promise<void> {
  const text = await readFile(join(directory, 'redis.pid'), 'utf8').catch(() => '');
  const processId = Number.parseInt(text, 10);
  const lives = async (): Promise<boolean> => processId > 0 && (await isServerOf(processId, socketPath));
  if (await lives()) {
    logger.info({ processId }, 'Ending the private Redis that an earlier process left behind');
    await endProcess(processId, lives);
  }
  if (await answersPing(socketPath)) {
    throw new Error(`Another Redis listens on ${socketPath} already: end it, or set DATA_DIR to another folder.`);
  }
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

async function spawnProgram(program: string, config: string, logger: Logger): Promise<ChildProcess> {
  // Detached: a Ctrl-C in the terminal reaches us alone, and Redis stays until we have finished with it.
  const child = spawn(program, ['-'], { detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'ENOENT' ? new ProgramMissing(program) : error),
    );
  });
  child.on('error', (error) => logger.error({ reason: error.message }, 'The private Redis cannot be signalled'));
  child.stdin.on('error', () => undefined); // it ended before it read: its exit code tells
  child.stdin.end(config);
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => logger.debug({ redis: text.trimEnd() }, 'private Redis'));
  }
  return child;
}

async function spawnAny(config: string, logger: Logger): Promise<ChildProcess> {
  for (const program of programs) {
    try {
      return await spawnProgram(program, config, logger);
    } catch (error) {
      if (!(error instanceof ProgramMissing)) throw error;
    }
  }
  throw new Error(
    'Neither redis-server nor valkey-server is installed. Install one (Debian, Ubuntu: apt-get install redis-server; ' +
      'macOS: brew install redis), or set REDIS_URL to a server that runs elsewhere.',
  );
}

/** Waits until the server answers and has loaded its file. @throws with its last words when it ends instead */
async function waitUntilReady(child: ChildProcess, socketPath: string): Promise<void> {
  let lastWords = '';
  const listen = (text: string): void => {
    lastWords = (lastWords + text).slice(-1000);
  };
  child.stdout!.on('data', listen);
  child.stderr!.on('data', listen);
  const deadline = Date.now() + startTimeoutMs;
  try {
    while (Date.now() < deadline) {
      if (hasEnded(child)) {
        throw new Error(`The private Redis did not start. It said: ${lastWords.trim()}`);
      }
      if (await answersPing(socketPath)) return;
      await delay(10);
    }
    throw new Error(`The private Redis did not answer within ${startTimeoutMs / 1000} s. It said: ${lastWords.trim()}`);
  } finally {
    child.stdout!.off('data', listen);
    child.stderr!.off('data', listen);
  }
}

async function answersPing(socketPath: string): Promise<boolean> {
  const probe = new Redis({
    path: socketPath,
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    connectTimeout: 1000,
    socketTimeout: 1000,
  });
  probe.on('error', () => undefined);
  try {
    await probe.connect();
    return (await probe.ping()) === 'PONG';
  } catch {
    return false; // not listening yet, or still loading
  } finally {
    probe.disconnect();
  }
}

/**
 * Starts the private server, with everything that an earlier one kept. The caller holds the lock on `dataDirectory`.
 * @throws an Error whose message says what to do, when it cannot be started
 */
export async function startPrivateRedis(dataDirectory: string, logger: Logger): Promise<PrivateRedis> {
  const directory = resolve(dataDirectory, 'redis');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await chmod(directory, 0o700);
  const socketPath = await chooseSocketPath(directory);
  const config = configuration(directory, socketPath);

  let stopping = false;
  let child: ChildProcess | undefined;
  let reviving: Promise<void> | undefined;

  const endChild = async (): Promise<void> => {
    const last = child;
    if (last?.pid !== undefined) await endProcess(last.pid, () => !hasEnded(last));
  };
  const start = async (): Promise<void> => {
    await endOrphan(directory, socketPath, logger);
    const started = await spawnAny(config, logger);
    child = started;
    await waitUntilReady(started, socketPath);
    const onExit = (): void => {
      if (stopping) return;
      logger.error(
        { code: started.exitCode, signal: started.signalCode },
        'The private Redis ended; starting it again',
      );
      reviving = revive();
    };
    if (hasEnded(started)) onExit();
    else started.once('exit', onExit);
  };
  const revive = async (): Promise<void> => {
    for (let attempt = 0; ; attempt += 1) {
      if (stopping) return;
      try {
        await start();
        return;
      } catch (error) {
        logger.error({ reason: String(error) }, 'The private Redis does not start');
        await endChild();
        await delay(Math.min(200 * 2 ** attempt, 5000));
      }
    }
  };

  // A process that ends without stop(), because closing took too long or nobody caught an error, leaves no server behind.
  const endWithProcess = (): void => void child?.kill('SIGTERM');
  process.once('exit', endWithProcess);
  try {
    await start();
  } catch (error) {
    process.off('exit', endWithProcess);
    await endChild();
    throw error;
  }
  logger.info({ socketPath }, 'The private Redis is ready');
  return {
    socketPath,
    async stop() {
      stopping = true;
      process.off('exit', endWithProcess);
      await endChild();
      await reviving;
      await endChild();
    },
  };
}
