// Pages of the ledger agree with a plain array, wherever they lie, and cost what their own rows cost.
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DomainError } from '../../../src/shared/errors.js';
import type { PageRequest } from '../../../src/shared/pagination.js';
import type { EntryKey, EntryState, PadAddress } from '../../../src/scratchpads/data-plane.js';
import { entryCursorCodec } from '../../../src/scratchpads/data-plane.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { newPad, openPlanes, type Planes } from './support.js';

let server: TestRedis;
let planes: Planes;
const pad = newPad();
const entries: EntryState[] = [];

beforeAll(async () => {
  server = await startRedis();
  planes = await openPlanes(server);
  for (let index = 0; index < 30; index += 1) {
    entries.push((await planes.dataPlane.appendEntry(pad, { content: `entry ${index}` })).entry);
  }
});
afterAll(async () => {
  await planes.close();
  await server.stop();
});

const keyOf = (position: number): EntryKey => [position, entries[position]!.sequence];

async function readPage(of: PadAddress, request: PageRequest<EntryKey>) {
  const [reading] = await planes.dataPlane.read([{ pad: of, pages: [request] }]);
  return reading!.pages![0]!;
}

test('every page is what slicing an array gives', async () => {
  const position = fc.option(fc.integer({ min: 0, max: 29 }), { nil: undefined });
  const request = fc.record({
    size: fc.integer({ min: 0, max: 35 }),
    fromEnd: fc.boolean(),
    after: position,
    before: position,
  });
  await fc.assert(
    fc.asyncProperty(request, async ({ size, fromEnd, after, before }) => {
      const range = entries.slice(after === undefined ? 0 : after + 1, before ?? 30);
      const expected = fromEnd ? range.slice(Math.max(range.length - size, 0)) : range.slice(0, size);
      const page = await readPage(pad, {
        size,
        fromEnd,
        ...(after !== undefined && { after: keyOf(after) }),
        ...(before !== undefined && { before: keyOf(before) }),
      });
      if (page instanceof DomainError) throw page;
      expect(page.edges.map(({ node }) => node)).toEqual(expected);
      const more = range.length > expected.length;
      expect(fromEnd ? page.pageInfo.hasPreviousPage : page.pageInfo.hasNextPage).toBe(more);
      const codec = entryCursorCodec(pad.scratchpadId);
      for (const { cursor, node } of page.edges) {
        expect(codec.decode(cursor, 'after')).toEqual(keyOf(entries.findIndex(({ id }) => id === node.id)));
      }
    }),
    { numRuns: 300 },
  );
});

test('a walk in both directions meets every entry once, also while entries are appended', async () => {
  const growing = newPad();
  for (let index = 0; index < 25; index += 1) await planes.dataPlane.appendEntry(growing, { content: `${index}` });
  const codec = entryCursorCodec(growing.scratchpadId);
  const forwards: string[] = [];
  let after: string | null = null;
  for (let extra = 25; ; extra += 1) {
    const page = await readPage(growing, {
      size: 4,
      fromEnd: false,
      ...(after && { after: codec.decode(after, 'after') }),
    });
    if (page instanceof DomainError) throw page;
    forwards.push(...page.edges.map(({ node }) => node.content));
    if (!page.pageInfo.hasNextPage) break;
    after = page.pageInfo.endCursor;
    await planes.dataPlane.appendEntry(growing, { content: `${extra}` });
  }
  expect(forwards).toEqual(forwards.map((_, index) => String(index)));
  const backwards: string[] = [];
  let before: string | null = null;
  do {
    const page = await readPage(growing, {
      size: 7,
      fromEnd: true,
      ...(before && { before: codec.decode(before, 'before') }),
    });
    if (page instanceof DomainError) throw page;
    backwards.unshift(...page.edges.map(({ node }) => node.content));
    before = page.pageInfo.hasPreviousPage ? page.pageInfo.startCursor : null;
    await planes.dataPlane.appendEntry(growing, { content: 'later' });
  } while (before);
  expect(backwards.filter((content) => content !== 'later')).toEqual(forwards);
});

test('a cursor whose entry was cleared is refused for its page alone, also when another entry lies there now', async () => {
  const cleared = newPad();
  const { entry } = await planes.dataPlane.appendEntry(cleared, { content: 'gone' });
  await planes.dataPlane.clear(cleared, 'ENTRIES');
  const stale: EntryKey = [0, entry.sequence];
  expect(await readPage(cleared, { size: 5, fromEnd: false, after: stale })).toMatchObject({ code: 'INVALID_INPUT' });
  await planes.dataPlane.appendEntry(cleared, { content: 'new' });
  const [reading] = await planes.dataPlane.read([
    {
      pad: cleared,
      entryCount: true,
      pages: [
        { size: 5, fromEnd: false, after: stale },
        { size: 5, fromEnd: true, before: stale },
        { size: 5, fromEnd: false },
      ],
    },
  ]);
  expect(reading!.entryCount).toBe(1);
  expect(reading!.pages).toMatchObject([
    { code: 'INVALID_INPUT' },
    { code: 'INVALID_INPUT' },
    { edges: [{ node: { content: 'new' } }] },
  ]);
});

test('an entry whose text imitates a row does not confuse its cursor', async () => {
  const tricky = newPad();
  const text = '","created_at":"2020-01-01T00:00:00.000Z","sequence":5,"author":"x"}';
  const { entry } = await planes.dataPlane.appendEntry(tricky, { content: text, author: '"sequence":6' });
  await planes.dataPlane.appendEntry(tricky, { content: 'next' });
  expect(await readPage(tricky, { size: 5, fromEnd: false, after: [0, entry.sequence] })).toMatchObject({
    edges: [{ node: { content: 'next' } }],
  });
  expect(await readPage(tricky, { size: 5, fromEnd: false, after: [0, 5] })).toMatchObject({ code: 'INVALID_INPUT' });
  const long = newPad();
  const longEntry = await planes.dataPlane.appendEntry(long, {
    content: 'x'.repeat(60_000),
    author: '\u0001'.repeat(200),
  });
  expect(await readPage(long, { size: 5, fromEnd: false, after: [0, longEntry.entry.sequence] })).toMatchObject({
    edges: [],
  });
});

test('many pads and wishes are one command', async () => {
  const pads = Array.from({ length: 50 }, newPad);
  await Promise.all(pads.map((one, index) => planes.dataPlane.appendEntry(one, { content: `${index}` })));
  const admin = server.client();
  await planes.dataPlane.read([{ pad: pads[0]!, content: true }]);
  await admin.config('RESETSTAT');
  const readings = await planes.dataPlane.read(
    pads.map((one) => ({
      pad: one,
      content: true,
      entryCount: true,
      eventCursor: true,
      expiresAt: true,
      formattedView: true,
      pages: [
        { size: 20, fromEnd: false },
        { size: 20, fromEnd: true },
      ],
    })),
  );
  expect(readings.map(({ entryCount }) => entryCount)).toEqual(pads.map(() => 1));
  const stats = await admin.info('commandstats');
  expect(stats).toMatch(/cmdstat_evalsha:calls=1,/);
});

test('the last page of a long ledger costs about what the first one does, and a view does not load it', async () => {
  const long = newPad();
  const admin = server.client();
  const key = `scratchpad:${long.ownerId}:${long.scratchpadId}:entries`;
  for (let start = 0; start < 100_000; start += 5000) {
    const rows = Array.from({ length: 5000 }, (_, index) => {
      const sequence = start + index + 1;
      return `{"id":"entry_${sequence}","content":"${'x'.repeat(200)}","created_at":"2026-01-01T00:00:00.000Z","sequence":${sequence}}`;
    });
    await admin.rpush(key, ...rows);
  }
  const measure = async (work: () => Promise<unknown>): Promise<number> => {
    const times: number[] = [];
    for (let round = 0; round < 40; round += 1) {
      const begin = performance.now();
      await work();
      times.push(performance.now() - begin);
    }
    return times.sort((a, b) => a - b)[20]!;
  };
  const first = await measure(() => readPage(long, { size: 20, fromEnd: false }));
  const last = await measure(() => readPage(long, { size: 20, fromEnd: true }));
  const middle = await measure(() => readPage(long, { size: 20, fromEnd: false, after: [50_000, 50_001] }));
  const view = await measure(() => planes.dataPlane.read([{ pad: long, formattedView: true }]));
  expect(last).toBeLessThan(first * 3 + 1);
  expect(middle).toBeLessThan(first * 3 + 1);
  expect(view).toBeLessThan(50);
});
