// The subscriber's own logic, with a scripted source: which events it keeps, when it reads again, what it never does.
import { expect, test } from 'vitest';
import { DomainError, unavailable } from '../../../src/shared/errors.js';
import type { Replay, ReplayFrom } from '../../../src/scratchpads/change-replay.js';
import { createAudience } from '../../../src/scratchpads/audience.js';
import {
  createChangeSubscriber,
  type ChangeSource,
  type ChangeSubscriber,
} from '../../../src/scratchpads/change-subscriber.js';
import type { EventPosition } from '../../../src/scratchpads/event-cursor.js';
import { createDelivery, liveDelivery, type ScratchpadChange } from '../../../src/scratchpads/scratchpad-change.js';
import { append, codec } from './support.js';

/** What a replay up to `to` answers to a subscriber that has seen the entries up to `from`. */
function replayOf(from: number, to: number, complete = true): Replay {
  const deliveries = Array.from({ length: to - from }, (_, index) => {
    const event = append(from + index + 1);
    return createDelivery(
      { operation: 'APPEND', entry: event.entry!, occurredAt: new Date(0), expiresAt: null, replayed: true },
      { entries: event.number, content: 0 },
      codec,
    );
  });
  return { deliveries, position: { entries: to, content: 0 }, complete, deleted: false, expiresAtMs: null };
}

/** A source whose replays are answered by hand. */
function start(limits = { events: 1000, bytes: 1_000_000 }) {
  const asked: { from: ReplayFrom; answer(replay: Replay): void; fail(error: unknown): void }[] = [];
  const left: true[] = [];
  const toDelivery: ChangeSource['toDelivery'] = (event, position) => liveDelivery(event, position, codec);
  const subscriber = createChangeSubscriber(
    {
      replay: (from) => new Promise((answer, fail) => asked.push({ from, answer, fail })),
      toDelivery,
      audience: createAudience<ChangeSubscriber>(toDelivery),
      cursorOf: (position) => codec.encode(position),
      leave: () => void left.push(true),
    },
    limits,
  );
  return { subscriber, asked, left };
}

/** Seats are told the change itself. */
const asItIs = (change: ScratchpadChange): ScratchpadChange => change;

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function take(subscriber: AsyncIterator<ScratchpadChange>, count: number): Promise<string[]> {
  const taken: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const { value } = await subscriber.next();
    taken.push(`${value!.entry!.content}${value!.replayed ? ' replayed' : ''}`);
  }
  return taken;
}

const seen = (entries: number): EventPosition => ({ entries, content: 0 });

test('events that come while the replay is read follow it, without those that it has already', async () => {
  const { subscriber, asked } = start();
  const started = subscriber.start(seen(1));
  for (const number of [2, 3, 4]) subscriber.offer(append(number));
  asked[0]!.answer(replayOf(1, 3));
  await started;
  subscriber.offer(append(5));
  expect(await take(subscriber, 4)).toEqual(['2 replayed', '3 replayed', '4', '5']);
  expect(asked).toHaveLength(1);
});

test('when more events come during a replay than are kept, it reads once more and loses none', async () => {
  const { subscriber, asked } = start();
  const started = subscriber.start(seen(0));
  for (let number = 1; number <= 500; number += 1) subscriber.offer(append(number));
  asked[0]!.answer(replayOf(0, 2));
  await started;
  const taken = take(subscriber, 501);
  await settle();
  expect(asked[1]!.from).toEqual(seen(2));
  asked[1]!.answer(replayOf(2, 500));
  await settle();
  subscriber.offer(append(501));
  const contents = await taken;
  expect(contents.map((content) => Number.parseInt(content, 10))).toEqual(
    Array.from({ length: 501 }, (_, index) => index + 1),
  );
});

test('falling behind during a replay makes it read once more', async () => {
  const { subscriber, asked } = start();
  const started = subscriber.start(seen(0));
  subscriber.fallBehind();
  asked[0]!.answer(replayOf(0, 1));
  await started;
  const taken = take(subscriber, 2);
  await settle();
  asked[1]!.answer(replayOf(1, 2));
  expect(await taken).toEqual(['1 replayed', '2 replayed']);
});

test('an event that does not follow the last one is not told; what is missing is read first', async () => {
  const { subscriber, asked } = start();
  const started = subscriber.start('now');
  asked[0]!.answer(replayOf(3, 3));
  await started;
  const taken = take(subscriber, 3);
  subscriber.offer(append(4));
  subscriber.offer(append(6));
  await settle();
  expect(asked[1]!.from).toEqual(seen(4));
  asked[1]!.answer(replayOf(4, 6));
  expect(await taken).toEqual(['4', '5 replayed', '6 replayed']);
});

test('an event that was told already is not told again and costs no reading', async () => {
  const { subscriber, asked } = start();
  const started = subscriber.start('now');
  asked[0]!.answer(replayOf(3, 3));
  await started;
  for (const number of [2, 3, 4, 4]) subscriber.offer(append(number));
  expect(await take(subscriber, 1)).toEqual(['4']);
  void subscriber.next();
  await settle();
  expect(asked).toHaveLength(1);
});

test('while Redis is away it tries again, from where it is', async () => {
  const { subscriber, asked } = start();
  const started = subscriber.start('now');
  asked[0]!.answer(replayOf(1, 1));
  await started;
  const taken = take(subscriber, 1);
  subscriber.fallBehind();
  await settle();
  asked[1]!.fail(unavailable('Redis'));
  await expect.poll(() => asked.length, { timeout: 2000 }).toBe(3);
  expect(asked[2]!.from).toEqual(seen(1));
  asked[2]!.answer(replayOf(1, 2));
  expect(await taken).toEqual(['2 replayed']);
});

test('a failure that is none of Redis ends it with that failure, once', async () => {
  const { subscriber, asked, left } = start();
  const started = subscriber.start('now');
  asked[0]!.answer(replayOf(1, 1));
  await started;
  const waiting = subscriber.next();
  subscriber.fallBehind();
  await settle();
  asked[1]!.fail(new Error('a bug'));
  await expect(waiting).rejects.toThrow('a bug');
  expect(await subscriber.next()).toEqual({ done: true, value: undefined });
  expect(left).toHaveLength(1);
});

test('reads no further page before the consumer has taken the last one', async () => {
  const { subscriber, asked } = start();
  const started = subscriber.start('start');
  asked[0]!.answer(replayOf(0, 2, false));
  await started;
  await take(subscriber, 2);
  await settle();
  expect(asked).toHaveLength(1);
  const taken = take(subscriber, 1);
  await settle();
  expect(asked[1]!.from).toEqual(seen(2));
  asked[1]!.answer(replayOf(2, 4, false));
  expect(await taken).toEqual(['3 replayed']);
  await settle();
  expect(asked).toHaveLength(2);
});

test('return ends a pending read and leaves once, whatever comes later', async () => {
  const { subscriber, asked, left } = start();
  const started = subscriber.start('now');
  asked[0]!.answer(replayOf(1, 1));
  await started;
  const waiting = subscriber.next();
  subscriber.fallBehind();
  await settle();
  await subscriber.return!();
  expect(await waiting).toEqual({ done: true, value: undefined });
  asked[1]!.answer(replayOf(1, 2));
  subscriber.offer(append(3));
  subscriber.fallBehind();
  await settle();
  expect(await subscriber.next()).toEqual({ done: true, value: undefined });
  expect(asked).toHaveLength(2);
  expect(left).toHaveLength(1);
});

test('too slow a consumer gets the last cursor that it was handed, not the last that was queued', async () => {
  const { subscriber, asked } = start({ events: 2, bytes: 1_000_000 });
  const started = subscriber.start(seen(1));
  asked[0]!.answer(replayOf(1, 1));
  await started;
  for (const number of [2, 3, 4]) subscriber.offer(append(number));
  const error = await subscriber.next().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(DomainError);
  expect(error).toMatchObject({ code: 'SUBSCRIBER_TOO_SLOW', details: { lastCursor: codec.encode(seen(1)) } });
});

test('a consumer that diverts is told everything once and in order, whatever it takes on the way and whatever it leaves to next', async () => {
  const { subscriber, asked } = start();
  const told: string[] = [];
  let decisions = 0;
  // Takes some, leaves some, in a pattern that does not repeat with what is offered at once.
  subscriber.divert(asItIs, {
    take(change) {
      decisions += 1;
      if (decisions % 3 === 0 || decisions % 7 === 0) return false;
      told.push(`taken ${change.entry?.content}`);
      return true;
    },
  });
  const started = subscriber.start('now');
  asked[0]!.answer(replayOf(0, 0));
  await started;
  const consumer = (async () => {
    for await (const change of subscriber) told.push(`pulled ${change.entry?.content}`);
  })();
  await settle();
  for (let number = 1; number <= 60; number += 1) {
    subscriber.offer(append(number));
    if (number % 5 === 0) await settle();
  }
  await settle();
  subscriber.complete();
  await consumer;
  expect(told.map((one) => one.split(' ')[1])).toEqual(Array.from({ length: 60 }, (_, index) => `${index + 1}`));
  expect(new Set(told.map((one) => one.split(' ')[0]))).toEqual(new Set(['taken', 'pulled']));
});

test('nothing is shown to who diverts before it waits in next, nor after the end', async () => {
  const { subscriber, asked } = start();
  const shown: string[] = [];
  subscriber.divert(asItIs, { take: (change) => shown.push(change.entry!.content) > 0 });
  const started = subscriber.start('now');
  asked[0]!.answer(replayOf(0, 0));
  await started;
  subscriber.offer(append(1));
  expect(shown).toEqual([]);
  expect(await take(subscriber, 1)).toEqual(['1']);
  const last = subscriber.next();
  subscriber.offer(append(2));
  await subscriber.return?.();
  subscriber.offer(append(3));
  expect(shown).toEqual(['2']);
  expect(await last).toEqual({ done: true, value: undefined });
});

test('what was taken counts as delivered: too slow a subscriber goes on behind it', async () => {
  const { subscriber, asked } = start({ events: 2, bytes: 1_000_000 });
  let isTaking = true;
  subscriber.divert(asItIs, { take: () => isTaking });
  const started = subscriber.start('now');
  asked[0]!.answer(replayOf(0, 0));
  await started;
  const pulled = subscriber.next();
  subscriber.offer(append(1));
  subscriber.offer(append(2));
  isTaking = false;
  for (let number = 3; number <= 6; number += 1) subscriber.offer(append(number));
  expect(await pulled).toMatchObject({ value: { entry: { content: '3' } } });
  const position: EventPosition = { entries: 3, content: 0 };
  await expect(subscriber.next()).rejects.toMatchObject({
    code: 'SUBSCRIBER_TOO_SLOW',
    details: { lastCursor: codec.encode(position) },
  });
});
