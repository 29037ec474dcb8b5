// Relay connections over SQL rows: keyset pages, so that a row deleted meanwhile never shifts or cuts a walk.
import type { ArgBuilder, OutputType } from '@pothos/core';
import { DomainError } from '../../shared/errors.js';
import { isId, type IdKind } from '../../shared/ids.js';
import {
  createCursorCodec,
  parsePageArguments,
  toPage,
  type Edge,
  type Page,
  type PageArguments,
  type PageRequest,
} from '../../shared/pagination.js';
import type { Builder, SchemaTypes } from './builder.js';
import type { PageInfoRef } from './types/page-info.js';

/** A page and the number of all rows of the connection. */
export interface Connection<Row> extends Page<Row> {
  totalCount: number | (() => Promise<number>);
}

type TypeSystem = PothosSchemaTypes.ExtendDefaultTypes<SchemaTypes>;

/** The four arguments of every connection, checked by parsePageArguments. */
export const pageArguments = (t: ArgBuilder<TypeSystem>) => ({
  first: t.int({ description: 'How many from the beginning: 0 to 100, 20 unless told.' }),
  after: t.string({ description: 'Only what comes behind this cursor.' }),
  last: t.int({ description: 'How many from the end: 0 to 100. Not together with first.' }),
  before: t.string({ description: 'Only what comes before this cursor.' }),
});

interface ConnectionTypeOptions<Row> {
  /** The node's name: `Thread` makes ThreadConnection and ThreadEdge. */
  name: string;
  node: OutputType<TypeSystem> & { $inferType: Row };
  pageInfo: PageInfoRef;
}

/** Adds the connection and the edge type of one node type. */
export function addConnection<Row>(builder: Builder, options: ConnectionTypeOptions<Row>) {
  const edge = builder.objectRef<Edge<Row>>(`${options.name}Edge`);
  edge.implement({
    fields: (t) => ({
      cursor: t.exposeString('cursor'),
      // Exposed, not resolved: a member that is read as it is costs nothing to call.
      node: t.expose('node' as never, { type: options.node as never }),
    }),
  });
  const connection = builder.objectRef<Connection<Row>>(`${options.name}Connection`);
  connection.implement({
    fields: (t) => ({
      edges: t.expose('edges', { type: [edge] }),
      pageInfo: t.expose('pageInfo', { type: options.pageInfo }),
      totalCount: t.int({
        resolve: ({ totalCount }) => (typeof totalCount === 'number' ? totalCount : totalCount()),
      }),
    }),
  });
  return { connection, edge };
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isSequenceNo = (value: unknown): value is string => isText(value) && /^\d{1,18}$/.test(value);

/** How one kind of rows is ordered and named in a cursor. */
export interface RowOrder<Row> {
  /** In the cursor, so that another connection's is refused. */
  connection: string;
  keyOf: (row: Row) => string;
  isKey: (value: unknown) => value is string;
  column: 'id' | 'sequenceNo';
  newestFirst?: true;
}

/** Rows in the order of their creation: the ids sort. */
export const byId = (connection: string, kind: IdKind): RowOrder<{ id: string }> => ({
  connection,
  keyOf: (row) => row.id,
  isKey: (value): value is string => isText(value) && isId(kind, value),
  column: 'id',
});

/** The same from the other end: "after" leads to older rows. */
export const newestFirstById = (connection: string, kind: IdKind): RowOrder<{ id: string }> => ({
  ...byId(connection, kind),
  newestFirst: true,
});

/** Messages in canonical persistence order. */
export const bySequenceNo: RowOrder<{ sequenceNo: bigint }> = {
  connection: 'messages',
  keyOf: (row) => String(row.sequenceNo),
  isKey: isSequenceNo,
  column: 'sequenceNo',
};

interface RowQuery {
  where: object;
  orderBy: object;
  take: number;
}

function toRowQuery<Row>(order: RowOrder<Row>, request: PageRequest<string>): RowQuery {
  const asColumn = (key: string): string | bigint => (order.column === 'sequenceNo' ? BigInt(key) : key);
  const [behind, ahead] = order.newestFirst ? (['lt', 'gt'] as const) : (['gt', 'lt'] as const);
  const range = {
    ...(request.after !== undefined && { [behind]: asColumn(request.after) }),
    ...(request.before !== undefined && { [ahead]: asColumn(request.before) }),
  };
  return {
    where: Object.keys(range).length > 0 ? { [order.column]: range } : {},
    orderBy: { [order.column]: request.fromEnd === (order.newestFirst ?? false) ? 'asc' : 'desc' },
    take: request.size + 1,
  };
}

/**
 * The relation query for a page; the key has to be selected beside it, also for a query that wants cursors only. It is planned before the parent is known, and a mistake here would fail the parent:
 * bad arguments select one row and are reported by {@link toConnection}.
 * @param filter what else the rows must be
 */
export function planPage<Row>(order: RowOrder<Row>, args: PageArguments, filter: object = {}): RowQuery {
  const codec = createCursorCodec(order.connection, undefined, order.isKey);
  const plan = (request: PageRequest<string>): RowQuery => {
    const query = toRowQuery(order, request);
    return { ...query, where: { ...filter, ...query.where } };
  };
  try {
    return plan(parsePageArguments(args, codec));
  } catch (error) {
    if (error instanceof DomainError) return plan({ size: 0, fromEnd: false });
    throw error;
  }
}

/** Makes the connection of the rows that {@link planPage} asked for. @throws DomainError INVALID_INPUT */
export function toConnection<Row>(
  order: RowOrder<Row>,
  parentId: string,
  args: PageArguments,
  rows: readonly Row[],
  totalCount: () => Promise<number>,
): Connection<Row> {
  const codec = createCursorCodec(order.connection, parentId, order.isKey);
  return { ...toPage(rows, parsePageArguments(args, codec), codec, order.keyOf), totalCount };
}
