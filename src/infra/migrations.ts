// Brings a database up to date with prisma/migrations, in the bookkeeping of `prisma migrate deploy`.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { MigrationList } from '@prisma/schema-engine-wasm';
import { Client } from 'pg';
import type { Logger } from '../shared/logger.js';
import type { Database, DatabaseSource } from './postgres.js';

/** The package's own migrations: at the same place seen from src and from dist. */
export const migrationsDirectory = fileURLToPath(new URL('../../prisma/migrations', import.meta.url));

/** Any number that nobody else locks in this database. */
const lockKey = 7_206_914_553;
const lockPollMs = 200;
const lockTimeoutMs = 300_000;

type MigrationTarget = Pick<Database, 'prisma' | 'source'>;

interface AppliedMigration {
  name: string;
  finished: boolean;
}

/** A migration that the database refused, with its words. Nothing of the migration was kept: a script is one transaction. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
}

/**
 * The names of the migrations that the database still lacks, oldest first. Loads no engine, so that a start with nothing
 * to do is fast. A migration that began and did not end counts as lacking.
 */
export async function pendingMigrations(
  { prisma }: Pick<MigrationTarget, 'prisma'>,
  directory = migrationsDirectory,
): Promise<string[]> {
  const applied = await readHistory(prisma);
  const finished = new Set(applied.filter((migration) => migration.finished).map((migration) => migration.name));
  return (await migrationNames(directory)).filter((name) => !finished.has(name));
}

/**
 * Applies what is pending and tells the names. Of several processes at once, one applies and the others wait for it.
 * A migration that failed or was interrupted before is tried again.
 * @throws MigrationError when the database refuses a migration
 */
export async function applyMigrations(
  target: MigrationTarget,
  { logger, directory = migrationsDirectory }: { logger: Pick<Logger, 'info'>; directory?: string },
): Promise<{ applied: string[] }> {
  if ((await pendingMigrations(target, directory)).length === 0) return { applied: [] };
  return withMigrationLock(target.source, logger, async () => {
    const pending = await pendingMigrations(target, directory);
    if (pending.length === 0) return { applied: [] };
    try {
      const applied = await runEngine(target.source, directory, await unfinishedMigrations(target));
      logger.info({ applied }, 'applied SQL migrations');
      return { applied };
    } catch (error) {
      const [name] = await unfinishedMigrations(target);
      if (name === undefined) throw error;
      const words = error instanceof Error ? error.message : String(error);
      throw new MigrationError(
        `The SQL migration ${name} failed and left nothing behind. Mend its cause and start again: ${words}`,
        { cause: error },
      );
    }
  });
}

const unfinishedMigrations = async ({ prisma }: MigrationTarget): Promise<string[]> =>
  (await readHistory(prisma)).filter(({ finished }) => !finished).map(({ name }) => name);

/** @param interrupted began once and did not end: they count as rolled back, which their transaction was */
async function runEngine(source: DatabaseSource, directory: string, interrupted: string[]): Promise<string[]> {
  const { withSchemaEngine } = await import('./schema-engine.js');
  return withSchemaEngine(source, async (engine) => {
    for (const migrationName of interrupted) await engine.markMigrationRolledBack({ migrationName });
    const { appliedMigrationNames } = await engine.applyMigrations({
      migrationsList: await readMigrations(directory),
      filters: { externalTables: [], externalEnums: [] },
    });
    return appliedMigrationNames;
  });
}

async function readHistory(prisma: MigrationTarget['prisma']): Promise<AppliedMigration[]> {
  const [table] = await prisma.$queryRaw<{ found: boolean }[]>`
    SELECT to_regclass('_prisma_migrations') IS NOT NULL AS found`;
  if (!table?.found) return [];
  return prisma.$queryRaw<AppliedMigration[]>`
    SELECT migration_name AS name, finished_at IS NOT NULL AS finished
    FROM _prisma_migrations WHERE rolled_back_at IS NULL ORDER BY started_at`;
}

async function migrationNames(directory: string): Promise<string[]> {
  const children = await readdir(directory, { withFileTypes: true });
  return children
    .filter((child) => child.isDirectory())
    .map((child) => child.name)
    .sort();
}

/** The folder in the form that the schema engine takes. */
export async function readMigrations(directory: string): Promise<MigrationList> {
  const scripts = (await migrationNames(directory)).map(async (name) => ({
    path: name,
    migrationFile: {
      path: 'migration.sql',
      content: { tag: 'ok' as const, value: await readFile(join(directory, name, 'migration.sql'), 'utf8') },
    },
  }));
  return {
    baseDir: directory,
    lockfile: {
      path: 'migration_lock.toml',
      content: await readFile(join(directory, 'migration_lock.toml'), 'utf8'),
    },
    shadowDbInitScript: '',
    migrationDirectories: await Promise.all(scripts),
  };
}

/** The engine has a lock too, but its waiters give up after ten seconds. PGlite has one user: this process. */
async function withMigrationLock<Result>(
  source: DatabaseSource,
  logger: Pick<Logger, 'info'>,
  work: () => Promise<Result>,
): Promise<Result> {
  if ('pglite' in source) return work();
  const client = new Client({ connectionString: source.databaseUrl, connectionTimeoutMillis: 10_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const deadline = Date.now() + lockTimeoutMs;
    for (let attempt = 0; !(await tryLock(client)); attempt += 1) {
      if (attempt === 0) logger.info('another process applies SQL migrations: waiting for it');
      if (Date.now() > deadline)
        throw new MigrationError('Another process has been applying SQL migrations for too long.');
      await sleep(lockPollMs);
    }
    return await work();
  } finally {
    // The lock is the session's: it goes with the connection, also when this process is killed.
    await client.end();
  }
}

async function tryLock(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [lockKey]);
  return rows[0]?.locked === true;
}
