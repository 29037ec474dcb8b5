// What is large waits for its turn, for a bounded time; what is not large does not wait for it.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createReadLanes, type BoundedRead } from '../../../src/scratchpads/read-lanes.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const after = <Value>(ms: number, value: Value): Promise<Value> =>
  new Promise((resolve) => void setTimeout(() => resolve(value), ms));

const ordinary: BoundedRead<string> = () => Promise.resolve('ordinary');
const large: BoundedRead<string> = (mostBytes) => (mostBytes < 2 ** 21 ? Promise.resolve(null) : after(3000, 'large'));
const tooLarge: BoundedRead<string> = () => Promise.resolve(null);

test('who waits for too long is refused with what to do, and the others are served', async () => {
  const inTurn = createReadLanes();
  const all = Promise.allSettled(Array.from({ length: 5 }, () => inTurn('owner', large)));
  expect(await inTurn('owner', ordinary)).toBe('ordinary');
  await vi.advanceTimersByTimeAsync(6000);
  expect(await all).toMatchObject([
    { value: 'large' },
    { value: 'large' },
    { value: 'large' },
    { value: 'large' },
    { reason: { code: 'UNAVAILABLE', message: expect.stringContaining('Try again') as unknown } },
  ]);
  const later = inTurn('owner', large);
  await vi.advanceTimersByTimeAsync(3000);
  expect(await later).toBe('large');
});

test('what is larger than any answer is refused, and holds nobody up', async () => {
  const inTurn = createReadLanes();
  await expect(inTurn('owner', tooLarge)).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' });
  const next = inTurn('owner', large);
  await vi.advanceTimersByTimeAsync(3000);
  expect(await next).toBe('large');
});
