// Where a client may put its secret: the same two names in HTTP headers and in a WebSocket's connection parameters.
import { DomainError } from '../shared/errors.js';

const ambiguous = () =>
  new DomainError('UNAUTHENTICATED', 'Two different keys were sent: use either Authorization or X-API-Key, not both.');

// Another scheme than Bearer is not meant for us: a proxy in front may use it.
const bearerOf = (text: string): string | undefined => /^Bearer +(\S+) *$/i.exec(text)?.[1];
const keyOf = (text: string): string | undefined => text.trim() || undefined;

const readers: Readonly<Record<string, (text: string) => string | undefined>> = {
  authorization: bearerOf,
  'x-api-key': keyOf,
};

/** However often and wherever it is given: it has to be the same. */
function chooseSecret(pairs: Iterable<readonly [name: string, value: unknown]>): string | undefined {
  let chosen: string | undefined;
  for (const [name, value] of pairs) {
    const lowerName = name.toLowerCase();
    const read = Object.hasOwn(readers, lowerName) ? readers[lowerName] : undefined;
    const secret = typeof value === 'string' ? read?.(value) : undefined;
    if (secret === undefined) continue;
    if (chosen !== undefined && chosen !== secret) throw ambiguous();
    chosen = secret;
  }
  return chosen;
}

function* pairsOf(rawHeaders: readonly string[]): Generator<readonly [string, string]> {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    yield [rawHeaders[index] ?? '', rawHeaders[index + 1] ?? ''];
  }
}

/**
 * The secret in `Authorization: Bearer` or `X-API-Key`.
 * @param rawHeaders names and values in turn, as they came: Node's own `headers` keep the first Authorization of several
 * @throws DomainError UNAUTHENTICATED when several are there and differ
 */
export const secretFromHeaders = (rawHeaders: readonly string[]): string | undefined =>
  chooseSecret(pairsOf(rawHeaders));

/** The same from connection parameters, whatever the case of their names; browsers cannot set headers on a WebSocket. */
export const secretFromParameters = (parameters: Readonly<Record<string, unknown>> | undefined): string | undefined =>
  chooseSecret(Object.entries(parameters ?? {}));
