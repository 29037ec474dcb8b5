// Wakes those who read one stream: one Redis subscription for all of them in this process.
import type { ChannelHub } from '../redis/channel-hub.js';
import { runEventsChannel } from '../redis/redis-keys.js';
import type { StreamAddress } from './run-event-log.js';

export interface RunEventFeed {
  /** Resolves when every event from then on wakes the reader. @throws DomainError UNAVAILABLE */
  join(wake: () => void): Promise<void>;
  /** Once for each `join`, also for one that failed. */
  leave(wake: () => void): void;
}

/** @param onIdle called once, when the last reader has left: a later one needs a new feed */
export function createRunEventFeed(hub: ChannelHub, stream: StreamAddress, onIdle: () => void): RunEventFeed {
  const readers = new Set<() => void>();
  const wakeAll = (): void => {
    for (const wake of readers) wake();
  };
  const channel = runEventsChannel(stream.ownerId, stream.runId);
  const opened = hub.open(channel, { onMessage: wakeAll, onRestored: wakeAll });
  opened.catch(() => undefined); // every reader that waits for it is told

  return {
    async join(wake) {
      readers.add(wake);
      await opened;
    },
    leave(wake) {
      readers.delete(wake);
      if (readers.size > 0) return;
      onIdle();
      opened.then((close) => close()).catch(() => undefined);
    },
  };
}
