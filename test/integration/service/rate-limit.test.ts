// Requests over a key's limit are refused on every surface, counted over all processes, and never because Redis is away.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createApp, type App } from '../../../src/app.js';
import { readConfig } from '../../../src/config.js';
import { createLogger } from '../../../src/shared/logger.js';
import { createGraphqlClient } from '../../support/graphql-client.js';
import { appendEntry, createScratchpad, createToken } from '../../support/operations.js';
import { administratorSecret, startService, type Service, type Tenant } from '../../support/service.js';
import { subscribe } from '../../support/subscriber.js';
import { bearer, wireNames, wires, type WireAnswer, type WireName } from '../../support/wire.js';

const limit = 20;
let service: Service;
let other: App;
let alice: Tenant;
let bob: Tenant;

beforeAll(async () => {
  service = await startService({ environment: { RATE_LIMIT_PER_MINUTE: String(limit) } });
  const config = readConfig({
    PORT: '0',
    DATABASE_URL: service.databaseUrl,
    REDIS_URL: service.redis.url,
    RATE_LIMIT_PER_MINUTE: String(limit),
    ADMIN_API_KEY: administratorSecret,
    RUN_WORKERS: '0',
  });
  other = await createApp(config, { logger: createLogger('silent') });
});
afterAll(async () => {
  await other.close();
  await service.close();
});
beforeEach(async () => {
  // The administrator has a limit as well, and makes the tenants.
  await service.redis.client().del('rate:administrator');
  [alice, bob] = [await service.createTenant('Alice'), await service.createTenant('Bob')];
});

const ask = (wire: WireName, secret: string, url = service.url): Promise<WireAnswer> =>
  wires[wire]({ url, credentials: bearer(secret), document: '{ viewer { id } }' });

const codeOf = ({ results }: WireAnswer): string =>
  results[0]?.errors?.[0]?.extensions?.code ?? (results[0]?.data ? 'OK' : 'nothing');

/** Requests, one after the other, until one is refused or there were `most`. */
async function countUntilRefused(secret: string, url = service.url): Promise<number> {
  for (let count = 0; count < limit + 5; count += 1) {
    if (codeOf(await ask('HTTP', secret, url)) === 'RATE_LIMITED') return count;
  }
  return limit + 5;
}

describe('a key', () => {
  it.each(wireNames)('is told over %s when to come back, once it has used its minute up', async (wire) => {
    for (let count = 0; count < limit; count += 1) expect(codeOf(await ask(wire, alice.secret))).toBe('OK');
    for (const surely of wireNames) {
      const answer = await ask(surely, alice.secret);
      expect(answer.results, surely).toHaveLength(1);
      const extensions = answer.results[0]?.errors?.[0]?.extensions;
      expect(extensions).toEqual({ code: 'RATE_LIMITED', retryAfterSeconds: expect.any(Number) as number });
      expect(extensions?.['retryAfterSeconds']).toBeGreaterThan(30);
      expect(extensions?.['retryAfterSeconds']).toBeLessThanOrEqual(60);
      if (surely === 'WebSocket') continue;
      expect(answer.status).toBe(429);
      expect(answer.headers['retry-after']).toBe(String(extensions?.['retryAfterSeconds']));
    }
    expect(codeOf(await ask(wire, bob.secret))).toBe('OK');
  });

  it('has one limit over all processes, however many requests race', async () => {
    const answers = await Promise.all(
      Array.from({ length: 3 * limit }, (_, index) =>
        ask('HTTP', alice.secret, index % 2 === 0 ? service.url : other.url),
      ),
    );
    expect(answers.filter((answer) => codeOf(answer) === 'OK')).toHaveLength(limit);
    expect(answers.filter((answer) => codeOf(answer) === 'RATE_LIMITED')).toHaveLength(2 * limit);
  });

  it('goes on when its minute is over', async () => {
    expect(await countUntilRefused(alice.secret)).toBe(limit);
    const redis = service.redis.client();
    // The process that refused asks Redis again when the time is over; the other one at once.
    for (const key of await redis.keys('rate:*')) {
      expect(await redis.pttl(key)).toBeGreaterThan(0);
      await redis.del(key);
    }
    expect(codeOf(await ask('HTTP', alice.secret, other.url))).toBe('OK');
  });

  it('counts by itself: another key of its user, a token of its pad, the administrator', async () => {
    const padId = await createScratchpad(alice.client);
    const token = await createToken(alice.client, padId);
    const { createApiKey } = await alice.client.run<{ createApiKey: { secret: string } }>(
      'mutation { createApiKey(input: { name: "second" }) { secret } }',
    );
    expect(await countUntilRefused(alice.secret)).toBe(limit - 4);
    expect(await countUntilRefused(createApiKey.secret)).toBe(limit);
    // What an agent asks does not count as its owner's.
    const read = (): Promise<Response> =>
      fetch(`${service.url}/mcp`, {
        method: 'POST',
        headers: {
          ...bearer(token.secret),
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      });
    for (let count = 0; count < limit; count += 1) expect((await read()).status).toBe(200);
    const refused = await read();
    expect([refused.status, Number(refused.headers.get('retry-after')) > 30]).toEqual([429, true]);
    expect(await refused.json()).toMatchObject({ error: { data: { code: 'RATE_LIMITED' } } });
    expect(codeOf(await ask('HTTP', token.secret))).toBe('RATE_LIMITED');
    await service.redis.client().del('rate:administrator');
    // On the other process: this one is to make tenants for the tests that follow.
    expect(await countUntilRefused(administratorSecret, other.url)).toBe(limit);
  });

  it('pays for what is refused as well, and nothing for the events of a subscription', async () => {
    const padId = await createScratchpad(alice.client);
    const { secret } = await createToken(alice.client, padId);
    for (const transport of ['SSE', 'WebSocket'] as const) {
      const subscriber = await subscribe({ transport, url: service.url, secret, scratchpadId: padId, after: '' });
      for (let index = 0; index < 5; index += 1) await appendEntry(alice.client, padId, 'found');
      await subscriber.received(5);
      expect(subscriber.errors).toEqual([]);
      subscriber.close();
    }
    for (const body of ['{', '{"query":"{ nothing }"}', '{"query":"{"}']) {
      const headers = { ...bearer(secret), 'content-type': 'application/json' };
      const { status } = await fetch(`${service.url}/graphql`, { method: 'POST', headers, body });
      expect(status).not.toBe(429);
    }
    expect(await countUntilRefused(secret)).toBe(limit - 5);
  });

  it('ends no other operation of a socket with the one that is refused', async () => {
    const padId = await createScratchpad(alice.client);
    const { secret } = await createToken(alice.client, padId);
    const subscriber = await subscribe({
      transport: 'WebSocket',
      url: service.url,
      secret,
      scratchpadId: padId,
      after: '',
    });
    await expect
      .poll(async () => (await service.redis.client().pubsub('NUMSUB', `events:${alice.userId}:${padId}`))[1])
      .toBe(1);
    await countUntilRefused(secret);
    await appendEntry(alice.client, padId, 'found');
    expect((await subscriber.received(1)).map(({ operation }) => operation)).toEqual(['APPEND']);
    expect(subscriber.errors).toEqual([]);
    subscriber.close();
  });
});

it('lets everybody in, at once, while Redis is away, says so, and counts again afterwards', async () => {
  // The caches are warm, so that only Redis could be waited for.
  await ask('HTTP', bob.secret);
  await service.redis.kill();
  try {
    let slowestMs = 0;
    for (let count = 0; count < 2 * limit; count += 1) {
      const begin = performance.now();
      expect(codeOf(await ask('HTTP', bob.secret))).toBe('OK');
      slowestMs = Math.max(slowestMs, performance.now() - begin);
    }
    expect(slowestMs).toBeLessThan(2500);
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    expect(Number(/^scratchpad_uncounted_requests_total (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThanOrEqual(
      2 * limit - 1,
    );
  } finally {
    await service.redis.restart();
  }
  await expect.poll(async () => (await fetch(`${service.url}/readyz`)).status, { timeout: 15_000 }).toBe(200);
  expect(await countUntilRefused(bob.secret)).toBe(limit);
});

it('is off by default: nothing is counted', async () => {
  const config = readConfig({
    PORT: '0',
    DATABASE_URL: service.databaseUrl,
    REDIS_URL: service.redis.url,
    RUN_WORKERS: '0',
  });
  const unlimited = await createApp(config, { logger: createLogger('silent') });
  try {
    const before = await service.redis.client().keys('rate:*');
    const client = createGraphqlClient(unlimited.url, alice.secret);
    for (let count = 0; count < 2 * limit; count += 1) await client.run('{ viewer { id } }');
    expect((await service.redis.client().keys('rate:*')).toSorted()).toEqual(before.toSorted());
  } finally {
    await unlimited.close();
  }
});
