// JSON objects that clients attach to resources (metaData): plain, bounded, storable.
import { z } from 'zod';
import { byteLength, isStorableText } from './text.js';

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

const maxBytes = 65_536;
const maxDepth = 32;

function findMistake(value: unknown, depth: number): string | undefined {
  if (depth > maxDepth) return `must not be nested deeper than ${maxDepth} levels`;
  if (value === null || typeof value === 'boolean') return undefined;
  if (typeof value === 'string') return isStorableText(value) ? undefined : 'must not contain NUL or lone surrogates';
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : 'must not contain NaN or Infinity';
  if (Array.isArray(value)) return firstMistake(value, depth);
  if (typeof value !== 'object') return 'must contain JSON values only';
  if (!Object.keys(value).every(isStorableText)) return 'must not contain NUL or lone surrogates in a key';
  // Too many libraries on the way to the store drop or misread this one key: better refused than lost.
  if (Object.hasOwn(value, '__proto__')) return 'must not contain a key named __proto__';
  return firstMistake(Object.values(value), depth);
}

function firstMistake(values: unknown[], depth: number): string | undefined {
  for (const value of values) {
    const mistake = findMistake(value, depth + 1);
    if (mistake) return mistake;
  }
  return undefined;
}

/** A JSON object (not an array, string or number) of at most 64 KiB and 32 levels. */
export const jsonObject = z.custom<JsonObject>().superRefine((value: unknown, context) => {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const mistake = isObject ? findMistake(value, 0) : 'must be a JSON object such as {"topic": "solar"}';
  const tooLarge = !mistake && byteLength(JSON.stringify(value)) > maxBytes;
  if (mistake || tooLarge) {
    context.addIssue({ code: 'custom', message: mistake ?? `must not be larger than ${maxBytes} bytes` });
  }
});
