// A whole list that is read while somebody clears it.
import { describe, expect, it } from 'vitest';
import { DomainError, invalidInput } from '../../../src/shared/errors.js';
import { createCursorCodec, toPage, type Page, type PageRequest } from '../../../src/shared/pagination.js';
import { linkToNext, readList } from '../../../src/surfaces/rest/lists.js';

const codec = createCursorCodec('numbers', '', (value): value is number => typeof value === 'number');
const numbers = Array.from({ length: 250 }, (_, index) => index);

/** @param beforePage may throw, as a ledger does whose entries are gone */
const sourceOf = (beforePage: (request: PageRequest<number>) => void) => ({
  codec,
  present: (row: number) => row,
  readPage: (request: PageRequest<number>): Promise<Page<number>> => {
    beforePage(request);
    const rows = numbers.filter((row) => row > (request.after ?? -1)).slice(0, request.size + 1);
    return Promise.resolve(toPage(rows, request, codec, (row) => row));
  },
});

describe('a whole list', () => {
  it('is walked to its end', async () => {
    const { data, next } = await readList(
      {},
      sourceOf(() => undefined),
    );
    expect([data, next]).toEqual([numbers, undefined]);
  });

  it('begins anew when its rows were cleared in the middle', async () => {
    let cleared = false;
    const source = sourceOf(({ after }) => {
      if (after === 199 && !cleared) {
        cleared = true;
        throw invalidInput('The entry of this cursor was cleared.');
      }
    });
    expect((await readList({}, source)).data).toEqual(numbers);
    expect(cleared).toBe(true);
  });

  it('does not begin anew for ever', async () => {
    let reads = 0;
    const source = sourceOf(({ after }) => {
      reads += 1;
      if (after !== undefined) throw invalidInput('The entry of this cursor was cleared.');
    });
    await expect(readList({}, source)).rejects.toBeInstanceOf(DomainError);
    expect(reads).toBeLessThan(20);
  });

  it('tells a wrong cursor of the client’s at once', async () => {
    let reads = 0;
    const source = sourceOf(() => {
      reads += 1;
      throw invalidInput('The entry of this cursor was cleared.');
    });
    await expect(readList({ after: codec.encode(3) }, source)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    expect(reads).toBe(1);
  });
});

describe('a link to the next page', () => {
  it('keeps what the page was asked with', () => {
    expect(linkToNext('http://x/v1/things?limit=2&after=a', 'b')).toEqual({
      link: '</v1/things?limit=2&after=b>; rel="next"',
    });
    expect(linkToNext('http://x/v1/things', undefined)).toEqual({});
  });
});
