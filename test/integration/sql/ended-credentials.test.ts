// When what was opened with a credential ends: at once when it is revoked; when its row is gone, only after DELETE had its time.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { createAuthentication, type Authentication } from '../../../src/identity/authentication.js';
import { hashSecret } from '../../../src/identity/secrets.js';
import { createId } from '../../../src/shared/ids.js';
import { createLogger } from '../../../src/shared/logger.js';
import { sqlStores, type OpenSqlStore } from '../../support/sql-stores.js';

/** Looks happen every so often; what is started at these moments sees the end at all phases between two looks. */
const lookIntervalMs = 750;
const phasesMs = [0, 150, 300, 450, 600];
const ownerId = createId('user');
let store: OpenSqlStore;
let open: Authentication[] = [];

beforeAll(async () => {
  store = await sqlStores[1]!.open();
  await store.database.prisma.user.create({ data: { id: ownerId, name: 'Alice' } });
});
afterAll(() => store.close());
afterEach(async () => {
  await Promise.all(open.map((one) => one.close()));
  open = [];
});

/** How long after `end` each of several processes told the watcher of one key, in milliseconds. */
async function noticed(end: (keyId: string) => Promise<unknown>): Promise<number[]> {
  const id = createId('apiKey');
  const { prisma } = store.database;
  await prisma.apiKey.create({ data: { id, ownerId, name: 'key', prefix: 'spk_', secretHash: hashSecret(id) } });
  const told: (() => number)[] = [];
  for (const [index, phaseMs] of phasesMs.entries()) {
    await delay(phaseMs - (phasesMs[index - 1] ?? 0));
    const authentication = createAuthentication({
      prisma,
      administratorSecret: undefined,
      countRequest: async () => {},
      now: () => new Date(),
      logger: createLogger('silent'),
    });
    open.push(authentication);
    let at = Infinity;
    authentication.watch({ kind: 'user', userId: ownerId, apiKeyId: id }, () => (at = performance.now()));
    told.push(() => at);
  }
  await end(id);
  const endedAt = performance.now();
  await expect.poll(() => told.every((at) => at() < Infinity), { timeout: 10_000, interval: 10 }).toBe(true);
  return told.map((at) => at() - endedAt);
}

it('with a revoked key it ends at the first look', async () => {
  const waits = await noticed((id) => store.psql(`UPDATE api_keys SET revoked_at = now() WHERE id = '${id}'`));
  expect(Math.max(...waits)).toBeLessThan(lookIntervalMs + 500);
});

it('with a key that is gone it ends at the second look, and within two seconds', async () => {
  const waits = await noticed((id) => store.psql(`DELETE FROM api_keys WHERE id = '${id}'`));
  expect(Math.min(...waits)).toBeGreaterThan(lookIntervalMs - 50);
  expect(Math.max(...waits)).toBeLessThan(2000);
});
