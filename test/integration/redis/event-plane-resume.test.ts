// A client that gives back its last cursor ends with exactly the state, whatever happened and wherever it dropped.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { applyChanges, listen, newPad, openPlanes, readView, until, type Planes, type View } from './support.js';
import type { PadAddress } from '../../../src/scratchpads/data-plane.js';
import type { ScratchpadChange } from '../../../src/scratchpads/event-plane.js';

let server: TestRedis;
let writer: Planes;
let reader: Planes;

beforeAll(async () => {
  server = await startRedis();
  writer = await openPlanes(server);
  reader = await openPlanes(server);
});
afterAll(async () => {
  await writer.close();
  await reader.close();
  await server.stop();
});

/** A small generator with a seed, so that a failure can be run again. */
function createRandom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** How often each plane was cleared. */
interface Clears {
  entries: number;
  content: number;
}

async function writeSomething(
  pad: PadAddress,
  random: (below: number) => number,
  count: number,
  clears: Clears,
): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const choice = random(20);
    if (choice < 12) await writer.dataPlane.appendEntry(pad, { content: `entry ${index} ${'x'.repeat(random(300))}` });
    else if (choice < 16) await writer.dataPlane.setContent(pad, { text: `text ${index}` });
    else if (choice < 17) await writer.dataPlane.setContent(pad, { text: 'L'.repeat(70_000 + index) });
    else {
      const scope = choice < 18 ? 'CONTENT' : choice < 19 ? 'ENTRIES' : 'ALL';
      if (scope !== 'ENTRIES') clears.content += 1;
      if (scope !== 'CONTENT') clears.entries += 1;
      await writer.dataPlane.clear(pad, scope);
    }
  }
}

/** Takes at most `count` changes, and fewer when nothing more comes for a while after the writing; then drops the connection. */
async function takeSome(
  pad: PadAddress,
  after: string,
  count: number,
  writing: Promise<void>,
): Promise<ScratchpadChange[]> {
  const iterator = await reader.eventPlane.subscribe(pad, { after });
  const taken: ScratchpadChange[] = [];
  const quiet = writing.then(() => delay(20));
  while (taken.length < count) {
    const result = await Promise.race([iterator.next(), quiet]);
    if (!result || result.done) break;
    taken.push(result.value);
  }
  await iterator.return!();
  return taken;
}

for (let seed = 1; seed <= 40; seed += 1) {
  test(`resumes exactly after drops at any event (seed ${seed})`, async () => {
    const random = createRandom(seed);
    const pad = newPad();
    const view: View = { text: '', version: '0', entryIds: [] };
    const clears: Clears = { entries: 0, content: 0 };
    const all: ScratchpadChange[] = [];
    let cursor = '';
    const writings: Promise<void>[] = [];
    for (let round = 0; round < 8; round += 1) {
      const writing = writeSomething(pad, random, random(12), clears);
      writings.push(writing);
      await writeSomething(pad, random, random(12), clears);
      const taken = await takeSome(pad, cursor, 1 + random(15), writing);
      applyChanges(taken, view);
      all.push(...taken);
      cursor = taken.at(-1)?.cursor ?? cursor;
    }
    await Promise.all(writings);
    const listener = listen(await reader.eventPlane.subscribe(pad, { after: cursor }));
    await writer.dataPlane.appendEntry(pad, { content: 'the end' });
    const [reading] = await reader.dataPlane.read([{ pad, eventCursor: true }]);
    await until('the last change arrives', () => listener.changes.at(-1)?.cursor === reading!.eventCursor);
    await listener.stop();
    expect(applyChanges(listener.changes, view)).toEqual(await readView(reader.dataPlane, pad));
    // Nothing is told twice: no clear more often than it happened, no small content again (a large one may stand in for an older one).
    all.push(...listener.changes);
    const told = (...operations: string[]): number =>
      all.filter(({ operation }) => operations.includes(operation)).length;
    expect(told('CLEAR_ENTRIES', 'CLEAR')).toBeLessThanOrEqual(clears.entries);
    expect(told('CLEAR_CONTENT', 'CLEAR')).toBeLessThanOrEqual(clears.content);
    const replayedVersions = all.flatMap(({ content, replayed }) => (replayed && content ? [content.version] : []));
    expect(new Set(replayedVersions).size).toBe(replayedVersions.length);
  });
}
