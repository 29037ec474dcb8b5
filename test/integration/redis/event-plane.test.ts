// Live changes: what a subscriber is told, in which order, when it begins, how it ends, what it leaves behind.
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DomainError } from '../../../src/shared/errors.js';
import { createPadPurger } from '../../../src/scratchpads/pad-purger.js';
import type { PadAddress } from '../../../src/scratchpads/data-plane.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { listen, newPad, openPlanes, until, type Planes } from './support.js';

let server: TestRedis;
let admin: Redis;
let writer: Planes;
let reader: Planes;

beforeAll(async () => {
  server = await startRedis();
  admin = server.client();
  [writer, reader] = await Promise.all([openPlanes(server), openPlanes(server)]);
});
afterAll(async () => {
  await writer.close();
  await reader.close();
  await server.stop();
});

const channelOf = (pad: PadAddress): string => `events:${pad.ownerId}:${pad.scratchpadId}`;

async function eventCursor(pad: PadAddress): Promise<string> {
  const [reading] = await reader.dataPlane.read([{ pad, eventCursor: true }]);
  return reading!.eventCursor!;
}

/** The operations that come within a moment. */
async function operationsOf(pad: PadAddress, after?: string): Promise<string[]> {
  const listener = listen(await reader.eventPlane.subscribe(pad, after === undefined ? {} : { after }));
  await delay(60);
  await listener.stop();
  return listener.changes.map(({ operation }) => operation);
}

describe('live', () => {
  test('every change of any process comes in order, with what it was', async () => {
    const pad = newPad();
    const listener = listen(await reader.eventPlane.subscribe(pad, {}));
    const { entry } = await writer.dataPlane.appendEntry(pad, {
      content: 'finding',
      author: 'worker',
      runId: 'run_1',
      assistantId: 'asst_1',
    });
    const content = await reader.dataPlane.setContent(pad, { text: 'plan' });
    await writer.dataPlane.clear(pad, 'CONTENT');
    await writer.dataPlane.clear(pad, 'ENTRIES');
    await writer.dataPlane.clear(pad, 'ALL', { runId: 'run_2' });
    await until('all have come', () => listener.changes.length === 5);
    await listener.stop();
    const [append, update, clearContent, clearEntries, clear] = listener.changes;
    expect(append).toMatchObject({
      operation: 'APPEND',
      entry,
      runId: 'run_1',
      assistantId: 'asst_1',
      replayed: false,
    });
    expect(append!.occurredAt.toISOString()).toBe(entry.createdAt);
    expect(append!.expiresAt!.getTime()).toBe(Date.parse(entry.createdAt) + 86_400_000);
    expect(append!.content).toBeUndefined();
    expect(update).toMatchObject({ operation: 'UPDATE', content, runId: null, assistantId: null, replayed: false });
    expect(clearContent).toMatchObject({ operation: 'CLEAR_CONTENT' });
    expect(clearContent!.expiresAt).not.toBeNull();
    expect(clearEntries).toMatchObject({ operation: 'CLEAR_ENTRIES', expiresAt: null });
    expect(clear).toMatchObject({ operation: 'CLEAR', runId: 'run_2', expiresAt: null });
    expect(new Set(listener.changes.map(({ cursor }) => cursor)).size).toBe(5);
    expect(clear!.cursor).toBe(await eventCursor(pad));
  });

  test('without after, what was before the subscription is not told, even if it was written a moment ago', async () => {
    for (let round = 0; round < 30; round += 1) {
      const pad = newPad();
      const first = listen(await reader.eventPlane.subscribe(pad, {}));
      await writer.dataPlane.appendEntry(pad, { content: 'before' });
      const second = listen(await reader.eventPlane.subscribe(pad, {}));
      await writer.dataPlane.appendEntry(pad, { content: 'after' });
      await until('both have it', () => first.changes.length === 2 && second.changes.length >= 1);
      expect(second.changes.map(({ entry }) => entry!.content)).toEqual(['after']);
      await first.stop();
      await second.stop();
    }
  });

  test('all subscribers of one pad share one parsed, frozen change and one Redis subscription', async () => {
    const pad = newPad();
    const listeners = await Promise.all(
      Array.from({ length: 100 }, async () => listen(await reader.eventPlane.subscribe(pad, {}))),
    );
    await writer.dataPlane.appendEntry(pad, { content: 'x' });
    await writer.dataPlane.setContent(pad, { text: 'L'.repeat(100_000) });
    await until('all have it', () => listeners.every(({ changes }) => changes.length === 2));
    for (const index of [0, 1]) {
      expect(new Set(listeners.map(({ changes }) => changes[index])).size).toBe(1);
      expect(Object.isFrozen(listeners[0]!.changes[index])).toBe(true);
    }
    expect(Object.isFrozen(listeners[0]!.changes[0]!.entry)).toBe(true);
    expect(await admin.pubsub('NUMSUB', channelOf(pad))).toEqual([channelOf(pad), 1]);
    for (const listener of listeners) await listener.stop();
  });

  test('a content too large for an event is told with its text, as a live change, and nothing overtakes it', async () => {
    const pad = newPad();
    const listener = listen(await reader.eventPlane.subscribe(pad, {}));
    const texts = ['small', 'L'.repeat(70_000), 'é'.repeat(40_000), 'M'.repeat(1_000_000), 'small again'];
    for (const text of texts) {
      await writer.dataPlane.setContent(pad, { text });
      await until('it has come', () => listener.changes.at(-1)?.content?.text === text);
      await writer.dataPlane.appendEntry(pad, { content: `after ${text.length}` });
    }
    await until('all have come', () => listener.changes.length === 10);
    expect(listener.changes.map(({ operation, replayed }) => `${operation} ${replayed}`)).toEqual(
      texts.flatMap(() => ['UPDATE false', 'APPEND false']),
    );
    await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        index % 3 === 0
          ? writer.dataPlane.setContent(pad, { text: `${index} `.repeat(40_000) })
          : writer.dataPlane.appendEntry(pad, { content: `${index}` }),
      ),
    );
    await until('all have come', () => listener.changes.length === 40);
    const numbers = listener.changes.filter(({ entry }) => entry).map(({ entry }) => entry!.sequence);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(listener.changes.every(({ replayed }) => !replayed)).toBe(true);
    const [reading] = await reader.dataPlane.read([{ pad, content: true }]);
    expect(listener.changes.findLast(({ operation }) => operation === 'UPDATE')!.content).toEqual(reading!.content);
    await listener.stop();
  });

  test('the content of updates never goes back, also where a newer one was read for a large one', async () => {
    const pad = newPad();
    const listener = listen(await reader.eventPlane.subscribe(pad, {}));
    const texts = ['L'.repeat(70_000), 'small', 'M'.repeat(70_000), 'small again', 'N'.repeat(70_000)];
    // At once: when the first of them is read, the last one is there.
    const written = await Promise.all(texts.map((text) => writer.dataPlane.setContent(pad, { text })));
    await writer.dataPlane.appendEntry(pad, { content: 'x' });
    await writer.dataPlane.setContent(pad, { text: 'behind all of it' });
    await until('all have come', () => listener.changes.at(-1)?.content?.text === 'behind all of it');
    expect(listener.changes.map(({ operation, replayed }) => `${operation} ${replayed}`)).toEqual([
      ...texts.map(() => 'UPDATE false'),
      'APPEND false',
      'UPDATE false',
    ]);
    const contents = listener.changes.flatMap(({ content }) => content ?? []);
    const versions = contents.map(({ version }) => Number(version));
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
    // Each is at least as new as its event, and none is a mixture.
    for (const [index, { version, text }] of contents.slice(0, texts.length).entries()) {
      expect(Number(version)).toBeGreaterThanOrEqual(Number(written[index]!.version));
      expect(text).toBe(texts[written.findIndex((one) => one.version === version)]);
    }
    await listener.stop();
  });

  test('a large content that was cleared before it could be read is told as cleared, not as an empty update', async () => {
    const pad = newPad();
    await writer.dataPlane.setContent(pad, { text: 'before' });
    const listener = listen(await reader.eventPlane.subscribe(pad, {}));
    await Promise.all([
      writer.dataPlane.setContent(pad, { text: 'L'.repeat(70_000) }),
      writer.dataPlane.clear(pad, 'CONTENT'),
    ]);
    await writer.dataPlane.appendEntry(pad, { content: 'the end' });
    await until('the last has come', () => listener.changes.at(-1)?.operation === 'APPEND');
    expect(listener.changes.map(({ operation }) => operation)).toEqual(['CLEAR_CONTENT', 'APPEND']);
    await listener.stop();
  });

  test('a message that is no event is dropped, and the next event still comes', async () => {
    const pad = newPad();
    const listener = listen(await reader.eventPlane.subscribe(pad, {}));
    for (const message of ['no json', '[]', 'null', '{"operation":"APPEND"}', '{"operation":"DROP","number":1}', '5']) {
      await admin.publish(channelOf(pad), message);
    }
    await writer.dataPlane.appendEntry(pad, { content: 'x' });
    await until('it has come', () => listener.changes.length > 0);
    expect(listener.changes).toMatchObject([{ operation: 'APPEND', replayed: false }]);
    await listener.stop();
  });
});

describe('after', () => {
  test('"" tells the whole current state and nothing of what was cleared', async () => {
    const pad = newPad();
    await writer.dataPlane.appendEntry(pad, { content: 'cleared' });
    await writer.dataPlane.setContent(pad, { text: 'cleared' });
    await writer.dataPlane.clear(pad, 'ALL');
    expect(await operationsOf(pad, '')).toEqual([]);
    await writer.dataPlane.appendEntry(pad, { content: 'a' });
    await writer.dataPlane.setContent(pad, { text: 'b' });
    await writer.dataPlane.appendEntry(pad, { content: 'c' });
    const listener = listen(await reader.eventPlane.subscribe(pad, { after: '' }));
    await until('all have come', () => listener.changes.length === 3);
    expect(listener.changes).toMatchObject([
      { operation: 'APPEND', replayed: true, entry: { content: 'a' } },
      { operation: 'APPEND', replayed: true, entry: { content: 'c' } },
      { operation: 'UPDATE', replayed: true, content: { text: 'b' } },
    ]);
    await writer.dataPlane.appendEntry(pad, { content: 'd' });
    await until('the live one has come', () => listener.changes.length === 4);
    expect(listener.changes[3]).toMatchObject({ replayed: false, entry: { content: 'd' } });
    await listener.stop();
  });

  test('eventCursor goes on from exactly the state that was read', async () => {
    const pad = newPad();
    await writer.dataPlane.appendEntry(pad, { content: 'seen' });
    const cursor = await eventCursor(pad);
    expect(await operationsOf(pad, cursor)).toEqual([]);
    await writer.dataPlane.appendEntry(pad, { content: 'new' });
    expect(await operationsOf(pad, cursor)).toEqual(['APPEND']);
    const empty = await eventCursor(newPad());
    expect(empty).toMatch(/^0\./);
  });

  test('a clear since the cursor is told first, by what was cleared, also when nothing had been seen', async () => {
    const pad = newPad();
    const atNothing = await eventCursor(pad);
    await writer.dataPlane.appendEntry(pad, { content: 'a' });
    await writer.dataPlane.setContent(pad, { text: 'a' });
    const atState = await eventCursor(pad);
    await writer.dataPlane.clear(pad, 'ENTRIES');
    expect(await operationsOf(pad, atState)).toEqual(['CLEAR_ENTRIES']);
    await writer.dataPlane.appendEntry(pad, { content: 'b' });
    expect(await operationsOf(pad, atState)).toEqual(['CLEAR_ENTRIES', 'APPEND']);
    await writer.dataPlane.clear(pad, 'CONTENT');
    expect(await operationsOf(pad, atState)).toEqual(['CLEAR', 'APPEND']);
    await writer.dataPlane.setContent(pad, { text: 'b' });
    expect(await operationsOf(pad, atState)).toEqual(['CLEAR', 'APPEND', 'UPDATE']);
    expect(await operationsOf(pad, atNothing)).toEqual(['CLEAR', 'APPEND', 'UPDATE']);
  });

  test('what the server cannot read as a cursor of this pad is INVALID_INPUT', async () => {
    const pad = newPad();
    await writer.dataPlane.appendEntry(pad, { content: 'x' });
    const foreign = await eventCursor(newPad());
    const own = await eventCursor(pad);
    for (const after of [
      foreign,
      'x',
      '.',
      '0',
      `${own} `,
      ` ${own}`,
      own.toUpperCase(),
      `0${own}`,
      `-${own}`,
      'x'.repeat(10_000),
      '1.2.3.4',
      '\u0000',
      own.slice(1) + 'ü',
    ]) {
      const error = await reader.eventPlane.subscribe(pad, { after }).catch((reason: unknown) => reason);
      expect(error, after).toMatchObject({ code: 'INVALID_INPUT' });
    }
    expect(await admin.pubsub('NUMSUB', channelOf(pad))).toEqual([channelOf(pad), 0]);
  });

  test('a long ledger is told page by page, once, while more is appended', async () => {
    const pad = newPad();
    const ids: string[] = [];
    for (let start = 0; start < 1500; start += 100) {
      const some = await Promise.all(
        Array.from({ length: 100 }, () => writer.dataPlane.appendEntry(pad, { content: 'x'.repeat(100) })),
      );
      ids.push(...some.map(({ entry }) => entry.id));
    }
    const listener = listen(await reader.eventPlane.subscribe(pad, { after: '' }));
    for (let index = 0; index < 200; index += 1) {
      ids.push((await writer.dataPlane.appendEntry(pad, { content: 'y' })).entry.id);
    }
    await until('all have come', () => listener.changes.length >= 1700);
    await delay(50);
    expect(listener.changes.map(({ entry }) => entry!.id)).toEqual(ids);
    expect(listener.changes.at(-1)!.replayed).toBe(false);
    await listener.stop();
  });
});

describe('the end', () => {
  test('DELETE is the last change, and everything completes', async () => {
    const pad = newPad();
    await writer.dataPlane.appendEntry(pad, { content: 'x' });
    const live = listen(await reader.eventPlane.subscribe(pad, {}));
    const idle = await reader.eventPlane.subscribe(pad, { after: '' });
    await createPadPurger(writer.redis)(pad);
    await createPadPurger(writer.redis)(pad);
    await until('it has ended', () => live.ended !== undefined);
    expect(live.changes).toMatchObject([{ operation: 'DELETE', replayed: false, expiresAt: null }]);
    expect(live.ended).toEqual({});
    const late = listen(idle);
    await until('it has ended, too', () => late.ended !== undefined);
    expect(late.changes.map(({ operation }) => operation)).toEqual(['APPEND', 'DELETE']);
    expect(await admin.pubsub('NUMSUB', channelOf(pad))).toEqual([channelOf(pad), 0]);
  });

  test('a deletion that came between the check of the pad and the subscription is told', async () => {
    const pad = newPad();
    await createPadPurger(writer.redis)(pad);
    const listener = listen(await reader.eventPlane.subscribe(pad, {}));
    await until('it has ended', () => listener.ended !== undefined);
    expect(listener.changes).toMatchObject([{ operation: 'DELETE', replayed: true }]);
  });

  test('EXPIRE comes when the state’s time is over, and a later write follows it without a gap', async () => {
    const pad = newPad();
    const short = await openPlanes(server, { limits: { scratchpadTtlSeconds: 1 } });
    const listener = listen(await reader.eventPlane.subscribe(pad, {}));
    await short.dataPlane.appendEntry(pad, { content: 'x' });
    await delay(500);
    await short.dataPlane.setContent(pad, { text: 'keeps it alive' });
    await delay(800);
    expect(listener.changes.map(({ operation }) => operation)).toEqual(['APPEND', 'UPDATE']);
    await until('it has expired', () => listener.changes.length === 3, 2000);
    expect(listener.changes[2]).toMatchObject({ operation: 'EXPIRE', replayed: false, expiresAt: null });
    expect(listener.changes[2]!.cursor).toBe(await eventCursor(pad));
    await short.dataPlane.appendEntry(pad, { content: 'a new life' });
    await until('the new life has begun', () => listener.changes.length === 4);
    expect(listener.changes[3]).toMatchObject({ operation: 'APPEND', replayed: false });
    await listener.stop();

    const [append, , expire] = listener.changes;
    expect(await operationsOf(pad, append!.cursor)).toEqual(['EXPIRE', 'APPEND']);
    expect(await operationsOf(pad, expire!.cursor)).toEqual(['APPEND']);
    await delay(1200);
    expect(await operationsOf(pad, append!.cursor)).toEqual(['EXPIRE']);
    expect(await operationsOf(pad, expire!.cursor)).toEqual([]);
    await short.close();
  });

  test('a subscriber of a state that it did not see being written is told of its expiry, too', async () => {
    const pad = newPad();
    const short = await openPlanes(server, { limits: { scratchpadTtlSeconds: 1 } });
    await short.dataPlane.appendEntry(pad, { content: 'x' });
    const listener = listen(await reader.eventPlane.subscribe(pad, {}));
    await until('it has expired', () => listener.changes.length === 1, 3000);
    expect(listener.changes[0]).toMatchObject({ operation: 'EXPIRE' });
    await listener.stop();
    await short.close();
  });

  test('a scratchpad that was cleared does not expire: whoever has seen the clear knows of nothing that could', async () => {
    const pad = newPad();
    const short = await openPlanes(server, { limits: { scratchpadTtlSeconds: 1 } });
    const listener = listen(await reader.eventPlane.subscribe(pad, {}));
    await short.dataPlane.appendEntry(pad, { content: 'x' });
    await short.dataPlane.setContent(pad, { text: 'y' });
    await short.dataPlane.clear(pad, 'ALL');
    await until('the clear is told', () => listener.changes.length === 3);
    const [append, , clear] = listener.changes;
    const sequence = `sequence:${pad.ownerId}:${pad.scratchpadId}`;
    await until('its bookkeeping is gone', async () => (await writer.redis.commands.exists(sequence)) === 0);
    expect(await operationsOf(pad, clear!.cursor)).toEqual([]);
    // Whoever has seen the state before the clear, is told.
    expect(await operationsOf(pad, append!.cursor)).toEqual(['EXPIRE']);
    await short.dataPlane.appendEntry(pad, { content: 'a new life' });
    await until('the new life is told', () => listener.changes.length >= 4);
    expect(listener.changes.map(({ operation }) => operation)).toEqual(['APPEND', 'UPDATE', 'CLEAR', 'APPEND']);
    expect(await operationsOf(pad, clear!.cursor)).toEqual(['APPEND']);
    await listener.stop();
    await short.close();
  });

  test('closing the plane completes every subscription and takes no new one', async () => {
    const closing = await openPlanes(server);
    const pads = [newPad(), newPad()];
    const listeners = await Promise.all(
      [...pads, ...pads].map(async (pad) => listen(await closing.eventPlane.subscribe(pad, {}))),
    );
    closing.eventPlane.close();
    await until('all have ended', () => listeners.every(({ ended }) => ended !== undefined));
    expect(listeners.map(({ ended }) => ended)).toEqual(listeners.map(() => ({})));
    await expect(closing.eventPlane.subscribe(newPad(), {})).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await closing.close();
  });
});

describe('a slow subscriber', () => {
  test('ends with SUBSCRIBER_TOO_SLOW and a cursor from which nothing is lost', async () => {
    const planes = await openPlanes(server, { bufferEvents: 10 });
    const pad = newPad();
    const iterator = await planes.eventPlane.subscribe(pad, {});
    const fast = listen(await planes.eventPlane.subscribe(pad, {}));
    const ids: string[] = [];
    const append = async (): Promise<void> => {
      ids.push((await writer.dataPlane.appendEntry(pad, { content: 'x' })).entry.id);
    };
    for (let index = 0; index < 8; index += 1) await append();
    await until('they have come', () => fast.changes.length === 8);
    const first = await iterator.next();
    expect(first.value).toMatchObject({ operation: 'APPEND' });
    for (let index = 0; index < 12; index += 1) await append();
    await until('they have come', () => fast.changes.length === 20);
    const error = await iterator.next().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(DomainError);
    expect(error).toMatchObject({ code: 'SUBSCRIBER_TOO_SLOW', details: { lastCursor: first.value!.cursor } });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });

    const resumed = listen(await planes.eventPlane.subscribe(pad, { after: first.value!.cursor }));
    await until('the rest has come', () => resumed.changes.length === 19);
    expect(resumed.changes.map(({ entry }) => entry!.id)).toEqual(ids.slice(1));
    expect(fast.changes.map(({ entry }) => entry!.id)).toEqual(ids);
    await resumed.stop();
    await fast.stop();
    expect(await admin.pubsub('NUMSUB', channelOf(pad))).toEqual([channelOf(pad), 0]);
    await planes.close();
  });

  test('is bounded by the size of what waits as well', async () => {
    const planes = await openPlanes(server, { bufferEvents: 1000, bufferBytes: 200_000 });
    const pad = newPad();
    const iterator = await planes.eventPlane.subscribe(pad, {});
    const fast = listen(await planes.eventPlane.subscribe(pad, {}));
    for (let index = 0; index < 5; index += 1) await writer.dataPlane.appendEntry(pad, { content: 'x'.repeat(60_000) });
    await until('they have come', () => fast.changes.length === 5);
    await expect(iterator.next()).rejects.toMatchObject({ code: 'SUBSCRIBER_TOO_SLOW' });
    await fast.stop();
    await planes.close();
  });

  test('that never reads its replay ends as well', async () => {
    const planes = await openPlanes(server, { bufferEvents: 10 });
    const pad = newPad();
    for (let index = 0; index < 300; index += 1) await writer.dataPlane.appendEntry(pad, { content: 'old' });
    const iterator = await planes.eventPlane.subscribe(pad, { after: '' });
    const fast = listen(await planes.eventPlane.subscribe(pad, {}));
    for (let index = 0; index < 20; index += 1) await writer.dataPlane.appendEntry(pad, { content: 'new' });
    await until('they have come', () => fast.changes.length === 20);
    await expect(iterator.next()).rejects.toMatchObject({ code: 'SUBSCRIBER_TOO_SLOW' });
    await fast.stop();
    await planes.close();
  });

  test('that reads slowly but reads is served its replay however much is written meanwhile', async () => {
    const planes = await openPlanes(server, { bufferEvents: 10 });
    const pad = newPad();
    for (let index = 0; index < 400; index += 1) await writer.dataPlane.appendEntry(pad, { content: `${index}` });
    const iterator = await planes.eventPlane.subscribe(pad, { after: '' });
    const contents: string[] = [];
    for (let index = 400; index < 800; index += 1) {
      await writer.dataPlane.appendEntry(pad, { content: `${index}` });
      const result = await iterator.next();
      contents.push(result.value!.entry!.content);
    }
    const rest = listen(iterator);
    await until('all have come', () => contents.length + rest.changes.length === 800);
    await rest.stop();
    const all = [...contents, ...rest.changes.map(({ entry }) => entry!.content)];
    expect(all).toEqual(all.map((_, index) => String(index)));
    await planes.close();
  });
});

describe('what a subscription leaves behind', () => {
  test('a thousand opened and closed in every way leave no channel', async () => {
    const pads = Array.from({ length: 20 }, newPad);
    const endings: IteratorResult<unknown>[] = [];
    const openAndClose = async (index: number): Promise<void> => {
      const pad = pads[index % pads.length]!;
      const iterator = await reader.eventPlane.subscribe(pad, index % 3 === 0 ? { after: '' } : {});
      if (index % 4 === 0) {
        const waiting = iterator.next();
        await iterator.return!();
        endings.push(await waiting);
      } else if (index % 4 === 1) {
        await iterator.return!();
        await iterator.return!();
      } else if (index % 4 === 2) {
        await iterator.throw!(new Error('the client')).catch(() => undefined);
      } else {
        const waiting = iterator.next();
        await writer.dataPlane.appendEntry(pad, { content: 'x' });
        await waiting;
        await iterator.return!();
      }
      endings.push(await iterator.next());
    };
    for (let start = 0; start < 1000; start += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, offset) => openAndClose(start + offset)));
    }
    expect(endings).toEqual(endings.map(() => ({ done: true, value: undefined })));
    await until('no channel is left', async () => (await admin.pubsub('CHANNELS', 'events:*')).length === 0);
    const late = listen(await reader.eventPlane.subscribe(pads[0]!, {}));
    await writer.dataPlane.appendEntry(pads[0]!, { content: 'still works' });
    await until('it has come', () => late.changes.length === 1);
    await late.stop();
  });

  test('opening again at the moment of closing misses nothing', async () => {
    const pad = newPad();
    for (let round = 0; round < 50; round += 1) {
      const old = await reader.eventPlane.subscribe(pad, {});
      const [fresh] = await Promise.all([reader.eventPlane.subscribe(pad, {}), old.return!()]);
      const another = await reader.eventPlane.subscribe(pad, {});
      const listeners = [listen(fresh), listen(another)];
      await writer.dataPlane.appendEntry(pad, { content: `${round}` });
      await until('both have it', () => listeners.every(({ changes }) => changes.length > 0));
      expect(listeners.map(({ changes }) => changes.length)).toEqual([1, 1]);
      for (const listener of listeners) await listener.stop();
    }
  });
});
