// Where a client may put its secret: the same two names in HTTP headers and in a WebSocket's connection parameters.
import { DomainError } from '../shared/errors.js';

const ambiguous = () =>
  new DomainError('UNAUTHENTICATED', 'Two different keys were sent: use either Authorization or X-API-Key, not both.');

// Another scheme than Bearer is not meant for us: a proxy in front may use it.
const bearerOf = (text: string): string | undefined => /^Bearer +(\S+) *$/i.exec(text)?.[1];
const keyOf = (text: string): string | undefined => text.trim() || undefined;

const readers = new Map([
  ['authorization', bearerOf],
  ['x-api-key', keyOf],
]);

/** Most names need not be written in small letters to be told from these. */
const lengthsOfNames = new Set([...readers.keys()].map((name) => name.length));

/** Of two places. @throws DomainError UNAUTHENTICATED when they differ */
export function onlySecret(one: string | undefined, other: string | undefined): string | undefined {
  if (one !== undefined && other !== undefined && one !== other) throw ambiguous();
  return one ?? other;
}

/** However often and wherever it is given: it has to be the same. */
function choose(chosen: string | undefined, name: string, value: unknown): string | undefined {
  if (!lengthsOfNames.has(name.length)) return chosen;
  const secret = typeof value === 'string' ? readers.get(name.toLowerCase())?.(value) : undefined;
  return onlySecret(chosen, secret);
}

/**
 * The secret in `Authorization: Bearer` or `X-API-Key`.
 * @param rawHeaders names and values in turn, as they came: Node's own `headers` keep the first Authorization of several
 * @throws DomainError UNAUTHENTICATED when several are there and differ
 */
export function secretFromHeaders(rawHeaders: readonly string[]): string | undefined {
  let secret: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    secret = choose(secret, rawHeaders[index] ?? '', rawHeaders[index + 1]);
  }
  return secret;
}

/** The same from connection parameters, whatever the case of their names; browsers cannot set headers on a WebSocket. */
export function secretFromParameters(parameters: Readonly<Record<string, unknown>> | undefined): string | undefined {
  let secret: string | undefined;
  for (const [name, value] of Object.entries(parameters ?? {})) secret = choose(secret, name, value);
  return secret;
}
