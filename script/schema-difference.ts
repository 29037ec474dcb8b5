// What schema.prisma says and prisma/migrations does not do yet, as SQL.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import { migrationsDirectory, readMigrations } from '../src/infra/migrations.js';
import { withSchemaEngine } from '../src/infra/schema-engine.js';

export const schemaFile = fileURLToPath(new URL('../prisma/schema.prisma', import.meta.url));

/**
 * The SQL that leads from the migrations to the schema; empty when they agree. Triggers, CHECKs and partial indexes are
 * invisible to it. Runs on PGlite, where the engine can read a database back.
 */
export async function schemaDifference(directory = migrationsDirectory): Promise<string> {
  const content = await readFile(schemaFile, 'utf8');
  const pglite = new PGlite();
  try {
    const { stdout } = await withSchemaEngine(
      { pglite },
      async (engine) =>
        engine.diff({
          from: { tag: 'migrations', ...(await readMigrations(directory)) },
          to: { tag: 'schemaDatamodel', files: [{ path: schemaFile, content }] },
          script: true,
          exitCode: null,
          filters: { externalTables: [], externalEnums: [] },
        }),
      content,
    );
    const script = (stdout ?? '').trim();
    return script === '-- This is an empty migration.' ? '' : script;
  } finally {
    await pglite.close();
  }
}
