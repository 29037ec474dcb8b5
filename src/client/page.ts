// Pages of a list, with the cursors that lead to the next one and to the one before.
import type { PageFieldsFragment } from './operations.js';

/** Where a page lies: `first` from the beginning or behind `after`; `last` from the end or before `before`. 20 from the beginning unless told. */
export interface PageOptions {
  first?: number | undefined;
  after?: string | null | undefined;
  last?: number | undefined;
  before?: string | null | undefined;
}

export interface Page<Item> extends PageFieldsFragment {
  items: Item[];
  /** In the whole list. */
  totalCount: number;
}

interface Connection<Node> {
  totalCount: number;
  pageInfo: PageFieldsFragment;
  edges: { node: Node }[];
}

export const boundsOf = ({ first, after, last, before }: PageOptions): PageOptions => ({ first, after, last, before });

export const toPage = <Node, Item>(connection: Connection<Node>, toItem: (node: Node) => Item): Page<Item> => ({
  items: connection.edges.map(({ node }) => toItem(node)),
  totalCount: connection.totalCount,
  ...connection.pageInfo,
});

export const emptyPage = (): Page<never> => ({
  items: [],
  totalCount: 0,
  startCursor: null,
  endCursor: null,
  hasNextPage: false,
  hasPreviousPage: false,
});
