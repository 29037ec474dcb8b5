// The GraphQL surface: one path for HTTP, server-sent events and WebSockets, and GraphiQL for people.
import { GraphQLError, OperationTypeNode, type ExecutionResult, type GraphQLSchema } from 'graphql';
import type { Principal } from '../../identity/principal.js';
import type { HttpExchange, HttpSurface, RequestNotes } from '../../shared/http-exchange.js';
import type { Logger } from '../../shared/logger.js';
import { secretFromHeaders } from '../credentials.js';
import { errorTable, presentError, type TranslateError } from '../error-table.js';
import { createEventStreams, oneResult } from './event-stream.js';
import { createGraphiql } from './graphiql.js';
import { domainToGraphqlError, outcomeOf } from './graphql-errors.js';
import { defaultLimits, type GuardRailLimits } from './guard-rails.js';
import { eventStreamType, jsonType, negotiate, sendResult, type MediaType } from './http-response.js';
import { checkRequestHead, readOperationRequest, refusal } from './operation-request.js';
import { createOperations, isSubscription, type Authentication, type SubscriptionMetrics } from './operations.js';
import { createPipeline, type PipelineOptions, type PreparedOperation } from './pipeline.js';
import type { OperationObservation } from './websocket-operations.js';
import { createWebSocketEndpoint, type WebSocketLimits } from './websocket.js';

export interface GraphqlServerOptions {
  schema: GraphQLSchema;
  authentication: Authentication;
  /** Called for each operation, and once more for each event of a subscription. */
  createContext: (principal: Principal, requestId: string) => object;
  introspection: boolean;
  graphiql: {
    enabled: boolean;
    /** Put into the page's headers for callers on this machine, when the server listens on loopback only. */
    developmentSecret?: string | undefined;
  };
  /** Of one WebSocket message; HTTP bodies are limited by the HTTP server. */
  maxMessageBytes: number;
  logger: Logger;
  metrics: SubscriptionMetrics & { requestFinished(observation: OperationObservation): void };
  /** What a store threw, as a DomainError; anything else as it is. */
  translateError: TranslateError;
  limits?: Partial<GuardRailLimits>;
  plugins?: PipelineOptions['plugins'];
  usesBeforeCompilation?: PipelineOptions['usesBeforeCompilation'];
  webSocket?: Partial<WebSocketLimits>;
  /** Between the comments on a silent event stream. Default 12 seconds. */
  keepAliveMs?: number;
}

/** @returns a surface to mount at /graphql */
export function createGraphqlServer(options: GraphqlServerOptions): HttpSurface {
  const { authentication, introspection, logger, metrics, translateError } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const { schema, plugins, usesBeforeCompilation } = options;
  const pipeline = createPipeline({ schema, introspection, limits, plugins, usesBeforeCompilation });
  const operations = createOperations({
    pipeline,
    authentication,
    createContext: options.createContext,
    translateError,
    metrics,
  });
  const eventStreams = createEventStreams(options.keepAliveMs ?? 12_000, () => metrics.eventDelivered('sse'));
  const graphiql = options.graphiql.enabled ? createGraphiql(options.graphiql.developmentSecret) : undefined;
  const webSocket = createWebSocketEndpoint({
    operations,
    authentication,
    translateError,
    metrics,
    maxMessageBytes: options.maxMessageBytes,
    limits: options.webSocket,
    logger,
  });

  /** Before anything of the document is looked at: who may not come in learns nothing about it. */
  function authenticate(exchange: HttpExchange): Principal | Promise<Principal> {
    const refuse = (error: unknown): never => {
      const presented = presentError(error, exchange, translateError);
      throw withStatus(domainToGraphqlError(presented, exchange.requestId), errorTable[presented.code].status);
    };
    try {
      const found = authentication.authenticate(secretFromHeaders(exchange.request.rawHeaders));
      return found instanceof Promise ? found.catch(refuse) : found;
    } catch (error) {
      return refuse(error);
    }
  }

  function send(exchange: HttpExchange, result: ExecutionResult, type: MediaType): void {
    exchange.note({ outcome: outcomeOf(result) });
    sendResult(exchange.response, result, type);
  }

  async function sendStream(
    exchange: HttpExchange,
    results: Parameters<typeof eventStreams.send>[1],
    notes: RequestNotes,
  ): Promise<void> {
    exchange.note({ outcome: 'OK', ...notes });
    await eventStreams.send(exchange.response, results);
  }

  function checkMethod({ operation }: PreparedOperation, exchange: HttpExchange, type: MediaType): void {
    if (operation.operation === OperationTypeNode.MUTATION && exchange.request.method === 'GET') {
      throw refusal(405, 'Send mutations with POST.', { allow: 'POST' });
    }
    if (operation.operation === OperationTypeNode.SUBSCRIPTION && type !== eventStreamType) {
      throw refusal(406, `Subscribe with "Accept: ${eventStreamType}" or over a WebSocket.`);
    }
  }

  async function answer(exchange: HttpExchange): Promise<void> {
    const { request, response } = exchange;
    const type = negotiate(request.headers.accept);
    if (!type) throw refusal(406, `Accept one of application/graphql-response+json, ${jsonType}, ${eventStreamType}.`);
    checkRequestHead(exchange);
    const found = authenticate(exchange);
    const principal = found instanceof Promise ? await found : found;
    const prepared = operations.prepare(await readOperationRequest(exchange));
    if ('errors' in prepared) {
      const refused: ExecutionResult = { errors: prepared.errors };
      // Clients of event streams read errors off the stream only.
      if (type === eventStreamType) await sendStream(exchange, oneResult(refused), { outcome: outcomeOf(refused) });
      else send(exchange, refused, type);
      return;
    }
    const { operation } = prepared;
    exchange.note({ operation: operation.operation, operationName: operation.name?.value });
    checkMethod(prepared, exchange, type);
    const transport = type === eventStreamType ? 'sse' : 'http';
    const result = await operations.execute(prepared, { principal, transport, scope: exchange });
    if (isSubscription(result)) await sendStream(exchange, result, { stream: true });
    else if (type === eventStreamType) await sendStream(exchange, oneResult(result), { outcome: outcomeOf(result) });
    else if (!response.destroyed) send(exchange, result, type);
  }

  function isPageRequest(exchange: HttpExchange): boolean {
    const { request } = exchange;
    const accept = request.headers.accept ?? '';
    return (
      request.method === 'GET' &&
      accept.includes('text/html') &&
      !accept.includes(eventStreamType) &&
      !exchange.searchParams.has('extensions')
    );
  }

  return {
    name: 'graphql',

    async handle(exchange) {
      if (exchange.path !== '/graphql') {
        if (await graphiql?.handleAsset(exchange)) return;
        send(exchange, { errors: [refusal(404, 'There is nothing at this path.')] }, jsonType);
        return;
      }
      if (graphiql && isPageRequest(exchange)) {
        graphiql.handlePage(exchange);
        return;
      }
      try {
        await answer(exchange);
      } catch (error) {
        const { request, response } = exchange;
        const clientIsGone = request.destroyed && !request.complete;
        if (clientIsGone || response.headersSent) throw error;
        const presented = operations.present(error, exchange);
        const status = 'http' in presented.extensions ? undefined : statusOfCode(presented.extensions.code);
        const final = status === undefined ? presented : withStatus(presented, status);
        send(exchange, { errors: [final] }, negotiate(request.headers.accept) ?? jsonType);
      }
    },

    refuse(exchange, error, status) {
      const refused = withStatus(domainToGraphqlError(error, exchange.requestId), status);
      send(exchange, { errors: [refused] }, negotiate(exchange.request.headers.accept) ?? jsonType);
    },

    upgrade: (exchange) => webSocket.upgrade(exchange),

    async close() {
      operations.close();
      await webSocket.close();
    },
  };
}

const statusOfCode = (code: unknown): number | undefined =>
  Object.values(errorTable).find(({ graphqlCode }) => graphqlCode === code)?.status;

const withStatus = (error: GraphQLError, status: number): GraphQLError =>
  new GraphQLError(error.message, { extensions: { ...error.extensions, http: { status } } });
