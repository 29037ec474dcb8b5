// An async iterator whose items can be taken on their way to a consumer that waits for them: without a promise for each of them.

export interface Divertible<Item> extends AsyncIterableIterator<Item> {
  /**
   * From now on every item that a waiting `next` would get is shown to `take` first, at once and in its order. An item that is
   * taken (true) counts as consumed, and `next` goes on waiting; any other is what `next` gets. `take` must not throw.
   */
  divert(take: (item: Item) => boolean): void;
}

export const isDivertible = <Item>(source: AsyncIterable<Item>): source is Divertible<Item> => 'divert' in source;
