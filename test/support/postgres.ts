// A real PostgreSQL server for tests: its own folder, port and life, so that a test may stop, freeze or kill it.
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chown, readFile, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { applyMigrations } from '../../src/infra/migrations.js';
import { openDatabase } from '../../src/infra/postgres.js';
import { createLogger } from '../../src/shared/logger.js';
import { findPostgres, type PostgresBinaries } from './postgres-binaries.js';
import { cachedTemplate, createTemporaryDirectory, run } from './template-cache.js';

export interface PostgresServer {
  /** The URL of a fresh database, up to date and empty (`migrated: false`: without a table). */
  createDatabase(options?: { migrated?: boolean }): Promise<string>;
  /** Runs SQL as an administrator would in psql, on a connection of its own. */
  query<Row extends object>(databaseUrl: string, sql: string, values?: unknown[]): Promise<Row[]>;
  close(): Promise<void>;
}

export interface ControllablePostgresServer extends PostgresServer {
  /** `immediate` is a crash: no checkpoint, no goodbye. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  /** Again on the same port, with the same data. */
  start(): Promise<void>;
  /** Every process of the server stands still: connections stay open and get no answer. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Starts it again so that it outlives this process, at the same address with the same data. @returns its folder and the command that ends it */
  leaveRunning(): Promise<{ directory: string; stopCommand: string }>;
}

const startTimeoutMs = 20_000;

/** A server for this test file: TEST_DATABASE_URL where it is set, otherwise one of its own. */
export async function startPostgres(): Promise<PostgresServer> {
  const given = process.env['TEST_DATABASE_URL'];
  return given ? useServer(given) : startOwnPostgres();
}

/** A server of its own, for tests that stop or freeze it. Its data is on disk without fsync. */
export async function startOwnPostgres(): Promise<ControllablePostgresServer> {
  const binaries = findPostgres();
  const template = await cachedTemplate(`postgres-${binaries.version}`, (draft) => buildCluster(binaries, draft));
  const directory = await createTemporaryDirectory();
  if (binaries.runAs) await chown(directory, binaries.runAs.uid, binaries.runAs.gid);
  await run('cp', ['-Rp', join(template, 'data'), join(directory, 'data')]);
  const server = await startProcess(binaries, directory, await freePort());
  const databases = manageDatabases(server.url, 'TEMPLATE migrated');
  let isLeft = false;
  return {
    ...databases,
    stop: (mode) => server.stop(mode),
    start: () => server.start(),
    freeze: () => server.signalAll('SIGSTOP'),
    thaw: () => server.signalAll('SIGCONT'),
    leaveRunning: async () => {
      isLeft = true;
      return { directory, stopCommand: await server.startDetached() };
    },
    close: async () => {
      if (isLeft) return;
      await server.end();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function useServer(url: string): Promise<PostgresServer> {
  const databases = manageDatabases(url);
  return {
    ...databases,
    createDatabase: async ({ migrated = true } = {}) => {
      const fresh = await databases.createDatabase({ migrated: false });
      if (migrated) await migrate(fresh);
      return fresh;
    },
    close: () => databases.dropAll(),
  };
}

function manageDatabases(serverUrl: string, template = '') {
  const names: string[] = [];
  const administrate = (sql: string) => query(serverUrl, sql);
  return {
    query,
    createDatabase: async ({ migrated = true }: { migrated?: boolean } = {}): Promise<string> => {
      const name = `scratchpad_test_${randomUUID().replaceAll('-', '')}`;
      await administrate(`CREATE DATABASE ${name} ${migrated ? template : ''}`);
      names.push(name);
      return databaseUrl(serverUrl, name);
    },
    dropAll: async () => {
      for (const name of names) await administrate(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

async function query<Row extends object>(url: string, sql: string, values: unknown[] = []): Promise<Row[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(sql, values.length > 0 ? values : undefined)).rows;
  } finally {
    await client.end();
  }
}

function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** A stopped cluster with a database `migrated`, to be copied. */
async function buildCluster(binaries: PostgresBinaries, directory: string): Promise<void> {
  if (binaries.runAs) await chown(directory, binaries.runAs.uid, binaries.runAs.gid);
  await run(
    join(binaries.directory, 'initdb'),
    [
      `--pgdata=${join(directory, 'data')}`,
      '--username=postgres',
      '--auth=trust',
      '--encoding=UTF8',
      '--locale=C',
      '--wal-segsize=1',
      '--no-sync',
    ],
    { ...binaries.runAs, cwd: directory },
  );
  const server = await startProcess(binaries, directory, await freePort());
  try {
    await query(server.url, 'CREATE DATABASE migrated');
    await migrate(databaseUrl(server.url, 'migrated'));
  } finally {
    await server.stop();
    await server.end();
  }
}

async function migrate(url: string): Promise<void> {
  const logger = createLogger('silent');
  const database = await openDatabase({ databaseUrl: url, logger });
  try {
    await applyMigrations(database, { logger });
  } finally {
    await database.close();
  }
}

/**
 * The shell lives as long as its standard input: it ends the server even when the test process is killed, and also when
 * the server stands still.
 */
const keeper = [
  '"$@" & server=$!',
  'cat > /dev/null',
  'kill -CONT $server $(pgrep -P $server) 2> /dev/null',
  'kill -INT $server 2> /dev/null',
  'wait $server',
].join('; ');

async function startProcess(binaries: PostgresBinaries, directory: string, port: number) {
  const data = join(directory, 'data');
  const url = `postgresql://postgres@127.0.0.1:${port}/postgres`;
  const options = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: directory,
    fsync: 'off',
    max_connections: 100,
    shared_buffers: '32MB',
    // Not UTC on purpose: instants must not depend on the server's zone.
    timezone: 'Asia/Kathmandu',
  };
  const settings = Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  let keeperProcess: ChildProcess | undefined;

  async function start(): Promise<void> {
    const command = [join(binaries.directory, 'postgres'), '-D', data, ...settings];
    const child = spawn('/bin/sh', ['-c', keeper, 'sh', ...command], {
      ...binaries.runAs,
      cwd: directory,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    keeperProcess = child;
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(-4000)));
    await waitUntilReady(url, () => log);
  }

  async function stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    const pid = await postmasterPid(data);
    if (pid !== undefined) process.kill(pid, mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
    await end();
  }

  async function end(): Promise<void> {
    if (keeperProcess === undefined) return;
    const exited = keeperProcess.exitCode === null ? once(keeperProcess, 'exit') : undefined;
    keeperProcess.stdin?.end();
    await exited;
    keeperProcess = undefined;
  }

  async function startDetached(): Promise<string> {
    await stop();
    const program = join(binaries.directory, 'postgres');
    spawn(program, ['-D', data, ...settings], {
      ...binaries.runAs,
      cwd: directory,
      stdio: 'ignore',
      detached: true,
    }).unref();
    await waitUntilReady(url, () => `see ${data}`);
    return `kill -INT ${await postmasterPid(data)}`;
  }

  await start();
  return {
    url,
    start,
    stop,
    end,
    startDetached,
    signalAll: async (signal: NodeJS.Signals): Promise<void> => {
      const postmaster = (await postmasterPid(data))!;
      const { stdout } = await run('pgrep', ['-P', String(postmaster)]);
      for (const pid of [postmaster, ...stdout.trim().split('\n').map(Number)]) process.kill(pid, signal);
    },
  };
}

async function waitUntilReady(url: string, readLog: () => string): Promise<void> {
  const deadline = Date.now() + startTimeoutMs;
  for (;;) {
    try {
      await query(url, 'SELECT 1');
      return;
    } catch (error) {
      if (Date.now() > deadline) throw new Error(`PostgreSQL did not start: ${readLog()}`, { cause: error });
      await sleep(25);
    }
  }
}

async function postmasterPid(data: string): Promise<number | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '');
  return text === '' ? undefined : Number(text.split('\n')[0]);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
