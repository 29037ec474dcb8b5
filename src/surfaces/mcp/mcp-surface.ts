// The MCP surface: Streamable HTTP without sessions, one JSON answer for each request, for holders of agent tokens.
import type { ServerResponse } from 'node:http';
import type { AgentPrincipal, Principal } from '../../identity/principal.js';
import { DomainError } from '../../shared/errors.js';
import type { HttpExchange, HttpSurface } from '../../shared/http-exchange.js';
import { secretFromHeaders } from '../credentials.js';
import { errorTable, presentError, publicDetails, type TranslateError } from '../error-table.js';
import { whyNotJson } from '../json-body.js';
import { parseJsonBody } from '../strict-json.js';
import type { AgentScratchpads } from './agent-server.js';
import type { AnswerMessage } from './answer-message.js';

interface Dependencies {
  authentication: { authenticate(secret: string | undefined): Principal | Promise<Principal> };
  scratchpads: AgentScratchpads;
  translateError: TranslateError;
}

/** JSON-RPC leaves this number to the server; what happened is in `data.code`. */
const serverErrorNumber = -32000;
const parseErrorNumber = -32700;
const invalidRequestNumber = -32600;

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  });
  response.end(body);
}

/** What is refused before there is a JSON-RPC request to answer. */
const sendRefusal = (
  response: ServerResponse,
  status: number,
  error: { code: number; message: string; data?: object },
) => send(response, status, JSON.stringify({ jsonrpc: '2.0', error, id: null }));

function refuse(exchange: HttpExchange, error: DomainError, status: number): void {
  const { code, message, details } = error;
  exchange.note({ outcome: code });
  if (status === 401) exchange.response.setHeader('www-authenticate', 'Bearer realm="scratchpad"');
  if (details.retryAfterSeconds !== undefined) {
    exchange.response.setHeader('retry-after', String(Math.ceil(details.retryAfterSeconds)));
  }
  const data = { code, ...publicDetails(error, exchange.requestId) };
  sendRefusal(exchange.response, status, { code: serverErrorNumber, message, data });
}

function requireAgent(principal: Principal): AgentPrincipal {
  if (principal.kind === 'agent') return principal;
  throw new DomainError(
    'FORBIDDEN',
    'MCP needs an agent token, because a token says which scratchpad the tools are for: the owner of a scratchpad makes one with createAgentToken.',
  );
}

/** @returns a surface to mount at /mcp */
export function createMcpSurface({ authentication, scratchpads, translateError }: Dependencies): HttpSurface {
  let answerer: Promise<AnswerMessage> | undefined;
  const loadAnswerer = async (): Promise<AnswerMessage> => {
    const { createMessageAnswerer } = await import('./answer-message.js');
    return createMessageAnswerer({ scratchpads, translateError });
  };

  async function answer(exchange: HttpExchange): Promise<void> {
    const { request, response } = exchange;
    const agent = requireAgent(await authentication.authenticate(secretFromHeaders(request.rawHeaders)));
    const reason = whyNotJson(request.headers);
    if (reason !== undefined) {
      sendRefusal(response, 415, { code: serverErrorNumber, message: reason });
      return;
    }
    const body = parseJsonBody(await exchange.readBody());
    if ('problem' in body) {
      sendRefusal(response, 400, { code: parseErrorNumber, message: body.problem });
      return;
    }
    if (Array.isArray(body.value)) {
      const message = 'Batches are not supported: send one message in each request.';
      sendRefusal(response, 400, { code: invalidRequestNumber, message });
      return;
    }
    answerer ??= loadAnswerer();
    const answered = await (await answerer)(exchange, agent, body.value);
    if (response.destroyed) return;
    const text = await answered.text();
    if (text === '') response.writeHead(answered.status, { 'content-length': 0 }).end();
    else send(response, answered.status, text);
  }

  return {
    name: 'mcp',

    async handle(exchange) {
      const { request, response, path } = exchange;
      if (path !== '/mcp') {
        sendRefusal(response, 404, { code: serverErrorNumber, message: 'There is nothing at this path.' });
        return;
      }
      // Nothing is sent without being asked for, and there is no session to end.
      if (request.method !== 'POST') {
        response.setHeader('allow', 'POST, OPTIONS');
        sendRefusal(response, 405, { code: serverErrorNumber, message: 'Send messages with POST.' });
        return;
      }
      try {
        await answer(exchange);
      } catch (error) {
        const clientIsGone = request.destroyed && !request.complete;
        if (clientIsGone || response.headersSent) throw error;
        const presented = presentError(error, exchange, translateError);
        refuse(exchange, presented, errorTable[presented.code].status);
      }
    },

    refuse,
  };
}
