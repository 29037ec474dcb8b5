// Lets a bounded number of pieces of work run at a time; the others wait in the order in which they came.

export interface ConcurrencyGate {
  /** Runs `work` when there is room. @throws the signal's reason when it was aborted while waiting: then `work` never began */
  run<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
}

/** @param limit at least 1 */
export function createConcurrencyGate(limit: number): ConcurrencyGate {
  let running = 0;
  const waiting: (() => void)[] = [];

  function enter(ending: AbortSignal): Promise<void> {
    ending.throwIfAborted();
    if (running < limit) {
      running++;
      return Promise.resolve();
    }
    // One of its own for each that waits: a signal with dozens of listeners looks like a leak, and the process warns of it.
    const signal = AbortSignal.any([ending]);
    return new Promise((resolve, reject) => {
      const admit = (): void => {
        signal.removeEventListener('abort', leaveQueue);
        resolve();
      };
      const leaveQueue = (): void => {
        waiting.splice(waiting.indexOf(admit), 1);
        reject(signal.reason as Error);
      };
      waiting.push(admit);
      signal.addEventListener('abort', leaveQueue, { once: true });
    });
  }

  /** The place goes to the next in the queue, without becoming free in between. */
  function leave(): void {
    const next = waiting.shift();
    if (next) next();
    else running--;
  }

  return {
    async run(work, signal) {
      await enter(signal);
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}
