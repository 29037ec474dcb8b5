// A legitimate client beside an attack: it reads its scratchpad all the while, and its slowest answer is what the attack cost it.
import { expect } from 'vitest';
import type { GraphqlClient } from './graphql-client.js';
import { readState } from './operations.js';

const slowMs = 2000;
/** How much slower than before an answer may be on a machine that is busy with something else. */
const slowdown = 20;

interface Bystander {
  client: GraphqlClient;
  scratchpadId: string;
  /** What the scratchpad holds. */
  text: string;
}

/**
 * How slow the slowest answer was until `attack` was over: 1 is the most that can be borne. @throws what the attack throws, and when an
 * answer was wrong
 */
export async function slownessBeside(attack: () => Promise<unknown>, bystander: Bystander): Promise<number> {
  const { client, scratchpadId, text } = bystander;
  const read = async (): Promise<number> => {
    const begin = performance.now();
    expect((await readState(client, scratchpadId)).content.text).toBe(text);
    return performance.now() - begin;
  };
  let usualMs = 0;
  for (let count = 0; count < 5; count += 1) usualMs = Math.max(usualMs, await read());
  const state = { isOver: false };
  const attacked = attack().finally(() => (state.isOver = true));
  attacked.catch(() => undefined); // told below
  let slowestMs = 0;
  do slowestMs = Math.max(slowestMs, await read());
  while (!state.isOver);
  await attacked;
  return slowestMs / (slowMs + slowdown * usualMs);
}
