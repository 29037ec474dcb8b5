// JSON within JSON: put in as it is, wherever it stands, and the same for whoever knows nothing of it.
import { describe, expect, it } from 'vitest';
import { JsonText, stringify } from '../../../src/surfaces/graphql/answer-text.js';

const value = { 'a "quoted" name': [1, 'zwei', null, { drei: 'Ünïcödé – 漢字 😀 $& $1' }], empty: '', nested: {} };
const text = () => new JsonText(JSON.stringify(value));

describe('a result with texts in it', () => {
  it.each([
    ['nothing', { data: { a: 1 } }, { data: { a: 1 } }],
    ['one', { data: text() }, { data: value }],
    [
      'several, in their order',
      { a: text(), b: new JsonText('[]'), c: 5, d: [text(), null, text()] },
      { a: value, b: [], c: 5, d: [value, null, value] },
    ],
    [
      'one beside what looks like one',
      { a: '"json"', b: text(), c: { json: '{}' } },
      { a: '"json"', b: value, c: { json: '{}' } },
    ],
  ])('%s', (_name, result, expected) => {
    const { json, byteLength } = stringify(result);
    expect(json).toBe(JSON.stringify(expected));
    expect(byteLength).toBe(Buffer.byteLength(json));
    expect(JSON.stringify(result)).toBe(json);
  });

  it('is as before when making JSON of something else failed', () => {
    expect(() => stringify({ a: text(), b: 1n })).toThrow(TypeError);
    expect(JSON.stringify(text())).toBe(JSON.stringify(value));
    expect(stringify({ a: text() }).json).toBe(JSON.stringify({ a: value }));
  });
});
