// The operator's commands: migrate, user, key, doctor. They use the same environment as the server. And research, for a person at a terminal.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { createApp } from './app.js';
import { createGraphqlClient, endpointOf } from './client/graphql-client.js';
import { ConfigurationError, readConfig, type Config } from './config.js';
import { createApiKeyService, type ApiKeyService } from './identity/api-key-service.js';
import type { Principal } from './identity/principal.js';
import { createUserService } from './identity/user-service.js';
import { DataDirectoryInUseError } from './infra/data-directory.js';
import { applyMigrations, pendingMigrations } from './infra/migrations.js';
import type { Database } from './infra/postgres.js';
import { createRunJobs } from './research/run-jobs.js';
import { MOST_WORKERS, RESEARCH_WORKER_MAX_TURNS, RUN_MAX_TURNS } from './research/run-limits.js';
import { createPurgeQueue } from './scratchpads/purge-queue.js';
import { inspect } from './scratchpads/doctor.js';
import { createRowIndex } from './scratchpads/row-index.js';
import { systemClock } from './shared/clock.js';
import { createLogger } from './shared/logger.js';
import { explainFailure, openDatabaseOnly, openStores } from './stores.js';
import { describeFailure, research } from './terminal/research-command.js';
import { createRunView } from './terminal/run-view.js';

// What goes wrong is said at the end, in words.
const logger = createLogger('error', process.stderr);
const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const day = (date: Date | null): string => date?.toISOString() ?? '-';

/** Who may reach this machine's environment acts for every user. */
const onBehalfOf = (userId: string): Principal => ({ kind: 'user', userId, apiKeyId: 'cli' });

/** There is one to open: a server's address, or an embedded one that was made before. */
const hasDatabase = ({ databaseUrl, dataDirectory }: Config): boolean =>
  databaseUrl !== undefined || existsSync(join(dataDirectory, 'postgres'));

/** Whoever forgot DATABASE_URL would otherwise be shown a new, empty database as if it were theirs. @throws Error */
function refuseMissingDatabase(config: Config): void {
  if (hasDatabase(config)) return;
  throw new Error(
    `There is no embedded database under ${config.dataDirectory}: set DATABASE_URL (or DATA_DIR) to the one that you mean. ` +
      'To make a new embedded one, run `cli migrate` or start the server.',
  );
}

async function withDatabase(
  action: (database: Database) => Promise<void>,
  config = readConfig(process.env),
): Promise<void> {
  const { stores, close } = await openDatabaseOnly(config, { logger });
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
  const config = readConfig(process.env);
  refuseMissingDatabase(config);
  await withDatabase(async (database) => {
    await refuseDatabaseBehind(database);
    await action(database);
  }, config);
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

function parseAddress(text: string): string {
  try {
    return endpointOf(text);
  } catch {
    throw new InvalidArgumentError('Give the address of a server such as http://127.0.0.1:4000.');
  }
}

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('Give a whole number of at least 1.');
  return Number(text);
}

function parseWorkers(text: string): number {
  const count = parseCount(text);
  if (count > MOST_WORKERS) throw new InvalidArgumentError(`Give at most ${MOST_WORKERS}.`);
  return count;
}

interface ResearchOptions {
  url?: string;
  key?: string;
  model?: string;
  maxTurns?: number;
  maxWorkers?: number;
}

interface Reachable {
  url: string;
  key: string;
  close(): Promise<void>;
}

/** A server of this process alone, on the stores and with the model that the environment names. @throws Error that says what is missing */
async function startOwnServer({ key, model }: ResearchOptions): Promise<Reachable> {
  const config = readConfig({ ...process.env, HOST: '127.0.0.1', PORT: '0', GRAPHIQL: 'false' });
  if (config.llmBaseUrl === undefined) {
    throw new Error(
      'No model is configured. Set LLM_BASE_URL, LLM_API_KEY and LLM_MODEL to any OpenAI-compatible endpoint ' +
        '(docs/guides/providers.md), or name a running server with --url. script/demo shows a research run without any.',
    );
  }
  if (config.llmModel === undefined && model === undefined) {
    throw new Error('No model is named: set LLM_MODEL, or give one with --model.');
  }
  if (config.searxngUrl === undefined) {
    process.stderr.write('SEARXNG_URL is not set: workers can read pages, and cannot search for any.\n');
  }
  if (!config.embedded && key === undefined) {
    throw new Error('These stores have users of their own: give one of their keys with --key or SCRATCHPAD_API_KEY.');
  }
  const starting = createApp(
    // Nobody else may be there to execute the run.
    { ...config, runWorkers: Math.max(config.runWorkers, 1) },
    {
      logger: createLogger(process.env['LOG_LEVEL'] ? config.logLevel : 'error', process.stderr),
      onDirectoryLost: () => process.exit(1),
    },
  );
  const app = await starting.catch((error: unknown) => {
    if (!(error instanceof DataDirectoryInUseError)) throw error;
    throw new Error(`${error.message} Or let a running server do it: --url http://127.0.0.1:4000 --key …`, {
      cause: error,
    });
  });
  return { url: app.url, key: key ?? app.developmentSecret ?? '', close: () => app.close() };
}

function reachServer(options: ResearchOptions): Promise<Reachable> | Reachable {
  const { url, key } = options;
  if (url === undefined) return startOwnServer(options);
  if (key === undefined) throw new Error('A key is needed for this server: give it with --key or SCRATCHPAD_API_KEY.');
  return { url, key, close: async () => {} };
}

async function runResearch(question: string, options: ResearchOptions): Promise<void> {
  const { model, maxTurns, maxWorkers } = options;
  // An empty variable is the same as none.
  const server = await reachServer({ ...options, key: options.key || undefined });
  const writeAnswer = (text: string): boolean => process.stdout.write(text);
  const view = createRunView({
    // The answer alone goes to stdout, so that it can be redirected.
    writeProgress: (text) => process.stderr.write(text),
    writeAnswer,
    isOneScreen: process.stdout.isTTY && process.stderr.isTTY,
    colours: process.stderr.isTTY && !process.env['NO_COLOR'],
    width: Math.min(process.stderr.columns ?? 100, 120),
  });
  try {
    process.exitCode = await research(
      { question, model, maxTurns, maxWorkers },
      {
        client: createGraphqlClient(server),
        view,
        writeAnswer,
        onInterrupt(callback) {
          process.on('SIGINT', callback).on('SIGTERM', callback);
          return () => process.off('SIGINT', callback).off('SIGTERM', callback);
        },
      },
    );
  } catch (error) {
    view.close();
    throw new Error(describeFailure(error), { cause: error });
  } finally {
    await server.close();
  }
}

const program = new Command('cli').description('Operates a Scratchpad installation.').showHelpAfterError();

program
  .command('migrate')
  .description('brings the database up to date; without DATABASE_URL, makes the embedded one when there is none')
  .action(async () => {
    const config = readConfig(process.env);
    if (!hasDatabase(config))
      print(`DATABASE_URL is not set: making an embedded database under ${config.dataDirectory}`);
    await withDatabase(async (database) => {
      const { applied } = await applyMigrations(database, { logger });
      print(applied.length > 0 ? `applied ${applied.join(', ')}` : 'nothing to do: the database is up to date');
    }, config);
  });

const user = program.command('user').description('users, the tenants');
user
  .command('create')
  .description('creates a user and its first key')
  .requiredOption('--name <name>', 'what a person calls it')
  .action(({ name }: { name: string }) =>
    withUpToDateDatabase(async ({ prisma }) => {
      // A creation cancels and purges nothing.
      const nothing = async (): Promise<void> => {};
      const users = createUserService({ prisma, authentication, cancelRuns: nothing, purgeOwner: nothing });
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
    const config = readConfig(process.env);
    refuseMissingDatabase(config);
    const { stores, close } = await openStores(config, { logger });
    try {
      const { prisma } = stores.database;
      await refuseDatabaseBehind(stores.database);
      const jobs = createRunJobs(stores.redis, logger);
      const findings = await inspect({
        redis: stores.redis,
        rows: createRowIndex({ prisma }),
        removeJob: (runId) => jobs.remove(runId),
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

program
  .command('research')
  .description('researches a question and shows how; the answer alone goes to stdout')
  .argument('<question>')
  .addOption(
    new Option('--url <address>', 'a running server; without it one is started for this run').argParser(parseAddress),
  )
  .addOption(new Option('--key <secret>', 'an API key of that server').env('SCRATCHPAD_API_KEY'))
  .option('--model <name>', 'instead of the one that the server is configured for')
  .option(
    '--max-turns <count>',
    `turns of the supervisor, at most ${RUN_MAX_TURNS}, and of each worker, at most ${RESEARCH_WORKER_MAX_TURNS}`,
    parseCount,
  )
  .option('--max-workers <count>', `workers side by side, at most ${MOST_WORKERS}`, parseWorkers)
  .action(runResearch);

try {
  await program.parseAsync();
} catch (error) {
  const prefix = error instanceof ConfigurationError ? 'The configuration is wrong:\n' : '';
  process.stderr.write(`${prefix}${explainFailure(error)}\n`);
  process.exitCode = 1;
}
