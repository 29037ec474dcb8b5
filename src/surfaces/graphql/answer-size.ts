// How large an answer would get, told before it is made: aliases repeat what is held once, and a text of a gigabyte stops everybody.
import { GraphQLError, type ExecutionResult } from 'graphql';
import { errorTable } from '../error-table.js';
import { JsonText } from './answer-text.js';

/** In characters of JSON, about. */
const maxAnswerLength = 32 * 2 ** 20;

type Measure = (text: string) => number;

/** No character takes more: \u0001. */
const longestEscape = 6;
const atMost: Measure = (text) => longestEscape * text.length + 2;
const exactly: Measure = (text) => JSON.stringify(text).length;

/** What is left of `length` behind `value`; below zero it did not fit, and nobody has looked at the rest. */
function leftBehind(value: unknown, length: number, measure: Measure): number {
  if (typeof value === 'string') return length - measure(value);
  if (typeof value !== 'object' || value === null) return length - 8;
  if (value instanceof JsonText) return length - value.json.length;
  let left = length - 2;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && left >= 0; index += 1)
      left = leftBehind(value[index], left - 1, measure);
    return left;
  }
  for (const name of Object.keys(value)) {
    if (left < 0) return left;
    left = leftBehind((value as Record<string, unknown>)[name], left - name.length - 4, measure);
  }
  return left;
}

/** @param length in characters of JSON, about */
export const isWithin = (value: unknown, length: number): boolean =>
  // Nearly every answer is small enough whatever its texts hold; the others are looked at.
  leftBehind(value, length, atMost) >= 0 || leftBehind(value, length, exactly) >= 0;

/** The result itself, or LIMIT_EXCEEDED in its place. A mutation has been carried out by then, and is told so. */
export function withinAnswerSize(result: ExecutionResult): ExecutionResult {
  if (result.data == null || isWithin(result.data, maxAnswerLength)) return result;
  const message = `The answer would have more than ${maxAnswerLength} characters: ask for smaller pages, or for less at once. If it was a mutation, it has been carried out.`;
  return {
    data: null,
    errors: [new GraphQLError(message, { extensions: { code: errorTable.LIMIT_EXCEEDED.graphqlCode } })],
  };
}
