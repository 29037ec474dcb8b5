// Subscribers that are told together: who sits in the row, who leaves it and how, and that nobody notices.
import { expect, test } from 'vitest';
import { createAudience } from '../../../src/scratchpads/audience.js';
import type { Replay, ReplayFrom } from '../../../src/scratchpads/change-replay.js';
import { createChangeSubscriber, type ChangeSubscriber } from '../../../src/scratchpads/change-subscriber.js';
import { startOfHistory, type EventPosition } from '../../../src/scratchpads/event-cursor.js';
import {
  createDelivery,
  deletion,
  liveDelivery,
  type ScratchpadChange,
} from '../../../src/scratchpads/scratchpad-change.js';
import { append, codec, entry } from './support.js';

const seen = (entries: number, content = 0): EventPosition => ({ entries, content });
const wordOf = (change: ScratchpadChange): string => change.entry?.content ?? change.operation;
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface Listener {
  subscriber: ChangeSubscriber;
  /** Everything in its order, however it came. */
  told: string[];
  /** What its seat took. */
  taken: string[];
  cursors: string[];
  /** What its seat does instead of taking. */
  onTake?: ((word: string) => boolean) | undefined;
  failure?: unknown;
  isDone: boolean;
}

/** A pad whose replays know every append up to `published`. */
function createPad(limits = { events: 1000, bytes: 1_000_000 }) {
  let published = 0;
  const replays: ReplayFrom[] = [];
  const prepared: string[] = [];
  const audience = createAudience<ChangeSubscriber>((event, position) => liveDelivery(event, position, codec));
  const replayFrom = (from: ReplayFrom): Replay => {
    const position = typeof from === 'string' ? seen(published) : from;
    const missed = Array.from({ length: Math.max(published - position.entries, 0) }, (_, index) => index + 1);
    const deliveries = missed.map((index) =>
      createDelivery(
        {
          operation: 'APPEND',
          entry: entry(position.entries + index),
          occurredAt: new Date(0),
          expiresAt: null,
          replayed: true,
        },
        seen(position.entries + index, position.content),
        codec,
      ),
    );
    const at = deliveries.at(-1)?.position ?? position;
    return { deliveries, position: at, complete: true, deleted: false, expiresAtMs: null };
  };
  /** One for all listeners that do not bring their own. */
  const prepareAlike = (change: ScratchpadChange): ScratchpadChange => {
    prepared.push(wordOf(change));
    return change;
  };
  return {
    audience,
    replays,
    prepared,
    publish(number: number, previous?: number): void {
      published = number;
      audience.offer(append(number, previous));
    },
    /** Publishes what nobody is told. */
    lose(number: number): void {
      published = number;
    },
    async listen(
      from: ReplayFrom = 'now',
      prepare: (change: ScratchpadChange) => ScratchpadChange | undefined = prepareAlike,
    ): Promise<Listener> {
      const subscriber = createChangeSubscriber(
        {
          async replay(asked) {
            replays.push(asked);
            return replayFrom(asked);
          },
          toDelivery: (event, position) => liveDelivery(event, position, codec),
          cursorOf: (position) => codec.encode(position),
          audience,
          leave: () => audience.remove(subscriber),
        },
        limits,
      );
      audience.add(subscriber);
      const listener: Listener = { subscriber, told: [], taken: [], cursors: [], isDone: false };
      subscriber.divert(prepare, {
        take(change) {
          if (listener.onTake && !listener.onTake(wordOf(change))) return false;
          listener.told.push(wordOf(change));
          listener.taken.push(wordOf(change));
          listener.cursors.push(change.cursor);
          return true;
        },
      });
      await subscriber.start(from);
      void (async () => {
        try {
          for await (const change of subscriber) {
            listener.told.push(wordOf(change));
            listener.cursors.push(change.cursor);
          }
        } catch (error) {
          listener.failure = error;
        }
        listener.isDone = true;
      })();
      await settle();
      replays.length = 0;
      return listener;
    },
  };
}

test('those who wait at the same place are told together: prepared once, to each once', async () => {
  const pad = createPad();
  const listeners = [await pad.listen(), await pad.listen(), await pad.listen()];
  for (const number of [1, 2, 3]) pad.publish(number);
  expect(pad.prepared).toEqual(['1', '2', '3']);
  for (const { taken } of listeners) expect(taken).toEqual(['1', '2', '3']);
});

test('each is told what its own preparation makes, and one that makes nothing leaves the item to next', async () => {
  const pad = createPad();
  const hidden = (change: ScratchpadChange): ScratchpadChange => ({ ...change, operation: 'CLEAR', entry: undefined! });
  const alike = await pad.listen();
  const other = await pad.listen('now', hidden);
  const none = await pad.listen('now', () => undefined);
  const last = await pad.listen();
  for (const number of [1, 2]) {
    pad.publish(number);
    await settle();
  }
  expect(alike.taken).toEqual(['1', '2']);
  expect(other.taken).toEqual(['CLEAR', 'CLEAR']);
  expect([none.taken, none.told]).toEqual([[], ['1', '2']]);
  expect(last.taken).toEqual(['1', '2']);
});

test('one that is not ready goes on by itself, in order, and is told with the others again once it is', async () => {
  const pad = createPad();
  const [slow, quick] = [await pad.listen(), await pad.listen()];
  pad.publish(1);
  slow.onTake = () => false;
  for (const number of [2, 3, 4]) pad.publish(number);
  expect([slow.told, quick.told]).toEqual([['1'], ['1', '2', '3', '4']]);
  await settle();
  expect(slow.told).toEqual(['1', '2', '3', '4']);
  slow.onTake = undefined;
  pad.publish(5); // by itself, for the last time
  pad.prepared.length = 0;
  pad.publish(6);
  expect(pad.prepared).toEqual(['6']);
  for (const { told } of [slow, quick]) expect(told).toEqual(['1', '2', '3', '4', '5', '6']);
  expect(slow.taken).toEqual(['1', '5', '6']);
  expect(pad.replays).toEqual([]);
});

test('who took with the others and then is too slow is given the cursor of what it was handed last', async () => {
  const pad = createPad({ events: 2, bytes: 1_000_000 });
  const [slow, quick] = [await pad.listen(), await pad.listen()];
  for (const number of [1, 2]) pad.publish(number);
  slow.onTake = () => false;
  for (const number of [3, 4, 5, 6]) pad.publish(number);
  await settle();
  // The third was handed to its consumer, which was not yet back when the rest came.
  expect(slow.told).toEqual(['1', '2', '3']);
  expect(slow.failure).toMatchObject({ code: 'SUBSCRIBER_TOO_SLOW', details: { lastCursor: codec.encode(seen(3)) } });
  expect(quick.told).toEqual(['1', '2', '3', '4', '5', '6']);
});

test('who ends while it sits is handed nothing more, and its place in history was that of the row', async () => {
  const pad = createPad();
  const [one, other] = [await pad.listen(), await pad.listen()];
  for (const number of [1, 2]) pad.publish(number);
  pad.lose(3);
  one.subscriber.fallBehind();
  await settle();
  expect(pad.replays).toEqual([seen(2)]);
  await one.subscriber.return!();
  for (const number of [3, 4]) pad.publish(number);
  await settle();
  expect([one.told, one.isDone]).toEqual([['1', '2', '3'], true]);
  expect(other.told).toEqual(['1', '2', '3', '4']);
});

test('who stands at another place is told from there, and joins where the places meet', async () => {
  const pad = createPad();
  const behind = await pad.listen();
  pad.lose(2);
  const ahead = await pad.listen();
  for (const number of [1, 2, 3]) pad.publish(number);
  pad.prepared.length = 0;
  pad.publish(4);
  expect(pad.prepared).toEqual(['4']);
  expect([behind.taken, ahead.taken]).toEqual([
    ['1', '2', '3', '4'],
    ['3', '4'],
  ]);
});

test('at the same number but another place, each is told with cursors of its own', async () => {
  const pad = createPad();
  pad.lose(2);
  const [one, other] = [await pad.listen(seen(2)), await pad.listen(seen(2, 1))];
  for (const number of [3, 4]) pad.publish(number);
  expect(one.cursors).toEqual([seen(3), seen(4)].map((position) => codec.encode(position)));
  expect(other.cursors).toEqual([seen(3, 1), seen(4, 1)].map((position) => codec.encode(position)));
});

test('after a gap everybody reads what is missing; an event that was told already is told to nobody', async () => {
  const pad = createPad();
  const listeners = [await pad.listen(), await pad.listen()];
  pad.publish(1);
  pad.publish(3);
  await settle();
  pad.publish(4);
  pad.audience.offer(append(4));
  pad.audience.offer(append(2));
  pad.publish(5);
  await settle();
  expect(pad.replays).toEqual([seen(1), seen(1)]);
  for (const { told } of listeners) expect(told).toEqual(['1', '2', '3', '4', '5']);
});

test.each([
  ['the first of the row', 0],
  ['one before it', 1],
  ['itself', 2],
  ['the next one', 3],
  ['the last of the row', 4],
])('one that ends %s while it is told skips nobody, and nobody is told twice', async (_name, index) => {
  const pad = createPad();
  const listeners = await Promise.all(Array.from({ length: 5 }, () => pad.listen()));
  pad.publish(1);
  const ended = listeners[index]!;
  listeners[2]!.onTake = (word) => {
    if (word === '2') void ended.subscriber.return!();
    return true;
  };
  for (const number of [2, 3]) pad.publish(number);
  await settle();
  const others = listeners.filter((listener) => listener !== ended);
  for (const { told } of others) expect(told).toEqual(['1', '2', '3']);
  expect(ended.told).toEqual(index > 2 ? ['1'] : ['1', '2']);
  expect(ended.isDone).toBe(true);
});

test('while the row is told something, who is told already and who is not yet fall behind from different places', async () => {
  const pad = createPad();
  const listeners = [await pad.listen(), await pad.listen(), await pad.listen()];
  pad.publish(1);
  listeners[1]!.onTake = (word) => {
    if (word === '2') for (const index of [0, 2]) listeners[index]!.subscriber.fallBehind();
    return true;
  };
  pad.publish(2);
  await settle();
  expect(pad.replays).toEqual([seen(2), seen(1)]);
  pad.publish(3);
  for (const { told } of listeners) expect(told).toEqual(['1', '2', '3']);
});

test('who begins to wait while the row is told something is told it, once', async () => {
  const pad = createPad();
  const [first, late] = [await pad.listen(), await pad.listen()];
  late.onTake = () => false;
  pad.publish(1); // what it was handed keeps its consumer away until the end of the turn
  late.onTake = undefined;
  first.onTake = (word) => {
    if (word === '2') void late.subscriber.next();
    return true;
  };
  pad.publish(2);
  first.onTake = undefined;
  pad.publish(3);
  await settle();
  expect(first.told).toEqual(['1', '2', '3']);
  // The first of them came through its consumer, after this turn.
  expect([late.taken, late.told.toSorted()]).toEqual([
    ['2', '3'],
    ['1', '2', '3'],
  ]);
});

test('who leaves the row right after another one did is not told with it any more', async () => {
  const pad = createPad();
  const [first, middle, last] = [await pad.listen(), await pad.listen(), await pad.listen()];
  last.onTake = () => false;
  pad.publish(1);
  first.subscriber.fallBehind();
  pad.publish(2);
  await settle();
  await settle();
  for (const { told } of [first, middle, last]) expect(told).toEqual(['1', '2']);
  expect(first.taken).toEqual(['1', '2']);
  expect(pad.replays).toEqual([seen(1)]);
});

test('one that is told of the expiry by itself leaves the row first', async () => {
  const pad = createPad();
  const [one, other] = [await pad.listen(), await pad.listen()];
  pad.publish(1);
  const told = { operation: 'EXPIRE', occurredAt: new Date(0), expiresAt: null, replayed: false } as const;
  one.subscriber.expire(createDelivery(told, startOfHistory, codec));
  expect([one.taken, other.taken]).toEqual([['1', 'EXPIRE'], ['1']]);
});

test('one whose seat throws is ended with that, and the others are told', async () => {
  const pad = createPad();
  const listeners = [await pad.listen(), await pad.listen(), await pad.listen()];
  pad.publish(1);
  listeners[1]!.onTake = () => {
    throw new Error('a broken seat');
  };
  for (const number of [2, 3]) pad.publish(number);
  await settle();
  expect(listeners[1]).toMatchObject({ told: ['1'], isDone: true, failure: new Error('a broken seat') });
  for (const index of [0, 2]) expect(listeners[index]!.told).toEqual(['1', '2', '3']);
});

test('one that is told by itself and whose seat throws is ended with that', async () => {
  const pad = createPad();
  const listener = await pad.listen();
  listener.onTake = () => {
    throw new Error('a broken seat');
  };
  listener.subscriber.offer(append(1));
  await settle();
  expect(listener).toMatchObject({ told: [], isDone: true, failure: new Error('a broken seat') });
});

test('who sits is told of the expiry, and goes on from the beginning of history', async () => {
  const pad = createPad();
  const listeners = [await pad.listen(), await pad.listen()];
  pad.publish(1);
  const told = { operation: 'EXPIRE', occurredAt: new Date(0), expiresAt: null, replayed: false } as const;
  pad.audience.each((subscriber) => subscriber.expire(createDelivery(told, startOfHistory, codec)));
  pad.prepared.length = 0;
  pad.publish(2, 0);
  expect(pad.prepared).toEqual(['2']);
  for (const { taken } of listeners) expect(taken).toEqual(['1', 'EXPIRE', '2']);
});

test.each([
  [
    'deleted by an event',
    (pad: ReturnType<typeof createPad>) => pad.audience.offer({ ...append(2), operation: 'DELETE', entry: undefined! }),
  ],
  ['found deleted', (pad: ReturnType<typeof createPad>) => pad.audience.each((one) => one.delete(deletion(codec)))],
])('who sits is told that the pad was %s, and is done', async (_name, remove) => {
  const pad = createPad();
  const listeners = [await pad.listen(), await pad.listen()];
  pad.publish(1);
  remove(pad);
  await settle();
  for (const { told, isDone } of listeners) expect([told, isDone]).toEqual([['1', 'DELETE'], true]);
});

test('whatever they do, and whenever, each is told everything once and in order', async () => {
  let state = 7;
  const chance = (of: number): boolean => {
    state = (state * 48_271) % 2_147_483_647;
    return state % of === 0;
  };
  const pad = createPad();
  const listeners: { listener: Listener; from: number }[] = [];
  const anyone = (): Listener => listeners[state % listeners.length]!.listener;
  const join = async (from: number): Promise<void> => {
    const listener = await pad.listen();
    listener.onTake = () => {
      if (chance(40)) void anyone().subscriber.return!();
      if (chance(40)) anyone().subscriber.fallBehind();
      return !chance(5);
    };
    listeners.push({ listener, from });
  };
  for (let index = 0; index < 20; index += 1) await join(0);
  for (let number = 1; number <= 300; number += 1) {
    if (chance(10)) pad.lose(number);
    else pad.publish(number);
    if (chance(3)) await settle();
    if (chance(4)) await join(number);
  }
  pad.publish(301);
  await settle();
  await settle();
  const whole = (from: number, to: number): string[] =>
    Array.from({ length: to - from }, (_, at) => `${from + at + 1}`);
  let taken = 0;
  for (const { listener, from } of listeners) {
    expect(listener.failure).toBeUndefined();
    const upTo = listener.isDone ? from + listener.told.length : 301;
    expect(listener.told).toEqual(whole(from, upTo));
    taken += listener.taken.length;
  }
  expect(listeners.some(({ listener }) => !listener.isDone)).toBe(true);
  expect(taken).toBeGreaterThan(1000);
});
