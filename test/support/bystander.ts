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

/** Resolves when `attack` is over. @throws what it throws, and when an answer was wrong, or took long because of it */
export async function expectServedBeside(attack: () => Promise<unknown>, bystander: Bystander): Promise<void> {
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
  expect(slowestMs).toBeLessThan(slowMs + slowdown * usualMs);
}
