// The HTTP server: limits, request ids, logs, health, metrics, origins and an orderly end. What a request means is the business of the
// surface that it is routed to.
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { createServer, IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError } from '../shared/errors.js';
import type { HttpExchange, HttpSurface } from '../shared/http-exchange.js';
import { writePlainLine, type Logger } from '../shared/logger.js';
import { Exchange, type ExchangeScope } from './exchange.js';
import { HttpAnswer } from './http-answer.js';
import { discardBody } from './http-body.js';
import { allowOrigin, answerPreflight, isAllowedOrigin, isLoopbackAddress } from './http-origin.js';
import { createOperatorRoutes, sendJson } from './http-operator.js';
import { ignoreUpgrade, refuseRaw } from './http-upgrade.js';
import type { Metrics } from './metrics.js';

export interface HttpServerOptions {
  host: string;
  /** 0 picks a free port. */
  port: number;
  /** Of one request's body. */
  maxBodyBytes: number;
  /** Origins whose pages may call beside the server's own. */
  corsOrigins: readonly string[];
  /** The longest path wins; "/graphql" also takes "/graphql/…". */
  surfaces: readonly { path: string; surface: HttpSurface }[];
  /** Which store answers, by name. */
  readiness: () => Promise<Record<string, boolean>>;
  logger: Logger;
  metrics: Pick<Metrics, 'requestFinished' | 'expose'>;
  /** The secret that /metrics asks for. Undefined: only callers on this machine may read them. */
  metricsToken?: string | undefined;
  /** For a whole request to arrive: headers and body. Default 30 seconds. */
  requestTimeoutMs?: number;
  /** Default 10 seconds. */
  headersTimeoutMs?: number;
  /** How often the two are checked. Default one second. */
  timeoutCheckMs?: number;
  /** For an answer to begin once the whole request is here; a moment later it is refused as UNAVAILABLE. Default 9 seconds. */
  answerTimeoutMs?: number;
  /** For running requests to end when the server closes. Default 3 seconds. */
  closeGraceMs?: number;
}

export interface HttpServer {
  listen(): Promise<{ url: string }>;
  /** Stops accepting, ends streams with their completion, lets running requests end, and then closes every connection. */
  close(): Promise<void>;
}

const keepAliveMs = 65_000;
const closePollMs = 20;
const overdueCheckMs = 250;
const requestIdPattern = /^[\w.:-]{1,128}$/;

const originRefused = () =>
  new DomainError(
    'FORBIDDEN',
    'Pages of this origin may not use the API: its operator can allow them in CORS_ORIGINS.',
  );

/** Every store has its bound; a request that uses several of them, each at its slowest, has this one. */
const overdue = () =>
  new DomainError(
    'UNAVAILABLE',
    'This took too long. What it should have changed may or may not have changed; a retry with the same idempotency key is safe.',
  );

function readRequestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && requestIdPattern.test(given) ? given : randomUUID();
}

/** Compares in constant time, whatever the lengths. */
function hasBearer({ headers }: IncomingMessage, token: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(headers.authorization ?? ''), hash(`Bearer ${token}`));
}

/** Path and query string; a proxy may send the whole URL. */
function readTarget({ url = '/' }: IncomingMessage): { path: string; search: string } {
  const whole = url.startsWith('/') || !URL.canParse(url) ? undefined : new URL(url);
  const target = whole ? whole.pathname + whole.search : url;
  const queryAt = target.indexOf('?');
  return queryAt < 0
    ? { path: target, search: '' }
    : { path: target.slice(0, queryAt), search: target.slice(queryAt + 1) };
}

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { logger, metrics, maxBodyBytes, corsOrigins } = options;
  const surfaces = options.surfaces
    .map(({ path, surface }) => ({ path, below: `${path}/`, surface }))
    .sort((left, right) => right.path.length - left.path.length);
  const openExchanges = new Map<Exchange, HttpSurface | undefined>();
  const scope: ExchangeScope = { logger, maxBodyBytes, listensOnLoopback: false };
  let closing = false;

  const surfaceAt = (path: string): HttpSurface | undefined =>
    surfaces.find((entry) => path === entry.path || path.startsWith(entry.below))?.surface;

  const answerOperator = createOperatorRoutes({
    readiness: options.readiness,
    metrics,
    mayReadMetrics: ({ request, loopback }) =>
      options.metricsToken === undefined ? loopback : hasBearer(request, options.metricsToken),
    isClosing: () => closing,
  });

  async function answer(exchange: HttpExchange, surface: HttpSurface | undefined): Promise<void> {
    const { request, response } = exchange;
    if (!surface) {
      const isRead = request.method === 'GET' || request.method === 'HEAD';
      if (isRead && (await answerOperator(exchange))) return;
      sendJson(response, 404, { status: 404, title: 'Not found', detail: 'There is nothing at this path.' });
      return;
    }
    allowOrigin(request, response, corsOrigins);
    if (!isAllowedOrigin(request, corsOrigins, scope.listensOnLoopback)) surface.refuse(exchange, originRefused(), 403);
    else if (request.method === 'OPTIONS') answerPreflight(response);
    else await surface.handle(exchange);
  }

  function fail(exchange: Exchange, surface: HttpSurface | undefined, error: unknown): void {
    const { request, response, requestId } = exchange;
    // The client is gone, or has its answer: there is nobody to answer, and nothing went wrong here.
    if (exchange.isOverdue || (request.destroyed && !request.complete)) return;
    exchange.logger.error({ err: error }, 'unexpected error');
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const refusal = new DomainError(
      'INTERNAL',
      `Something went wrong on the server. Report the request id ${requestId}.`,
    );
    if (surface) surface.refuse(exchange, refusal, 500);
    else
      sendJson(response, 500, { status: 500, title: 'Internal error', detail: refusal.message, request_id: requestId });
  }

  function finish({ request, response, requestId, path, startedAt, notes }: Exchange, surface?: HttpSurface): void {
    const aborted = !response.writableFinished;
    const seconds = (performance.now() - startedAt) / 1000;
    const outcome =
      notes.outcome ?? (aborted ? 'ABORTED' : response.statusCode < 400 ? 'OK' : String(response.statusCode));
    const line = {
      requestId,
      method: request.method,
      path,
      status: response.statusCode,
      durationMs: Math.round(seconds * 1e6) / 1e3,
      surface: surface?.name,
      outcome,
      operation: notes.operation,
      operationName: notes.operationName,
      stream: notes.stream,
      msg: 'request',
    };
    if (!surface) {
      logger.debug(line);
      return;
    }
    writePlainLine(logger, line);
    metrics.requestFinished({
      surface: surface.name,
      outcome,
      seconds: notes.stream === true || aborted ? undefined : seconds,
    });
  }

  function headersOf(requestId: string): string[] {
    const headers = ['x-request-id', requestId, 'x-content-type-options', 'nosniff', 'vary', 'Origin'];
    if (closing) headers.push('connection', 'close');
    return headers;
  }

  function onRequest(request: IncomingMessage, response: HttpAnswer): void {
    const { path, search } = readTarget(request);
    const surface = surfaceAt(path);
    const exchange = new Exchange(request, response, path, search, readRequestId(request), scope);
    openExchanges.set(exchange, surface);
    response.commonHeaders = headersOf(exchange.requestId);
    response.once('close', () => {
      openExchanges.delete(exchange);
      if (!request.complete) discardBody(request, maxBodyBytes);
      finish(exchange, surface);
    });
    answer(exchange, surface).catch((error: unknown) => fail(exchange, surface, error));
  }

  function refuseOverdue(): void {
    const now = performance.now();
    for (const [exchange, surface] of openExchanges) {
      if (!surface || exchange.owedForMs(now) < (options.answerTimeoutMs ?? 9000)) continue;
      exchange.isOverdue = true;
      surface.refuse(exchange, overdue(), 503);
    }
  }

  function onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
      ignoreUpgrade(server, request, socket, head);
      return;
    }
    const surface = surfaceAt(readTarget(request).path);
    if (!surface?.upgrade) {
      refuseRaw(socket, 404, 'NOT_FOUND', 'There is no WebSocket at this path.');
    } else if (closing) {
      refuseRaw(socket, 503, 'UNAVAILABLE', 'The server is closing: connect again.');
    } else if (!isAllowedOrigin(request, corsOrigins, scope.listensOnLoopback)) {
      refuseRaw(socket, 403, 'FORBIDDEN', originRefused().message);
    } else {
      const requestId = readRequestId(request);
      surface.upgrade({ request, socket, head, requestId });
    }
  }

  function isAnswering(socket: Duplex): boolean {
    for (const { request, response } of openExchanges.keys()) {
      if (request.socket === socket && response.headersSent && !response.writableFinished) return true;
    }
    return false;
  }

  function onClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
    // Half an answer is on the wire: more bytes would only garble it.
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) socket.destroy();
    else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
      refuseRaw(socket, 408, 'BAD_USER_INPUT', 'The request did not arrive in time.');
    } else if (error.code === 'HPE_HEADER_OVERFLOW') {
      refuseRaw(socket, 431, 'LIMIT_EXCEEDED', 'The headers are too large: send long documents in the body of a POST.');
    } else refuseRaw(socket, 400, 'BAD_USER_INPUT', 'This is no HTTP request.');
  }

  let overdueTimer: NodeJS.Timeout | undefined;
  const server = createServer<typeof IncomingMessage, typeof HttpAnswer>({
    IncomingMessage,
    ServerResponse: HttpAnswer,
    requestTimeout: options.requestTimeoutMs ?? 30_000,
    headersTimeout: options.headersTimeoutMs ?? 10_000,
    connectionsCheckingInterval: options.timeoutCheckMs ?? 1000,
    keepAliveTimeout: keepAliveMs,
    // Finds peers that vanished without a word, also behind open streams.
    keepAlive: true,
    keepAliveInitialDelay: keepAliveMs,
  });
  server.on('request', onRequest).on('upgrade', onUpgrade).on('clientError', onClientError);

  return {
    async listen() {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(options.port, options.host, () => {
          server.off('error', reject);
          overdueTimer = setInterval(refuseOverdue, overdueCheckMs).unref();
          resolve();
        });
      });
      const { address, family, port } = server.address() as AddressInfo;
      scope.listensOnLoopback = isLoopbackAddress(address);
      return { url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}` };
    },

    async close() {
      if (closing) return;
      closing = true;
      clearInterval(overdueTimer);
      const closed = server.listening ? new Promise((resolve) => server.close(resolve)) : undefined;
      await Promise.all(surfaces.map(async ({ surface }) => surface.close?.()));
      const deadline = Date.now() + (options.closeGraceMs ?? 3000);
      while (openExchanges.size > 0 && Date.now() < deadline) await sleep(closePollMs);
      server.closeIdleConnections();
      server.closeAllConnections();
      await closed;
    },
  };
}
