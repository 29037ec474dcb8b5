// A legitimate client beside an attack: it reads its scratchpad all the while, and its slowest answer is what the attack cost it.
import { expect } from 'vitest';
import type { GraphqlClient } from './graphql-client.js';
import { readState } from './operations.js';

/** @returns the slowest answer in milliseconds, until `attack` is over, however it ends */
export async function slowestBeside(
  attack: Promise<unknown>,
  { client, scratchpadId, text }: { client: GraphqlClient; scratchpadId: string; text: string },
): Promise<number> {
  const state = { isOver: false };
  const end = (): void => {
    state.isOver = true;
  };
  const attacked = attack.then(end, end);
  let slowestMs = 0;
  do {
    const begin = performance.now();
    expect((await readState(client, scratchpadId)).content.text).toBe(text);
    slowestMs = Math.max(slowestMs, performance.now() - begin);
  } while (!state.isOver);
  await attacked;
  return slowestMs;
}
