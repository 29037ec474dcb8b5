// What is read at once is bounded: large reads two at a time, the owners in turn, and equal pages fetched once.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDataPlane, type PadAddress, type PadRead } from '../../../src/scratchpads/data-plane.js';
import { DomainError } from '../../../src/shared/errors.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { defaultLimits, newPad, openPlanes, until, type Planes } from './support.js';

let server: TestRedis;
let planes: Planes;

beforeAll(async () => {
  server = await startRedis();
  planes = await openPlanes(server);
});
afterAll(async () => {
  await planes.close();
  await server.stop();
});

async function filledPad(entries: number, bytes: number, pad = newPad()): Promise<PadAddress> {
  for (let number = 0; number < entries; number += 1)
    await planes.dataPlane.appendEntry(pad, { content: `${number} `.padEnd(bytes, 'x') });
  return pad;
}

const wholeLedger = (pad: PadAddress): PadRead => ({ pad, pages: [{ size: 1000, fromEnd: false }] });

test('a read of many megabytes is told as a whole', async () => {
  const pad = await filledPad(250, 30_000);
  await planes.dataPlane.setContent(pad, { text: 'é'.repeat(400_000) });
  const [reading] = await planes.dataPlane.read([
    { ...wholeLedger(pad), content: true, entryCount: true, formattedView: true, eventCursor: true },
  ]);
  const page = reading!.pages![0]!;
  if (page instanceof DomainError) throw page;
  expect(page.edges.map(({ node }) => Number.parseInt(node.content))).toEqual(
    Array.from({ length: 250 }, (_, number) => number),
  );
  expect(page.edges.every(({ node }) => node.content.length === 30_000)).toBe(true);
  expect(reading).toMatchObject({ entryCount: 250, content: { text: 'é'.repeat(400_000) } });
  expect(reading!.eventCursor).toBeTypeOf('string');
  expect(reading!.formattedView).toContain('é');
});

test('a page of more rows than are read at a time is the same from either end', async () => {
  const pad = await filledPad(350, 10);
  for (const size of [99, 100, 101, 199, 200, 201, 300, 349, 350, 351]) {
    const [reading] = await planes.dataPlane.read([
      {
        pad,
        pages: [
          { size, fromEnd: false },
          { size, fromEnd: true },
        ],
      },
    ]);
    const [first, last] = reading!.pages!.map((page) => {
      if (page instanceof DomainError) throw page;
      return page.edges.map(({ node }) => Number.parseInt(node.content));
    });
    const all = Array.from({ length: 350 }, (_, number) => number);
    expect(first).toEqual(all.slice(0, size));
    expect(last).toEqual(all.slice(-size));
  }
});

/** The most bytes that Redis held for replies while `work` was done. */
async function mostHeldDuring(work: () => Promise<void>): Promise<number> {
  const monitor = server.client();
  let most = 0;
  const over = new AbortController();
  const watching = (async () => {
    while (!over.signal.aborted) {
      const clients = String(await monitor.call('CLIENT', 'LIST', 'TYPE', 'normal'));
      const held = [...clients.matchAll(/omem=(\d+)/gu)].reduce((sum, [, bytes]) => sum + Number(bytes), 0);
      most = Math.max(most, held);
      await delay(1);
    }
  })();
  try {
    await work();
  } finally {
    over.abort();
    await watching;
  }
  return most;
}

test('Redis holds the replies to two large reads at a time, and small reads pass by', async () => {
  const pad = await filledPad(60, 60_000);
  const small = await filledPad(3, 10);
  const held = await mostHeldDuring(async () => {
    let open = 15;
    const large = Array.from({ length: open }, async () => {
      const [reading] = await planes.dataPlane.read([wholeLedger(pad)]);
      open -= 1;
      return (reading!.pages![0] as { edges: unknown[] }).edges.length;
    });
    const [reading] = await planes.dataPlane.read([wholeLedger(small)]);
    expect(reading!.pages![0]).toMatchObject({ edges: { length: 3 } });
    expect(open).toBeGreaterThan(0);
    expect(await Promise.all(large)).toEqual(Array.from({ length: 15 }, () => 60));
  });
  // One is 3.6 MB; all of them would be 54.
  expect(held).toBeLessThan(3 * 3_600_000);
});

test('of the replies just below what is large, a bounded number is held', async () => {
  const pad = newPad();
  await planes.dataPlane.setContent(pad, { text: 'x'.repeat(1_000_000) });
  const held = await mostHeldDuring(async () => {
    const readings = await Promise.all(
      Array.from({ length: 300 }, () => planes.dataPlane.read([{ pad, content: true }])),
    );
    expect(readings.every(([reading]) => reading!.content!.text.length === 1_000_000)).toBe(true);
  });
  // All of them would be 300 MB.
  expect(held).toBeLessThan(70_000_000);
}, 20_000);

test('an owner with one large read does not wait for all those of another', async () => {
  const [greedy, modest] = [await filledPad(60, 60_000), await filledPad(40, 60_000)];
  let served = 0;
  const all = Array.from({ length: 15 }, async () => {
    await planes.dataPlane.read([wholeLedger(greedy)]);
    served += 1;
  });
  await planes.dataPlane.read([wholeLedger(modest)]);
  expect(served).toBeLessThan(6);
  await Promise.all(all);
});

test('large reads that wait for a Redis that hangs fail with the others, and are served when it is back', async () => {
  const pad = await filledPad(30, 60_000);
  server.freeze();
  const began = performance.now();
  const outcomes = await Promise.allSettled(
    Array.from({ length: 100 }, () => planes.dataPlane.read([wholeLedger(pad)])),
  );
  server.thaw();
  expect(performance.now() - began).toBeLessThan(8000);
  for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { code: 'UNAVAILABLE' } });
  await until('it is served', () =>
    planes.dataPlane.read([wholeLedger(pad)]).then(
      () => true,
      () => false,
    ),
  );
}, 30_000);

test('what no answer could tell is refused, with what to do, and the pad is read as before', async () => {
  const planesOfLarge = await openPlanes(server, { limits: { maxContentBytes: 60 * 2 ** 20 } });
  try {
    const pads = [newPad(), newPad()];
    for (const pad of pads) await planesOfLarge.dataPlane.setContent(pad, { text: 'x'.repeat(50 * 2 ** 20) });
    const reading = planesOfLarge.dataPlane.read(pads.map((pad) => ({ pad, content: true })));
    await expect(reading).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      message: expect.stringContaining('fewer') as unknown,
    });
    const [one] = await planesOfLarge.dataPlane.read([{ pad: pads[0]!, content: true }]);
    expect(one!.content!.text.length).toBe(50 * 2 ** 20);
  } finally {
    await planesOfLarge.close();
  }
}, 30_000);

test('pages that are asked for side by side are each what was asked for, and equal ones are fetched once', async () => {
  const pad = await filledPad(20, 5);
  // Nothing is remembered yet.
  const fresh = createDataPlane({ redis: planes.redis, limits: defaultLimits });
  const pages = [
    { size: 2, fromEnd: false },
    { size: 3, fromEnd: true },
    { size: 2, fromEnd: false },
    { size: 2, fromEnd: true },
    { size: 3, fromEnd: true },
    { size: 5, fromEnd: false },
  ];
  const client = server.client();
  await client.config('RESETSTAT');
  const readings = await fresh.read([
    { pad, pages },
    { pad, entryCount: true },
    { pad, pages: pages.toReversed() },
  ]);
  const ranges = Number(/cmdstat_lrange:calls=(\d+)/u.exec(await client.info('commandstats'))?.[1]);
  expect(ranges).toBe(4);
  const numbersOf = (index: number) =>
    readings[index]!.pages!.map((page) => {
      if (page instanceof DomainError) throw page;
      return page.edges.map(({ node }) => Number.parseInt(node.content)).join();
    });
  const expected = ['0,1', '17,18,19', '0,1', '18,19', '17,18,19', '0,1,2,3,4'];
  expect(numbersOf(0)).toEqual(expected);
  expect(numbersOf(2)).toEqual(expected.toReversed());
  expect(readings[1]).toEqual({ entryCount: 20 });
});
