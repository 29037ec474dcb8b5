// Opens the two stores and, for embedded ones, locks their folder and brings the database up to date.
import type { Config } from './config.js';
import { lockDataDirectory } from './infra/data-directory.js';
import { applyMigrations } from './infra/migrations.js';
import { openDatabase, type Database } from './infra/postgres.js';
import { openRedis, type RedisConnections } from './infra/redis.js';
import type { Logger } from './shared/logger.js';

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
