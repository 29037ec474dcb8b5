// What every row needs: a PostgreSQL and a Redis of its own on loopback, servers over them, and one tenant.
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startOwnPostgres } from '../test/support/postgres.js';
import { startRedis, type TestRedis } from '../test/support/redis.js';
import { startServer, type ServerProcess } from './server-process.js';

export interface World {
  readonly redis: TestRedis;
  /** Where servers write their logs and keep their data. */
  readonly directory: string;
  readonly tenant: { userId: string; secret: string };
  /** Our server as an operator runs it: dist/main.js, NODE_ENV=production, every setting at its default. */
  startOurs(environment?: Record<string, string>): Promise<ServerProcess>;
  startBaseline(name: 'mercurius' | 'yoga' | 'relay'): Promise<ServerProcess>;
  /** One operation as the tenant. @throws Error with what the server answered */
  run<Data>(server: ServerProcess, query: string, variables?: object, secret?: string): Promise<Data>;
  createScratchpad(server: ServerProcess): Promise<string>;
  close(): Promise<void>;
}

export const mainProgram = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const baselineProgram = (name: string): string => fileURLToPath(new URL(`baselines/${name}.js`, import.meta.url));
const administratorSecret = 'administrator-secret-of-the-bench';

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/** @param nodeOptions for our servers, such as --cpu-prof */
export async function createWorld(nodeOptions: readonly string[] = []): Promise<World> {
  const directory = await mkdtemp(join(tmpdir(), 'scratchpad-bench-'));
  const [postgres, redis] = await Promise.all([startOwnPostgres(), startRedis()]);
  const databaseUrl = await postgres.createDatabase();
  const stores = { DATABASE_URL: databaseUrl, REDIS_URL: redis.url };
  const servers: ServerProcess[] = [];
  const keep = async (starting: Promise<ServerProcess>): Promise<ServerProcess> => {
    const server = await starting;
    servers.push(server);
    return server;
  };

  /** The one that made the tenant: the first who wants one of ours gets it. */
  let spare: ServerProcess | undefined;
  const startOurs: World['startOurs'] = async (environment) => {
    if (spare && environment === undefined) {
      const given = spare;
      spare = undefined;
      return given;
    }
    return keep(
      startServer({
        program: mainProgram,
        port: await freePort(),
        environment: {
          ...stores,
          ADMIN_API_KEY: administratorSecret,
          // More than are allowed by default are written within a round; the check itself stays the same.
          MAX_ENTRIES: '100000000',
          ...environment,
        },
        logFile: join(directory, 'ours.log'),
        nodeOptions,
      }),
    );
  };

  const run: World['run'] = async (server, query, variables = {}, secret = tenant.secret) => {
    const response = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await response.json()) as { data?: unknown; errors?: unknown };
    if (data == null || errors !== undefined) throw new Error(JSON.stringify(errors));
    return data as never;
  };

  const tenant = { userId: '', secret: '' };
  spare = await startOurs();
  const created = await run<{ createUser: { secret: string; user: { id: string } } }>(
    spare,
    'mutation { createUser(input: { name: "Bench" }) { secret user { id } } }',
    {},
    administratorSecret,
  );
  tenant.userId = created.createUser.user.id;
  tenant.secret = created.createUser.secret;

  return {
    redis,
    directory,
    tenant,
    startOurs,
    startBaseline: (name) =>
      keep(
        startServer({
          program: baselineProgram(name),
          environment: { ...stores, BENCH_OWNER: tenant.userId },
          logFile: join(directory, `${name}.log`),
        }),
      ),
    run,
    async createScratchpad(server) {
      const { createThread } = await run<{ createThread: { thread: { id: string } } }>(
        server,
        'mutation { createThread(input: {}) { thread { id } } }',
      );
      const { createScratchpad } = await run<{ createScratchpad: { scratchpad: { id: string } } }>(
        server,
        'mutation ($threadId: ID!) { createScratchpad(input: { threadId: $threadId }) { scratchpad { id } } }',
        { threadId: createThread.thread.id },
      );
      return createScratchpad.scratchpad.id;
    },
    async close() {
      await Promise.all(servers.map((server) => server.stop()));
      await Promise.all([postgres.close(), redis.stop()]);
      await rm(directory, { recursive: true, force: true });
    },
  };
}
