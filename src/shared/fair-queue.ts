// A few places that many want: who waits is let in in turn by group, so that a group that asks for much waits behind itself.

export interface FairQueue {
  /**
   * Runs `work` once there is a place, at once if there is one now. Places are given to the groups in turn, and within a group in
   * the order of the calls.
   * @throws what `refusal` makes, when it waited for too long
   */
  run<Answer>(group: string, work: () => Promise<Answer>): Promise<Answer>;
}

interface Waiter {
  enter(): void;
}

/**
 * @param places how many pieces of work may be under way at once
 * @param longestWaitMs after which who still waits is refused
 */
export function createFairQueue(places: number, longestWaitMs: number, refusal: () => Error): FairQueue {
  let free = places;
  /** In the order of their turns; none is empty. */
  const groups = new Map<string, Set<Waiter>>();

  const wait = (group: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const waiters = groups.get(group) ?? new Set();
      groups.set(group, waiters);
      const timer = setTimeout(() => {
        waiters.delete(waiter);
        if (waiters.size === 0) groups.delete(group);
        reject(refusal());
      }, longestWaitMs).unref();
      const waiter: Waiter = {
        enter() {
          clearTimeout(timer);
          resolve();
        },
      };
      waiters.add(waiter);
    });

  const leave = (): void => {
    const [next] = groups;
    if (!next) {
      free += 1;
      return;
    }
    const [group, waiters] = next;
    const [waiter] = waiters;
    waiters.delete(waiter!);
    groups.delete(group);
    if (waiters.size > 0) groups.set(group, waiters);
    waiter!.enter();
  };

  return {
    async run(group, work) {
      if (free > 0) free -= 1;
      else await wait(group);
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}
