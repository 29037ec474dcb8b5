// Texts that say themselves whether they are whole: their name, a body, and a digest of both.
import { createHash } from 'node:crypto';

export interface TextMark {
  /** Who wrote it, and its how-many-th text this is: no two texts have the same. */
  name: string;
  /** What the text says that its digest is, and what it is. They differ when it is torn. */
  statedDigest: string;
  digest: string;
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 24);

/** @param length of the body, in characters */
export function markText(name: string, length: number): string {
  // A body that differs from text to text everywhere: half of one and half of another does not fit together.
  const body = `${name} é€𝄞 `.repeat(Math.ceil(length / (name.length + 6))).slice(0, length);
  const head = `${name}\n${body.toWellFormed()}`;
  return `${head}\n${digestOf(head)}`;
}

export function readMark(text: string): TextMark {
  const end = text.lastIndexOf('\n');
  return {
    name: text.slice(0, Math.max(text.indexOf('\n'), 0)),
    statedDigest: text.slice(end + 1),
    digest: digestOf(text.slice(0, Math.max(end, 0))),
  };
}

export const isTorn = ({ name, statedDigest, digest }: TextMark): boolean => name === '' || statedDigest !== digest;
