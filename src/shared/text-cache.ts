// A cache whose values are weighed by the characters that they hold: the least recently used ones go first.
import { LRUCache } from 'lru-cache';

/** In characters, of everything in one cache; what is made of a text may take about three times as much. */
const mostCharacters = 4 * 2 ** 20;

/** A larger one is not worth the many small ones that it would push out. */
export const largestText = mostCharacters / 16;

/** What a text takes beside itself, counted in characters. */
export const charactersBeside = 300;

export interface TextCache<Key, Value> {
  get(key: Key): Value | undefined;
  /** Leaves out what has more than {@link largestText}. */
  put(key: Key, value: Value, characters: number): void;
}

export function createTextCache<Key extends object | string, Value extends object>(): TextCache<Key, Value> {
  const values = new LRUCache<Key, Value>({ maxSize: mostCharacters });
  return {
    get: (key) => values.get(key),
    put(key, value, characters) {
      if (characters <= largestText) values.set(key, value, { size: characters + charactersBeside });
    },
  };
}
