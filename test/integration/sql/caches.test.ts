// What is taken for granted is taken for granted for a second: keys, and that a scratchpad exists.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createAuthentication } from '../../../src/identity/authentication.js';
import { hashSecret } from '../../../src/identity/secrets.js';
import { createIdentityPlane } from '../../../src/scratchpads/identity-plane.js';
import { createId } from '../../../src/shared/ids.js';
import { createLogger } from '../../../src/shared/logger.js';
import { sqlStores, type OpenSqlStore } from '../../support/sql-stores.js';

let store: OpenSqlStore;
let nowMs = Date.parse('2026-01-31T09:30:00Z');
const now = (): Date => new Date(nowMs);
const ownerId = createId('user');

beforeAll(async () => {
  store = await sqlStores[1]!.open();
  await store.database.prisma.user.create({ data: { id: ownerId, name: 'Alice' } });
});
afterAll(() => store.close());

const openAuthentication = (
  prisma: Parameters<typeof createAuthentication>[0]['prisma'] = store.database.prisma,
): ReturnType<typeof createAuthentication> =>
  createAuthentication({
    prisma,
    administratorSecret: undefined,
    countRequest: () => undefined,
    now,
    logger: createLogger('silent'),
  });

it('that a scratchpad exists is remembered for a second, and that it does not, never', async () => {
  const { prisma } = store.database;
  const identityPlane = createIdentityPlane({ prisma, now });
  const threadId = createId('thread');
  await prisma.thread.create({ data: { id: threadId, ownerId, metaData: {} } });
  const { id } = await identityPlane.create(ownerId, threadId, {});
  expect(await identityPlane.exists(ownerId, id)).toBe(true);
  await store.psql(`DELETE FROM scratchpads WHERE id = '${id}'`);
  nowMs += 999;
  expect(await identityPlane.exists(ownerId, id)).toBe(true);
  nowMs += 1;
  expect(await identityPlane.exists(ownerId, id)).toBe(false);
  await store.psql(
    `INSERT INTO scratchpads (id, owner_id, thread_id, updated_at) VALUES ('${id}', '${ownerId}', '${threadId}', now())`,
  );
  expect(await identityPlane.exists(ownerId, id)).toBe(true);
  // Another owner is never told of it, whatever is remembered.
  expect(await identityPlane.exists(createId('user'), id)).toBe(false);
});

it('that a scratchpad exists is not remembered when something was deleted while SQL was asked', async () => {
  const { prisma } = store.database;
  const identityPlane = createIdentityPlane({ prisma, now });
  const threadId = createId('thread');
  await prisma.thread.create({ data: { id: threadId, ownerId, metaData: {} } });
  const { id } = await identityPlane.create(ownerId, threadId, {});
  const underWay = identityPlane.existsNow(ownerId, id);
  // Once it is really on its way.
  await Promise.resolve();
  identityPlane.forgetOwner(ownerId);
  expect(await underWay).toBe(true);
  await store.psql(`DELETE FROM scratchpads WHERE id = '${id}'`);
  expect(await identityPlane.exists(ownerId, id)).toBe(false);
});

it('a key is remembered for a second, and one that is unknown, never', async () => {
  const { prisma } = store.database;
  const authentication = openAuthentication();
  const secret = 'spk_of_this_test_0123456789';
  const id = createId('apiKey');
  await expect(authentication.authenticate(secret)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  await prisma.apiKey.create({ data: { id, ownerId, name: 'key', prefix: 'spk_', secretHash: hashSecret(secret) } });
  expect(await authentication.authenticate(secret)).toEqual({ kind: 'user', userId: ownerId, apiKeyId: id });
  await store.psql(`UPDATE api_keys SET revoked_at = now() WHERE id = '${id}'`);
  nowMs += 999;
  expect(await authentication.identify(secret)).toMatchObject({ userId: ownerId });
  nowMs += 1;
  await expect(authentication.identify(secret)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  await authentication.close();
});

async function makeKey(secret: string): Promise<string> {
  const id = createId('apiKey');
  const key = { id, ownerId, name: 'key', prefix: 'spk_', secretHash: hashSecret(secret) };
  await store.database.prisma.apiKey.create({ data: key });
  return id;
}

it('a key that is revoked here while it is being looked up is not remembered', async () => {
  const authentication = openAuthentication();
  const secret = 'spk_of_another_test_0123456789';
  const id = await makeKey(secret);
  // Its answer is from before, and comes after.
  const underWay = authentication.identify(secret);
  authentication.forgetUser(ownerId);
  await underWay;
  await store.psql(`UPDATE api_keys SET revoked_at = now() WHERE id = '${id}'`);
  await expect(authentication.identify(secret)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  await authentication.close();
});

it('an answer from before a change is not shared with who asks after it; those share another one', async () => {
  const { prisma } = store.database;
  let statements = 0;
  const apiKey = new Proxy(prisma.apiKey, {
    get(model, name) {
      if (name === 'findUnique') statements += 1;
      return Reflect.get(model, name) as unknown;
    },
  });
  const authentication = openAuthentication({ apiKey, agentToken: prisma.agentToken });
  const secret = 'spk_of_a_third_test_0123456789';
  await makeKey(secret);
  const underWay = authentication.identify(secret);
  authentication.forgetUser(ownerId);
  await Promise.all([underWay, authentication.identify(secret), authentication.identify(secret)]);
  expect(statements).toBe(2);
  await authentication.close();
});

it('pads that are used all the time are asked for together, and ahead of their time: nobody waits', async () => {
  const { prisma } = store.database;
  let statements = 0;
  let onStatement = (): void => undefined;
  const scratchpad = new Proxy(prisma.scratchpad, {
    get(model, name) {
      const member: unknown = Reflect.get(model, name);
      if (name !== 'findMany' && name !== 'findFirst') return member;
      statements += 1;
      onStatement();
      return member;
    },
  });
  const identityPlane = createIdentityPlane({ prisma: { scratchpad, thread: prisma.thread }, now });
  const ids: string[] = [];
  for (let index = 0; index < 30; index += 1) {
    const threadId = createId('thread');
    await prisma.thread.create({ data: { id: threadId, ownerId, metaData: {} } });
    ids.push((await identityPlane.create(ownerId, threadId, {})).id);
  }
  statements = 0;
  const use = (some: readonly string[]): Promise<boolean[]> =>
    Promise.all(some.map(async (id) => await identityPlane.exists(ownerId, id)));
  expect(new Set(await use(ids))).toEqual(new Set([true]));
  expect(statements).toBeLessThanOrEqual(2);
  // Who uses a pad while it is being asked for does not want it asked for again.
  onStatement = () => void use(ids);
  // For ten seconds, four looks in each, of which every third finds the second nearly over.
  for (let tick = 1; tick <= 40; tick += 1) {
    nowMs += 250;
    const before = statements;
    for (const some of [ids.slice(0, 10), ids.slice(10, 20), ids.slice(20)]) {
      let isAnswered = false;
      void use(some).then(() => (isAnswered = true));
      // Nothing but what is in memory answers within the microtasks of this turn.
      for (let microtask = 0; microtask < 50; microtask += 1) await Promise.resolve();
      expect(isAnswered, `tick ${tick}`).toBe(true);
      await delay(10);
    }
    const due = tick % 3 === 0 ? 1 : 0;
    await expect.poll(() => statements - before, { timeout: 2000 }).toBe(due);
    await delay(50);
    expect(statements - before).toBe(due);
  }
});
