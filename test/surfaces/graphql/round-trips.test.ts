// A nested query costs a bounded number of round trips, whatever its page size and however it is executed.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { appendEntry, createScratchpad, createThread } from '../../support/operations.js';
import { watchRedis } from '../../support/redis-watch.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

const pageDocument = `query ($threads: Int!) {
  viewer { id name threads(first: $threads) { edges { node { id createdAt scratchpad {
    id content { text } entryCount entries(first: 20) { edges { node { content } } }
  } } } } }
}`;

describe.each([
  ['GraphQL.js', Infinity],
  ['compiled', 0],
])('%s', (_name, usesBeforeCompilation) => {
  let service: Service;
  let alice: Tenant;

  beforeAll(async () => {
    service = await startService({ usesBeforeCompilation });
    alice = await service.createTenant('Alice');
    for (let index = 0; index < 50; index += 1) {
      const id = await createScratchpad(alice.client);
      await appendEntry(alice.client, id, `finding ${index}`);
    }
  });
  afterAll(() => service.close());

  /** Commands that reached Redis between two moments, as Redis itself counts them. */
  async function countRedisCalls(action: () => Promise<unknown>): Promise<Record<string, number>> {
    const redis = service.redis.client();
    await redis.call('CONFIG', 'RESETSTAT');
    await action();
    const lines = (await redis.info('commandstats')).split('\r\n');
    const calls = lines.flatMap((line) => {
      const [, command, count] = line.match(/^cmdstat_([^:]+):calls=(\d+)/) ?? [];
      return command === undefined ? [] : [[command, Number(count)] as const];
    });
    return Object.fromEntries(calls.filter(([command]) => !/^(info|config|ping)/.test(command)));
  }

  it.each([1, 10, 50])(
    'reads %i threads with their scratchpads in one SQL statement and one trip to Redis',
    async (threads) => {
      await alice.client.run('{ viewer { id } }');
      service.takeStatementCount();
      let pads = 0;
      const calls = await countRedisCalls(async () => {
        const { viewer } = await alice.client.run<{
          viewer: {
            threads: { edges: { node: { scratchpad: { entryCount: number; entries: { edges: unknown[] } } } }[] };
          };
        }>(pageDocument, { threads });
        pads = viewer.threads.edges.filter(
          ({ node }) => node.scratchpad.entryCount === 1 && node.scratchpad.entries.edges.length === 1,
        ).length;
      });
      expect(pads).toBe(threads);
      // The caches live a second: on a slow machine one refresh of the key may fall in between.
      expect(service.takeStatementCount()).toBeLessThanOrEqual(2);
      // Every read of the batch is one script call or one command of one pipeline: it is the calls from outside that are trips.
      const trips = (calls['evalsha'] ?? 0) + (calls['eval'] ?? 0) + (calls['exec'] ?? 0);
      expect(trips, JSON.stringify(calls)).toBe(1);
    },
  );

  it.each([
    'query ($id: ID!) { scratchpad(id: $id) { id updatedAt } }',
    'query ($id: ID!) { scratchpad(id: $id) { ...Around } } fragment Around on Scratchpad { metaData updatedAt thread { metaData } }',
    '{ viewer { threads(first: 50) { edges { node { scratchpad { createdAt metaData owner { name } } } } } } }',
    `{ viewer { threads(first: 50) { edges { node { scratchpad { ...Around } } } } } }
      fragment Around on Scratchpad { id metaData owner { name } }`,
  ])('reads what is around scratchpads in one SQL statement: %s', async (query) => {
    const id = await createScratchpad(alice.client);
    await alice.client.run(query, { id });
    const counts: number[] = [];
    for (let time = 0; time < 5; time += 1) {
      service.takeStatementCount();
      await alice.client.run(query, { id });
      counts.push(service.takeStatementCount());
    }
    // A refresh of the key or of a pad may fall into one of them.
    expect(Math.min(...counts), String(counts)).toBe(1);
  });

  it('asks SQL nothing for an append of a busy client', async () => {
    const id = await createScratchpad(alice.client, await createThread(alice.client));
    await appendEntry(alice.client, id, 'warm');
    service.takeStatementCount();
    const calls = await countRedisCalls(async () => {
      for (let index = 0; index < 10; index += 1) await appendEntry(alice.client, id, `finding ${index}`);
    });
    // The caches live a second: with slow machines one refresh of key and pad may fall in between.
    expect(service.takeStatementCount()).toBeLessThanOrEqual(2);
    expect(calls['evalsha']).toBe(10);
  });

  it('asks Redis for each pad once, however many of its fields are shown', async () => {
    const watch = await watchRedis(service.redis);
    await alice.client.run(pageDocument, { threads: 10 });
    const commands = await watch.take();
    watch.close();
    expect(commands).toHaveLength(1);
    expect(commands[0]?.split(' ')[2]).toBe(String(3 * 10));
  });
});
