// Random numbers that a seed repeats: the same seed gives the same faults and the same choices.

export interface Random {
  /** From 0 up to 1, which it never is. */
  next(): number;
  /** A whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number;
  pick<Item>(items: readonly Item[]): Item;
  /** A stream of its own, so that what one reader takes does not change what another one gets. */
  fork(name: string): Random;
}

/** mulberry32 over a hash of the seed. */
export function createRandom(seed: number | string): Random {
  let state = 2_166_136_261;
  for (const character of String(seed)) state = Math.imul(state ^ character.charCodeAt(0), 16_777_619);

  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const whole = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  return {
    next,
    whole,
    pick<Item>(items: readonly Item[]): Item {
      if (items.length === 0) throw new Error('there is nothing to pick from');
      return items[whole(0, items.length - 1)] as Item;
    },
    fork: (name) => createRandom(`${seed}/${name}`),
  };
}
