// Several real server processes over one real PostgreSQL and one real Redis, which can all be killed, stopped and frozen.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createGraphqlClient, type GraphqlClient } from './graphql-client.js';
import { startOwnPostgres, type ControllablePostgresServer } from './postgres.js';
import { startRedis, type TestRedis, type TestRedisOptions } from './redis.js';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const worker = fileURLToPath(new URL('../../src/worker.ts', import.meta.url));
export const administratorSecret = 'administrator-secret-of-the-tests';
const startLimitMs = 90_000;

export interface ServerProcess {
  readonly url: string;
  readonly processId: number;
  clientFor(secret: string): GraphqlClient;
  /** Everything that it logged. */
  output(): string;
  /** Ends it at once, as the kernel or an operator would. Resolves when it is gone. */
  kill(): Promise<void>;
  /** SIGTERM. @returns the exit code */
  stop(): Promise<number | null>;
}

export interface ClusterTenant {
  userId: string;
  secret: string;
}

export interface Cluster {
  postgres: ControllablePostgresServer;
  redis: TestRedis;
  databaseUrl: string;
  startServer(environment?: Record<string, string>): Promise<ServerProcess>;
  /** A process that only executes runs. */
  startWorker(environment?: Record<string, string>): Promise<ServerProcess>;
  createTenant(server: ServerProcess, name: string): Promise<ClusterTenant>;
  psql<Row extends object>(sql: string, values?: unknown[]): Promise<Row[]>;
  close(): Promise<void>;
}

export async function startCluster(options: TestRedisOptions = {}): Promise<Cluster> {
  const postgres = await startOwnPostgres();
  const redis = await startRedis(options);
  const databaseUrl = await postgres.createDatabase();
  const running = new Set<ServerProcess>();

  const startProgram = async (program: string, environment: Record<string, string>): Promise<ServerProcess> => {
    const child = spawn(process.execPath, ['--import', 'tsx', program], {
      env: {
        PATH: process.env['PATH'],
        PORT: '0',
        DATABASE_URL: databaseUrl,
        REDIS_URL: redis.url,
        ADMIN_API_KEY: administratorSecret,
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { url, output } = await untilItListens(child);
    const end = async (signal: NodeJS.Signals): Promise<number | null> => {
      running.delete(server);
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      child.kill(signal);
      const [code] = (await once(child, 'exit')) as [number | null];
      return code;
    };
    const server: ServerProcess = {
      url,
      processId: child.pid ?? 0,
      clientFor: (secret) => createGraphqlClient(url, secret),
      output,
      kill: async () => void (await end('SIGKILL')),
      stop: () => end('SIGTERM'),
    };
    running.add(server);
    return server;
  };

  return {
    postgres,
    redis,
    databaseUrl,
    startServer: (environment = {}) => startProgram(main, environment),
    startWorker: (environment = {}) => startProgram(worker, environment),
    async createTenant(server, name) {
      const { createUser } = await server
        .clientFor(administratorSecret)
        .run<{ createUser: { secret: string; user: { id: string } } }>(
          'mutation ($name: String!) { createUser(input: { name: $name }) { secret user { id } } }',
          { name },
        );
      return { userId: createUser.user.id, secret: createUser.secret };
    },
    psql: (sql, values) => postgres.query(databaseUrl, sql, values),
    async close() {
      redis.thaw();
      await Promise.all([...running].map((server) => server.kill()));
      await redis.stop();
      await postgres.close();
    },
  };
}

async function untilItListens(child: ChildProcess): Promise<{ url: string; output: () => string }> {
  let text = '';
  const url = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => {
      // Nobody else knows of it yet.
      child.kill('SIGKILL');
      reject(new Error(`the server did not start:\n${text}`));
    }, startLimitMs);
    const read = (chunk: Buffer): void => {
      text += chunk.toString();
      const found = /"url":"([^"]+)","msg":"listening"/.exec(text)?.[1];
      if (found === undefined) return;
      clearTimeout(timer);
      resolve(found);
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}:\n${text}`)));
  });
  return { url, output: () => text };
}
