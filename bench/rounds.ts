// Interleaved rounds: A B A B …, so that whatever else the machine does meanwhile touches every side alike.

export interface Plan {
  rounds: number;
  /** Of one side in one round. */
  roundMs: number;
  /** Of one side before its first round: compilers and caches need it. */
  warmUpMs: number;
}

/**
 * @param sides by name; each measures itself for the given time
 * @returns for each side its result in every round
 */
export async function interleave<Name extends string, Result>(
  { rounds, roundMs, warmUpMs }: Plan,
  sides: Record<Name, (durationMs: number) => Promise<Result>>,
): Promise<Record<Name, Result[]>> {
  const names = Object.keys(sides) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, [] as Result[]])) as Record<Name, Result[]>;
  for (const name of names) await sides[name](warmUpMs);
  for (let round = 0; round < rounds; round += 1) {
    for (const name of names) results[name].push(await sides[name](roundMs));
  }
  return results;
}

/** One figure of every round. */
export const pick = <Key extends string>(results: readonly Record<Key, number>[], key: Key): number[] =>
  results.map((result) => result[key]);
