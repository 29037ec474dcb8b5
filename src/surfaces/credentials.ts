// Where a client may put its secret: the same two names in HTTP headers and in a WebSocket's connection parameters.
import type { IncomingHttpHeaders } from 'node:http';
import { DomainError } from '../shared/errors.js';

const ambiguous = () =>
  new DomainError('UNAUTHENTICATED', 'Two different keys were sent: use either Authorization or X-API-Key, not both.');

function chooseSecret(authorization: unknown, apiKey: unknown): string | undefined {
  // Another scheme than Bearer is not meant for us: a proxy in front may use it.
  const bearer = typeof authorization === 'string' ? /^Bearer +(\S+) *$/i.exec(authorization)?.[1] : undefined;
  const key = typeof apiKey === 'string' && apiKey.trim() !== '' ? apiKey.trim() : undefined;
  if (bearer !== undefined && key !== undefined && bearer !== key) throw ambiguous();
  return bearer ?? key;
}

/** The secret in `Authorization: Bearer` or `X-API-Key`. @throws DomainError UNAUTHENTICATED when both are there and differ */
export const secretFromHeaders = (headers: IncomingHttpHeaders): string | undefined =>
  chooseSecret(headers.authorization, headers['x-api-key']);

/** The same from connection parameters, whatever the case of their names; browsers cannot set headers on a WebSocket. */
export function secretFromParameters(parameters: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const byName = (wanted: string): unknown =>
    Object.entries(parameters ?? {}).find(([name]) => name.toLowerCase() === wanted)?.[1];
  return chooseSecret(byName('authorization'), byName('x-api-key'));
}
