// Relay cursor connections: what a page request may say, what a cursor means, and how rows become a page.
import { invalidInput } from './errors.js';

export const defaultPageSize = 20;
export const maxPageSize = 100;

/** As a client sends them; null is the same as absent. */
export interface PageArguments {
  first?: number | null;
  after?: string | null;
  last?: number | null;
  before?: string | null;
}

/** A checked request for one page out of the range between two keys, both exclusive. */
export interface PageRequest<Key> {
  size: number;
  /** True for `last`: the page ends at the end of the range. */
  fromEnd: boolean;
  after?: Key;
  before?: Key;
}

export interface Edge<Row> {
  readonly cursor: string;
  readonly node: Row;
}

export interface PageInfo {
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  readonly startCursor: string | null;
  readonly endCursor: string | null;
}

export interface Page<Row> {
  edges: Edge<Row>[];
  pageInfo: PageInfo;
}

/** Makes and reads the opaque cursors of one connection of one parent: a cursor of another one is refused. */
export interface CursorCodec<Key> {
  encode(key: Key): string;
  /** @throws DomainError INVALID_INPUT */
  decode(cursor: string, argument: string): Key;
}

/**
 * @param connection the connection's name, such as "threads"
 * @param parentId the id of what the connection hangs on; undefined reads (never makes) cursors of any parent
 * @param isKey recognises a key of this connection in what a client gave back
 */
export function createCursorCodec<Key>(
  connection: string,
  parentId: string | undefined,
  isKey: (value: unknown) => value is Key,
): CursorCodec<Key> {
  const write = (parent: unknown, key: Key): string =>
    Buffer.from(JSON.stringify([connection, parent, key])).toString('base64url');
  return {
    encode: (key) => write(parentId, key),
    decode(cursor, argument) {
      const [name, parent, key] = readParts(cursor);
      const isOurs = name === connection && (parentId === undefined || parent === parentId);
      if (!isOurs || !isKey(key) || write(parent, key) !== cursor) {
        throw invalidInput(`${argument} is not a cursor of this connection: give back a cursor that it returned.`);
      }
      return key;
    },
  };
}

function readParts(cursor: string): unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    return Array.isArray(parts) && parts.length === 3 ? parts : [];
  } catch {
    return [];
  }
}

/** @throws DomainError INVALID_INPUT for a negative or too large size, both sizes at once, or a foreign cursor */
export function parsePageArguments<Key>(args: PageArguments, codec: CursorCodec<Key>): PageRequest<Key> {
  if (args.first != null && args.last != null) {
    throw invalidInput('Give either first or last, not both.');
  }
  for (const [name, size] of [
    ['first', args.first],
    ['last', args.last],
  ] as const) {
    if (size != null && (!Number.isInteger(size) || size < 0 || size > maxPageSize)) {
      throw invalidInput(`${name} must be a whole number from 0 to ${maxPageSize}.`);
    }
  }
  return {
    size: args.first ?? args.last ?? defaultPageSize,
    fromEnd: args.last != null,
    ...(args.after != null && { after: codec.decode(args.after, 'after') }),
    ...(args.before != null && { before: codec.decode(args.before, 'before') }),
  };
}

/** Most readers of a page want no cursors: each is made when it is asked for. */
class LazyEdge<Row> implements Edge<Row> {
  readonly #cursorOf: (row: Row, index: number) => string;
  readonly #index: number;

  constructor(
    readonly node: Row,
    index: number,
    cursorOf: (row: Row, index: number) => string,
  ) {
    this.#index = index;
    this.#cursorOf = cursorOf;
  }

  get cursor(): string {
    return this.#cursorOf(this.node, this.#index);
  }
}

class LazyPageInfo implements PageInfo {
  readonly #edges: readonly Edge<unknown>[];

  constructor(
    readonly hasNextPage: boolean,
    readonly hasPreviousPage: boolean,
    edges: readonly Edge<unknown>[],
  ) {
    this.#edges = edges;
  }

  get startCursor(): string | null {
    return this.#edges[0]?.cursor ?? null;
  }

  get endCursor(): string | null {
    return this.#edges.at(-1)?.cursor ?? null;
  }
}

class SameCursor<Row> implements Edge<Row> {
  readonly #edge: Edge<unknown>;

  constructor(
    readonly node: Row,
    edge: Edge<unknown>,
  ) {
    this.#edge = edge;
  }

  get cursor(): string {
    return this.#edge.cursor;
  }
}

/** The same page with other nodes. */
export const mapNodes = <Row, Other>(page: Page<Row>, toNode: (row: Row) => Other): Page<Other> => ({
  ...page,
  edges: page.edges.map((edge) => new SameCursor(toNode(edge.node), edge)),
});

/**
 * Makes a page of rows that were read in the direction of the request (from the end: newest first), one more than asked for.
 * @param rows up to `request.size + 1` rows; the extra one only tells that there is more
 */
export function toPage<Row, Key>(
  rows: readonly Row[],
  request: PageRequest<Key>,
  codec: CursorCodec<Key>,
  keyOf: (row: Row, index: number) => Key,
): Page<Row> {
  const hasMore = rows.length > request.size;
  const taken = hasMore ? rows.slice(0, request.size) : rows;
  const cursorOf = (row: Row, index: number): string => codec.encode(keyOf(row, index));
  const inOrderRead = taken.map((row, index) => new LazyEdge(row, index, cursorOf));
  const edges = request.fromEnd ? inOrderRead.toReversed() : inOrderRead;
  const pageInfo = request.fromEnd
    ? new LazyPageInfo(request.before !== undefined, hasMore, edges)
    : new LazyPageInfo(hasMore, request.after !== undefined, edges);
  return { edges, pageInfo };
}
