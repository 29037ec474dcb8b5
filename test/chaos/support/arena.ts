// Where faults are survived: two built server processes over one PostgreSQL and one Redis that loses nothing it has answered.
import { execFile } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { administratorSecret, startCluster, type Cluster, type ClusterTenant } from '../../support/cluster.js';
import { createGraphqlClient, type GraphqlClient } from '../../support/graphql-client.js';
import { scanLog } from './scan-log.js';
import { createServerSlot, type ServerSlot, type ServerSlotOptions } from './server-slot.js';

const root = resolve(import.meta.dirname, '../../..');

export interface Arena {
  readonly cluster: Cluster;
  readonly servers: readonly ServerSlot[];
  readonly folder: string;
  createTenant(name: string): Promise<ClusterTenant & { client: GraphqlClient }>;
  clientOf(server: number, secret: string): GraphqlClient;
  /** Another server over the same stores. Ended by `close`. */
  addServer(options?: { environment?: Record<string, string>; inspect?: boolean }): Promise<ServerSlot>;
  /** What cli doctor says; nothing when all is well. */
  doctor(): Promise<string>;
  /** Whether every server says that it is ready. */
  isReady(): Promise<boolean>;
  /** Ends the servers, as SIGTERM does. @returns what was wrong with them in all the time: how they ended, and what they logged */
  stopServers(): Promise<string[]>;
  close(): Promise<void>;
}

interface ArenaOptions {
  /** For logs. */
  folder: string;
  servers?: number;
  environment?: Record<string, string>;
  inspect?: boolean;
}

const readinessTimeoutMs = 5000;
const mostLinesTold = 5;

async function complaintsOf(server: ServerSlot): Promise<string[]> {
  const suspicions = scanLog(await readFile(server.logFile, 'utf8'));
  const told = suspicions
    .slice(0, mostLinesTold)
    .map(({ line, reason }) => `${server.name} ${reason}: ${line.slice(0, 1000)}`);
  if (suspicions.length > told.length) told.push(`${server.name} has ${suspicions.length} such lines`);
  return [...server.complaints, ...told];
}

const isServerReady = ({ url }: ServerSlot): Promise<boolean> =>
  fetch(`${url}/readyz`, { signal: AbortSignal.timeout(readinessTimeoutMs) }).then(
    (response) => response.ok,
    () => false,
  );

export async function startArena(options: ArenaOptions): Promise<Arena> {
  const { folder, servers: count = 2, inspect = false } = options;
  await mkdir(folder, { recursive: true });
  const cluster = await startCluster({ appendFsync: 'always' });
  const stores = {
    DATABASE_URL: cluster.databaseUrl,
    REDIS_URL: cluster.redis.url,
    ADMIN_API_KEY: administratorSecret,
  };
  const servers: ServerSlot[] = [];

  const addServer: Arena['addServer'] = async (more = {}) => {
    const slot: ServerSlotOptions = {
      name: `server-${servers.length + 1}`,
      folder,
      environment: { ...stores, ...options.environment, ...more.environment },
      inspect: more.inspect ?? inspect,
    };
    const server = await createServerSlot(slot);
    servers.push(server);
    await server.start();
    return server;
  };
  for (let index = 0; index < count; index += 1) await addServer();

  return {
    cluster,
    servers,
    folder,
    addServer,
    clientOf: (server, secret) => createGraphqlClient(servers[server]!.url, secret),
    async createTenant(name) {
      const administrator = createGraphqlClient(servers[0]!.url, administratorSecret);
      const { createUser } = await administrator.run<{ createUser: { secret: string; user: { id: string } } }>(
        'mutation ($name: String!) { createUser(input: { name: $name }) { secret user { id } } }',
        { name },
      );
      const { secret, user } = createUser;
      return { userId: user.id, secret, client: createGraphqlClient(servers[0]!.url, secret) };
    },
    doctor: () =>
      new Promise((settle) => {
        const environment = { PATH: process.env['PATH'], ...stores };
        execFile(
          process.execPath,
          [join(root, 'dist/cli.js'), 'doctor'],
          { env: environment },
          (error, stdout, stderr) =>
            settle(`${stdout}${stderr}${error && stdout + stderr === '' ? error.message : ''}`.trim()),
        );
      }),
    isReady: async () => (await Promise.all(servers.map(isServerReady))).every(Boolean),
    async stopServers() {
      await Promise.all(servers.map((server) => server.stop()));
      return (await Promise.all(servers.map(complaintsOf))).flat();
    },
    async close() {
      await Promise.all(servers.map((server) => server.kill()));
      await cluster.close();
    },
  };
}
