// The REST surface: /v1 on our own HTTP server, routed and checked by Hono.
import { isUtf8 } from 'node:buffer';
import { HTTPException } from 'hono/http-exception';
import type { Principal } from '../../identity/principal.js';
import { DomainError, invalidInput } from '../../shared/errors.js';
import type { HttpExchange, HttpSurface } from '../../shared/http-exchange.js';
import { secretFromHeaders } from '../credentials.js';
import { presentError, type TranslateError } from '../error-table.js';
import { sendProblem, withHttpForm } from './problem.js';
import { createRoutes, type RestServices } from './routes.js';

interface Dependencies {
  services: RestServices;
  authentication: { authenticate(secret: string | undefined): Promise<Principal> };
  /** What a store threw, as a DomainError; anything else as it is. */
  translateError: TranslateError;
}

const documentPath = '/v1/openapi.json';
/** What handlers read; nothing else has to be copied. */
const forwardedHeaders = ['content-type', 'if-match', 'idempotency-key'];
const bodyMethods = new Set(['POST', 'PUT', 'PATCH']);

/** Errors of the router are about the request's form. */
function translateRouterError(error: unknown): unknown {
  if (!(error instanceof HTTPException)) return error;
  if (error.status === 415) {
    return withHttpForm(invalidInput('Send the body as JSON with "Content-Type: application/json".'), { status: 415 });
  }
  return error.status === 400 ? invalidInput('The body is not valid JSON.') : error;
}

async function readBody(exchange: HttpExchange): Promise<Buffer | undefined> {
  if (!bodyMethods.has(exchange.request.method ?? '')) return undefined;
  const body = await exchange.readBody();
  if (!isUtf8(body)) throw invalidInput('The body is not valid UTF-8.');
  return body.length > 0 ? body : undefined;
}

function toFetchRequest({ request, path, searchParams }: HttpExchange, body: Buffer | undefined): Request {
  const headers = new Headers();
  for (const name of forwardedHeaders) {
    // Clients that always send the type mean nothing by it when there is no body.
    const value = name === 'content-type' && body === undefined ? undefined : request.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  const search = searchParams.size > 0 ? `?${searchParams.toString()}` : '';
  return new Request(`http://localhost${path}${search}`, { method: request.method ?? 'GET', headers, body });
}

async function send(exchange: HttpExchange, answer: Response): Promise<void> {
  const { request, response } = exchange;
  const body = Buffer.from(await answer.arrayBuffer());
  exchange.note({ outcome: 'OK' });
  const isHead = request.method === 'HEAD';
  response.writeHead(answer.status, {
    ...Object.fromEntries(answer.headers),
    ...(!isHead && { 'content-length': body.length }),
    'cache-control': 'no-store',
  });
  response.end(isHead ? undefined : body);
}

/** @returns a surface to mount at /v1 */
export function createRestServer({ services, authentication, translateError }: Dependencies): HttpSurface {
  const routes = createRoutes(services);
  const documentText = JSON.stringify(routes.document);

  function checkTarget({ request, path }: HttpExchange): void {
    const methods = path === documentPath ? ['GET'] : routes.methodsAt(path);
    if (methods.length === 0)
      throw new DomainError('NOT_FOUND', `There is nothing at this path: ${documentPath} has them all.`);
    const allowed = methods.includes('GET') ? [...methods, 'HEAD'] : methods;
    if (allowed.includes(request.method ?? '')) return;
    const refusal = invalidInput(`Only ${allowed.join(', ')} can be used at this path.`);
    throw withHttpForm(refusal, { status: 405, headers: { allow: allowed.join(', ') } });
  }

  async function answer(exchange: HttpExchange): Promise<Response> {
    checkTarget(exchange);
    if (exchange.path === documentPath) {
      return new Response(documentText, { headers: { 'content-type': 'application/json' } });
    }
    const principal = await authentication.authenticate(secretFromHeaders(exchange.request.rawHeaders));
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
