// Every write: the payload, the number, the limits, the idempotency key, the tombstone.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Redis } from 'ioredis';
import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../../src/shared/errors.js';
import { createPadPurger } from '../../../src/scratchpads/pad-purger.js';
import type { PadAddress } from '../../../src/scratchpads/data-plane.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { newPad, openPlanes, type Planes } from './support.js';

let server: TestRedis;
let admin: Redis;
let one: Planes;
/** A second process, as far as Redis can tell. */
let other: Planes;

beforeAll(async () => {
  server = await startRedis();
  admin = server.client();
  [one, other] = await Promise.all([openPlanes(server), openPlanes(server)]);
});
afterAll(async () => {
  await one.close();
  await other.close();
  await server.stop();
});

const contentKey = (pad: PadAddress): string => `scratchpad:${pad.ownerId}:${pad.scratchpadId}:content`;
const entriesKey = (pad: PadAddress): string => `scratchpad:${pad.ownerId}:${pad.scratchpadId}:entries`;
const sequenceKey = (pad: PadAddress): string => `sequence:${pad.ownerId}:${pad.scratchpadId}`;

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => 'fulfilled',
    (error: unknown) => (error instanceof DomainError ? error.code : String(error)),
  );
}

const awkward =
  'quotes " \\ / slash, [] {}, \u2028\u2029, \u0001 control, emoji 👩‍🚀, العربية, e\u0301, line\nbreak\ttab';

describe('payloads', () => {
  test('the content is stored as its document says, to the byte', async () => {
    const pad = newPad();
    const state = await one.dataPlane.setContent(pad, { text: awkward });
    expect(await admin.get(contentKey(pad))).toBe(
      `{"content":${JSON.stringify(awkward)},"updated_at":"${state.updatedAt}","version":"${state.version}"}`,
    );
    expect(await admin.type(contentKey(pad))).toBe('string');
  });

  test('an entry is stored as its document says, to the byte, with and without its optional members', async () => {
    const pad = newPad();
    const bare = await one.dataPlane.appendEntry(pad, { content: awkward });
    const full = await one.dataPlane.appendEntry(pad, {
      content: '[]',
      author: 'a "b"\n',
      runId: 'run_1',
      assistantId: 'asst_1',
    });
    expect(await admin.lrange(entriesKey(pad), 0, -1)).toEqual([
      `{"id":"${bare.entry.id}","content":${JSON.stringify(awkward)},"created_at":"${bare.entry.createdAt}","sequence":${bare.entry.sequence}}`,
      `{"id":"${full.entry.id}","content":"[]","created_at":"${full.entry.createdAt}","sequence":${full.entry.sequence},"author":"a \\"b\\"\\n","run_id":"run_1"}`,
    ]);
    expect(await admin.type(entriesKey(pad))).toBe('list');
    expect(await admin.type(sequenceKey(pad))).toBe('hash');
  });

  test('what was written is read back exactly, a mebibyte included', async () => {
    const pad = newPad();
    const large = '👩‍🚀é"\\'.repeat(70_000).slice(0, 500_000);
    const written = await one.dataPlane.setContent(pad, { text: large });
    const { entry } = await one.dataPlane.appendEntry(pad, { content: awkward, author: 'worker' });
    const [reading] = await other.dataPlane.read([{ pad, content: true, pages: [{ size: 1, fromEnd: false }] }]);
    expect(reading!.content).toEqual(written);
    expect(reading!.content!.text).toBe(large);
    expect(reading!.pages![0]).toMatchObject({ edges: [{ node: entry }] });
  });

  test('the time is Redis’s clock in ISO 8601, also around leap days and year ends', async () => {
    const pad = newPad();
    const { isoTime } = await import('../../../src/scratchpads/scripts/lua.js');
    for (const text of [
      '1970-01-01T00:00:00.000Z',
      '2000-02-29T23:59:59.999Z',
      '2024-02-29T12:00:00.001Z',
      '2026-12-31T23:59:59.999Z',
      '2100-03-01T00:00:00.000Z',
    ]) {
      expect(await admin.eval(`${isoTime} return iso_time(tonumber(ARGV[1]))`, 0, Date.parse(text))).toBe(text);
    }
    const before = Date.now();
    const { entry } = await one.dataPlane.appendEntry(pad, { content: 'now' });
    const createdAtMs = Date.parse(entry.createdAt);
    expect(createdAtMs).toBeGreaterThanOrEqual(before - 1);
    expect(createdAtMs).toBeLessThanOrEqual(Date.now() + 1);
    expect(Math.floor(entry.sequence / 1000)).toBe(createdAtMs);
  });

  test('a pad is reached through its owner and its id alone', async () => {
    const pad = newPad();
    await one.dataPlane.appendEntry(pad, { content: 'mine' });
    const [foreign] = await one.dataPlane.read([
      { pad: { ...newPad(), scratchpadId: pad.scratchpadId }, entryCount: true },
    ]);
    expect(foreign!.entryCount).toBe(0);
  });
});

describe('content', () => {
  test('was never set: empty, version 0, no time; and empty text is content', async () => {
    const pad = newPad();
    const [before] = await one.dataPlane.read([{ pad, content: true, expiresAt: true }]);
    expect(before).toEqual({ content: { text: '', version: '0', updatedAt: null }, expiresAt: null });
    const set = await one.dataPlane.setContent(pad, { text: '', expectedVersion: '0' });
    expect(set.version).not.toBe('0');
    const [after] = await one.dataPlane.read([{ pad, content: true }]);
    expect(after!.content).toEqual(set);
  });

  test('with expectedVersion each version has exactly one successor, however many race', async () => {
    const pad = newPad();
    let { version } = await one.dataPlane.setContent(pad, { text: 'start' });
    for (let round = 0; round < 10; round += 1) {
      const expectedVersion = version;
      const outcomes = await Promise.allSettled(
        Array.from({ length: 20 }, (_, index) =>
          (index % 2 === 0 ? one : other).dataPlane.setContent(pad, { text: `${round}/${index}`, expectedVersion }),
        ),
      );
      const winners = outcomes.filter((outcome) => outcome.status === 'fulfilled');
      expect(winners).toHaveLength(1);
      version = winners[0]!.value.version;
      const losers = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
      expect(losers).toMatchObject(losers.map(() => ({ code: 'CONFLICT', details: { currentVersion: version } })));
      const [reading] = await one.dataPlane.read([{ pad, content: true }]);
      expect(reading!.content).toEqual(winners[0]!.value);
    }
  });

  test('a version that never was, and an empty one, are refused', async () => {
    const pad = newPad();
    for (const expectedVersion of ['', '1', '=0', '00']) {
      await expect(one.dataPlane.setContent(pad, { text: 'x', expectedVersion })).rejects.toMatchObject({
        code: 'CONFLICT',
        details: { currentVersion: '0' },
      });
    }
    expect(await admin.exists(contentKey(pad))).toBe(0);
  });

  test('a text that looks like a version does not confuse the comparison', async () => {
    const pad = newPad();
    const { version } = await one.dataPlane.setContent(pad, { text: '","version":"5"}' });
    expect(await codeOf(one.dataPlane.setContent(pad, { text: 'x', expectedVersion: '5' }))).toBe('CONFLICT');
    await one.dataPlane.setContent(pad, { text: 'x', expectedVersion: version });
  });

  test('after a clear its version is 0 again', async () => {
    const pad = newPad();
    await one.dataPlane.setContent(pad, { text: 'x' });
    await one.dataPlane.clear(pad, 'CONTENT');
    const [reading] = await one.dataPlane.read([{ pad, content: true, expiresAt: true }]);
    expect(reading).toEqual({ content: { text: '', version: '0', updatedAt: null }, expiresAt: null });
    await one.dataPlane.setContent(pad, { text: 'y', expectedVersion: '0' });
  });
});

describe('limits', () => {
  test('hold for bytes, not characters, and for exactly the limit', async () => {
    const pad = newPad();
    const limited = await openPlanes(server, { limits: { maxContentBytes: 6, maxEntryBytes: 6 } });
    await limited.dataPlane.setContent(pad, { text: 'ééé' });
    await limited.dataPlane.appendEntry(pad, { content: 'ééé' });
    expect(await codeOf(limited.dataPlane.setContent(pad, { text: 'éééx' }))).toBe('LIMIT_EXCEEDED');
    expect(await codeOf(limited.dataPlane.appendEntry(pad, { content: 'éééx' }))).toBe('LIMIT_EXCEEDED');
    await limited.close();
  });

  test('on the number of entries hold under concurrency, over processes', async () => {
    const pad = newPad();
    const limited = await Promise.all([1, 2].map(() => openPlanes(server, { limits: { maxEntries: 25 } })));
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        codeOf(limited[index % 2]!.dataPlane.appendEntry(pad, { content: `${index}` })),
      ),
    );
    expect(outcomes.filter((code) => code === 'fulfilled')).toHaveLength(25);
    expect(outcomes.filter((code) => code === 'LIMIT_EXCEEDED')).toHaveLength(75);
    expect(await admin.llen(entriesKey(pad))).toBe(25);
    await limited[0]!.dataPlane.clear(pad, 'ENTRIES');
    await limited[1]!.dataPlane.appendEntry(pad, { content: 'room again' });
    for (const planes of limited) await planes.close();
  });
});

describe('idempotency keys', () => {
  test('a repeated append returns the first entry and writes nothing, from any process', async () => {
    const pad = newPad();
    const first = await one.dataPlane.appendEntry(pad, {
      content: 'x',
      author: 'a',
      runId: 'run_1',
      idempotencyKey: 'k:1',
    });
    const again = await other.dataPlane.appendEntry(pad, { content: 'x', author: 'b', idempotencyKey: 'k:1' });
    expect(again).toEqual(first);
    expect(await admin.llen(entriesKey(pad))).toBe(1);
  });

  test('racing duplicates write once and all get the same entry', async () => {
    const pad = newPad();
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        (index % 2 === 0 ? one : other).dataPlane.appendEntry(pad, { content: 'x', idempotencyKey: 'k' }),
      ),
    );
    expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1);
    expect(await admin.llen(entriesKey(pad))).toBe(1);
  });

  test('with another input, or for another operation, a key is a CONFLICT', async () => {
    const pad = newPad();
    await one.dataPlane.appendEntry(pad, { content: 'x', idempotencyKey: 'k' });
    expect(await codeOf(one.dataPlane.appendEntry(pad, { content: 'y', idempotencyKey: 'k' }))).toBe('CONFLICT');
    expect(await codeOf(one.dataPlane.setContent(pad, { text: 'x', idempotencyKey: 'k' }))).toBe('CONFLICT');
    await one.dataPlane.setContent(pad, { text: 'x', idempotencyKey: 's' });
    expect(await codeOf(one.dataPlane.setContent(pad, { text: 'y', idempotencyKey: 's' }))).toBe('CONFLICT');
    expect(await codeOf(one.dataPlane.setContent(pad, { text: 'x', expectedVersion: '0', idempotencyKey: 's' }))).toBe(
      'CONFLICT',
    );
    expect(await codeOf(one.dataPlane.appendEntry(pad, { content: 'x', idempotencyKey: 's' }))).toBe('CONFLICT');
    await one.dataPlane.appendEntry(newPad(), { content: 'another pad', idempotencyKey: 'k' });
  });

  test('a repeated set returns the first version, even when the content has moved on or expectedVersion with it', async () => {
    const pad = newPad();
    const change = { text: 'x', expectedVersion: '0', idempotencyKey: 'k' };
    const first = await one.dataPlane.setContent(pad, change);
    expect(await other.dataPlane.setContent(pad, change)).toEqual(first);
    await one.dataPlane.setContent(pad, { text: 'newer' });
    expect(await other.dataPlane.setContent(pad, change)).toEqual(first);
    const [reading] = await one.dataPlane.read([{ pad, content: true }]);
    expect(reading!.content!.text).toBe('newer');
  });

  test('a key whose entry was cleared meanwhile still returns it and does not append it again', async () => {
    const pad = newPad();
    const append = { content: 'x', author: 'a', runId: 'run_1', idempotencyKey: 'k' };
    const first = await one.dataPlane.appendEntry(pad, append);
    await one.dataPlane.clear(pad, 'ENTRIES');
    expect(await other.dataPlane.appendEntry(pad, append)).toEqual(first);
    expect(await admin.llen(entriesKey(pad))).toBe(0);
    await one.dataPlane.appendEntry(pad, { content: 'another, at the same position' });
    expect(await other.dataPlane.appendEntry(pad, append)).toEqual(first);
    expect(await admin.llen(entriesKey(pad))).toBe(1);
  });

  test('a write that was refused leaves its key free', async () => {
    const pad = newPad();
    await one.dataPlane.setContent(pad, { text: 'x' });
    expect(await codeOf(one.dataPlane.setContent(pad, { text: 'y', expectedVersion: '0', idempotencyKey: 'k' }))).toBe(
      'CONFLICT',
    );
    await one.dataPlane.setContent(pad, { text: 'z', idempotencyKey: 'k' });
  });

  test('are remembered for 24 hours, without text, whatever they contain', async () => {
    const pad = newPad();
    for (const idempotencyKey of ['k', 'with:colon', 'with space and * ? [x]', 'ü👩‍🚀']) {
      await one.dataPlane.appendEntry(pad, { content: 'the secret text', author: 'the author', idempotencyKey });
      await one.dataPlane.setContent(pad, { text: 'the secret text', idempotencyKey: `${idempotencyKey} set` });
      for (const key of [idempotencyKey, `${idempotencyKey} set`]) {
        const name = `idempotency:${pad.ownerId}:${pad.scratchpadId}:${key}`;
        expect(await admin.type(name)).toBe('string');
        expect(await admin.get(name)).not.toMatch(/secret|author/);
        const ttl = await admin.ttl(name);
        expect(ttl).toBeGreaterThan(86_390);
        expect(ttl).toBeLessThanOrEqual(86_400);
      }
    }
  });

  test('the index of a pad’s keys forgets those whose time is over', async () => {
    const pad = newPad();
    const index = `idempotency:${pad.ownerId}:${pad.scratchpadId}`;
    await one.dataPlane.appendEntry(pad, { content: 'x', idempotencyKey: 'old' });
    await admin.zadd(index, Date.now() - 1, `${index}:old`);
    await one.dataPlane.appendEntry(pad, { content: 'y', idempotencyKey: 'new' });
    expect(await admin.zrange(index, '0', '-1')).toEqual([`${index}:new`]);
    expect(await admin.ttl(index)).toBeGreaterThan(86_390);
  });
});

describe('expiry', () => {
  test('a write to one plane keeps both alive, and they end at the same moment', async () => {
    const pad = newPad();
    const short = await openPlanes(server, { limits: { scratchpadTtlSeconds: 1 } });
    await short.dataPlane.setContent(pad, { text: 'x' });
    await delay(600);
    await short.dataPlane.appendEntry(pad, { content: 'y' });
    await delay(600);
    const [alive] = await short.dataPlane.read([{ pad, content: true, entryCount: true, expiresAt: true }]);
    expect(alive).toMatchObject({ content: { text: 'x' }, entryCount: 1 });
    const ends = await Promise.all([contentKey, entriesKey, sequenceKey].map((key) => admin.pexpiretime(key(pad))));
    expect(new Set(ends)).toEqual(new Set([alive!.expiresAt!.getTime()]));
    await delay(600);
    const [gone] = await short.dataPlane.read([
      { pad, content: true, entryCount: true, expiresAt: true, eventCursor: true },
    ]);
    expect(gone).toMatchObject({
      content: { text: '', version: '0', updatedAt: null },
      entryCount: 0,
      expiresAt: null,
    });
    expect(await admin.exists(contentKey(pad), entriesKey(pad), sequenceKey(pad))).toBe(0);
    await short.close();
  });

  test('with a lifetime of 0 nothing expires, also what had a lifetime before', async () => {
    const pad = newPad();
    await one.dataPlane.setContent(pad, { text: 'x' });
    const lasting = await openPlanes(server, { limits: { scratchpadTtlSeconds: 0 } });
    await lasting.dataPlane.appendEntry(pad, { content: 'y' });
    for (const key of [contentKey(pad), entriesKey(pad), sequenceKey(pad)]) expect(await admin.ttl(key)).toBe(-1);
    const [reading] = await lasting.dataPlane.read([{ pad, expiresAt: true }]);
    expect(reading!.expiresAt).toBeNull();
    await lasting.close();
  });
});

describe('numbers', () => {
  test('only grow, over expiry, over a clear, and over a Redis that lost everything', async () => {
    const pad = newPad();
    const numbers: number[] = [];
    const append = async (): Promise<void> => {
      numbers.push((await one.dataPlane.appendEntry(pad, { content: 'x' })).entry.sequence);
    };
    await append();
    await append();
    await one.dataPlane.clear(pad, 'ALL');
    await append();
    await admin.pexpire(sequenceKey(pad), 1);
    await admin.pexpire(entriesKey(pad), 1);
    await delay(20);
    await append();
    await admin.del(sequenceKey(pad), entriesKey(pad));
    await append();
    numbers.push(Number((await one.dataPlane.setContent(pad, { text: 'x' })).version));
    expect(numbers.every((number, index) => index === 0 || number > numbers[index - 1]!)).toBe(true);
    expect(numbers.every(Number.isSafeInteger)).toBe(true);
  });

  test('grow by one when the clock stands behind the last number', async () => {
    const pad = newPad();
    const ahead = (Date.now() + 3_600_000) * 1000;
    await admin.hset(sequenceKey(pad), { last: ahead, entries: ahead, born: ahead - 1 });
    const { entry } = await one.dataPlane.appendEntry(pad, { content: 'x' });
    expect(entry.sequence).toBe(ahead + 1);
    expect(await admin.hget(sequenceKey(pad), 'last')).toBe(String(ahead + 1));
  });
});

describe('a deleted pad', () => {
  test('takes no write any more, and no write revives a key', async () => {
    const pad = newPad();
    await one.dataPlane.appendEntry(pad, { content: 'x', idempotencyKey: 'k' });
    await createPadPurger(one.redis)(pad);
    for (const write of [
      () => other.dataPlane.appendEntry(pad, { content: 'y' }),
      () => other.dataPlane.appendEntry(pad, { content: 'x', idempotencyKey: 'k' }),
      () => other.dataPlane.setContent(pad, { text: 'y', idempotencyKey: 'k2' }),
      () => other.dataPlane.clear(pad, 'ALL'),
    ]) {
      expect(await codeOf(write())).toBe('NOT_FOUND');
    }
    expect(await admin.keys(`*${pad.scratchpadId}*`)).toEqual([`tombstone:${pad.scratchpadId}`]);
  });

  test('is not revived by writes that race its purge', async () => {
    for (let round = 0; round < 20; round += 1) {
      const pad = newPad();
      const writes = Array.from({ length: 20 }, (_, index) =>
        codeOf(
          index % 2 === 0
            ? one.dataPlane.appendEntry(pad, { content: 'x', idempotencyKey: `k${index}` })
            : other.dataPlane.setContent(pad, { text: 'x' }),
        ),
      );
      const purge = createPadPurger(other.redis)(pad);
      const more = Array.from({ length: 20 }, () => codeOf(one.dataPlane.appendEntry(pad, { content: 'x' })));
      await Promise.all([purge, ...writes, ...more]);
      expect(await admin.keys(`*${pad.scratchpadId}*`)).toEqual([`tombstone:${pad.scratchpadId}`]);
    }
  });
});
