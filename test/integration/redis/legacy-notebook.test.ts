// A legacy notebook becomes the content once, or goes unread; never both are readable.
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNotebookConverger } from '../../../src/scratchpads/legacy-notebook.js';
import { createPadPurger } from '../../../src/scratchpads/pad-purger.js';
import { createId } from '../../../src/shared/ids.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { listen, newPad, openPlanes, silent, until, type Planes } from './support.js';

let server: TestRedis;
let admin: Redis;
let processes: Planes[];

beforeAll(async () => {
  server = await startRedis();
  admin = server.client();
  processes = await Promise.all([openPlanes(server), openPlanes(server)]);
});
afterAll(async () => {
  for (const planes of processes) await planes.close();
  await server.stop();
});

const convergeIn = (index: number, maxContentBytes = 1_048_576) =>
  createNotebookConverger({
    redis: processes[index]!.redis,
    limits: { scratchpadTtlSeconds: 100, maxContentBytes },
    logger: silent,
  });

async function start(notebook?: string) {
  const threadId = createId('thread');
  const key = `scratchpad:${threadId}:notebook`;
  if (notebook !== undefined) await admin.set(key, notebook);
  const pad = newPad();
  const readContent = async () => (await processes[0]!.dataPlane.read([{ pad, content: true }]))[0]!.content!;
  return { threadId, key, pad, readContent };
}

test('becomes the content of an empty pad, with its time, and subscribers are told', async () => {
  const { threadId, key, pad, readContent } = await start('{"content": "old p\\u00e4d", "last_updated": 1700000000.5}');
  const listener = listen(await processes[1]!.eventPlane.subscribe(pad, {}));
  await convergeIn(0)(pad, threadId);
  const content = await readContent();
  expect(content).toMatchObject({ text: 'old päd', updatedAt: '2023-11-14T22:13:20.500Z' });
  expect(await admin.exists(key)).toBe(0);
  expect(await admin.ttl(`scratchpad:${pad.ownerId}:${pad.scratchpadId}:content`)).toBeGreaterThan(90);
  await until('it was told', () => listener.changes.length === 1);
  expect(listener.changes).toMatchObject([{ operation: 'UPDATE', content }]);
  await listener.stop();
});

test('is removed unread when the pad has state, content or entries', async () => {
  for (const write of ['content', 'entries'] as const) {
    const { threadId, key, pad, readContent } = await start('{"content": "old"}');
    if (write === 'content') await processes[0]!.dataPlane.setContent(pad, { text: 'new' });
    else await processes[0]!.dataPlane.appendEntry(pad, { content: 'new' });
    await convergeIn(0)(pad, threadId);
    expect((await readContent()).text).toBe(write === 'content' ? 'new' : '');
    expect(await admin.exists(key)).toBe(0);
  }
});

test('is adopted exactly once whoever races, and never over a write', async () => {
  for (let round = 0; round < 20; round += 1) {
    const { threadId, key, pad, readContent } = await start('{"content": "old"}');
    const listener = listen(await processes[1]!.eventPlane.subscribe(pad, {}));
    const racers = Array.from({ length: 10 }, (_, index) => convergeIn(index % 2)(pad, threadId));
    const write = round % 2 === 0 ? processes[1]!.dataPlane.setContent(pad, { text: 'new' }) : undefined;
    await Promise.all([...racers, write]);
    expect(await admin.exists(key)).toBe(0);
    const { text } = await readContent();
    expect(text).toBe(write ? 'new' : 'old');
    await processes[0]!.dataPlane.appendEntry(pad, { content: 'the end' });
    await until('all has come', () => listener.changes.at(-1)?.operation === 'APPEND');
    const texts = listener.changes.flatMap(({ content }) => content?.text ?? []);
    expect([['old'], ['old', 'new'], ['new']]).toContainEqual(texts);
    await listener.stop();
  }
});

test('without a notebook nothing happens and nothing is written', async () => {
  const { threadId, pad } = await start();
  await convergeIn(0)(pad, threadId);
  expect(await admin.keys(`*${pad.scratchpadId}*`)).toEqual([]);
});

test('an empty one just goes; one that is no notebook is kept as the text that it is', async () => {
  for (const [notebook, text] of [
    ['{"content": ""}', ''],
    ['plain words', 'plain words'],
    ['{"content": 5}', '{"content": 5}'],
    ['[1,2]', '[1,2]'],
    ['{"content": "nul\\u0000 and half \\ud800", "last_updated": 1e300}', 'nul\uFFFD and half \uFFFD'],
    ['{"content": "x", "last_updated": "soon"}', '{"content": "x", "last_updated": "soon"}'],
  ] as const) {
    const { threadId, key, pad, readContent } = await start(notebook);
    await convergeIn(0)(pad, threadId);
    expect((await readContent()).text).toBe(text);
    expect(await admin.exists(key)).toBe(0);
  }
});

test('nothing is brought back for a pad that was deleted', async () => {
  const { threadId, pad } = await start('{"content": "old"}');
  await createPadPurger(processes[0]!.redis)(pad);
  await expect(convergeIn(0)(pad, threadId)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(await admin.keys(`*${pad.scratchpadId}*`)).toEqual([`tombstone:${pad.scratchpadId}`]);
});
