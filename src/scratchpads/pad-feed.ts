// The events of one pad, once for all its subscribers in this process: parsed once, checked once, repaired after a gap.
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../shared/logger.js';
import type { ChannelHub } from '../redis/channel-hub.js';
import { createAudience } from './audience.js';
import type { ReadReplay, Replay, ReplayFrom } from './change-replay.js';
import {
  createChangeSubscriber,
  type ChangeSource,
  type ChangeSubscriber,
  type SubscriberLimits,
} from './change-subscriber.js';
import {
  createEventCursorCodec,
  isSamePosition,
  lastNumber,
  startOfHistory,
  type EventPosition,
} from './event-cursor.js';
import { publishedEvent, type ContentState, type PublishedEvent } from './schemas.js';
import { createDelivery, deletion, liveDelivery, type Delivery } from './scratchpad-change.js';
import { eventChannel, type PadAddress } from '../redis/redis-keys.js';

export interface PadFeedDependencies {
  hub: ChannelHub;
  readReplay: ReadReplay;
  /** @throws DomainError UNAVAILABLE */
  readContent: (pad: PadAddress) => Promise<ContentState>;
  /** Asks SQL. @throws when it does not answer */
  padExists: (pad: PadAddress) => Promise<boolean>;
  limits: SubscriberLimits;
  logger: Logger;
}

export interface PadFeed {
  /** Resolves when nothing can be missed any more. @throws DomainError UNAVAILABLE */
  subscribe(from: ReplayFrom): Promise<ChangeSubscriber>;
  /** Completes every subscriber. */
  complete(): void;
}

/** Events that wait while a large content is read; with more of them the subscribers read on from where they are. */
const mostPending = 200;
/** Redis lets a key expire within a millisecond or so of its time. */
const expiryMarginMs = 20;
const retryMs = 1000;
/** Between two looks at a state that should have expired: this clock and Redis's may differ by more than a moment. */
const expiryRecheckMs = 250;
const longestTimerMs = 2 ** 31 - 1;

/** @param onIdle called once, when the last subscriber has left: the feed is over then, and a later subscriber needs a new one */
export function createPadFeed(pad: PadAddress, dependencies: PadFeedDependencies, onIdle: () => void): PadFeed {
  const { hub, readReplay, readContent, padExists, limits, logger } = dependencies;
  const codec = createEventCursorCodec(pad);
  let users = 0;
  let isOver = false;
  let eventsSeen = 0;

  // ── from Redis to the subscribers ──

  const broadcast = (event: PublishedEvent): void => {
    eventsSeen += 1;
    watchExpiry(event.expires_at_ms);
    audience.offer(event);
  };
  const fallBehind = (): void => audience.each((subscriber) => subscriber.fallBehind());

  let isReadingContent = false;
  let pending: PublishedEvent[] = [];
  /** Told already, before the event of its own has come: the updates up to that one tell it, too, so that no content goes back. */
  let ahead: ContentState | undefined;

  /** Passes events on in their order; one whose content was too large to be published waits for it, and the others behind it. */
  const pass = (event: PublishedEvent): void => {
    if (isReadingContent) {
      if (pending.length < mostPending) pending.push(event);
      else {
        pending = [];
        fallBehind();
      }
      return;
    }
    if (ahead && Number(ahead.version) < event.number) ahead = undefined;
    if (ahead && event.operation === 'UPDATE') {
      broadcast({ ...event, content: ahead });
    } else if (event.operation === 'UPDATE' && event.content === undefined) {
      void passWithContent(event);
    } else {
      broadcast(event);
    }
  };
  const passWithContent = async (event: PublishedEvent): Promise<void> => {
    isReadingContent = true;
    try {
      const content = await readContent(pad);
      const version = Number(content.version);
      if (version > event.number) ahead = content;
      if (version >= event.number) broadcast({ ...event, content });
      // It is gone by now: how that came, a replay tells.
      else fallBehind();
    } catch {
      fallBehind();
    }
    isReadingContent = false;
    const waiting = pending;
    pending = [];
    waiting.forEach(pass);
  };

  const onMessage = (message: unknown): void => {
    const result = publishedEvent.safeParse(message);
    if (result.success) pass(result.data);
    else logger.warn({ scratchpadId: pad.scratchpadId }, 'Dropped a message that is no scratchpad event');
  };

  // ── the end of the state, and of the pad ──

  let expiryTimer: NodeJS.Timeout | undefined;
  const watchExpiry = (expiresAtMs: number | null, shortestWaitMs = 0): void => {
    clearTimeout(expiryTimer);
    if (expiresAtMs === null || isOver) return;
    const waitMs = Math.max(expiresAtMs + expiryMarginMs - Date.now(), shortestWaitMs);
    expiryTimer = setTimeout(() => void checkExpiry(expiresAtMs), Math.min(waitMs, longestTimerMs)).unref();
  };
  const checkExpiry = async (expiresAtMs: number): Promise<void> => {
    const eventsBefore = eventsSeen;
    let state: Replay;
    try {
      state = await readReplay(pad, 'now');
    } catch {
      if (eventsBefore === eventsSeen && !isOver)
        expiryTimer = setTimeout(() => void checkExpiry(expiresAtMs), retryMs).unref();
      return;
    }
    if (eventsBefore !== eventsSeen || isOver) return; // written to again meanwhile
    if (state.expiresAtMs !== null) return watchExpiry(state.expiresAtMs, expiryRecheckMs);
    if (lastNumber(state.position) > 0) return; // cleared, not expired
    const told = { operation: 'EXPIRE', occurredAt: new Date(expiresAtMs), expiresAt: null, replayed: false } as const;
    const delivery = createDelivery(told, startOfHistory, codec);
    audience.each((subscriber) => subscriber.expire(delivery));
  };

  const tellDeleted = (): void => {
    const delivery = deletion(codec);
    audience.each((subscriber) => subscriber.delete(delivery));
  };
  const checkExistence = async (): Promise<void> => {
    for (;;) {
      if (isOver) return;
      try {
        if (!(await padExists(pad))) tellDeleted();
        return;
      } catch {
        fallBehind(); // SQL is away: what Redis knows is told meanwhile
        await delay(retryMs, undefined, { ref: false });
      }
    }
  };
  /** SQL is asked first, so that a deleted pad is told as deleted and not as empty; but not for ever. */
  const onRestored = (): void => {
    void Promise.race([checkExistence(), delay(retryMs, undefined, { ref: false })]).then(fallBehind);
  };

  // ── subscribers ──

  const opened = hub.open(eventChannel(pad), { onMessage, onRestored });
  opened.catch(() => undefined); // every subscriber that waits for it is told

  const release = (): void => {
    users -= 1;
    if (users > 0) return;
    isOver = true;
    clearTimeout(expiryTimer);
    onIdle();
    opened.then((close) => close()).catch(() => undefined);
  };

  /** Subscribers that ask from the same place at the same moment share one reading and its frozen changes. */
  const asked = new Map<string, Promise<Replay>>();
  const replay = (from: ReplayFrom): Promise<Replay> => {
    const key = typeof from === 'string' ? from : codec.encode(from);
    let reading = asked.get(key);
    if (!reading) {
      // Sent after this turn, so that whoever joined asked before it was sent: what it heard before is in the answer.
      reading = Promise.resolve().then(() => {
        asked.delete(key);
        return readReplay(pad, from);
      });
      asked.set(key, reading);
    }
    return reading;
  };

  /** Subscribers that are at the same place, as nearly all are, share one frozen change. */
  let latest: { event: PublishedEvent; from: EventPosition; delivery: Delivery } | undefined;
  const toDelivery = (event: PublishedEvent, from: EventPosition): Delivery => {
    if (latest?.event !== event || !isSamePosition(latest.from, from)) {
      latest = { event, from, delivery: liveDelivery(event, from, codec) };
    }
    return latest.delivery;
  };
  const audience = createAudience<ChangeSubscriber>(toDelivery);

  const join = (): ChangeSubscriber => {
    const source: ChangeSource = {
      async replay(from) {
        const page = await replay(from);
        if (page.expiresAtMs !== null) watchExpiry(page.expiresAtMs);
        return page;
      },
      toDelivery,
      cursorOf: (position) => codec.encode(position),
      audience,
      leave() {
        audience.remove(subscriber);
        release();
      },
    };
    const subscriber = createChangeSubscriber(source, limits);
    audience.add(subscriber);
    return subscriber;
  };

  return {
    async subscribe(from) {
      users += 1;
      let subscriber: ChangeSubscriber | undefined;
      try {
        await opened;
        subscriber = join();
        await subscriber.start(from);
        return subscriber;
      } catch (error) {
        if (subscriber) subscriber.complete();
        else release();
        throw error;
      }
    },
    complete: () => audience.each((subscriber) => subscriber.complete()),
  };
}
