// What a process remembers of pads is never told when it no longer holds, and what has not changed is not fetched again.
import { setTimeout as delay } from 'node:timers/promises';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDataPlane, type DataPlane, type PadAddress, type PadRead } from '../../../src/scratchpads/data-plane.js';
import { createPadPurger } from '../../../src/scratchpads/pad-purger.js';
import { createPadStates, PadState } from '../../../src/scratchpads/pad-state.js';
import { DomainError } from '../../../src/shared/errors.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { defaultLimits, newPad, openPlanes, type Planes } from './support.js';

let server: TestRedis;
let writer: Planes;
let reader: Planes;

beforeAll(async () => {
  server = await startRedis();
  [writer, reader] = await Promise.all([openPlanes(server), openPlanes(server)]);
});
afterAll(async () => {
  await Promise.all([writer.close(), reader.close()]);
  await server.stop();
});

const wishes: readonly Omit<PadRead, 'pad'>[] = [
  { content: true },
  { pages: [{ size: 3, fromEnd: false }], entryCount: true },
  { content: true, pages: [{ size: 2, fromEnd: true }], eventCursor: true },
];

/** All that can be read, as values that can be compared. */
async function look(dataPlane: DataPlane, pads: readonly PadAddress[]) {
  const readings = await dataPlane.read(pads.flatMap((pad) => wishes.map((wish) => ({ pad, ...wish }))));
  return readings.map(({ pages, ...rest }) => ({
    ...rest,
    pages: pages?.map((page) => {
      if (page instanceof DomainError) return page.code;
      const { hasNextPage, hasPreviousPage, startCursor, endCursor } = page.pageInfo;
      return {
        edges: page.edges.map(({ cursor, node }) => ({ cursor, node })),
        info: [hasNextPage, hasPreviousPage, startCursor, endCursor],
      };
    }),
  }));
}

/** Of a process that has just begun, and remembers nothing. */
const freshPlane = (): DataPlane => createDataPlane({ redis: reader.redis, limits: defaultLimits });

async function callsOf(command: string): Promise<number> {
  const client = server.client();
  const statistics = await client.info('commandstats');
  client.disconnect();
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(statistics)?.[1] ?? 0);
}

test('whatever other processes write, a process that has read before reads what one reads that has not', async () => {
  const purge = createPadPurger(writer.redis);
  const step = fc.record({
    pad: fc.nat(1),
    // Of one length, so that nothing but the number of the write tells two of them apart.
    text: fc.constantFrom('one', 'two'),
    change: fc.constantFrom('append', 'append', 'set', 'clear entries', 'clear content', 'clear and append', 'purge'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 15 }), async (steps) => {
      const { ownerId } = newPad();
      // A deleted pad is not written to any more, and its owner makes another.
      const pads = [0, 1].map(() => ({ ...newPad(), ownerId }));
      for (const { pad: number, text, change } of steps) {
        const pad = pads[number]!;
        const { dataPlane } = writer;
        if (change === 'append') await dataPlane.appendEntry(pad, { content: text });
        else if (change === 'set') await dataPlane.setContent(pad, { text });
        else if (change === 'clear entries') await dataPlane.clear(pad, 'ENTRIES');
        else if (change === 'clear content') await dataPlane.clear(pad, 'CONTENT');
        else if (change === 'purge') await purge(pad);
        else {
          await dataPlane.clear(pad, 'ENTRIES');
          await dataPlane.appendEntry(pad, { content: text });
        }
        expect(await look(reader.dataPlane, pads)).toEqual(await look(freshPlane(), pads));
        if (change === 'purge') pads[number] = { ...newPad(), ownerId };
      }
    }),
    { numRuns: 40 },
  );
});

test('a state that has expired is told as empty', async () => {
  const short = await openPlanes(server, { limits: { scratchpadTtlSeconds: 1 } });
  const pad = newPad();
  await short.dataPlane.setContent(pad, { text: 'soon gone' });
  await short.dataPlane.appendEntry(pad, { content: 'soon gone' });
  const [content] = await look(reader.dataPlane, [pad]);
  expect(content).toMatchObject({ content: { text: 'soon gone' } });
  await delay(1100);
  expect(await look(reader.dataPlane, [pad])).toEqual(await look(freshPlane(), [pad]));
  await short.close();
});

test('the same pad of another owner is another pad', async () => {
  const mine = newPad();
  const theirs = { ...mine, ownerId: newPad().ownerId };
  await writer.dataPlane.setContent(mine, { text: 'mine' });
  await look(reader.dataPlane, [mine]);
  const [reading] = await reader.dataPlane.read([{ pad: theirs, content: true }]);
  expect(reading?.content).toEqual({ text: '', version: '0', updatedAt: null });
});

test('a cursor of an entry that was cleared is refused, although the page at its place is remembered', async () => {
  const pad = newPad();
  const before = await writer.dataPlane.appendEntry(pad, { content: 'first life' });
  await writer.dataPlane.clear(pad, 'ENTRIES');
  const current = await writer.dataPlane.appendEntry(pad, { content: 'second life' });
  const behind = async (sequence: number) => {
    const [reading] = await reader.dataPlane.read([
      { pad, pages: [{ size: 5, fromEnd: false, after: [0, sequence] }] },
    ]);
    return reading!.pages![0]!;
  };
  expect(await behind(current.entry.sequence)).toMatchObject({ edges: [] });
  expect(await behind(before.entry.sequence)).toMatchObject({ code: 'INVALID_INPUT' });
  expect(await behind(current.entry.sequence)).toMatchObject({ edges: [] });
});

test('what another program has put there shows', async () => {
  const pad = newPad();
  await writer.dataPlane.appendEntry(pad, { content: 'ours' });
  await look(reader.dataPlane, [pad]);
  const client = server.client();
  await client.rpush(`scratchpad:${pad.ownerId}:${pad.scratchpadId}:entries`, 'no entry');
  await expect(reader.dataPlane.read([{ pad, pages: [{ size: 5, fromEnd: false }] }])).rejects.toThrow(/no scratchpad/);
  client.disconnect();
});

test('what has not changed is not fetched again', async () => {
  const pad = newPad();
  await writer.dataPlane.setContent(pad, { text: 'plan' });
  await writer.dataPlane.appendEntry(pad, { content: 'finding' });
  const first = await look(reader.dataPlane, [pad]);
  const before = await Promise.all([callsOf('lrange'), callsOf('get')]);
  for (let times = 0; times < 10; times += 1) expect(await look(reader.dataPlane, [pad])).toEqual(first);
  expect(await Promise.all([callsOf('lrange'), callsOf('get')])).toEqual(before);
});

test('memory is bounded: the states that nobody reads go, and a large one is not kept', () => {
  const states = createPadStates();
  const stateOf = (length: number): PadState => new PadState('1,0,0', 'x'.repeat(length), [], null);
  states.put('large', stateOf(2 ** 20));
  expect(states.get('large')).toBeUndefined();
  for (let index = 0; index < 1000; index += 1) {
    states.put(`wish ${index}`, stateOf(2 ** 16));
    states.get('wish 0');
  }
  const kept = Array.from({ length: 1000 }, (_, index) => index).filter((index) => states.get(`wish ${index}`));
  expect(kept.length).toBeLessThan(70);
  expect(kept[0]).toBe(0);
  expect(kept.at(-1)).toBe(999);
});

test('memory is bounded also where there is next to no text: names and empty pages weigh, too', () => {
  const states = createPadStates();
  const emptyPage = (): [number, string[], number, null, null] => [0, [], 0, null, null];
  const kept = (wishOf: (index: number) => string, pages: number): number => {
    for (let index = 0; index < 20_000; index += 1) {
      states.put(wishOf(index), new PadState('1,0,0', null, Array.from({ length: pages }, emptyPage), 0));
    }
    return Array.from({ length: 20_000 }, (_, index) => wishOf(index)).filter((wish) => states.get(wish)).length;
  };
  expect(kept((index) => `wish ${index}`, 0)).toBeLessThan(15_000);
  expect(kept((index) => `${index} ${'x'.repeat(1000)}`, 0)).toBeLessThan(4000);
  expect(kept((index) => `pages ${index}`, 26)).toBeLessThan(600);
});
