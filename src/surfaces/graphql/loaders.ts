// Batching: whatever the fields of one operation want to know is asked in one round trip.
import DataLoader from 'dataloader';
import type { Principal } from '../../identity/principal.js';
import type { PadAddress, PadRead, PadReading } from '../../scratchpads/data-plane.js';
import type { ScratchpadService } from '../../scratchpads/scratchpad-service.js';
import type { RunService } from '../../research/run-service.js';
import type { MessageService } from '../../threads/message-service.js';

export interface Loaders {
  /** What one field wants of a pad's working state; all wishes of one tick are one round trip to Redis and one atomic step. */
  readPad(pad: PadAddress, wish: Omit<PadRead, 'pad'>): Promise<PadReading>;
  countMessages(threadId: string): Promise<number>;
  countRuns(threadId: string): Promise<number>;
}

interface BatchedServices {
  scratchpads: Pick<ScratchpadService, 'readEach'>;
  messages: Pick<MessageService, 'countByThread'>;
  runs: Pick<RunService, 'countByThread'>;
}

export function createLoaders(services: BatchedServices, principal: Principal): Loaders {
  // Nothing is cached over a tick: a mutation followed by a query field in one operation must see its own write.
  const pads = new DataLoader<PadRead, PadReading>((reads) => services.scratchpads.readEach(principal, reads), {
    cache: false,
  });
  const countsByThread = ({ countByThread }: Pick<MessageService, 'countByThread'>) =>
    new DataLoader<string, number>(
      async (threadIds) => {
        const counts = await countByThread(principal, threadIds);
        return threadIds.map((threadId) => counts.get(threadId) ?? 0);
      },
      { cache: false },
    );
  const messageCounts = countsByThread(services.messages);
  const runCounts = countsByThread(services.runs);
  return {
    readPad: (pad, wish) => pads.load({ pad, ...wish }),
    countMessages: (threadId) => messageCounts.load(threadId),
    countRuns: (threadId) => runCounts.load(threadId),
  };
}
