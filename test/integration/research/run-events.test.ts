// The stream of a run loses nothing, tells nothing twice, and ends, whatever drops or dies in between.
import { setTimeout as delay } from 'node:timers/promises';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openRedis, type RedisConnections } from '../../../src/infra/redis.js';
import type { NewRunEvent, RunEventRecord } from '../../../src/research/run-event.js';
import { createRunEvents, type RunEventStreams } from '../../../src/research/run-events.js';
import type { RunRow } from '../../../src/research/run-store.js';
import { terminalEventOf } from '../../../src/research/terminal-event.js';
import { DomainError } from '../../../src/shared/errors.js';
import { createId } from '../../../src/shared/ids.js';
import { createLogger } from '../../../src/shared/logger.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { until } from '../redis/support.js';

const silent = createLogger('silent');
let server: TestRedis;

beforeAll(async () => {
  server = await startRedis({ appendFsync: 'always' });
});
afterAll(() => server.stop());

/** What SQL knows of runs. */
const rows = new Map<string, RunRow>();

function newRun(parent?: RunRow): RunRow {
  const run = {
    id: createId('run'),
    ownerId: parent?.ownerId ?? createId('user'),
    parentRunId: parent?.id ?? null,
    kind: parent ? 'RESEARCH_WORKER' : 'RESEARCH',
    status: 'IN_PROGRESS',
    finishedAt: null,
    lastErrorCode: null,
    lastErrorMessage: null,
  } as RunRow;
  rows.set(run.id, run);
  return run;
}

/** @param agoMs longer ago than others are given to write the last event */
function end(run: RunRow, status: RunRow['status'], agoMs = 10_000): RunRow {
  const ended = { ...run, status, finishedAt: new Date(Date.now() - agoMs) };
  rows.set(run.id, ended);
  return ended;
}

interface ServerProcess {
  redis: RedisConnections;
  events: RunEventStreams;
  close(): Promise<void>;
}

/** Streams over connections of their own, as one process has them. */
async function openProcess(ttlSeconds = 100, logger = silent): Promise<ServerProcess> {
  const redis = await openRedis({ redisUrl: server.url }, silent);
  const events = createRunEvents({
    redis,
    runStore: { find: (id) => Promise.resolve(rows.get(id) ?? null) },
    ttlSeconds,
    quietSeconds: 50,
    now: () => new Date(),
    logger,
  });
  return {
    redis,
    events,
    async close() {
      events.close();
      await redis.close();
    },
  };
}

const addressOf = ({ id, ownerId, parentRunId }: RunRow) => ({ runId: id, ownerId, parentRunId });
const keyOf = ({ id, ownerId }: RunRow): string => `run:${ownerId}:${id}:events`;

const status = (run: RunRow, activity: string): NewRunEvent => ({
  type: 'status',
  originRunId: run.id,
  phase: 'RESEARCHING',
  activity,
  state: 'IN_PROGRESS',
  tool: null,
  occurredAt: new Date(),
});
const text = (run: RunRow, delta: string): NewRunEvent => ({
  type: 'content',
  originRunId: run.id,
  delta,
  occurredAt: new Date(),
});

/** What an event says, in one word. */
const said = (event: RunEventRecord): string =>
  event.type === 'status' ? event.activity : event.type === 'scratchpad' ? event.operation : event.delta;

async function readAll(events: AsyncIterable<RunEventRecord>): Promise<RunEventRecord[]> {
  const read: RunEventRecord[] = [];
  for await (const event of events) read.push(event);
  return read;
}

async function take(events: AsyncIterableIterator<RunEventRecord>, count: number): Promise<RunEventRecord[]> {
  const taken: RunEventRecord[] = [];
  while (taken.length < count) {
    const step = await events.next();
    if (step.done) break;
    taken.push(step.value);
  }
  return taken;
}

describe('a stream', () => {
  let one: ServerProcess;
  let other: ServerProcess;
  beforeAll(async () => {
    [one, other] = await Promise.all([openProcess(), openProcess()]);
  });
  afterAll(() => Promise.all([one.close(), other.close()]));

  test('gives back every event as it was, in order, to another process, and completes after the last one', async () => {
    const run = newRun();
    const publisher = one.events.publisher(run);
    const entry = {
      id: 'entry_1',
      content: 'é\n"',
      author: 'A',
      runId: run.id,
      createdAt: '1970-01-01T00:00:00.005Z',
      sequence: 7,
    };
    const content = { text: '', version: '8', updatedAt: '1970-01-01T00:00:00.006Z' };
    const scratchpad = {
      type: 'scratchpad' as const,
      originRunId: run.id,
      scratchpadId: 'sp_1',
      state: 'SUCCESS' as const,
      activity: null,
      tool: 'append_scratchpad',
      expiresAt: new Date(9),
      assistantId: null,
      replayed: false,
      occurredAt: new Date(3),
    };
    const live = await other.events.subscribe(addressOf(run), { after: '' });
    const published: NewRunEvent[] = [
      status(run, 'begin'),
      { ...scratchpad, operation: 'APPEND', entry },
      { ...scratchpad, operation: 'UPDATE', content, expiresAt: null, assistantId: 'asst_1' },
      { type: 'reasoning', originRunId: run.id, delta: '\u2028', occurredAt: new Date(4) },
      terminalEventOf(end(run, 'COMPLETED'), new Date()),
    ];
    for (const event of published) publisher.publish(event);
    await publisher.flush();
    const events = await readAll(live);
    expect(events.map(({ cursor: _cursor, runId: _runId, ...event }) => event)).toEqual(published);
    expect(new Set(events.map(({ runId }) => runId))).toEqual(new Set([run.id]));
    expect(await readAll(await other.events.subscribe(addressOf(run), { after: '' }))).toEqual(events);
  });

  test('joins pieces of text that come quickly, of one kind and origin only, and loses none', async () => {
    const run = newRun();
    const worker = newRun(run);
    const publisher = one.events.publisher(run);
    for (let index = 0; index < 500; index += 1) {
      publisher.publish(text(run, `${index},`));
      if (index % 100 === 50) publisher.publish(text(worker, 'w'));
      if (index % 100 === 0) await delay(1);
    }
    publisher.publish(terminalEventOf(end(run, 'COMPLETED'), new Date()));
    await publisher.flush();
    const events = await readAll(await one.events.subscribe(addressOf(run), { after: '' }));
    const own = events.filter((event) => event.type === 'content' && event.originRunId === run.id);
    expect(own.map(said).join('')).toBe(Array.from({ length: 500 }, (_, index) => `${index},`).join(''));
    expect(events.filter(({ originRunId }) => originRunId === worker.id)).toHaveLength(5);
    expect(events.length).toBeLessThan(40);
  });

  test('loses nothing of what is said at once, however much: events are of a bounded length, and no character is cut in two', async () => {
    const run = newRun();
    const worker = newRun(run);
    const publisher = one.events.publisher(run);
    // 9 Mi characters, more than may wait while Redis is away; the pairs begin at an odd place.
    const long = `x${'\u{1F41F}'.repeat(1024 * 1024)}`;
    const whole = [0, 1, 2, 3].map((index) => `${index}${long}`);
    whole.forEach((delta) => publisher.publish(text(run, delta)));
    publisher.publish(text(worker, long));
    publisher.publish(terminalEventOf(end(run, 'COMPLETED'), new Date()));
    await publisher.flush();
    const events = await readAll(await one.events.subscribe(addressOf(run), { after: '' }));
    const own = events.filter((event) => event.type === 'content' && event.originRunId === run.id).map(said);
    expect(own.join('') === whole.join('')).toBe(true);
    expect(
      events
        .filter(({ originRunId }) => originRunId === worker.id)
        .map(said)
        .join('') === long,
    ).toBe(true);
    expect(events.map(said).every((delta) => delta.isWellFormed() && delta.length <= 65_536)).toBe(true);
    expect(events.at(-1)).toMatchObject({ phase: 'FINISHED' });
  }, 30_000);

  test('begins with now without a cursor, and completes at once when the run has ended', async () => {
    const run = newRun();
    const publisher = one.events.publisher(run);
    publisher.publish(status(run, 'early'));
    await publisher.flush();
    const live = await other.events.subscribe(addressOf(run), {});
    publisher.publish(status(run, 'late'));
    publisher.publish(terminalEventOf(end(run, 'COMPLETED'), new Date()));
    expect((await readAll(live)).map(said)).toEqual(['late', 'The research is complete.']);
    expect(await readAll(await other.events.subscribe(addressOf(run), {}))).toEqual([]);
  });

  test('takes nothing behind its last event, whoever comes late', async () => {
    const run = newRun();
    const publisher = one.events.publisher(run);
    publisher.publish(status(run, 'begin'));
    await publisher.flush();
    await other.events.seal(end(run, 'CANCELLED'));
    await one.events.seal(rows.get(run.id)!);
    publisher.publish(status(run, 'late'));
    await publisher.flush();
    const again = one.events.publisher(run);
    again.publish(status(run, 'later'));
    await again.flush();
    const events = await readAll(await one.events.subscribe(addressOf(run), { after: '' }));
    expect(events.map(said)).toEqual(['begin', 'The research was cancelled.']);
  });

  test('refuses a cursor of another stream', async () => {
    const [run, stranger] = [newRun(), newRun()];
    const publisher = one.events.publisher(run);
    publisher.publish(status(run, 'begin'));
    const [event] = await take(await one.events.subscribe(addressOf(run), { after: '' }), 1);
    for (const after of [`${event!.cursor}x`, 'x', '-1.', '🦊', 'a'.repeat(1000)]) {
      await expect(one.events.subscribe(addressOf(run), { after })).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    }
    await expect(one.events.subscribe(addressOf(stranger), { after: event!.cursor })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    });
  });

  test('lives for its time after the last event, and longer while the run goes on', async () => {
    const admin = server.client();
    const run = newRun();
    await one.events.announce(run);
    expect(await admin.pttl(keyOf(run))).toBeGreaterThan(149_000);
    await one.events.seal(end(run, 'COMPLETED'));
    expect(await admin.pttl(keyOf(run))).toBeLessThanOrEqual(100_000);
  });

  test('shows a delegated run its own events, and completes after its last one', async () => {
    const run = newRun();
    const [worker, sibling] = [newRun(run), newRun(run)];
    const publisher = one.events.publisher(run);
    const live = await other.events.subscribe(addressOf(worker), { after: '' });
    publisher.publish(status(run, 'supervisor'));
    publisher.publish(status(worker, 'one'));
    publisher.publish(terminalEventOf(end(sibling, 'FAILED'), new Date()));
    publisher.publish(terminalEventOf(end(worker, 'COMPLETED', 0), new Date()));
    publisher.publish(status(run, 'goes on'));
    const events = await readAll(live);
    expect(events.map(said)).toEqual(['one', 'The worker is complete.']);
    expect(events.map(({ runId }) => runId)).toEqual([worker.id, worker.id]);
  });

  test('completes when the run has ended and its events are gone, or when the run is gone', async () => {
    const ended = end(newRun(), 'COMPLETED');
    expect(await readAll(await one.events.subscribe(addressOf(ended), { after: '' }))).toEqual([]);
    const gone = newRun();
    rows.delete(gone.id);
    expect(await readAll(await one.events.subscribe(addressOf(gone), { after: '' }))).toEqual([]);
  });

  test('is ended by whoever reads it when whoever executed the run could not', async () => {
    const run = newRun();
    const publisher = one.events.publisher(run);
    publisher.publish(status(run, 'begin'));
    await publisher.flush();
    end(run, 'FAILED');
    const [a, b] = await Promise.all(
      [one, other].map(async ({ events }) => readAll(await events.subscribe(addressOf(run), { after: '' }))),
    );
    expect(a!.map(said)).toEqual(['begin', 'The research failed: INTERNAL.']);
    expect(b).toEqual(a);
  });

  test('stays away once its run was deleted, and its readers are done', async () => {
    const run = newRun();
    const publisher = one.events.publisher(run);
    publisher.publish(status(run, 'begin'));
    const live = await other.events.subscribe(addressOf(run), { after: '' });
    await take(live, 1);
    rows.delete(run.id);
    await other.events.purge(run.ownerId, run.id);
    publisher.publish(status(run, 'late'));
    await publisher.flush();
    expect(await server.client().exists(keyOf(run))).toBe(0);
    expect(await readAll(live)).toEqual([]);
  });

  test('frees its channel when the last reader has left, whatever that reader waits for', async () => {
    const admin = server.client();
    const run = newRun();
    const channel = `events:${run.ownerId}:${run.id}`;
    const count = async (): Promise<unknown> => (await admin.pubsub('NUMSUB', channel))[1];
    const [a, b] = [await one.events.subscribe(addressOf(run), {}), await one.events.subscribe(addressOf(run), {})];
    expect(await count()).toBe(1);
    const waiting = [a.next(), b.next()];
    await a.return!();
    expect(await count()).toBe(1);
    await b.return!();
    expect(await Promise.all(waiting)).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ]);
    await until('nobody listens', async () => (await count()) === 0);
  });

  test('keeps no more than a page in memory for a consumer that does not read', async () => {
    const run = newRun();
    const publisher = one.events.publisher(run);
    const idle = await other.events.subscribe(addressOf(run), { after: '' });
    for (let index = 0; index < 3000; index += 1) {
      publisher.publish(status(run, String(index)));
      if (index % 500 === 0) await publisher.flush();
    }
    publisher.publish(terminalEventOf(end(run, 'COMPLETED'), new Date()));
    await publisher.flush();
    const events = await readAll(idle);
    expect(events).toHaveLength(3001);
    expect(events.slice(0, -1).map(said)).toEqual(Array.from({ length: 3000 }, (_, index) => String(index)));
  });

  test('completes its subscriptions when the process closes', async () => {
    const closing = await openProcess();
    const run = newRun();
    const live = await closing.events.subscribe(addressOf(run), {});
    const waiting = live.next();
    await closing.close();
    expect(await waiting).toEqual({ done: true, value: undefined });
    await expect(closing.events.subscribe(addressOf(run), {})).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });
});

/** Resumes from the last cursor again and again, in any process, until the stream completes. */
async function readWithDrops(processes: readonly ServerProcess[], run: RunRow, sizes: readonly number[]) {
  const read: RunEventRecord[] = [];
  for (let round = 0; ; round += 1) {
    const { events } = processes[round % processes.length]!;
    const size = sizes[round % sizes.length]!;
    try {
      const live = await events.subscribe(addressOf(run), { after: read.at(-1)?.cursor ?? '' });
      const taken = await take(live, size);
      await live.return!();
      read.push(...taken);
      if (taken.length < size) return read;
    } catch (error) {
      // Redis is away for a moment; nothing else may go wrong.
      if (!(error instanceof DomainError && error.code === 'UNAVAILABLE')) throw error;
      await delay(20);
    }
  }
}

test('a client that resumes from its last cursor gets every event once, over reconnects, drops and after the end', async () => {
  const processes = await Promise.all([openProcess(), openProcess()]);
  const [one, other] = processes;
  const admin = server.client();
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom('status', 'text', 'pause', 'drop' as const), { minLength: 1, maxLength: 60 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
      async (steps, sizes) => {
        const run = newRun();
        const publisher = one.events.publisher(run);
        const reading = readWithDrops(processes, run, sizes);
        const whole = readAll(await other.events.subscribe(addressOf(run), { after: '' }));
        let expected = '';
        for (const [index, step] of steps.entries()) {
          if (step === 'pause') await delay(3);
          else if (step === 'drop')
            await admin.call('CLIENT', 'KILL', 'TYPE', index % 2 ? 'pubsub' : 'normal', 'SKIPME', 'yes');
          else {
            publisher.publish(step === 'status' ? status(run, `${index};`) : text(run, `${index};`));
            expected += `${index};`;
          }
        }
        publisher.publish(terminalEventOf(end(run, 'COMPLETED', 0), new Date()));
        const [a, b] = await Promise.all([reading, whole]);
        for (const events of [a, b, await readWithDrops(processes, run, sizes)]) {
          expect(events.slice(0, -1).map(said).join('')).toBe(expected);
          expect(events.at(-1)).toMatchObject({ type: 'status', phase: 'FINISHED' });
          expect(new Set(events.map(({ cursor }) => cursor)).size).toBe(events.length);
        }
        expect(a.map(({ cursor }) => cursor)).toEqual(b.map(({ cursor }) => cursor));
      },
    ),
    { numRuns: 25, endOnFailure: true },
  );
  await Promise.all(processes.map((process) => process.close()));
}, 120_000);

describe('with Redis away', () => {
  test('events wait and are written in order and once, and subscriptions go on', async () => {
    const process = await openProcess();
    const run = newRun();
    const publisher = process.events.publisher(run);
    publisher.publish(status(run, '0'));
    const live = await process.events.subscribe(addressOf(run), { after: '' });
    const whole = readAll(live);
    await publisher.flush();
    for (let round = 0; round < 3; round += 1) {
      // Frozen for less than the limit, the write is applied when its writer has given up waiting for the answer.
      if (round === 1) server.freeze();
      else await server.kill();
      for (let index = 1; index <= 150; index += 1) publisher.publish(status(run, String(round * 150 + index)));
      const startedAt = Date.now();
      await publisher.flush();
      expect(Date.now() - startedAt).toBeLessThan(3000);
      await delay(round === 1 ? 1500 : 200);
      if (round === 1) server.thaw();
      else await server.restart();
      await until('written', async () => (await server.client().llen(keyOf(run))) === 1 + 150 * (round + 1));
    }
    await process.events.seal(end(run, 'COMPLETED'));
    expect((await whole).slice(0, -1).map(said)).toEqual(Array.from({ length: 451 }, (_, index) => String(index)));
    await process.close();
  });

  test('the oldest events are given up when too many wait, and the log says why', async () => {
    const log: string[] = [];
    const process = await openProcess(100, createLogger('warn', { write: (line) => void log.push(line) }));
    const run = newRun();
    const publisher = process.events.publisher(run);
    publisher.publish(status(run, 'before'));
    await publisher.flush();
    await server.kill();
    publisher.publish(status(run, 'away'));
    await publisher.flush();
    for (let index = 0; index < 100; index += 1) publisher.publish(text(run, String(index % 10).repeat(65_536)));
    expect(log.filter((line) => line.includes('Redis is away'))).toHaveLength(1);
    await server.restart();
    publisher.publish(status(run, 'after'));
    await until('written', async () => (await server.client().lindex(keyOf(run), -1))?.includes('after') === true);
    await process.events.seal(end(run, 'COMPLETED'));
    const events = await readAll(await process.events.subscribe(addressOf(run), { after: '' }));
    const texts = events.filter(({ type }) => type === 'content');
    expect(texts.length).toBeGreaterThan(50);
    expect(texts.length).toBeLessThanOrEqual(64);
    expect(texts.at(-1)).toMatchObject({ delta: '9'.repeat(65_536) });
    await process.close();
  }, 30_000);

  test('a subscription is refused, soon', async () => {
    const process = await openProcess();
    await server.kill();
    await delay(1500);
    const startedAt = Date.now();
    const subscribing = process.events.subscribe(addressOf(newRun()), { after: '' });
    await expect(subscribing).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(Date.now() - startedAt).toBeLessThan(3000);
    await server.restart();
    await process.close();
  });
});
