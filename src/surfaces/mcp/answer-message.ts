// One MCP message of one agent, answered by the protocol's own library. Loaded with the first message: the library takes its time.
import type { IncomingMessage } from 'node:http';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import type { AgentPrincipal } from '../../identity/principal.js';
import type { HttpExchange } from '../../shared/http-exchange.js';
import type { TranslateError } from '../error-table.js';
import { createAgentServer, type AgentScratchpads } from './agent-server.js';

/** Never settles when the client goes away first. */
export type AnswerMessage = (exchange: HttpExchange, agent: AgentPrincipal, message: unknown) => Promise<Response>;

/** What the protocol looks at; the body has been read. */
function toWebRequest({ headers }: IncomingMessage): Request {
  const relevant = new Headers();
  for (const name of ['accept', 'content-type', 'mcp-protocol-version']) {
    const value = headers[name];
    if (typeof value === 'string') relevant.set(name, value);
  }
  return new Request('http://scratchpad/mcp', { method: 'POST', headers: relevant });
}

export function createMessageAnswerer(dependencies: {
  scratchpads: AgentScratchpads;
  translateError: TranslateError;
}): AnswerMessage {
  const schemaValidator = new AjvJsonSchemaValidator();

  return async (exchange, agent, message) => {
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
