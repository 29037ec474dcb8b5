// The plan of faults: the same for the same seed, and complete.
import { expect, it } from 'vitest';
import { faultKinds, planFaults } from '../../chaos/support/fault-schedule.js';
import { createRandom } from '../../chaos/support/random.js';

const plan = (seed: number, lengthMs = 60_000) => planFaults(createRandom(seed), { lengthMs, servers: 2 });

it('repeats with its seed, and differs with another', () => {
  expect(plan(7)).toEqual(plan(7));
  expect(plan(7)).not.toEqual(plan(8));
});

it('has every kind of fault within a minute, on every server', () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const faults = plan(seed);
    expect(new Set(faults.map(({ kind }) => kind))).toEqual(new Set(faultKinds));
    expect(new Set(faults.map(({ server }) => server))).toEqual(new Set([0, 1]));
  }
});

it('gives a fork its own numbers, whatever the others take', () => {
  const one = createRandom(3);
  const first = one.fork('x').next();
  one.next();
  expect(one.fork('x').next()).toBe(first);
  expect(one.fork('y').next()).not.toBe(first);
});
