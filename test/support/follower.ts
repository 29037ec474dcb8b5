// Collects what an endless iteration yields, until a test has seen enough.
export interface Follower<Item> {
  /** So far, in order. */
  readonly items: readonly Item[];
  /** Resolves once the items fulfil the condition. @throws Error after the limit, or when the iteration ended without fulfilling it */
  until(condition: (items: readonly Item[]) => boolean, limitMs?: number): Promise<void>;
  /** Resolves when the iteration has ended, with what it threw. */
  readonly ended: Promise<unknown>;
  stop(): Promise<void>;
}

export function follow<Item>(open: (signal: AbortSignal) => AsyncIterable<Item>): Follower<Item> {
  const items: Item[] = [];
  const stopping = new AbortController();
  let wake: () => void = () => {};
  let isOver = false;
  const read = async (): Promise<unknown> => {
    try {
      for await (const item of open(stopping.signal)) {
        items.push(item);
        wake();
      }
      return undefined;
    } catch (error) {
      return error;
    } finally {
      isOver = true;
      wake();
    }
  };
  const ended = read();
  return {
    items,
    ended,
    async until(condition, limitMs = 40_000) {
      const fail = (why: string): Error => new Error(`${why}: ${JSON.stringify(items).slice(0, 2000)}`);
      const limit = Date.now() + limitMs;
      while (!condition(items)) {
        if (isOver) throw fail(`ended with ${String(await ended)}`);
        if (Date.now() > limit) throw fail(`not within ${limitMs} ms`);
        let timer: NodeJS.Timeout | undefined;
        await new Promise<void>((resolve) => {
          wake = resolve;
          timer = setTimeout(resolve, limit - Date.now() + 1);
        });
        clearTimeout(timer);
      }
    },
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
