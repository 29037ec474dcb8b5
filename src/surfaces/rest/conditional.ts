// Conditional requests: the version of a content is its entity tag.
import { DomainError, invalidInput } from '../../shared/errors.js';
import { withHttpForm } from './problem.js';

export const toEntityTag = (version: string): string => `"${version}"`;

interface Tag {
  version: string;
  isWeak: boolean;
}

const tag = String.raw`(W/)?"([\x21\x23-\x7e\x80-\xff]*)"`;
const listPattern = new RegExp(String.raw`^[ \t,]*${tag}([ \t]*,[ \t,]*${tag})*[ \t,]*$`);

/** @returns undefined for `*`, which any version matches. @throws DomainError INVALID_INPUT */
function readTags(header: string, name: string): Tag[] | undefined {
  if (header.trim() === '*') return undefined;
  if (!listPattern.test(header)) {
    const message = 'must be * or entity tags as the header ETag has them, such as "1769851800000000"';
    throw invalidInput(`${name}: ${message}`, [{ path: [name], message }]);
  }
  return [...header.matchAll(new RegExp(tag, 'g'))].map(([, weak, version = '']) => ({
    version,
    isWeak: weak !== undefined,
  }));
}

/**
 * The versions that may be replaced, or undefined for any: `*`, or no header at all. Weak tags match nothing, as RFC 9110 says.
 * @throws DomainError INVALID_INPUT
 */
export const readIfMatch = (header: string | undefined): string[] | undefined =>
  header === undefined
    ? undefined
    : readTags(header, 'If-Match')
        ?.filter(({ isWeak }) => !isWeak)
        .map(({ version }) => version);

/**
 * Whether the client says that it has this version. Weak tags count, as RFC 9110 says.
 * @throws DomainError INVALID_INPUT
 */
export function hasVersion(ifNoneMatch: string | undefined, version: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = readTags(ifNoneMatch, 'If-None-Match');
  return tags === undefined || tags.some((known) => known.version === version);
}

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
