// Live changes of scratchpads: Redis pub/sub made lossless by numbers, cursors and replays.
import { DomainError } from '../shared/errors.js';
import type { Logger } from '../shared/logger.js';
import { createChannelHub, type SubscriberAccess } from '../redis/channel-hub.js';
import { createReplayReader } from './change-replay.js';
import type { DataPlane } from './data-plane.js';
import { createEventCursorCodec, type EventCursorCodec } from './event-cursor.js';
import { createPadFeed, type PadFeed } from './pad-feed.js';
import type { RedisAccess } from '../redis/redis-access.js';
import { emptyContent } from './schemas.js';
import { deletion, type ScratchpadChange } from './scratchpad-change.js';
import { eventChannel, type PadAddress } from '../redis/redis-keys.js';

export type { ScratchpadChange, ScratchpadOperation } from './scratchpad-change.js';

export interface EventPlane {
  /**
   * Every change to the pad: without `after` from now on; with a cursor everything that the state has beyond it first; with "" the whole
   * state first. Resolves when nothing can be missed any more. Completes after DELETE. `return()` frees what it holds.
   * The caller has made sure that the pad exists and may be read.
   * @throws DomainError INVALID_INPUT for a cursor that is none of this pad's, UNAVAILABLE. The iterator throws SUBSCRIBER_TOO_SLOW
   */
  subscribe(pad: PadAddress, options: { after?: string }): Promise<AsyncIterableIterator<ScratchpadChange>>;
  /**
   * For a pad that is not there (any more): DELETE and the end, told to whoever gives back a cursor of this owner's pad, and so
   * knew it; undefined for anybody else.
   */
  farewell(pad: PadAddress, after: string | undefined): AsyncIterableIterator<ScratchpadChange> | undefined;
  /** Completes every subscription, and takes no new ones. */
  close(): void;
}

interface Dependencies {
  redis: RedisAccess & SubscriberAccess;
  dataPlane: Pick<DataPlane, 'read'>;
  /** Whether SQL has the pad at this moment; not out of a cache. */
  padExists: (pad: PadAddress) => Promise<boolean>;
  /** How many events may wait for one subscriber. */
  bufferEvents: number;
  /** How much text may wait for one subscriber, in characters. */
  bufferBytes?: number;
  logger: Logger;
}

const defaultBufferBytes = 8 * 1024 * 1024;
/** After a reconnect every open pad is asked for at once: not more than this many at the same time. */
const existenceChecksAtOnce = 10;

/** Runs work in the order of the calls, at most `limit` at a time. */
function createTurnstile(limit: number) {
  let free = limit;
  const waiting: (() => void)[] = [];
  return async <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free -= 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}

const isCursorOf = (codec: EventCursorCodec, cursor: string): boolean => {
  try {
    codec.decode(cursor);
    return true;
  } catch {
    return false;
  }
};

async function* tellOnce(change: ScratchpadChange): AsyncIterableIterator<ScratchpadChange> {
  yield change;
}

export function createEventPlane(dependencies: Dependencies): EventPlane {
  const { redis, dataPlane, padExists, bufferEvents, bufferBytes = defaultBufferBytes, logger } = dependencies;
  const inTurn = createTurnstile(existenceChecksAtOnce);
  const feeds = new Map<string, PadFeed>();
  const hub = createChannelHub(redis, logger);
  const feedDependencies = {
    hub,
    readReplay: createReplayReader(redis),
    async readContent(pad: PadAddress) {
      const [reading] = await dataPlane.read([{ pad, content: true }]);
      return reading?.content ?? emptyContent;
    },
    padExists: (pad: PadAddress) => inTurn(() => padExists(pad)),
    limits: { events: bufferEvents, bytes: bufferBytes },
    logger,
  };
  let isClosed = false;

  const feedOf = (pad: PadAddress): PadFeed => {
    const channel = eventChannel(pad);
    let feed = feeds.get(channel);
    if (!feed) {
      const created = createPadFeed(pad, feedDependencies, () => {
        if (feeds.get(channel) === created) feeds.delete(channel);
      });
      feed = created;
      feeds.set(channel, feed);
    }
    return feed;
  };

  return {
    async subscribe(pad, { after }) {
      if (isClosed) throw new DomainError('UNAVAILABLE', 'The server is shutting down: connect again.');
      const from = after === undefined ? 'now' : after === '' ? 'start' : createEventCursorCodec(pad).decode(after);
      return await feedOf(pad).subscribe(from);
    },
    farewell(pad, after) {
      const codec = createEventCursorCodec(pad);
      if (after === undefined || !isCursorOf(codec, after)) return undefined;
      return tellOnce(deletion(codec).change);
    },
    close() {
      isClosed = true;
      for (const feed of feeds.values()) feed.complete();
      hub.close();
    },
  };
}
