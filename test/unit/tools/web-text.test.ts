import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { htmlToMarkdown } from '../../../src/tools/web/html-to-markdown.js';
import { splitPages } from '../../../src/tools/web/page-text.js';
import { isPublicAddress } from '../../../src/tools/web/public-address.js';
import { findSnippets } from '../../../src/tools/web/snippets.js';

describe('an address', () => {
  it.each([
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '198.18.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.0.0.1',
    '::127.0.0.1',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fd12:3456::1',
    'ff02::1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '2001::7f00:1',
    '2001:db8::1',
    'localhost',
    '',
  ])('%s is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  it.each([
    '1.1.1.1',
    '9.255.255.255',
    '172.15.0.1',
    '172.32.0.1',
    '193.0.14.129',
    '2606:4700:4700::1111',
    '2a00:1450::1',
  ])('%s is public', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });
});

describe('a text in pages', () => {
  it('is whole when the pages are put together, and no page is too long, empty or broken', () => {
    const anyText = fc
      .array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('\n\n', '\n', ' ', '🌊'.repeat(40))))
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(anyText, fc.integer({ min: 4, max: 50 }), (text, limit) => {
        const pages = splitPages(text, limit);
        expect(pages.join('')).toBe(text);
        expect(pages.every((page) => page.length <= limit && (page !== '' || text === ''))).toBe(true);
        expect(pages.every((page) => page.isWellFormed())).toBe(text.isWellFormed());
      }),
    );
  });

  it('ends its pages between paragraphs where it can', () => {
    expect(splitPages('aaaa\n\nbbbb\n\ncccc', 13)).toEqual(['aaaa\n\nbbbb\n\n', 'cccc']);
    expect(splitPages('aaaa bbbb', 7)).toEqual(['aaaa ', 'bbbb']);
  });
});

describe('snippets', () => {
  const pages = [
    'The tide comes in twice a day. ',
    'High\nwater at noon. ',
    `${'filler '.repeat(100)}high   WATER again`,
  ];

  it('show what is around a match, on which page it begins, whatever the case and the white space', () => {
    const { snippets, total } = findSnippets(pages, 'high water');
    expect(total).toBe(2);
    expect(snippets.map(({ page }) => page)).toEqual([2, 3]);
    expect(snippets[0]!.text).toContain('twice a day. High water at noon.');
    expect(snippets[1]!.text).toMatch(/^….* high WATER again$/);
  });

  it('find a match that begins on one page and ends on the next', () => {
    expect(findSnippets(['… in the after', 'noon the tide'], 'afternoon').snippets[0]!.page).toBe(1);
  });

  it('fall back on single words, and say when there is nothing', () => {
    expect(findSnippets(pages, 'noon moonlight').total).toBe(1);
    expect(findSnippets(pages, 'submarine')).toEqual({ snippets: [], total: 0 });
    expect(findSnippets(pages, 'a(b[c*').total).toBe(0);
  });
});

describe('a document in HTML', () => {
  it('becomes Markdown with headings, lists, tables and complete links, and without scripts', () => {
    const { title, markdown } = htmlToMarkdown(
      `<!doctype html><title> Tides
        &amp; moon</title><h1>Tides</h1><script>alert('evil')</script><p>See <a href="../moon">the moon</a>,
        <a href="javascript:alert(1)">this</a>.</p><ul><li>spring</li><li>neap</li></ul>
        <table><tr><th>Port</th><th>High</th></tr><tr><td>A</td><td>12:03</td></tr></table>`,
      'https://example.org/sea/tides',
    );
    expect(title).toBe('Tides & moon');
    expect(markdown).toContain('# Tides');
    expect(markdown).toContain('See [the moon](https://example.org/moon), this.');
    expect(markdown).toMatch(/- +spring\n- +neap/);
    expect(markdown).toContain('| Port | High |\n| A | 12:03 |');
    expect(markdown).not.toContain('evil');
  });

  it('is reduced to its article when it has one', () => {
    const paragraph = '<p>A sentence about tides, which is long enough, with commas, to be taken for an article.</p>';
    const { markdown } = htmlToMarkdown(
      `<html><head><title>T</title></head><body><nav><a href="/">Home of the menu</a></nav>
        <article><h1>Tides</h1>${paragraph.repeat(12)}</article><footer>Imprint</footer></body></html>`,
      'https://example.org/',
    );
    expect(markdown).toContain('long enough');
    expect(markdown).not.toContain('menu');
  });

  it.each(['', 'plain words', '<html>', '<p>open <b>ended', '<html><body></body></html>'])(
    'may be as poor as %j',
    (html) => {
      expect(htmlToMarkdown(html, 'https://example.org/').markdown).toBe(
        { 'plain words': 'plain words', '<p>open <b>ended': 'open **ended**' }[html] ?? '',
      );
    },
  );
});
