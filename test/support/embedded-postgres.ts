// Data directories for tests with the embedded PostgreSQL inside, migrated, without the seconds that making one takes.
import { readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { applyMigrations } from '../../src/infra/migrations.js';
import { openDatabase } from '../../src/infra/postgres.js';
import { createLogger } from '../../src/shared/logger.js';
import { cachedTemplate, createTemporaryDirectory, run } from './template-cache.js';

export interface EmbeddedDirectory {
  dataDirectory: string;
  remove(): Promise<void>;
}

/** A fresh data directory whose embedded database is up to date and empty. Nothing has it open. */
export async function prepareEmbeddedDirectory(): Promise<EmbeddedDirectory> {
  const template = await cachedTemplate(`pglite-${await pgliteVersion()}`, async (dataDirectory) => {
    const logger = createLogger('silent');
    const database = await openDatabase({ dataDirectory, logger });
    await applyMigrations(database, { logger });
    await database.close();
  });
  const dataDirectory = await createTemporaryDirectory();
  await run('cp', ['-R', join(template, 'postgres'), dataDirectory]);
  return { dataDirectory, remove: () => rm(dataDirectory, { recursive: true, force: true }) };
}

async function pgliteVersion(): Promise<string> {
  const main = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const manifest = await readFile(join(dirname(main), '../package.json'), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
