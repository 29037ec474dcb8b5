// Relay pages: what may be asked for, what a cursor means, and how rows become a page.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DomainError } from '../../../src/shared/errors.js';
import {
  createCursorCodec,
  parsePageArguments,
  toPage,
  type PageArguments,
  type PageRequest,
} from '../../../src/shared/pagination.js';

const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value);
const codec = createCursorCodec('threads', 'user_1', isNumber);
const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const refusal = (action: () => unknown): DomainError => {
  try {
    action();
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
};

describe('a cursor', () => {
  it('comes back as the key that it was made of, and needs no escaping in a URL', () => {
    fc.assert(
      fc.property(fc.integer(), (key) => {
        const cursor = codec.encode(key);
        expect(cursor).toMatch(/^[\w-]+$/);
        expect(codec.decode(cursor, 'after')).toBe(key);
      }),
    );
  });

  it.each([
    ['nothing', ''],
    ['noise', 'not-a-cursor'],
    ['no JSON', Buffer.from('{').toString('base64url')],
    ['another connection', createCursorCodec('messages', 'user_1', isNumber).encode(5)],
    ['another parent', createCursorCodec('threads', 'user_2', isNumber).encode(5)],
    ['another kind of key', encoded(['threads', 'user_1', 'five'])],
    ['a part too many', encoded(['threads', 'user_1', 5, 6])],
    ['an object', encoded({ 0: 'threads', 1: 'user_1', 2: 5 })],
    ['padding', `${codec.encode(5)}=`],
    ['another spelling of the same key', encoded(['threads', 'user_1', 5]).replace(/.$/, 'Z')],
    ['trailing space', `${codec.encode(5)} `],
  ])('is refused, and the argument named, when it is %s', (_, cursor) => {
    const error = refusal(() => codec.decode(cursor, 'before'));
    expect(error.code).toBe('INVALID_INPUT');
    expect(error.message).toContain('before');
  });
});

it('a codec without a parent reads the cursors of every parent of its connection', () => {
  const anyParent = createCursorCodec('threads', undefined, isNumber);
  expect(anyParent.decode(codec.encode(7), 'after')).toBe(7);
  const foreign = createCursorCodec('messages', 'user_1', isNumber).encode(7);
  expect(refusal(() => anyParent.decode(foreign, 'after')).code).toBe('INVALID_INPUT');
});

describe('a page request', () => {
  it.each<[string, PageArguments, PageRequest<number>]>([
    ['twenty from the start when nothing is said', {}, { size: 20, fromEnd: false }],
    ['the same with nulls', { first: null, after: null, last: null, before: null }, { size: 20, fromEnd: false }],
    ['nothing at all', { first: 0 }, { size: 0, fromEnd: false }],
    ['the last hundred', { last: 100 }, { size: 100, fromEnd: true }],
    [
      'a range',
      { first: 5, after: codec.encode(1), before: codec.encode(9) },
      { size: 5, fromEnd: false, after: 1, before: 9 },
    ],
  ])('may be %s', (_, args, request) => {
    expect(parsePageArguments(args, codec)).toEqual(request);
  });

  it.each<[string, PageArguments, string]>([
    ['first and last at once', { first: 1, last: 1 }, 'not both'],
    ['a negative first', { first: -1 }, 'first'],
    ['a negative last', { last: -1 }, 'last'],
    ['more than a hundred', { first: 101 }, 'from 0 to 100'],
    ['half a row', { first: 1.5 }, 'whole number'],
    ['a foreign after', { after: 'x' }, 'after'],
    ['a foreign before', { last: 1, before: 'x' }, 'before'],
  ])('must not be %s', (_, args, message) => {
    const error = refusal(() => parsePageArguments(args, codec));
    expect(error.code).toBe('INVALID_INPUT');
    expect(error.message).toContain(message);
  });
});

/** A store of the keys 0 … count - 1 that answers as the services' queries do. */
function page(count: number, args: PageArguments) {
  const request = parsePageArguments(args, codec);
  const range = Array.from({ length: count }, (_, key) => key).filter(
    (key) => key > (request.after ?? -1) && key < (request.before ?? count),
  );
  const rows = (request.fromEnd ? range.toReversed() : range).slice(0, request.size + 1);
  return toPage(rows, request, codec, (row) => row);
}

describe('a page', () => {
  it('walks every row once, forwards and backwards, whatever the size', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 30 }),
        fc.integer({ min: 1, max: 10 }),
        fc.boolean(),
        (count, size, backwards) => {
          const seen: number[][] = [];
          let cursor: string | null = null;
          for (let more = true; more;) {
            const { edges, pageInfo }: ReturnType<typeof page> = page(
              count,
              backwards ? { last: size, before: cursor } : { first: size, after: cursor },
            );
            seen.push(edges.map((edge) => edge.node));
            cursor = backwards ? pageInfo.startCursor : pageInfo.endCursor;
            more = backwards ? pageInfo.hasPreviousPage : pageInfo.hasNextPage;
          }
          const all = backwards ? seen.toReversed().flat() : seen.flat();
          expect(all).toEqual(Array.from({ length: count }, (_, key) => key));
        },
      ),
    );
  });

  it('is in the order of the list also when it is taken from the end', () => {
    const { edges, pageInfo } = page(5, { last: 2 });
    expect(edges.map((edge) => edge.node)).toEqual([3, 4]);
    expect(pageInfo).toMatchObject({
      hasNextPage: false,
      hasPreviousPage: true,
      startCursor: codec.encode(3),
      endCursor: codec.encode(4),
    });
  });

  it('names no cursor when it is empty, and still tells that there is more', () => {
    expect(page(3, { first: 0 })).toMatchObject({
      edges: [],
      pageInfo: { hasNextPage: true, hasPreviousPage: false, startCursor: null, endCursor: null },
    });
  });

  it('knows that rows are on the other side of the cursor that it begins at', () => {
    expect(page(5, { first: 2, after: codec.encode(1) }).pageInfo).toMatchObject({
      hasNextPage: true,
      hasPreviousPage: true,
    });
    expect(page(5, { last: 2, before: codec.encode(3) }).pageInfo).toMatchObject({
      hasNextPage: true,
      hasPreviousPage: true,
    });
  });
});
