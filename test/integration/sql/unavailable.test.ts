// A PostgreSQL server that goes away, stands still or cuts connections: nothing hangs, nothing dies, all heals.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase, type Database } from '../../../src/infra/postgres.js';
import { createLogger } from '../../../src/shared/logger.js';
import { isSqlUnavailable, isUniqueViolation } from '../../../src/shared/sql-errors.js';
import { startOwnPostgres, type ControllablePostgresServer } from '../../support/postgres.js';

const logger = createLogger('silent');
const warnings: unknown[] = [];
let server: ControllablePostgresServer;
let databaseUrl: string;
let database: Database;

beforeAll(async () => {
  server = await startOwnPostgres();
  databaseUrl = await server.createDatabase();
  database = await openDatabase({ databaseUrl, logger: { warn: (...words: unknown[]) => warnings.push(words) } });
});

afterAll(async () => {
  await database.close();
  await server.close();
});

/** Every way in which the service asks the database. */
const waysToAsk = (): [string, () => Promise<unknown>][] => {
  const { prisma } = database;
  return [
    ['ping', () => database.ping()],
    ['a read', () => prisma.user.findMany()],
    ['a write', () => prisma.purgeTask.deleteMany()],
    ['an interactive transaction', () => prisma.$transaction((transaction) => transaction.user.count())],
    ['a batch', () => prisma.$transaction([prisma.user.count(), prisma.thread.count()])],
  ];
};

/** @returns what each way comes to */
async function askInEveryWay(limitMs: number) {
  const started = Date.now();
  return Promise.all(
    waysToAsk().map(async ([name, ask]) => {
      const outcome = await ask().then(
        () => 'answered',
        (error: unknown) => (isSqlUnavailable(error) ? 'unavailable' : error),
      );
      return { name, outcome, soon: Date.now() - started < limitMs };
    }),
  );
}

const all = (outcome: 'answered' | 'unavailable') => waysToAsk().map(([name]) => ({ name, outcome, soon: true }));

const expectUnavailable = async (limitMs: number) => expect(await askInEveryWay(limitMs)).toEqual(all('unavailable'));

const expectHealthy = async () => expect(await askInEveryWay(4000)).toEqual(all('answered'));

it('lives on when idle connections are cut, and heals', async () => {
  await Promise.all(waysToAsk().map(([, ask]) => ask()));
  const cut = await server.query(
    databaseUrl,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'scratchpad'`,
  );
  expect(cut.length).toBeGreaterThan(1);
  await expect
    .poll(() => server.query(databaseUrl, `SELECT 1 FROM pg_stat_activity WHERE application_name = 'scratchpad'`))
    .toEqual([]);
  await expect.poll(() => warnings.length).toBe(cut.length);
  await expectHealthy();
});

describe.each(['fast', 'immediate'] as const)('when the server stops (%s)', (mode) => {
  it('what is under way fails as unavailable, as does what comes, and all heals with the server', async () => {
    await expectHealthy();
    const slow = database.prisma.$executeRaw`SELECT pg_sleep(3)`.catch((error: unknown) => error);
    const held = database.prisma
      .$transaction(async (transaction) => {
        await transaction.user.count();
        await new Promise((resolve) => setTimeout(resolve, 1000));
        return transaction.user.count();
      })
      .catch((error: unknown) => error);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await server.stop(mode);
    expect([await slow, await held].map(isSqlUnavailable)).toEqual([true, true]);
    await expectUnavailable(4000);
    await server.start();
    await expectHealthy();
  });
});

it('answers within seconds when the server stands still, and heals', async () => {
  await expectHealthy();
  await server.freeze();
  const outcomes = await askInEveryWay(7000);
  await server.thaw();
  expect(outcomes).toEqual(all('unavailable'));
  await expectHealthy();
});

it('ends a statement that runs too long, and a transaction that waits too long for a connection', async () => {
  const errors = await Promise.all([
    database.prisma.$executeRaw`SELECT pg_sleep(20)`.catch((error: unknown) => error),
    ...Array.from({ length: 12 }, () =>
      database.prisma
        .$transaction((transaction) => transaction.$executeRaw`SELECT pg_sleep(3.5)`)
        .then(
          () => undefined,
          (error: unknown) => error,
        ),
    ),
  ]);
  const failed = errors.filter((error) => error !== undefined);
  expect(failed.length).toBeGreaterThan(1);
  expect(failed.filter((error) => !isSqlUnavailable(error))).toEqual([]);
  const goesOn = `SELECT query FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(20)' AND pid <> pg_backend_pid()`;
  expect(await server.query(databaseUrl, goesOn)).toEqual([]);
  await expectHealthy();
});

it('closes within seconds while the server stands still', async () => {
  const other = await openDatabase({ databaseUrl, logger });
  await other.ping();
  const hanging = other.ping.bind(other);
  await server.freeze();
  const started = Date.now();
  const attempt = hanging().catch(() => undefined);
  await other.close();
  expect(Date.now() - started).toBeLessThan(5000);
  await server.thaw();
  await attempt;
});

it.each([
  ['no such host', 'postgresql://postgres@nowhere.invalid/x'],
  ['nobody listens', 'postgresql://postgres@localhost:1/x'],
  ['no such socket', 'postgresql://postgres@localhost/x?host=/nowhere'],
])('is unavailable, not broken: %s', async (_name, url) => {
  const other = await openDatabase({ databaseUrl: url, logger });
  const error: unknown = await other.ping().catch((reason: unknown) => reason);
  expect(isSqlUnavailable(error)).toBe(true);
  await other.close();
});

it.each([
  ['database', (url: URL) => (url.pathname = '/no_such_database')],
  ['user', (url: URL) => (url.username = 'nobody_known')],
])('is unavailable, so that readiness tells: a wrong %s', async (_name, change) => {
  const url = new URL(databaseUrl);
  change(url);
  const other = await openDatabase({ databaseUrl: url.href, logger });
  const error: unknown = await other.ping().catch((reason: unknown) => reason);
  expect(isSqlUnavailable(error)).toBe(true);
  await other.close();
});

it('a mistake of ours is not unavailability', async () => {
  const { prisma } = database;
  const mistakes = [
    prisma.$queryRaw`SELECT * FROM no_such_table`,
    prisma.$queryRaw`SELECT 1 / 0`,
    prisma.user.update({ where: { id: 'nobody' }, data: { name: 'x' } }),
    prisma.user.create({ data: { id: 'x\u0000', name: 'x' } }),
  ];
  for (const mistake of mistakes) {
    const error: unknown = await mistake.then(
      () => 'it worked',
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(Error);
    expect(isSqlUnavailable(error)).toBe(false);
    expect(isUniqueViolation(error)).toBe(false);
  }
});
