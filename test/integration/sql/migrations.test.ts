// How a database comes up to date, on both kinds of store.
import { createHash } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { schemaDifference } from '../../../script/schema-difference.js';
import {
  applyMigrations,
  MigrationError,
  migrationsDirectory,
  pendingMigrations,
} from '../../../src/infra/migrations.js';
import { openDatabase } from '../../../src/infra/postgres.js';
import { createLogger } from '../../../src/shared/logger.js';
import { startPostgres } from '../../support/postgres.js';
import { sqlStores, type OpenSqlStore } from '../../support/sql-stores.js';
import { createTemporaryDirectory, run } from '../../support/template-cache.js';

vi.setConfig({ testTimeout: 120_000 });

const logger = createLogger('silent');
const names = (await readdir(migrationsDirectory)).filter((name) => /^\d{14}_/.test(name)).toSorted();

it('leave nothing of schema.prisma out, and add nothing that it does not know', async () => {
  expect(await schemaDifference()).toBe('');
});

it('differ from schema.prisma when one is missing', async () => {
  const empty = await createTemporaryDirectory();
  await cp(join(migrationsDirectory, 'migration_lock.toml'), join(empty, 'migration_lock.toml'));
  expect(await schemaDifference(empty)).toContain('CREATE TABLE "scratchpads"');
  await rm(empty, { recursive: true });
});

describe.each(sqlStores)('on $name', (kind) => {
  let store: OpenSqlStore;
  const directories: string[] = [];

  afterEach(async () => {
    await store.close();
    for (const directory of directories.splice(0)) await rm(directory, { recursive: true });
  });

  /** The project's migrations and one more. */
  async function directoryWith(name: string, script: string): Promise<string> {
    const directory = await createTemporaryDirectory();
    directories.push(directory);
    await cp(migrationsDirectory, directory, { recursive: true });
    await mkdir(join(directory, name));
    await writeFile(join(directory, name, 'migration.sql'), script);
    return directory;
  }

  it('an empty database is brought up to date once, with the bookkeeping of prisma migrate deploy', async () => {
    store = await kind.open({ migrated: false });
    expect(await pendingMigrations(store.database)).toEqual(names);
    expect(await applyMigrations(store.database, { logger })).toEqual({ applied: names });
    expect(await pendingMigrations(store.database)).toEqual([]);
    expect(await applyMigrations(store.database, { logger })).toEqual({ applied: [] });

    const script = await readFile(join(migrationsDirectory, names[0]!, 'migration.sql'));
    const rows = await store.psql<{ migration_name: string; checksum: string; finished: boolean }>(
      'SELECT migration_name, checksum, finished_at IS NOT NULL AS finished FROM _prisma_migrations ORDER BY 1',
    );
    expect(rows.map((row) => row.migration_name)).toEqual(names);
    expect(rows[0]).toMatchObject({ checksum: createHash('sha256').update(script).digest('hex'), finished: true });
  });

  it('a migration that fails is reported with the words of the database and leaves nothing behind', async () => {
    store = await kind.open();
    const name = '29990101000000_broken';
    const broken = 'CREATE TABLE half_done (id int); INSERT INTO no_such_table VALUES (1);';
    const directory = await directoryWith(name, broken);
    const attempt = applyMigrations(store.database, { logger, directory });
    await expect(attempt).rejects.toThrow(MigrationError);
    await expect(attempt).rejects.toThrow(new RegExp(`${name}[^]*relation "no_such_table" does not exist`));
    expect(await pendingMigrations(store.database, directory)).toEqual([name]);
    expect(await store.psql(`SELECT 1 FROM pg_class WHERE relname = 'half_done'`)).toEqual([]);

    // Mended, it goes through, without a word to a tool.
    await writeFile(join(directory, name, 'migration.sql'), 'CREATE TABLE half_done (id int);');
    expect(await applyMigrations(store.database, { logger, directory })).toEqual({ applied: [name] });
    expect(await pendingMigrations(store.database, directory)).toEqual([]);
  });

  it('a migration that a killed process began is tried again', async () => {
    store = await kind.open();
    const name = '29990101000000_interrupted';
    const directory = await directoryWith(name, 'CREATE TABLE begun (id int);');
    await store.psql(`INSERT INTO _prisma_migrations (id, checksum, migration_name, applied_steps_count)
      VALUES (gen_random_uuid(), 'x', '${name}', 0)`);
    expect(await pendingMigrations(store.database, directory)).toEqual([name]);
    expect(await applyMigrations(store.database, { logger, directory })).toEqual({ applied: [name] });
  });

  it('a script with functions, comments and several statements arrives whole', async () => {
    store = await kind.open();
    const script = `-- One; two.
      CREATE FUNCTION seven() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; RETURN 7; END; $$;
      CREATE TABLE sevens (n int DEFAULT seven()); INSERT INTO sevens DEFAULT VALUES;`;
    const directory = await directoryWith('29990101000000_function', script);
    await applyMigrations(store.database, { logger, directory });
    expect(await store.psql('SELECT n FROM sevens')).toEqual([{ n: 7 }]);
  });

  it('a database that knows more than this version is left alone', async () => {
    store = await kind.open();
    await store.psql(`INSERT INTO _prisma_migrations (id, checksum, migration_name, applied_steps_count, finished_at)
      VALUES (gen_random_uuid(), 'x', '29990101000000_later', 1, now())`);
    expect(await pendingMigrations(store.database)).toEqual([]);
    expect(await applyMigrations(store.database, { logger })).toEqual({ applied: [] });
  });
});

it('a process that comes while another applies waits until that is done', async () => {
  const server = await startPostgres();
  const databaseUrl = await server.createDatabase();
  const directory = await createTemporaryDirectory();
  await cp(migrationsDirectory, directory, { recursive: true });
  const slow = '29990101000000_slow';
  await mkdir(join(directory, slow));
  await writeFile(join(directory, slow, 'migration.sql'), 'SELECT pg_sleep(2); CREATE TABLE slow (id int);');
  const databases = [
    await openDatabase({ databaseUrl, logger }),
    await openDatabase({ databaseUrl, logger }),
    await openDatabase({ databaseUrl, logger }),
  ];
  const results = await Promise.all(
    databases.map(async (database, index) => {
      await sleep(index * 500);
      return applyMigrations(database, { logger, directory });
    }),
  );
  expect(results).toEqual([{ applied: [slow] }, { applied: [] }, { applied: [] }]);
  for (const database of databases) await database.close();
  await server.close();
  await rm(directory, { recursive: true });
});

it('of several processes at once one applies and the others wait for it', async () => {
  const server = await startPostgres();
  const databaseUrl = await server.createDatabase({ migrated: false });
  const results = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const { stdout } = await run(process.execPath, ['--import', 'tsx', 'test/fixtures/apply-migrations.ts'], {
        env: { ...process.env, DATABASE_URL: databaseUrl },
      });
      return (JSON.parse(stdout) as { applied: string[] }).applied;
    }),
  );
  expect(results.toSorted((a, b) => b.length - a.length)).toEqual([names, [], []]);
  const rows = await server.query(databaseUrl, 'SELECT 1 FROM _prisma_migrations');
  expect(rows.length).toBe(names.length);
  await server.close();
});
