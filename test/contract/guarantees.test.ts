// docs/guarantees.md names the tests that prove it: each of them exists, and no line of a table goes without.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');
const text = readFileSync(path.join(root, 'docs/guarantees.md'), 'utf8');

it('names only files that exist', () => {
  const named = [...text.matchAll(/`((?:test|src|docs|prisma|script)\/[\w./-]+)`/g)].map(([, name = '']) => name);
  const tests = new Set(named.filter((name) => name.endsWith('.test.ts')));
  expect(tests.size).toBeGreaterThan(30);
  expect(named.filter((name) => !existsSync(path.join(root, name)))).toEqual([]);
  const documents = [...text.matchAll(/docs\/[\w./-]+\.md/g)].map(([name]) => name);
  expect(documents.filter((name) => !existsSync(path.join(root, name)))).toEqual([]);
});

it('has for each promise a test that attacks it', () => {
  const rows = text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| (-+|promise|line|invariant) /.test(line));
  expect(rows.length).toBeGreaterThan(60);
  const unproved = rows.filter((row) => !/`test\/[\w./-]+\.test\.ts`/.test(row));
  expect(unproved).toEqual([]);
});

it('goes through every invariant by its number', () => {
  const numbers = [...text.matchAll(/^\| (\d+)\. /gm)].map(([, number]) => Number(number));
  expect(numbers).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
});
