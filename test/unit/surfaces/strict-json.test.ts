// JSON that two readers would understand differently is found, in one pass, whatever its size and depth.
import { assert, json, property, string } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findFlaw, keepsItsDigits, parseJson, parseJsonBody } from '../../../src/surfaces/strict-json.js';

describe('a key twice in one object', () => {
  it.each([
    ['{"a":1,"a":2}', true],
    ['{ "a" : 1 ,\n\t"a" : 1 }', true],
    ['{"a":1,"\\u0061":2}', true],
    ['{"a\\"b":1,"a\\u0022b":2}', true],
    ['{"":1,"":2}', true],
    ['{"__proto__":1,"__proto__":2}', true],
    ['{"a":{"b":1},"c":[],"a":3}', true],
    ['{"x":{"a":1,"a":2}}', false],
    ['{"x":[1,[{"y":{"a":null,"b":"}{","a":true}}]]}', false],
    ['[{"a":1,"a":2}]', true],
    [`{${Array.from({ length: 100 }, (_, index) => `"k${index}":0,`).join('')}"k0":1}`, true],
    [`{${Array.from({ length: 100 }, (_, index) => `"k${index}":0,`).join('')}"k99":1}`, true],
  ])('is found in %s', (text, outermost) => {
    expect(findFlaw(text)).toMatchObject({ outermost, message: expect.stringContaining('twice') as string });
  });

  it.each([
    '{"a":{"a":{"a":1}},"b":{"a":1}}',
    '[{"a":1},{"a":2}]',
    '{"a":"a","b":"a:","c":"\\"a\\":1"}',
    '{"a":"\\\\","b":"\\\\\\"","c":"{\\"a\\":1,\\"a\\":2}"}',
    '{"a":1,"A":2,"á":3,"a ":4}',
    '"a"',
    '{}',
    '[]',
  ])('is not seen in %s', (text) => {
    JSON.parse(text);
    expect(findFlaw(text)).toBeUndefined();
  });

  it('is found wherever it is planted, and nowhere in what JSON.stringify writes', () => {
    assert(
      property(
        json({ maxDepth: 5 }),
        string().filter((key) => key !== 'x x'),
        (text, key) => {
          const value = JSON.stringify(JSON.parse(text));
          const flaw = findFlaw(value);
          expect(flaw === undefined || /integer/.test(flaw.message)).toBe(true);
          const twice = `{"before":${value.replaceAll(/\d{16,}/g, '1')},"in":[{${JSON.stringify(key)}:1,"x x":{},${JSON.stringify(key)}:2}]}`;
          expect(findFlaw(twice)?.message).toMatch(/twice/);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('an integer that would be rounded', () => {
  it.each(['9007199254740993', '-9007199254740993', '12345678901234567890', '9'.repeat(400)])(
    'is found: %s',
    (digits) => {
      expect(findFlaw(`{"a":[${digits}]}`)?.message).toMatch(/rounded/);
      expect(keepsItsDigits(digits)).toBe(false);
    },
  );

  it.each([
    '9007199254740991',
    '-9007199254740992',
    '123456789012345680000',
    '0',
    '1e400',
    '0.1234567890123456789',
    '-0',
    '1E+300',
  ])('is not seen in %s', (digits) => {
    expect(findFlaw(`[${digits}]`)).toBeUndefined();
    expect(keepsItsDigits(digits)).toBe(true);
  });

  it('is not looked for in text', () => {
    expect(findFlaw('{"a":"9007199254740993","9007199254740993":1}')).toBeUndefined();
  });
});

describe('levels without end', () => {
  it('are found before anybody parses them, and five hundred are none', () => {
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
      ['[{"a":', '}]'],
    ] as const) {
      const levels = open.length === 6 ? 250 : 500;
      expect(findFlaw(`${open.repeat(levels)}1${close.repeat(levels)}`)).toBeUndefined();
      expect(findFlaw(`${open.repeat(levels)}[1]${close.repeat(levels)}`)?.message).toMatch(/deep/);
    }
    expect(findFlaw('[[],[]]'.repeat(1000))).toBeUndefined();
    const begin = performance.now();
    expect(parseJson('['.repeat(8_000_000), 'It')).toEqual({ problem: expect.stringContaining('deep') as string });
    expect(performance.now() - begin).toBeLessThan(100);
  });
});

describe('a text that is no JSON', () => {
  it.each(['', '"', '{"a', '{"a":1', '}}}}', '{"a\\x":1,"b":2}', '"\\', ':::', '-', '\u0000'])(
    'is left to the parser: %j',
    (text) => {
      expect(findFlaw(text)).toBeUndefined();
      expect(parseJson(text, 'It')).toEqual({ problem: 'It is not valid JSON.' });
    },
  );

  it('such as bytes that are no UTF-8 is told apart, and nothing of it is quoted', () => {
    expect(parseJsonBody(Buffer.from([0x22, 0xff, 0x22]))).toEqual({ problem: 'The body is not valid UTF-8.' });
    expect(parseJsonBody(Buffer.from('{"secret":1,"secret":2}'))).toEqual({
      problem: expect.not.stringContaining('secret') as string,
    });
    expect(parseJsonBody(Buffer.from('{"a":[1]}'))).toEqual({ value: { a: [1] } });
  });
});

it('is looked through in a time that grows with its length alone', () => {
  const million = 1_000_000;
  const texts = [
    `"${'\\"'.repeat(million)}"`,
    `"${'\\\\'.repeat(million)}"`,
    '{"a":'.repeat(million),
    '['.repeat(million),
    `[${'7'.repeat(2 * million)}]`,
    `{${Array.from({ length: million / 5 }, (_, index) => `"${index}":1`).join(',')}}`,
  ];
  for (const text of texts) {
    const begin = performance.now();
    findFlaw(text);
    expect(performance.now() - begin, text.slice(0, 20)).toBeLessThan(3000);
  }
  const body = JSON.stringify({
    query: 'query '.repeat(40),
    variables: { input: { id: 'x', content: 'y'.repeat(200) } },
  });
  const begin = performance.now();
  for (let index = 0; index < 20_000; index += 1) findFlaw(body);
  // About half a microsecond; ten leave room for a busy machine.
  expect(((performance.now() - begin) / 20_000) * 1000).toBeLessThan(10);
});
