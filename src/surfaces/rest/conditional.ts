// Conditional writes: the version of a content is its entity tag.
import { DomainError, invalidInput } from '../../shared/errors.js';
import { withHttpForm } from './problem.js';

export const toEntityTag = (version: string): string => `"${version}"`;

const tagPattern = /(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"/y;

/**
 * The versions that may be replaced, or undefined for any: `*`, or no header at all. Weak tags match nothing, as RFC 9110 says.
 * @throws DomainError INVALID_INPUT
 */
export function readIfMatch(header: string | undefined): string[] | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  const versions: string[] = [];
  for (let at = 0; at < header.length;) {
    if (/[ \t,]/.test(header.charAt(at))) {
      at += 1;
      continue;
    }
    tagPattern.lastIndex = at;
    const match = tagPattern.exec(header);
    if (!match) throw malformed();
    if (match[1] === undefined) versions.push(match[2] ?? '');
    at = tagPattern.lastIndex;
  }
  if (!header.includes('"')) throw malformed();
  return versions;
}

const malformed = (): DomainError => {
  const message = 'must be * or entity tags as the header ETag has them, such as "1769851800000000"';
  return invalidInput(`If-Match: ${message}`, [{ path: ['If-Match'], message }]);
};

/** No version at all: a write that expects it is refused, and told the current one. */
const nothing = '';

/**
 * Writes when the current version is one of `versions`.
 * @throws DomainError CONFLICT as 412
 */
export async function writeIf<Result>(
  versions: string[] | undefined,
  write: (expectedVersion: string | undefined) => Promise<Result>,
): Promise<Result> {
  if (versions === undefined) return await write(undefined);
  for (let expected = versions[0] ?? nothing; ;) {
    try {
      return await write(expected);
    } catch (error) {
      if (!(error instanceof DomainError) || error.details.currentVersion === undefined) throw error;
      const { currentVersion } = error.details;
      // Each further try needs another writer to have been faster.
      if (currentVersion === expected || !versions.includes(currentVersion)) {
        throw withHttpForm(error, { status: 412 });
      }
      expected = currentVersion;
    }
  }
}
