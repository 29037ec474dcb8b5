// Interleaved rounds: A B A B …, so that whatever else the machine does meanwhile touches every side alike.

export interface Plan {
  rounds: number;
  /** How much of the full work of a round is done: 1, or less where a rough answer will do. */
  share: number;
  /** The same of what is done before the first round; as much as of a round if it is not said. */
  warmUpShare?: number;
}

/** How much one side does. */
export interface Work {
  /** Before its first round: compilers and caches need it. */
  warmUp: number;
  /** In each round. */
  round: number;
}

const scaled = (amount: number, share: number): number => Math.max(Math.round(amount * share), 1);

/**
 * @param sides by name; each does the given amount of its work and measures itself
 * @returns for each side its result in every round
 */
export async function interleave<Name extends string, Result>(
  { rounds, share, warmUpShare = share }: Plan,
  work: Work,
  sides: Record<Name, (amount: number) => Promise<Result>>,
): Promise<Record<Name, Result[]>> {
  const names = Object.keys(sides) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, [] as Result[]])) as Record<Name, Result[]>;
  for (const name of names) await sides[name](scaled(work.warmUp, warmUpShare));
  for (let round = 0; round < rounds; round += 1) {
    for (const name of names) results[name].push(await sides[name](scaled(work.round, share)));
  }
  return results;
}

/** One figure of every round. */
export const pick = <Key extends string>(results: readonly Record<Key, number>[], key: Key): number[] =>
  results.map((result) => result[key]);
