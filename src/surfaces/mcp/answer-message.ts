// One MCP message of one agent, answered by the protocol's own library. Loaded with the first message: the library takes its time.
import type { IncomingMessage } from 'node:http';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import {
  CallToolRequestSchema,
  ErrorCode as RpcErrorCode,
  InitializeRequestSchema,
  JSONRPCRequestSchema,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import type { AgentPrincipal } from '../../identity/principal.js';
import { invalidInputFrom } from '../../shared/errors.js';
import type { HttpExchange } from '../../shared/http-exchange.js';
import { publicDetails, type TranslateError } from '../error-table.js';
import { createAgentServer, type AgentScratchpads } from './agent-server.js';

/** Never settles when the client goes away first. */
export type AnswerMessage = (exchange: HttpExchange, agent: AgentPrincipal, message: unknown) => Promise<Response>;

/** A client has to name both (Streamable HTTP); every answer here is JSON, so who takes that is served. */
const bothTypes = 'application/json, text/event-stream';
const takesJson = (accept: string | undefined): boolean =>
  accept === undefined || accept.trim() === '' || /(?:\*|application)\/\*|application\/json/i.test(accept);

/** What the protocol looks at; the body has been read. */
function toWebRequest({ headers }: IncomingMessage): Request {
  const relevant = new Headers();
  for (const name of ['accept', 'content-type', 'mcp-protocol-version']) {
    const value = headers[name];
    if (typeof value === 'string') relevant.set(name, value);
  }
  if (takesJson(headers.accept)) relevant.set('accept', bothTypes);
  return new Request('http://scratchpad/mcp', { method: 'POST', headers: relevant });
}

const requestSchemas = [InitializeRequestSchema, ListToolsRequestSchema, CallToolRequestSchema];

/** A request whose params are not those of its method. The library would answer with its own insides, as an error of the server. */
function answerMalformed(message: unknown, exchange: HttpExchange): Response | undefined {
  const request = JSONRPCRequestSchema.safeParse(message);
  if (!request.success) return undefined;
  const { id, method } = request.data;
  const result = requestSchemas.find(({ shape }) => shape.method.value === method)?.safeParse(message);
  if (!result?.error) return undefined;
  const error = invalidInputFrom(result.error);
  exchange.note({ operation: method, outcome: error.code });
  const data = { code: error.code, ...publicDetails(error, exchange.requestId) };
  return Response.json({
    jsonrpc: '2.0',
    error: { code: RpcErrorCode.InvalidParams, message: error.message, data },
    id,
  });
}

export function createMessageAnswerer(dependencies: {
  scratchpads: AgentScratchpads;
  translateError: TranslateError;
}): AnswerMessage {
  const schemaValidator = new AjvJsonSchemaValidator();

  return async (exchange, agent, message) => {
    const malformed = answerMalformed(message, exchange);
    if (malformed) return malformed;
    const server = createAgentServer({
      ...dependencies,
      agent,
      scope: exchange,
      schemaValidator,
      onToolCall: (operationName, outcome) => exchange.note({ operation: 'tools/call', operationName, outcome }),
    });
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    exchange.response.once('close', () => void server.close());
    await server.connect(transport);
    return await transport.handleRequest(toWebRequest(exchange.request), { parsedBody: message });
  };
}
