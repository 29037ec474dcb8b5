// Processes that execute runs, which can be killed, and the side that starts runs and looks at them.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { openDatabase, type Database } from '../../src/infra/postgres.js';
import { openRedis, type RedisConnections } from '../../src/infra/redis.js';
import { createRunCancellation, type RunCancellation } from '../../src/research/run-cancellation.js';
import type { RunEventRecord } from '../../src/research/run-event.js';
import { createRunRuntime, type RunRuntime } from '../../src/research/run-runtime.js';
import { createRunStore, type RunRow, type RunStore } from '../../src/research/run-store.js';
import { createId } from '../../src/shared/ids.js';
import { createLogger } from '../../src/shared/logger.js';
import { startOwnPostgres, type ControllablePostgresServer } from './postgres.js';
import { startRedis, type TestRedis } from './redis.js';

const program = fileURLToPath(new URL('../fixtures/execute-runs.ts', import.meta.url));
const startLimitMs = 30_000;
/** Quicker than in earnest, so that tests are. */
const timing = { lockMs: 6000, stalledCheckMs: 2000, sweepMs: 2000 };

export interface RunProcess {
  readonly processId: number;
  /** Everything that it logged. */
  output(): string;
  /** SIGKILL. Resolves when it is gone. */
  kill(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** SIGTERM. @returns the exit code */
  stop(): Promise<number | null>;
}

export interface RunProcesses {
  postgres: ControllablePostgresServer;
  redis: TestRedis;
  connections: RedisConnections;
  database: Database;
  runStore: RunStore;
  /** Starts and watches runs, and executes none. */
  runtime: RunRuntime;
  cancellation: RunCancellation;
  start(runWorkers: number): Promise<RunProcess>;
  /** A run that waits on a thread, by default a new one of a new owner; `queued: false` only in SQL. */
  startRun(task: string, options?: { threadId?: string; ownerId?: string; queued?: boolean }): Promise<RunRow>;
  row(run: Pick<RunRow, 'id'>): Promise<RunRow | null>;
  /** What was begun and ended, in order. */
  log(): Promise<{ what: string; runId: string; atMs: number }[]>;
  /** The whole stream of a run, until it completes. */
  stream(run: RunRow): Promise<RunEventRecord[]>;
  /** Keys that hold something of one of these runs. */
  keysOf(runs: readonly RunRow[]): Promise<string[]>;
  close(): Promise<void>;
}

export async function startRunProcesses(): Promise<RunProcesses> {
  const logger = createLogger(process.env['TEST_LOG_LEVEL'] ?? 'silent');
  const now = (): Date => new Date();
  const postgres = await startOwnPostgres();
  const redis = await startRedis({ appendFsync: 'always' });
  const databaseUrl = await postgres.createDatabase();
  const database = await openDatabase({ databaseUrl, logger });
  const { prisma } = database;
  const connections = await openRedis({ redisUrl: redis.url }, logger);
  const runStore = createRunStore({ prisma, now });
  const runtime = createRunRuntime({
    prisma,
    runStore,
    redis: connections,
    createExecutor: () => ({ execute: () => Promise.reject(new Error('not here')), cancelWorker: () => false }),
    limits: { runWorkers: 0, runMaxSeconds: 600, runEventsTtlSeconds: 100 },
    hooks: { runStarted: () => undefined, runEnded: () => undefined, runLost: () => undefined },
    now,
    logger,
    timing,
  });
  runtime.start();
  const admin = redis.client();
  const running = new Set<RunProcess>();

  return {
    postgres,
    redis,
    connections,
    database,
    runStore,
    runtime,
    cancellation: createRunCancellation({ prisma, runStore, dispatcher: runtime.dispatcher, logger }),

    async start(runWorkers) {
      const child = spawn(process.execPath, ['--import', 'tsx', program], {
        env: {
          PATH: process.env['PATH'],
          DATABASE_URL: databaseUrl,
          REDIS_URL: redis.url,
          RUN_WORKERS: String(runWorkers),
          TIMING: JSON.stringify(timing),
          TEST_LOG_LEVEL: 'warn',
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const output = await untilReady(child);
      const end = async (signal: NodeJS.Signals): Promise<number | null> => {
        running.delete(started);
        if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
        child.kill(signal);
        const [code] = (await once(child, 'exit')) as [number | null];
        return code;
      };
      const started: RunProcess = {
        processId: child.pid ?? 0,
        output,
        kill: async () => void (await end('SIGKILL')),
        freeze: () => void child.kill('SIGSTOP'),
        thaw: () => void child.kill('SIGCONT'),
        stop: () => end('SIGTERM'),
      };
      running.add(started);
      return started;
    },

    async startRun(task, { threadId, ownerId = createId('user'), queued = true } = {}) {
      await prisma.user.upsert({ where: { id: ownerId }, update: {}, create: { id: ownerId, name: 'Ada' } });
      const onThread = threadId ?? createId('thread');
      if (threadId === undefined) await prisma.thread.create({ data: { id: onThread, ownerId } });
      const run = await prisma.run.create({
        data: {
          id: createId('run'),
          ownerId,
          threadId: onThread,
          kind: 'RESEARCH',
          task,
          taskMessageId: createId('message'),
          maxTurns: 24,
        },
      });
      if (queued) await runtime.dispatcher.enqueue(run);
      return run;
    },

    row: ({ id }) => runStore.find(id),

    async log() {
      const lines = await admin.lrange('test:log', 0, -1);
      return lines.map((line) => {
        const [what = '', runId = '', at] = line.split(' ');
        return { what, runId, atMs: Number(at) };
      });
    },

    async stream({ id, ownerId, parentRunId }) {
      const events: RunEventRecord[] = [];
      const subscription = await runtime.events.subscribe({ runId: id, ownerId, parentRunId }, { after: '' });
      for await (const event of subscription) events.push(event);
      return events;
    },

    async keysOf(runs) {
      const keys = await admin.keys('*');
      return keys.filter((key) => runs.some(({ id }) => key.includes(id))).toSorted();
    },

    async close() {
      redis.thaw();
      await Promise.all([...running].map((process) => process.kill()));
      await runtime.close();
      await connections.close();
      await database.close();
      await redis.stop();
      await postgres.close();
    },
  };
}

async function untilReady(child: ChildProcess): Promise<() => string> {
  let text = '';
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`the process did not start:\n${text}`)), startLimitMs);
    const read = (chunk: Buffer): void => {
      text += chunk.toString();
      if (!text.includes('ready\n')) return;
      clearTimeout(timer);
      resolve();
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('exit', (code) => reject(new Error(`the process ended with ${code}:\n${text}`)));
  });
  return () => text;
}
