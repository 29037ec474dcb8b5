// One subscriber of one pad: a bounded queue that is drained by its consumer and filled by live events or by replays.
import { setTimeout as delay } from 'node:timers/promises';
import type { Divertible } from '../shared/divertible.js';
import { DomainError } from '../shared/errors.js';
import type { Audience, Member } from './audience.js';
import type { Replay, ReplayFrom } from './change-replay.js';
import { lastNumber, startOfHistory, type EventPosition } from './event-cursor.js';
import type { PublishedEvent } from './schemas.js';
import type { Delivery, ScratchpadChange } from './scratchpad-change.js';

/** Where changes come from: the feed of the pad, shared by its subscribers. */
export interface ChangeSource {
  /** The next page of what a subscriber at this position has not seen. @throws DomainError UNAVAILABLE */
  replay(from: ReplayFrom): Promise<Replay>;
  /** The event as a change for a subscriber that is at `position`. */
  toDelivery(event: PublishedEvent, position: EventPosition): Delivery;
  cursorOf(position: EventPosition): string;
  /** It is in there until it leaves. */
  audience: Pick<Audience<ChangeSubscriber>, 'sit' | 'stand'>;
  /** The subscriber is done and wants no more events. */
  leave(): void;
}

/** How much may wait for one subscriber. */
export interface SubscriberLimits {
  readonly events: number;
  readonly bytes: number;
}

export interface ChangeSubscriber extends Divertible<ScratchpadChange> {
  /** Reads where to begin. Called once, before `next`; events may be offered before. @throws DomainError UNAVAILABLE */
  start(from: ReplayFrom): Promise<void>;
  /** An event, in the order in which Redis published them. */
  offer(event: PublishedEvent): void;
  /** Events may have been missed: read on from where the subscriber is. */
  fallBehind(): void;
  /** The state has expired; tells a subscriber that knows of some. */
  expire(delivery: Delivery): void;
  /** The pad is gone: tells it and completes. */
  delete(delivery: Delivery): void;
  /** Completes after what is queued. */
  complete(): void;
}

/** Events kept while a replay is read; with more of them another page is read instead. */
const keptDuringReplay = 200;
const shortestRetryMs = 100;
const longestRetryMs = 2000;

type Result = IteratorResult<ScratchpadChange, undefined>;
const finished: Result = { done: true, value: undefined };

/**
 * "live" passes events on, each of which names the number before it. "behind" drops them: when the consumer has taken what is queued,
 * "reading" fetches the next page of what it has not seen, until a page is the last one and the events since then join on. So
 * however much there is to make good, no more than a page of it is in memory.
 */
type Phase = 'live' | 'behind' | 'reading';

export function createChangeSubscriber(source: ChangeSource, limits: SubscriberLimits): ChangeSubscriber {
  const queue: Delivery[] = [];
  let queuedBytes = 0;
  const consumers: { resolve(result: Result): void; reject(error: unknown): void }[] = [];
  /** For one that diverts. */
  let member: Member<ChangeSubscriber> | undefined;
  /** Of the last change that was queued, and of the last one that was handed over. While it sits, the audience knows better. */
  let position = startOfHistory;
  let delivered = startOfHistory;
  let phase: Phase = 'reading';
  let kept: PublishedEvent[] = [];
  let mustReadAgain = false;
  /** Events that came since the consumer last asked, while they were not queued. */
  let unqueued = 0;
  let isOver = false;
  /** Thrown once, after what is queued. */
  let failure: { error: unknown } | undefined;

  /** Nothing waits for it and it waits itself: the audience may tell it what comes, with others. */
  const sit = (): void => {
    if (member && phase === 'live' && consumers.length > 0 && !isOver) source.audience.sit(member, position);
  };
  /** Before everything else that may happen to it. */
  const stand = (): void => {
    if (member) source.audience.stand(member);
  };

  const end = (reason?: { error: unknown }): void => {
    if (isOver) return;
    stand();
    isOver = true;
    failure = reason;
    kept = [];
    source.leave();
    for (const consumer of consumers.splice(0)) {
      if (failure) consumer.reject(failure.error);
      else consumer.resolve(finished);
      failure = undefined;
    }
  };

  const tooSlow = (): void => {
    queue.length = 0;
    const message =
      'This subscriber reads more slowly than the scratchpad changes, and was ended. Subscribe again with after: the last cursor.';
    end({ error: new DomainError('SUBSCRIBER_TOO_SLOW', message, { lastCursor: source.cursorOf(delivered) }) });
  };

  const isTaken = (change: ScratchpadChange): boolean => {
    try {
      const told = member?.prepare(change);
      return told !== undefined && member?.seat.take(told) === true;
    } catch (error) {
      end({ error });
      return true;
    }
  };

  const hand = ({ change }: Delivery): void => consumers.shift()?.resolve({ done: false, value: change });

  const push = (delivery: Delivery): void => {
    if (isOver) return;
    position = delivery.position;
    if (consumers.length > 0) {
      delivered = position;
      if (!isTaken(delivery.change)) hand(delivery);
    } else {
      queue.push(delivery);
      queuedBytes += delivery.bytes;
    }
  };

  const pushBounded = (delivery: Delivery): void => {
    const isFull = queue.length >= limits.events || (queue.length > 0 && queuedBytes + delivery.bytes > limits.bytes);
    if (isFull && consumers.length === 0) tooSlow();
    else push(delivery);
    sit();
  };

  const countUnqueued = (): void => {
    unqueued += 1;
    if (unqueued > limits.events && consumers.length === 0) tooSlow();
  };

  const offer = (event: PublishedEvent): void => {
    if (isOver) return;
    stand();
    if (event.operation === 'DELETE') {
      push(source.toDelivery(event, position));
      end();
    } else if (phase === 'live') {
      const seen = lastNumber(position);
      if (event.number <= seen) return;
      if (event.previous === seen) pushBounded(source.toDelivery(event, position));
      else fallBehind();
    } else {
      if (phase === 'reading' && kept.length < keptDuringReplay) kept.push(event);
      else mustReadAgain = true;
      countUnqueued();
    }
  };

  const accept = (replay: Replay): void => {
    replay.deliveries.forEach(push);
    position = replay.position;
    phase = 'behind';
    if (replay.deleted) {
      end();
    } else if (replay.complete && !mustReadAgain) {
      phase = 'live';
      unqueued = 0;
      kept.forEach(offer);
      sit();
    }
    kept = [];
  };

  const readPage = async (from: ReplayFrom): Promise<void> => {
    phase = 'reading';
    kept = [];
    mustReadAgain = false;
    const replay = await source.replay(from);
    if (!isOver) accept(replay);
  };

  const catchUp = async (): Promise<void> => {
    let failures = 0;
    for (;;) {
      if (isOver || phase !== 'behind' || consumers.length === 0) return undefined;
      try {
        await readPage(position);
        failures = 0;
      } catch (error) {
        if (!(error instanceof DomainError && error.code === 'UNAVAILABLE')) return end({ error });
        // Redis is away: the subscription stays, and goes on when it is back.
        failures += 1;
        await delay(Math.min(shortestRetryMs * 2 ** failures, longestRetryMs), undefined, { ref: false });
        phase = 'behind';
      }
    }
  };

  const fallBehind = (): void => {
    if (phase === 'reading') {
      mustReadAgain = true;
    } else if (!isOver) {
      stand();
      phase = 'behind';
      void catchUp();
    }
  };

  const subscriber: ChangeSubscriber = {
    async start(from) {
      if (typeof from !== 'string') {
        position = from;
        delivered = from;
      }
      await readPage(from);
      if (from === 'now') delivered = position;
    },
    offer,
    fallBehind,
    expire(delivery) {
      if (isOver) return;
      stand();
      if (phase !== 'live') mustReadAgain = true;
      else if (lastNumber(position) > 0) pushBounded(delivery);
    },
    delete(delivery) {
      if (isOver) return;
      stand();
      push(delivery);
      end();
    },
    complete: () => end(),

    divert(prepare, seat) {
      stand();
      member = {
        subscriber,
        prepare,
        seat,
        place: undefined,
        stand(where) {
          position = where;
          delivered = where;
        },
        hand,
        fail: (error) => end({ error }),
      };
      sit();
    },
    next() {
      stand();
      unqueued = 0;
      const delivery = queue.shift();
      if (delivery) {
        queuedBytes -= delivery.bytes;
        delivered = delivery.position;
        return Promise.resolve({ done: false, value: delivery.change });
      }
      if (failure) {
        const { error } = failure;
        failure = undefined;
        return Promise.reject(error);
      }
      if (isOver) return Promise.resolve(finished);
      return new Promise((resolve, reject) => {
        consumers.push({ resolve, reject });
        sit();
        void catchUp();
      });
    },
    return() {
      queue.length = 0;
      end();
      failure = undefined;
      return Promise.resolve(finished);
    },
    throw(error) {
      queue.length = 0;
      end();
      failure = undefined;
      return Promise.reject(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
  return subscriber;
}
