// Text rules that hold everywhere: text is kept exactly, so what a store could not keep exactly is refused.
import { z } from 'zod';

/** PostgreSQL cannot store NUL, and UTF-8 has no form for half a surrogate pair: it would come back as U+FFFD. */
export const isStorableText = (text: string): boolean => !text.includes('\u0000') && text.isWellFormed();

const refusal = 'must not contain NUL (U+0000) or half of a surrogate pair: remove or replace that character';

/** Text that every store gives back exactly as it was. */
export const storableText = z.string().refine(isStorableText, refusal);

/** A label that a person reads: 1 to 200 UTF-16 code units, not blank. */
export const nameText = storableText
  .refine((text) => text.trim().length > 0, 'must not be blank')
  .refine((text) => text.length <= 200, 'must have at most 200 characters');

/** The size that limits are about: bytes in UTF-8. */
export const byteLength = (text: string): number => Buffer.byteLength(text, 'utf8');

const longestEcho = 1000;

/** For messages that repeat what a client sent: a mistake is recognised by its beginning. */
export const shorten = (text: string): string =>
  text.length > longestEcho ? `${text.slice(0, longestEcho).toWellFormed()}…` : text;

/** The longest beginning of `text` that takes at most `maxBytes` and cuts no character in two. */
export function cutToBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= maxBytes) return text;
  let end = Math.max(maxBytes, 0);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}

/** For text that nobody can be asked to correct (a model's, a web page's): what no store could keep exactly becomes U+FFFD. */
export const toStorableText = (text: string): string => text.toWellFormed().replaceAll('\u0000', '\uFFFD');
