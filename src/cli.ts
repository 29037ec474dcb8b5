// The operator's commands: migrate, user, key, doctor. They use the same environment as the server.
import { Command, InvalidArgumentError } from 'commander';
import { ConfigurationError, readConfig } from './config.js';
import { createApiKeyService, type ApiKeyService } from './identity/api-key-service.js';
import type { Principal } from './identity/principal.js';
import { createUserService } from './identity/user-service.js';
import { applyMigrations, pendingMigrations } from './infra/migrations.js';
import type { Database } from './infra/postgres.js';
import { createPurgeQueue } from './scratchpads/purge-queue.js';
import { inspect } from './scratchpads/doctor.js';
import { createRowIndex } from './scratchpads/row-index.js';
import { systemClock } from './shared/clock.js';
import { createLogger } from './shared/logger.js';
import { explainFailure, openDatabaseOnly, openStores } from './stores.js';

// What goes wrong is said at the end, in words.
const logger = createLogger('error', process.stderr);
const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const day = (date: Date | null): string => date?.toISOString() ?? '-';

/** Who may reach this machine's environment acts for every user. */
const onBehalfOf = (userId: string): Principal => ({ kind: 'user', userId, apiKeyId: 'cli' });

async function withDatabase(action: (database: Database) => Promise<void>): Promise<void> {
  const { stores, close } = await openDatabaseOnly(readConfig(process.env), { logger });
  try {
    await action(stores);
  } finally {
    await close();
  }
}

async function refuseDatabaseBehind(database: Database): Promise<void> {
  const pending = await pendingMigrations(database);
  if (pending.length > 0) throw new Error(`The database is behind (${pending.join(', ')}): run \`cli migrate\` first.`);
}

async function withUpToDateDatabase(action: (database: Database) => Promise<void>): Promise<void> {
  await withDatabase(async (database) => {
    await refuseDatabaseBehind(database);
    await action(database);
  });
}

// A running server notices within a second: its caches live no longer.
const authentication = { forgetUser: () => {} };

/** @throws Error that says how to find the right one */
async function requireUserRow({ prisma }: Database, userId: string): Promise<void> {
  const row = await prisma.user.findUnique({ where: { id: userId }, select: { id: true } });
  if (!row) throw new Error(`There is no user ${userId}: \`cli user list\` shows who there is.`);
}

const apiKeysOf = ({ prisma }: Database): ApiKeyService =>
  createApiKeyService({ prisma, authentication, now: systemClock });

function parseInstant(text: string): Date {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) throw new InvalidArgumentError('Give an instant such as 2027-01-31T09:30:00Z.');
  return date;
}

const program = new Command('cli').description('Operates a Scratchpad installation.').showHelpAfterError();

program
  .command('migrate')
  .description('brings the database up to date')
  .action(() =>
    withDatabase(async (database) => {
      const { applied } = await applyMigrations(database, { logger });
      print(applied.length > 0 ? `applied ${applied.join(', ')}` : 'nothing to do: the database is up to date');
    }),
  );

const user = program.command('user').description('users, the tenants');
user
  .command('create')
  .description('creates a user and its first key')
  .requiredOption('--name <name>', 'what a person calls it')
  .action(({ name }: { name: string }) =>
    withUpToDateDatabase(async ({ prisma }) => {
      // Nothing is purged by a creation.
      const users = createUserService({ prisma, authentication, purgeOwner: async () => {} });
      const created = await users.create({ kind: 'administrator' }, { name });
      print(`user    ${created.user.id}`);
      print(`secret  ${created.secret}`);
      print('The secret is shown this once: keep it.');
    }),
  );
user
  .command('list')
  .description('lists the users')
  .action(() =>
    withUpToDateDatabase(async ({ prisma }) => {
      const users = await prisma.user.findMany({ orderBy: { id: 'asc' } });
      for (const { id, name, createdAt } of users) print(`${id}  ${day(createdAt)}  ${name}`);
    }),
  );

const key = program.command('key').description('API keys');
key
  .command('create')
  .description('creates a key for a user')
  .requiredOption('--user <id>', 'whose key it will be')
  .requiredOption('--name <name>', 'what it is for')
  .option('--expires-at <instant>', 'when it ends by itself', parseInstant)
  .action((options: { user: string; name: string; expiresAt?: Date }) =>
    withUpToDateDatabase(async (database) => {
      await requireUserRow(database, options.user);
      const created = await apiKeysOf(database).create(onBehalfOf(options.user), options);
      print(`key     ${created.apiKey.id}`);
      print(`secret  ${created.secret}`);
      print('The secret is shown this once: keep it.');
    }),
  );
key
  .command('revoke')
  .description('ends a key for ever')
  .argument('<key-id>')
  .action((apiKeyId: string) =>
    withUpToDateDatabase(async (database) => {
      const row = await database.prisma.apiKey.findUnique({ where: { id: apiKeyId } });
      if (!row) throw new Error(`There is no key ${apiKeyId}: \`cli key list\` shows which there are.`);
      await apiKeysOf(database).revoke(onBehalfOf(row.ownerId), apiKeyId);
      print(`revoked ${apiKeyId}`);
    }),
  );
key
  .command('list')
  .description('lists keys, without their secrets')
  .option('--user <id>', 'only those of one user')
  .action((options: { user?: string }) =>
    withUpToDateDatabase(async (database) => {
      if (options.user !== undefined) await requireUserRow(database, options.user);
      const keys = await database.prisma.apiKey.findMany({
        ...(options.user !== undefined && { where: { ownerId: options.user } }),
        orderBy: { id: 'asc' },
      });
      for (const row of keys) {
        print(
          `${row.id}  ${row.ownerId}  ${row.prefix}…  expires ${day(row.expiresAt)}  last used ${day(row.lastUsedAt)}  revoked ${day(row.revokedAt)}  ${row.name}`,
        );
      }
    }),
  );

program
  .command('doctor')
  .description('looks for what Redis holds without a row in SQL; says nothing when all is well')
  .option('--fix', 'removes what it finds')
  .action(async ({ fix }: { fix?: boolean }) => {
    const { stores, close } = await openStores(readConfig(process.env), { logger });
    try {
      const { prisma } = stores.database;
      await refuseDatabaseBehind(stores.database);
      const findings = await inspect({
        redis: stores.redis,
        rows: createRowIndex({ prisma }),
        fix: fix === true,
      });
      for (const finding of findings) print(`${finding.key}  ${finding.reason}${fix ? '  removed' : ''}`);
      const backlog = await createPurgeQueue({ prisma }).count();
      if (findings.length > 0 || backlog > 0) print(`${findings.length} orphaned keys, ${backlog} purges waiting`);
      if (findings.length > 0 && !fix) process.exitCode = 1;
    } finally {
      await close();
    }
  });

try {
  await program.parseAsync();
} catch (error) {
  const prefix = error instanceof ConfigurationError ? 'The configuration is wrong:\n' : '';
  process.stderr.write(`${prefix}${explainFailure(error)}\n`);
  process.exitCode = 1;
}
