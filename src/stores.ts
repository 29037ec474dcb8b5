// Opens the two stores and, for embedded ones, locks their folder and brings the database up to date.
import type { Config } from './config.js';
import { lockDataDirectory } from './infra/data-directory.js';
import { applyMigrations } from './infra/migrations.js';
import { openDatabase, type Database } from './infra/postgres.js';
import { openRedis, type RedisConnections } from './infra/redis.js';
import { DomainError } from './shared/errors.js';
import type { Logger } from './shared/logger.js';
import { isSqlUnavailable } from './shared/sql-errors.js';

/** Opened things, closed in the reverse order; one that fails to close does not keep the others open. */
export interface Stores<Opened> {
  readonly stores: Opened;
  readonly close: () => Promise<void>;
}

export interface StoreOptions {
  logger: Logger;
  /** Called once for each SQL statement. */
  onStatement?: (() => void) | undefined;
  /** Called when another machine took the data directory over because this process stood still: it must not touch it again. */
  onDirectoryLost?: (() => void) | undefined;
}

const lock = (config: Config, { onDirectoryLost }: StoreOptions): ReturnType<typeof lockDataDirectory> =>
  lockDataDirectory(config.dataDirectory, onDirectoryLost ? { onLost: onDirectoryLost } : {});

type Open = <Thing>(thing: Promise<Thing>, close: (thing: Thing) => Promise<void>) => Promise<Thing>;

/** Runs `open` and remembers what it opened; when it fails half-way, what is open already is closed again. */
async function openTogether<Opened>(open: (keep: Open) => Promise<Opened>): Promise<Stores<Opened>> {
  const closers: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const closeOne of closers.splice(0).toReversed()) await closeOne().catch(() => {});
  };
  const keep: Open = async (opening, closeThing) => {
    const thing = await opening;
    closers.push(() => closeThing(thing));
    return thing;
  };
  try {
    return { stores: await open(keep), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openSql(keep: Open, config: Config, options: StoreOptions): Promise<Database> {
  const where =
    config.databaseUrl === undefined ? { dataDirectory: config.dataDirectory } : { databaseUrl: config.databaseUrl };
  const database = await keep(openDatabase({ ...options, ...where }), (opened) => opened.close());
  if (database.embedded) await applyMigrations(database, options);
  return database;
}

/** Opens the database alone, for what needs no Redis. @throws Error when another process uses the data directory */
export const openDatabaseOnly = (config: Config, options: StoreOptions): Promise<Stores<Database>> =>
  openTogether(async (keep) => {
    if (config.databaseUrl === undefined) {
      await keep(lock(config, options), (held) => held.release());
    }
    return await openSql(keep, config, options);
  });

export interface OpenStores {
  database: Database;
  redis: RedisConnections;
}

/** Opens both stores, side by side. @throws Error when another process uses the data directory */
export const openStores = (config: Config, options: StoreOptions): Promise<Stores<OpenStores>> =>
  openTogether(async (keep) => {
    if (config.databaseUrl === undefined || config.redisUrl === undefined) {
      await keep(lock(config, options), (held) => held.release());
    }
    const where =
      config.redisUrl === undefined ? { dataDirectory: config.dataDirectory } : { redisUrl: config.redisUrl };
    const [redis, database] = await Promise.all([
      keep(openRedis(where, options.logger), (opened) => opened.close()),
      openSql(keep, config, options),
    ]);
    return { database, redis };
  });

/** Drivers and Prisma put a story around what matters to an operator. */
const lastLineOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).trim().split('\n').at(-1) ?? '';

/** In an operator's words, and only for operators: what went wrong, and where to look when a store is the reason. */
export function explainFailure(error: unknown): string {
  if (error instanceof DomainError && error.code === 'UNAVAILABLE') {
    const reason = error.cause === undefined ? '' : ` (${lastLineOf(error.cause)})`;
    return `Redis does not answer: check REDIS_URL, and whether the server runs${reason}.`;
  }
  if (isSqlUnavailable(error)) {
    return `SQL does not answer: check DATABASE_URL, and whether the server runs (${lastLineOf(error)}).`;
  }
  if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
    return `Another process listens at this address already (${error.message}): end it, or set PORT to another one.`;
  }
  return error instanceof Error ? error.message.trim() : String(error);
}
