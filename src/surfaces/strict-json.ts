// JSON as every surface takes it: what two readers would understand differently is refused, not guessed.
import { isUtf8 } from 'node:buffer';

/** Why a well-formed text is refused all the same. */
export interface JsonFlaw {
  readonly message: string;
  /** It is in the outermost object, not in something inside; or the text is not worth to be parsed. */
  readonly outermost: boolean;
}

const duplicateKey = 'holds a key twice in one object: which of the two is meant, nobody knows. Send each key once.';
const changedInteger =
  'holds an integer that would be rounded (beyond 2^53 a number has no room for every digit): send it as text.';

const tooDeep = 'is nested too deeply: no input of this service has so many levels.';

/** A parser walks millions of brackets before anybody learns that nothing is in them. */
const mostLevels = 500;
/** So many digits always fit. */
const safeDigits = 15;
/** Looking through so few keys is faster than making a set of them. */
const fewKeys = 12;

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const minus = 0x2d;

const isWhitespace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;
/** Digits, ".", "+", "-", "e" and "E". */
const isOfNumber = (code: number): boolean =>
  isDigit(code) || code === 0x2e || code === 0x2b || code === minus || code === 0x65 || code === 0x45;

/** Whether the integer comes back with the digits that it was sent with. Anything that is no integer is a measurement, and does. */
export const keepsItsDigits = (literal: string): boolean =>
  literal.length <= safeDigits || !/^-?\d+$/.test(literal) || String(Number(literal)) === literal;

/** The place of the closing quote, or -1. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === backslash) escapes += 1;
    if (escapes % 2 === 0) return end;
    end = text.indexOf('"', end + 1);
  }
  return -1;
}

function keyBetween(text: string, start: number, end: number): string | undefined {
  const raw = text.slice(start + 1, end);
  if (!raw.includes('\\')) return raw;
  try {
    return JSON.parse(`"${raw}"`) as string;
  } catch {
    return undefined;
  }
}

type Keys = string[] | Set<string>;

/** @returns the keys with this one, or undefined when it is among them */
function withKey(keys: Keys | undefined, key: string): Keys | undefined {
  if (keys === undefined) return [key];
  if (keys instanceof Set) return keys.has(key) ? undefined : keys.add(key);
  if (keys.includes(key)) return undefined;
  keys.push(key);
  return keys.length > fewKeys ? new Set(keys) : keys;
}

/**
 * What JSON.parse would take without a word although the sender may have meant something else: a key twice in one object, at any
 * depth, and an integer that loses digits; and what it would take much time for, levels without end. One pass without recursion. A text that
 * is no JSON may have no flaw: the parser refuses it.
 */
export function findFlaw(text: string): JsonFlaw | undefined {
  const objects: (Keys | undefined)[] = [];
  let lists = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      const start = at;
      at = endOfString(text, start);
      if (at < 0) return undefined;
      let next = at + 1;
      while (isWhitespace(text.charCodeAt(next))) next += 1;
      // In JSON nothing but a key is followed by a colon.
      if (text.charCodeAt(next) !== colon) continue;
      const key = keyBetween(text, start, at);
      if (key === undefined) return undefined;
      const keys = withKey(objects.at(-1), key);
      if (keys === undefined) return { message: duplicateKey, outermost: objects.length === 1 };
      objects[objects.length - 1] = keys;
      at = next;
    } else if (code === openBrace) {
      objects.push(undefined);
      if (objects.length + lists > mostLevels) return { message: tooDeep, outermost: true };
    } else if (code === openBracket) {
      lists += 1;
      if (objects.length + lists > mostLevels) return { message: tooDeep, outermost: true };
    } else if (code === closeBracket) {
      lists -= 1;
    } else if (code === closeBrace) {
      objects.pop();
    } else if (code === minus || isDigit(code)) {
      const start = at;
      while (isOfNumber(text.charCodeAt(at + 1))) at += 1;
      if (at - start >= safeDigits && !keepsItsDigits(text.slice(start, at + 1))) {
        return { message: changedInteger, outermost: objects.length === 1 };
      }
    }
  }
  return undefined;
}

/** @param what begins the sentence that tells a person what is wrong: "The body". The text itself is never quoted */
export function parseJson(text: string, what: string): { value: unknown } | { problem: string } {
  const flaw = findFlaw(text);
  if (flaw) return { problem: `${what} ${flaw.message}` };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { problem: `${what} is not valid JSON.` };
  }
}

/** The same for the body of a request. */
export const parseJsonBody = (body: Buffer): ReturnType<typeof parseJson> =>
  isUtf8(body) ? parseJson(body.toString('utf8'), 'The body') : { problem: 'The body is not valid UTF-8.' };
