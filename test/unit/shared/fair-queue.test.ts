// Places are given to the groups in turn, nobody waits for ever, and a place is given back however the work ends.
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createFairQueue } from '../../../src/shared/fair-queue.js';

const refusal = () => new Error('too long');

/** Work that lasts until it is told to end. */
function gate() {
  let open = (): void => undefined;
  const work = new Promise<void>((resolve) => (open = resolve));
  return { work: () => work, open };
}

test('as many as there are places are under way, the others wait', async () => {
  const queue = createFairQueue(2, 1000, refusal);
  let running = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      queue.run(`group ${index % 3}`, async () => {
        running += 1;
        most = Math.max(most, running);
        await turn();
        running -= 1;
      }),
    ),
  );
  expect([most, running]).toEqual([2, 0]);
});

test('a group that asks once is served before the rest of one that asked a hundred times', async () => {
  const queue = createFairQueue(1, 1000, refusal);
  const first = gate();
  const order: string[] = [];
  const work = (name: string) => () => {
    order.push(name);
    return Promise.resolve();
  };
  const all = [queue.run('greedy', first.work)];
  for (let number = 0; number < 100; number += 1) all.push(queue.run('greedy', work(`greedy ${number}`)));
  all.push(queue.run('modest', work('modest')), queue.run('third', work('third')));
  first.open();
  await Promise.all(all);
  expect(order.slice(0, 4)).toEqual(['greedy 0', 'modest', 'third', 'greedy 1']);
  expect(order.filter((name) => name.startsWith('greedy'))).toEqual(
    Array.from({ length: 100 }, (_, number) => `greedy ${number}`),
  );
});

test('work that fails gives its place back, and tells its failure', async () => {
  const queue = createFairQueue(1, 1000, refusal);
  const failing = queue.run('a', () => Promise.reject(new Error('broken')));
  const next = queue.run('a', () => Promise.resolve('served'));
  await expect(failing).rejects.toThrow('broken');
  expect(await next).toBe('served');
  await expect(
    queue.run('a', () => {
      throw new Error('at once');
    }),
  ).rejects.toThrow('at once');
  expect(await queue.run('a', () => Promise.resolve('served'))).toBe('served');
});

test('who waits for too long is refused, and its turn goes to the next', async () => {
  const queue = createFairQueue(1, 50, refusal);
  const long = gate();
  const holding = queue.run('a', long.work);
  let wasRun = false;
  await expect(
    queue.run('b', () => {
      wasRun = true;
      return Promise.resolve();
    }),
  ).rejects.toThrow('too long');
  const later = queue.run('b', () => Promise.resolve('served'));
  long.open();
  await holding;
  expect([await later, wasRun]).toEqual(['served', false]);
});

test('who was served in time leaves nothing behind that could harm the next of its group', async () => {
  const queue = createFairQueue(1, 300, refusal);
  const [first, second] = [gate(), gate()];
  const all = [queue.run('a', first.work), queue.run('b', () => Promise.resolve('served'))];
  first.open();
  await Promise.all(all);
  const holding = queue.run('a', second.work);
  await delay(200);
  const next = queue.run('b', () => Promise.resolve('served'));
  // The time of the first one of its group is over, its own is not.
  await delay(200);
  second.open();
  await holding;
  expect(await next).toBe('served');
});
