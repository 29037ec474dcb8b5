// Lists: whole for clients that know no pages, in pages with a Link header for those that ask for them.
import { z } from '@hono/zod-openapi';
import { DomainError } from '../../shared/errors.js';
import { isId, type IdKind } from '../../shared/ids.js';
import {
  createCursorCodec,
  maxPageSize,
  parsePageArguments,
  toPage,
  type CursorCodec,
  type Page,
  type PageRequest,
} from '../../shared/pagination.js';

/** The text of one answer, in UTF-16 code units. A longer list has to be read in pages. */
const maxListLength = 16_777_216;
const maxRestarts = 5;

export const limitField = z
  .string()
  .regex(/^\d{1,9}$/, `must be a whole number from 1 to ${maxPageSize}`)
  .transform(Number)
  .refine((limit) => limit >= 1 && limit <= maxPageSize, `must be a whole number from 1 to ${maxPageSize}`)
  .openapi({ type: 'integer', minimum: 1, maximum: maxPageSize });

const afterField = z
  .string()
  .openapi({ description: 'Only what comes behind this cursor: taken from the next link of the page before.' });

export const listQuery = z.object({
  limit: limitField.optional().openapi({ description: 'A page of this size instead of the whole list.' }),
  after: afterField.optional(),
});

export type ListQuery = z.output<typeof listQuery>;

export const listHeaders = {
  Link: {
    description: 'The next page, as rel="next" (RFC 8288); absent on the last one.',
    schema: { type: 'string' as const },
  },
};

/** @returns the headers of an answer that ends before its list does */
export function linkToNext(url: string, next: string | undefined): Record<string, string> {
  if (next === undefined) return {};
  const { pathname, searchParams } = new URL(url);
  searchParams.set('after', next);
  return { link: `<${pathname}?${searchParams.toString()}>; rel="next"` };
}

export interface List<Item> {
  data: Item[];
  /** The cursor that the next page begins behind. */
  next: string | undefined;
}

interface ListSource<Row, Key, Item> {
  codec: CursorCodec<Key>;
  readPage: (request: PageRequest<Key>) => Promise<Page<Row>>;
  present: (row: Row) => Item;
}

const isGone = (error: unknown): boolean => error instanceof DomainError && error.code === 'INVALID_INPUT';

/**
 * One page when the client names a limit, and else everything.
 * @throws DomainError LIMIT_EXCEEDED for a whole list that is too long for one answer
 */
export async function readList<Row, Key, Item>(
  { limit, after }: ListQuery,
  { codec, readPage, present }: ListSource<Row, Key, Item>,
): Promise<List<Item>> {
  const first = parsePageArguments({ first: limit ?? maxPageSize, after }, codec);
  if (limit !== undefined) {
    const { edges, pageInfo } = await readPage(first);
    const next = pageInfo.hasNextPage ? (pageInfo.endCursor ?? undefined) : undefined;
    return { data: edges.map((edge) => present(edge.node)), next };
  }
  for (let restarts = 0; ; restarts += 1) {
    const data = await readWhole(first, { codec, readPage, present }, restarts < maxRestarts);
    if (data) return { data, next: undefined };
  }
}

/** @returns undefined when what is read was cleared in the middle of it and `mayRestart` */
async function readWhole<Row, Key, Item>(
  first: PageRequest<Key>,
  { codec, readPage, present }: ListSource<Row, Key, Item>,
  mayRestart: boolean,
): Promise<Item[] | undefined> {
  const data: Item[] = [];
  let length = 0;
  for (let request = first; ;) {
    let page: Page<Row>;
    try {
      page = await readPage(request);
    } catch (error) {
      if (request !== first && mayRestart && isGone(error)) return undefined;
      throw error;
    }
    for (const { node } of page.edges) {
      const item = present(node);
      length += JSON.stringify(item).length;
      if (length > maxListLength) throw tooLong();
      data.push(item);
    }
    const { hasNextPage, endCursor } = page.pageInfo;
    if (!hasNextPage || endCursor === null) return data;
    request = parsePageArguments({ first: maxPageSize, after: endCursor }, codec);
  }
}

const tooLong = (): DomainError =>
  new DomainError(
    'LIMIT_EXCEEDED',
    'This list is too long for one answer: read it in pages with ?limit=100, and follow the next link of each page.',
  );

interface RowQuery {
  where: { id?: { gt: string } };
  orderBy: { id: 'asc' };
  take: number;
}

/** Rows of SQL in the order of their creation: the ids sort. */
export function rowsById<Row extends { id: string }, Item>(
  kind: IdKind,
  find: (query: RowQuery) => Promise<Row[]>,
  present: (row: Row) => Item,
): ListSource<Row, string, Item> {
  const codec = createCursorCodec(kind, '', (value): value is string => typeof value === 'string' && isId(kind, value));
  return {
    codec,
    present,
    async readPage(request) {
      const where = request.after === undefined ? {} : { id: { gt: request.after } };
      const rows = await find({ where, orderBy: { id: 'asc' }, take: request.size + 1 });
      return toPage(rows, request, codec, (row) => row.id);
    },
  };
}
