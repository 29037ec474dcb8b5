// The REST surface: /v1 on our own HTTP server, routed and checked by Hono.
import { HTTPException } from 'hono/http-exception';
import type { Principal } from '../../identity/principal.js';
import { DomainError, invalidInput, notFound } from '../../shared/errors.js';
import type { HttpExchange, HttpSurface } from '../../shared/http-exchange.js';
import { secretFromHeaders } from '../credentials.js';
import { presentError, type TranslateError } from '../error-table.js';
import { whyNotJson } from '../json-body.js';
import { parseJsonBody } from '../strict-json.js';
import { sendProblem, withHttpForm } from './problem.js';
import { createRoutes, type RestServices, type Taken } from './routes.js';

interface Dependencies {
  services: RestServices;
  authentication: { authenticate(secret: string | undefined): Principal | Promise<Principal> };
  /** What a store threw, as a DomainError; anything else as it is. */
  translateError: TranslateError;
}

const documentPath = '/v1/openapi.json';
/** What handlers read; nothing else has to be copied. */
const forwardedHeaders = ['content-type', 'if-match', 'if-none-match', 'idempotency-key'];
const bodyMethods = new Set(['POST', 'PUT', 'PATCH']);
const readMethods = new Set(['GET', 'HEAD']);
const preconditions = ['if-match', 'if-none-match', 'if-unmodified-since'];

/** What is ignored elsewhere, too, must not narrow a write: whoever deletes on a condition would delete without it. */
function checkTaken({ request, searchParams }: HttpExchange, { queryParameters, headers }: Taken): void {
  const unknown = [...new Set(searchParams.keys())].filter((name) => !queryParameters.includes(name));
  if (unknown.length > 0) {
    const message = `Unrecognized query parameters: ${unknown.map((name) => JSON.stringify(name)).join(', ')}`;
    throw invalidInput(message, [{ path: [], message }]);
  }
  if (readMethods.has(request.method ?? '')) return;
  for (const name of preconditions) {
    if (request.headers[name] === undefined || headers.includes(name)) continue;
    throw invalidInput(`The header ${name} is not taken here: this write cannot be made conditional with it.`);
  }
}

/** The router finds no body where there has to be one. */
const translateRouterError = (error: unknown): unknown =>
  error instanceof HTTPException && error.status === 400 ? invalidInput('Send a JSON object as the body.') : error;

async function readBody(exchange: HttpExchange): Promise<Buffer | undefined> {
  const { method = '', headers } = exchange.request;
  if (!bodyMethods.has(method)) return undefined;
  const body = await exchange.readBody();
  // Clients that always send the type mean nothing by it when there is no body.
  if (body.length === 0) return undefined;
  const reason = whyNotJson(headers);
  if (reason !== undefined) throw withHttpForm(invalidInput(reason), { status: 415 });
  const parsed = parseJsonBody(body);
  if ('problem' in parsed) throw invalidInput(parsed.problem);
  return body;
}

function toFetchRequest({ request, path, searchParams }: HttpExchange, body: Buffer | undefined): Request {
  const headers = new Headers();
  for (const name of forwardedHeaders) {
    const value = name === 'content-type' && body === undefined ? undefined : request.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  const url = new URL(path, 'http://localhost');
  // "%2e%2e" as an id, or a backslash in one, would lead to another operation than the one that was checked.
  if (url.pathname !== path) throw notFound();
  url.search = searchParams.toString();
  return new Request(url, { method: request.method ?? 'GET', headers, body });
}

async function send(exchange: HttpExchange, answer: Response): Promise<void> {
  const { request, response } = exchange;
  const body = Buffer.from(await answer.arrayBuffer());
  if (response.destroyed) return;
  exchange.note({ outcome: 'OK' });
  const hasBody = request.method !== 'HEAD' && answer.status !== 304;
  response.writeHead(answer.status, {
    ...Object.fromEntries(answer.headers),
    ...(hasBody && { 'content-length': body.length }),
    'cache-control': 'no-store',
  });
  response.end(hasBody ? body : undefined);
}

/** @returns a surface to mount at /v1 */
export function createRestServer({ services, authentication, translateError }: Dependencies): HttpSurface {
  const routes = createRoutes(services);
  const documentText = JSON.stringify(routes.document);
  const documentOperations = new Map([['GET', { queryParameters: [], headers: [] }]]);

  /** @throws DomainError for a path that leads nowhere, or a method that it does not have */
  function findOperation({ request, path }: HttpExchange): Taken {
    const operations = path === documentPath ? documentOperations : routes.operationsAt(path);
    if (operations.size === 0)
      throw new DomainError('NOT_FOUND', `There is nothing at this path: ${documentPath} has them all.`);
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '');
    const operation = operations.get(method);
    if (operation) return operation;
    const methods = [...operations.keys()];
    const allowed = (methods.includes('GET') ? [...methods, 'HEAD'] : methods).join(', ');
    throw withHttpForm(invalidInput(`Only ${allowed} can be used at this path.`), {
      status: 405,
      headers: { allow: allowed },
    });
  }

  async function answer(exchange: HttpExchange): Promise<Response> {
    const operation = findOperation(exchange);
    if (exchange.path === documentPath) {
      return new Response(documentText, { headers: { 'content-type': 'application/json' } });
    }
    const principal = await authentication.authenticate(secretFromHeaders(exchange.request.rawHeaders));
    checkTaken(exchange, operation);
    const request = toFetchRequest(exchange, await readBody(exchange));
    return await routes.router.fetch(request, { principal });
  }

  return {
    name: 'rest',

    async handle(exchange) {
      const { request, response } = exchange;
      try {
        await send(exchange, await answer(exchange));
      } catch (error) {
        const clientIsGone = request.destroyed && !request.complete;
        if (clientIsGone || response.headersSent) throw error;
        sendProblem(exchange, presentError(translateRouterError(error), exchange, translateError));
      }
    },

    refuse(exchange, error, status) {
      sendProblem(exchange, error, status);
    },
  };
}
