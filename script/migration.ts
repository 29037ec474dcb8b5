// Authors SQL migrations: `tsx script/migration.ts new <name>` writes one, `tsx script/migration.ts check` finds drift.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { migrationsDirectory } from '../src/infra/migrations.js';
import { schemaDifference } from './schema-difference.js';

const [command, name = ''] = process.argv.slice(2);
const isNew = command === 'new' && /^[a-z0-9_]+$/.test(name);

if (!isNew && command !== 'check') {
  console.error('usage: tsx script/migration.ts new <name_in_snake_case> | check');
  process.exit(2);
}

const difference = await schemaDifference();
if (difference === '') {
  console.log('prisma/migrations and prisma/schema.prisma agree');
} else if (isNew) {
  const timestamp = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
  const directory = join(migrationsDirectory, `${timestamp}_${name}`);
  await mkdir(directory);
  await writeFile(join(directory, 'migration.sql'), `${difference}\n`);
  console.log(`wrote ${directory}/migration.sql: read it, and add what Prisma cannot express`);
} else {
  console.error(`prisma/migrations lacks:\n\n${difference}`);
  process.exitCode = 1;
}
