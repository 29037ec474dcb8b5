// Many processes write to one pad: every acknowledged entry is there once, whole, in the order in which Redis appended it.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { applyChanges, listen, newPad, openPlanes, readView, until, type Planes } from './support.js';
import type { EntryState, PadAddress } from '../../../src/scratchpads/data-plane.js';

let server: TestRedis;
let planes: Planes;

beforeAll(async () => {
  server = await startRedis();
  planes = await openPlanes(server, { bufferEvents: 10_000 });
});
afterAll(async () => {
  await planes.close();
  await server.stop();
});

async function runWriter<Acknowledged>(
  pad: PadAddress,
  mode: string,
  count: number,
  label: string,
): Promise<Acknowledged[]> {
  const script = ['--import', 'tsx', 'test/fixtures/write-to-pad.ts'];
  const values = [server.url, pad.ownerId, pad.scratchpadId, mode, String(count), label];
  const { stdout } = await promisify(execFile)(process.execPath, [...script, ...values], { maxBuffer: 2 ** 28 });
  return JSON.parse(stdout) as Acknowledged[];
}

async function readLedger(pad: PadAddress): Promise<EntryState[]> {
  const rows: EntryState[] = [];
  for (;;) {
    const last = rows.at(-1);
    const after = last && ([rows.length - 1, last.sequence] as [number, number]);
    const [reading] = await planes.dataPlane.read([
      { pad, pages: [{ size: 100, fromEnd: false, ...(after && { after }) }] },
    ]);
    const page = reading!.pages![0]!;
    if (page instanceof Error) throw page;
    rows.push(...page.edges.map(({ node }) => node));
    if (!page.pageInfo.hasNextPage) return rows;
  }
}

test('concurrent appends and a rewriter from several processes harm nothing', async () => {
  const pad = newPad();
  const listener = listen(await planes.eventPlane.subscribe(pad, {}));
  const appends = ['a', 'b', 'c'].map((label) =>
    runWriter<{ id: string; content: string; sequence: number; position: number }>(pad, 'append', 400, label),
  );
  const rewrites = runWriter<{ text: string; version: string }>(pad, 'rewrite', 200, 'rewriter');
  const acknowledged = (await Promise.all(appends)).flat();
  const versions = new Map((await rewrites).map(({ text, version }) => [version, text]));

  const ledger = await readLedger(pad);
  expect(ledger).toHaveLength(1200);
  expect(acknowledged).toHaveLength(1200);
  expect(new Set(ledger.map(({ id }) => id)).size).toBe(1200);
  for (const { id, content, sequence, position } of acknowledged) {
    expect(ledger[position]).toMatchObject({ id, content, sequence });
  }
  expect(ledger.every((entry, index) => index === 0 || entry.sequence > ledger[index - 1]!.sequence)).toBe(true);
  expect(ledger.every((entry, index) => index === 0 || entry.createdAt >= ledger[index - 1]!.createdAt)).toBe(true);

  await until('every event has come', () => listener.changes.length === 1400);
  await listener.stop();
  expect(applyChanges(listener.changes)).toEqual(await readView(planes.dataPlane, pad));
  expect(listener.changes.filter(({ replayed }) => replayed)).toEqual([]);
  const told = listener.changes.flatMap(({ content }) => content ?? []);
  expect(told.filter(({ text, version }) => versions.get(version) !== text)).toEqual([]);
}, 60_000);
