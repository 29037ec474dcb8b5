// The arithmetic behind script/bench's table.
import { describe, expect, it } from 'vitest';
import { interleave } from '../../../bench/rounds.js';
import { formatTable, isMet, median, medianRatio, percentile, type Row } from '../../../bench/table.js';

describe('the median', () => {
  it('is the value in the middle, whatever the order', () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([10, 9, 100])).toBe(10);
  });

  it('lies between the two in the middle of an even number of values', () => {
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  it('does not follow one round that went wrong', () => {
    expect(median([1, 1, 1, 1000])).toBe(1);
  });

  it('of nothing is a mistake', () => {
    expect(() => median([])).toThrow('no median');
  });
});

it('takes the percentile that at least this share of the values does not exceed', () => {
  const values = Array.from({ length: 200 }, (_, index) => 200 - index);
  expect(percentile(values, 0.5)).toBe(100);
  expect(percentile(values, 0.99)).toBe(198);
  expect(percentile([7], 0.99)).toBe(7);
  expect(() => percentile([], 0.5)).toThrow('no percentile');
});

describe('the ratio', () => {
  it('is taken within each round, so that a slow minute of the machine touches neither side', () => {
    // The machine was ten times slower in the second round, for both sides.
    expect(medianRatio([2, 20, 2], [1, 10, 1])).toBe(2);
  });

  it('is the median of the rounds, not the ratio of the medians', () => {
    expect(medianRatio([1, 4, 100], [1, 1, 50])).toBe(2);
  });

  it('needs both sides of each round', () => {
    expect(() => medianRatio([1, 2], [1])).toThrow('two sides');
  });
});

it.each([
  [1, { atLeast: 1 }, true],
  [0.99, { atLeast: 1 }, false],
  [1.5, { atMost: 1.5 }, true],
  [1.51, { atMost: 1.5 }, false],
  [3, { below: 3 }, false],
  [2.9, { below: 3 }, true],
  [Number.NaN, { below: 3 }, false],
  [Number.NaN, 'none', false],
  [0, 'none', true],
] as const)('says of %d whether it meets %j: %s', (result, aim, met) => {
  expect(isMet({ result, aim })).toBe(met);
});

it('prints one line for each row, and says which aim was missed', () => {
  const row: Row = {
    what: 'append',
    against: 'bare',
    measure: 'µs',
    ours: 50,
    theirs: 100,
    result: 2,
    aim: { atLeast: 1 },
  };
  const lines = formatTable([row, { ...row, what: 'read', result: 0.5, beside: { 'p99 ms': 1234.5 } }]).split('\n');
  expect(lines).toHaveLength(4);
  expect(lines[2]).toMatch(/append.* 50 .* 100 .* 2 .*>= 1.* met /);
  expect(lines[3]).toMatch(/read.* 0\.5 .*MISSED.*p99 ms 1,235/);
});

it('lets the sides take turns, after each has warmed up', async () => {
  const done: string[] = [];
  const side = (name: string) => (amount: number) => Promise.resolve(done.push(`${name}${amount}`));
  await interleave({ rounds: 2, share: 0.5 }, { warmUp: 100, round: 10 }, { a: side('a'), b: side('b') });
  expect(done).toEqual(['a50', 'b50', 'a5', 'b5', 'a5', 'b5']);
});
