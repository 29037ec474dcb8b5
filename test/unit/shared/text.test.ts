// Text is kept exactly, so what a store could not keep exactly is refused.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byteLength, isStorableText, nameText, storableText } from '../../../src/shared/text.js';

describe('text', () => {
  it.each([
    ['nothing', ''],
    ['emoji with joiners', '👩🏽‍🚀 👨‍👩‍👧‍👦'],
    ['right-to-left text with marks', '\u202Eשָׁלוֹם\u202C'],
    ['combining characters, not normalised', 'e\u0301 é'],
    ['line breaks and tabs', 'a\r\nb\tc\u2028d'],
    ['control characters other than NUL', '\u0001\u001B\u007F'],
    ['the last code point', '\u{10FFFF}'],
  ])('is storable with %s', (_, text) => {
    expect(storableText.parse(text)).toBe(text);
  });

  it.each([
    ['NUL', 'a\u0000b'],
    ['a lone high surrogate', 'a\uD83D'],
    ['a lone low surrogate', '\uDE00b'],
    ['surrogates in the wrong order', '\uDE00\uD83D'],
  ])('is refused with %s', (_, text) => {
    expect(isStorableText(text)).toBe(false);
    expect(storableText.safeParse(text).success).toBe(false);
  });

  it('is storable exactly when UTF-8 gives it back unchanged and it has no NUL', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) }),
        (text) => {
          const survives = Buffer.from(text, 'utf8').toString('utf8') === text && !text.includes('\0');
          expect(isStorableText(text)).toBe(survives);
        },
      ),
    );
  });

  it('is measured in bytes of UTF-8', () => {
    expect(byteLength('aé€😀')).toBe(1 + 2 + 3 + 4);
  });

  it.each([
    ['blank', ' \t\n'],
    ['empty', ''],
    ['of 201 characters', 'x'.repeat(201)],
    ['with NUL', 'a\0'],
  ])('is no name when %s', (_, text) => {
    expect(nameText.safeParse(text).success).toBe(false);
  });

  it('is a name of up to 200 characters, kept as it is', () => {
    expect(nameText.parse('x'.repeat(200))).toHaveLength(200);
    expect(nameText.parse(' Ada ')).toBe(' Ada ');
  });
});
