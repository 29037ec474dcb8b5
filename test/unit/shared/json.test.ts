// JSON objects that clients attach to resources.
import { describe, expect, it } from 'vitest';
import { jsonObject } from '../../../src/shared/json.js';

const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) });
const messagesOf = (value: unknown): string[] =>
  jsonObject.safeParse(value).error?.issues.map((issue) => issue.message) ?? [];

describe('a JSON object', () => {
  it.each([
    ['empty', {}],
    ['of every kind of value', { s: 'é😀', n: -1.5, t: true, f: false, z: null, l: [1, [2, { m: [] }]], o: {} }],
    ['32 levels deep', nested(32)],
    ['of exactly 64 KiB', { a: 'x'.repeat(65_536 - '{"a":""}'.length) }],
  ])('may be %s', (_, value) => {
    expect(jsonObject.parse(value)).toEqual(value);
  });

  it.each([
    ['an array', [], 'must be a JSON object'],
    ['null', null, 'must be a JSON object'],
    ['text', 'text', 'must be a JSON object'],
    ['33 levels deep', nested(33), 'deeper than 32'],
    ['larger than 64 KiB', { a: 'x'.repeat(65_537 - '{"a":""}'.length) }, 'larger than 65536 bytes'],
    ['larger than 64 KiB in UTF-8 only', { a: '€'.repeat(30_000) }, 'larger than 65536 bytes'],
    ['with NUL in a text', { a: ['\0'] }, 'NUL'],
    ['with half a surrogate pair in a key', { o: { '\uD83D': 1 } }, 'in a key'],
    ['with NaN', { a: Number.NaN }, 'NaN'],
    ['with an undefined value', { a: undefined }, 'JSON values only'],
    ['with a big integer', { a: 1n }, 'JSON values only'],
  ])('must not be %s', (_, value, message) => {
    expect(messagesOf(value)).toEqual([expect.stringContaining(message)]);
  });

  it('is refused without exhausting the stack however deep it is', () => {
    expect(messagesOf(nested(5_000))).toEqual([expect.stringContaining('deeper than 32')]);
  });
});
