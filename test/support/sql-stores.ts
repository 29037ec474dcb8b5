// The two kinds of SQL store, for tests that must hold on both: `describe.each(sqlStores)('on $name', (kind) => …)`.
import { rm } from 'node:fs/promises';
import { openDatabase, type Database } from '../../src/infra/postgres.js';
import { createLogger } from '../../src/shared/logger.js';
import { prepareEmbeddedDirectory } from './embedded-postgres.js';
import { startPostgres } from './postgres.js';
import { createTemporaryDirectory } from './template-cache.js';

export interface OpenSqlStore {
  database: Database;
  /** Statements sent through `database` since this was last called. */
  takeStatementCount(): number;
  /** SQL as an administrator types it, past Prisma. */
  psql<Row extends object>(sql: string): Promise<Row[]>;
  close(): Promise<void>;
}

interface SqlStore {
  name: string;
  open(options?: { migrated?: boolean }): Promise<OpenSqlStore>;
}

const logger = createLogger('silent');

function counter() {
  let count = 0;
  return {
    onStatement: () => {
      count += 1;
    },
    take: () => {
      const taken = count;
      count = 0;
      return taken;
    },
  };
}

export const sqlStores: SqlStore[] = [
  {
    name: 'a PostgreSQL server',
    open: async (options) => {
      const server = await startPostgres();
      const databaseUrl = await server.createDatabase(options);
      const { onStatement, take } = counter();
      const database = await openDatabase({ databaseUrl, logger, onStatement });
      return {
        database,
        takeStatementCount: take,
        psql: (sql) => server.query(databaseUrl, sql),
        close: async () => {
          await database.close();
          await server.close();
        },
      };
    },
  },
  {
    name: 'PGlite',
    open: async ({ migrated = true } = {}) => {
      const directory = migrated ? await prepareEmbeddedDirectory() : await emptyDirectory();
      const { onStatement, take } = counter();
      const database = await openDatabase({ dataDirectory: directory.dataDirectory, logger, onStatement });
      const { source } = database;
      if (!('pglite' in source)) throw new Error('The embedded database is not PGlite.');
      return {
        database,
        takeStatementCount: take,
        psql: async <Row extends object>(sql: string) => (await source.pglite.exec(sql)).at(-1)!.rows as Row[],
        close: async () => {
          await database.close();
          await directory.remove();
        },
      };
    },
  },
];

async function emptyDirectory() {
  const dataDirectory = await createTemporaryDirectory();
  return { dataDirectory, remove: () => rm(dataDirectory, { recursive: true, force: true }) };
}
