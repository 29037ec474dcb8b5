// Which pages may call: a browser names the page's origin, and everything but the server's own and the configured ones is refused.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';

const allowedMethods = 'GET, POST, PUT, PATCH, DELETE';
const allowedHeaders =
  'authorization, content-type, x-api-key, x-request-id, last-event-id, if-match, if-none-match, idempotency-key, mcp-protocol-version';
const exposedHeaders = 'x-request-id, retry-after, etag, link, location';
const preflightMaxAgeSeconds = 600;

const isOwnOrigin = (origin: string, host: string | undefined): boolean =>
  // A proxy may have ended TLS, so the scheme is not compared.
  host !== undefined && URL.canParse(origin) && new URL(origin).host === host.toLowerCase();

/**
 * Requests without an Origin come from no page: command lines, servers, same-origin navigation.
 * @param isLocal the server can be reached from this machine only: a page of its own has a loopback name then, unless a proxy is in between. A
 *   foreign name that was made to resolve to 127.0.0.1 (DNS rebinding) is not its own.
 */
export function isAllowedOrigin(request: IncomingMessage, corsOrigins: readonly string[], isLocal: boolean): boolean {
  const { origin, host } = request.headers;
  if (origin === undefined || corsOrigins.includes(origin)) return true;
  return isOwnOrigin(origin, host) && (!isLocal || isProxied(request) || isLoopbackCall(request));
}

/**
 * Tells the browser that a page of one of `corsOrigins` may read the answer. Never `*`, never an origin that is not configured. Every
 * answer says `Vary: Origin`, also without one.
 */
export function allowOrigin(request: IncomingMessage, response: ServerResponse, corsOrigins: readonly string[]): void {
  const { origin } = request.headers;
  if (origin === undefined || !corsOrigins.includes(origin)) return;
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('access-control-expose-headers', exposedHeaders);
}

/** Answers an OPTIONS request; the caller has checked the origin and called `allowOrigin`. */
export function answerPreflight(response: ServerResponse): void {
  if (response.hasHeader('access-control-allow-origin')) {
    response.setHeader('access-control-allow-methods', allowedMethods);
    response.setHeader('access-control-allow-headers', allowedHeaders);
    response.setHeader('access-control-max-age', String(preflightMaxAgeSeconds));
  }
  response.writeHead(204).end();
}

const isLoopbackName = (name: string): boolean =>
  name === 'localhost' || name === '[::1]' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'));

/** Whether a server that listens on `address` can be reached from this machine only. */
export const isLoopbackAddress = (address: string): boolean => isLoopbackName(address);

const proxyHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'];

const isProxied = ({ headers }: IncomingMessage): boolean => proxyHeaders.some((name) => headers[name] !== undefined);

/**
 * Whether the client called the server by a loopback name and not through a proxy. A foreign name that resolves to
 * 127.0.0.1 (DNS rebinding) is no loopback name.
 */
export function isLoopbackCall(request: IncomingMessage): boolean {
  const { host } = request.headers;
  if (host === undefined || isProxied(request)) return false;
  return URL.canParse(`http://${host}`) && isLoopbackName(new URL(`http://${host}`).hostname);
}
