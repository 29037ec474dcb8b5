// Reads of working state take turns: however many are asked for at once, what Redis has to hold for their replies is bounded.
import { DomainError } from '../shared/errors.js';
import { createFairQueue } from '../shared/fair-queue.js';

/** A read as it is sent: a reply of more than `mostBytes` is not made, and null comes instead. */
export type BoundedRead<Reply> = (mostBytes: number) => Promise<Reply | null>;

/** @throws DomainError LIMIT_EXCEEDED for a reply that nobody could be told, UNAVAILABLE after waiting for too long */
export type ReadLanes = <Reply>(ownerId: string, read: BoundedRead<Reply>) => Promise<Reply>;

const ordinaryBytes = 2 ** 20;
const ordinaryAtOnce = 64;
/** While the reply to one is taken in, Redis works on the other. */
const largeAtOnce = 2;
/** An answer has 32 Mi characters at most, and none of them takes more than three bytes here. */
const largestBytes = 96 * 2 ** 20;
/** Less than half of what a request over HTTP has, so that its refusal arrives as one. */
const longestWaitMs = 4000;

const tooBusy = (): DomainError =>
  new DomainError(
    'UNAVAILABLE',
    'Too much is being read at the moment. Try again, or ask for fewer scratchpads and smaller pages at a time.',
  );

/** Each read is tried among the ordinary ones first. Those that turn out large are repeated two at a time, the owners in turn. */
export function createReadLanes(): ReadLanes {
  const ordinary = createFairQueue(ordinaryAtOnce, longestWaitMs, tooBusy);
  const large = createFairQueue(largeAtOnce, longestWaitMs, tooBusy);

  return async (ownerId, read) => {
    const reply =
      (await ordinary.run(ownerId, () => read(ordinaryBytes))) ?? (await large.run(ownerId, () => read(largestBytes)));
    if (reply !== null) return reply;
    throw new DomainError(
      'LIMIT_EXCEEDED',
      'What is asked for here has more than 96 MiB: ask for fewer scratchpads or smaller pages at a time.',
    );
  };
}
