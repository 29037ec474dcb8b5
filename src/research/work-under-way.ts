// Knows what has been begun and not ended, for those who must not leave before it has.

export interface WorkUnderWay {
  /** Returns the work itself. */
  track<Result>(work: Promise<Result>): Promise<Result>;
  /** Resolves when nothing tracked is under way, however it ended. */
  settled(): Promise<void>;
}

export function createWorkUnderWay(): WorkUnderWay {
  const underWay = new Set<Promise<unknown>>();
  return {
    track(work) {
      underWay.add(work);
      const forget = (): void => {
        underWay.delete(work);
      };
      work.then(forget, forget);
      return work;
    },
    async settled() {
      while (underWay.size > 0) await Promise.allSettled(underWay);
    },
  };
}
