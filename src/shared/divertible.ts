// An async iterator whose items can be told on their way to consumers that wait for them: to many at once, without a promise for each.

/** Where one consumer is told things. */
export interface Seat<Told> {
  /** @returns whether it took it; one that did not is told in the ordinary way. One that throws is ended with what it threw */
  take(told: Told): boolean;
}

/**
 * What seats are told about an item; undefined: nothing that is the same for several, and `next` gets the item. Asked once in a
 * row for all seats that name this very function, whoever they belong to. Must not throw.
 */
export type Preparation<Item, Told extends object> = (item: Item) => Told | undefined;

export interface Divertible<Item> extends AsyncIterableIterator<Item> {
  /**
   * From now on every item that a waiting `next` would get is prepared and told to the seat first, at once and in its order. An item
   * that is taken counts as consumed, and `next` goes on waiting; any other is what `next` gets. After `return` nothing is told.
   */
  divert<Told extends object>(prepare: Preparation<Item, Told>, seat: Seat<Told>): void;
}

export const isDivertible = <Item>(source: AsyncIterable<Item>): source is Divertible<Item> => 'divert' in source;
