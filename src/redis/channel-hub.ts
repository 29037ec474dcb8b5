// One Redis subscription for each channel and process, kept over reconnects.
import { RedisPubSub } from 'graphql-redis-subscriptions';
import { unavailable } from '../shared/errors.js';
import type { Logger } from '../shared/logger.js';
import type { RedisCommands } from './redis-access.js';

/** Who listens on a channel. */
export interface ChannelListener {
  /** A message, parsed from JSON; a string when it was none. The same object for everybody. */
  onMessage(message: unknown): void;
  /** The channel is heard again after messages may have been missed. */
  onRestored(): void;
}

export interface ChannelHub {
  /**
   * Resolves when Redis has confirmed: everything published from then on is heard. One listener for each channel.
   * The returned function stops listening. @throws DomainError UNAVAILABLE
   */
  open(channel: string, listener: ChannelListener): Promise<() => void>;
  close(): void;
}

export interface SubscriberAccess {
  readonly subscriber: RedisCommands;
  /** Resolves when the subscriber's connection can be used; rejects soon when Redis is away. */
  readonly subscriberReady: () => Promise<void> | undefined;
}

const channelsAtOnce = 500;
const retryDelayMs = 500;

/**
 * The client as RedisPubSub may see it. It drops the promises of UNSUBSCRIBE, and a failed SUBSCRIBE rejects one that nobody holds:
 * either would end the process. So it is told that all went well, and `failureOf` tells the truth.
 */
function guardClient({ subscriber, subscriberReady }: SubscriberAccess) {
  const failures = new Map<string, unknown>();
  const guarded = {
    on: (event: string, listener: (...values: unknown[]) => void) => subscriber.on(event, listener),
    subscribe(channel: string, done: (error: null) => void): void {
      failures.delete(channel);
      Promise.resolve(subscriberReady())
        .then(() => subscriber.subscribe(channel))
        .catch((error: unknown) => failures.set(channel, error))
        .finally(() => done(null));
    },
    unsubscribe(channel: string): void {
      failures.delete(channel);
      // Without a connection there is nothing to undo: only open channels are subscribed to again.
      if (subscriber.status === 'ready') subscriber.unsubscribe(channel).catch(() => undefined);
    },
    punsubscribe: () => undefined,
  };
  return {
    client: guarded as unknown as RedisCommands,
    /** Of the channel's last SUBSCRIBE, for everybody who shares it: it is forgotten with the last of them. */
    failureOf: (channel: string): unknown => failures.get(channel),
  };
}

export function createChannelHub(access: SubscriberAccess, logger: Logger): ChannelHub {
  const { subscriber } = access;
  const { client, failureOf } = guardClient(access);
  const pubSub = new RedisPubSub({ subscriber: client, publisher: client });
  const listeners = new Map<string, ChannelListener>();
  let connections = 0;
  let wasConnected = subscriber.status === 'ready';

  /** Subscribes again to every open channel: the connection is a new one and knows none. */
  const restore = async (connection: number): Promise<void> => {
    const channels = [...listeners.keys()];
    for (let start = 0; start < channels.length; start += channelsAtOnce) {
      const some = channels.slice(start, start + channelsAtOnce).filter((channel) => listeners.has(channel));
      if (some.length === 0) continue;
      try {
        await subscriber.subscribe(...some);
      } catch (error) {
        if (connection !== connections || subscriber.status !== 'ready') return; // the next connection begins anew
        logger.warn({ reason: String(error) }, 'Redis refused to subscribe again; trying once more');
        setTimeout(() => void restore(connection), retryDelayMs).unref();
        return;
      }
      for (const channel of some) listeners.get(channel)?.onRestored();
    }
  };
  const onReady = (): void => {
    connections += 1;
    if (wasConnected) void restore(connections);
    wasConnected = true;
  };
  subscriber.on('ready', onReady);

  return {
    async open(channel, listener) {
      listeners.set(channel, listener);
      const id = await pubSub.subscribe(channel, (message: unknown) => listener.onMessage(message));
      const stop = (): void => {
        if (listeners.get(channel) === listener) listeners.delete(channel);
        pubSub.unsubscribe(id);
      };
      const failure = failureOf(channel);
      if (failure !== undefined) {
        stop();
        throw unavailable('Redis', failure);
      }
      return stop;
    },
    close() {
      subscriber.off('ready', onReady);
      listeners.clear();
    },
  };
}
