// The SQL store behind one Prisma client: a PostgreSQL server, or PostgreSQL inside this process (PGlite) under a folder.
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PGlite } from '@electric-sql/pglite';
import { PrismaPg } from '@prisma/adapter-pg';
import type { SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import { Pool, type ClientBase } from 'pg';
import { PrismaPGlite } from 'pglite-prisma-adapter';
import { PrismaClient } from '../generated/prisma/client.js';
import type { Logger } from '../shared/logger.js';
import { countStatements } from './sql-adapters.js';

const maxConnections = 10;
const connectTimeoutMs = 3000;
const statementTimeoutMs = 4000;
/** Above the server's own limit: it speaks only when the network swallows the answer. */
const answerTimeoutMs = 5000;
const closeTimeoutMs = 3000;

/** What is behind the client, for those who must speak to the database without it (migrations). */
export type DatabaseSource = { readonly databaseUrl: string } | { readonly pglite: PGlite };

export interface Database {
  readonly prisma: PrismaClient;
  /** PGlite has one connection: a query on `prisma` inside a `$transaction` of it waits for itself. */
  readonly embedded: boolean;
  readonly source: DatabaseSource;
  /** Resolves when the database answers. Never waits longer than a few seconds. */
  ping(): Promise<void>;
  /** Ends every connection; what is under way may still finish, for a few seconds. */
  close(): Promise<void>;
}

interface SharedOptions {
  logger: Pick<Logger, 'warn'>;
  /** Called once for each SQL statement that goes to the database. */
  onStatement?: (() => void) | undefined;
}

export type DatabaseOptions = SharedOptions & ({ databaseUrl: string } | { dataDirectory: string });

/**
 * Opens the database. A server is not asked anything yet: it may be away at this moment.
 * For `dataDirectory` the caller holds the lock of that folder: two processes in it would destroy it.
 */
export const openDatabase = (options: DatabaseOptions): Promise<Database> =>
  'databaseUrl' in options ? openServer(options) : openEmbedded(options);

async function openServer({
  databaseUrl,
  logger,
  onStatement,
}: SharedOptions & { databaseUrl: string }): Promise<Database> {
  const pool = new Pool({
    connectionString: databaseUrl,
    application_name: 'scratchpad',
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: answerTimeoutMs,
    keepAlive: true,
    // oxlint-disable-next-line typescript/no-misused-promises -- the pool waits for it; its types do not know yet
    onConnect: prepareSession,
  });
  // A connection that is dropped while idle must not end the process; the pool opens another one.
  // The error itself carries the whole client, with the key that cancels its queries.
  pool.on('error', ({ message }) => logger.warn({ reason: message }, 'lost a connection to PostgreSQL'));
  const prisma = createClient(new PrismaPg(pool), onStatement);
  return {
    prisma,
    embedded: false,
    source: { databaseUrl },
    ping: () => ping(prisma),
    close: async () => {
      await prisma.$disconnect();
      await Promise.race([pool.end(), sleep(closeTimeoutMs, undefined, { ref: false })]);
    },
  };
}

/**
 * The driver adapters read and write instants as if the session were in UTC, whatever the server's default is.
 * SET instead of start-up parameters, because connection poolers refuse those.
 */
const prepareSession = async (client: ClientBase): Promise<void> => {
  await client.query(
    `SET TIME ZONE 'UTC'; SET statement_timeout = ${statementTimeoutMs};` +
      ` SET idle_in_transaction_session_timeout = ${2 * statementTimeoutMs}`,
  );
};

async function openEmbedded({
  dataDirectory,
  onStatement,
}: SharedOptions & { dataDirectory: string }): Promise<Database> {
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  const cluster = join(dataDirectory, 'postgres');
  if (!existsSync(cluster)) await createCluster(cluster);
  const pglite = await PGlite.create(cluster);
  await pglite.exec(`SET TIME ZONE 'UTC'`);
  const prisma = createClient(new PrismaPGlite(pglite), onStatement);
  return {
    prisma,
    embedded: true,
    source: { pglite },
    ping: () => ping(prisma),
    close: async () => {
      await prisma.$disconnect();
      if (!pglite.closed) await pglite.close();
    },
  };
}

/** Making one takes seconds, and a process that is killed meanwhile must not leave half of one behind. */
async function createCluster(path: string): Promise<void> {
  const draft = `${path}.new`;
  await rm(draft, { recursive: true, force: true });
  const pglite = await PGlite.create(draft);
  await pglite.close();
  await rename(draft, path);
}

const createClient = (
  adapter: SqlMigrationAwareDriverAdapterFactory,
  onStatement: (() => void) | undefined,
): PrismaClient =>
  new PrismaClient({
    adapter: onStatement ? countStatements(adapter, onStatement) : adapter,
    errorFormat: 'minimal',
    transactionOptions: { maxWait: connectTimeoutMs, timeout: statementTimeoutMs },
  });

async function ping(prisma: PrismaClient): Promise<void> {
  await prisma.$queryRaw`SELECT 1`;
}
