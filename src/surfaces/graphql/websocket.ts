// GraphQL over WebSocket (the graphql-transport-ws protocol). An operation that goes wrong ends that operation; the socket, with
// whatever else runs on it, is closed only for breaking the protocol.
import { OperationTypeNode, type ExecutionArgs, type ExecutionResult, type GraphQLError } from 'graphql';
import { CloseCode, GRAPHQL_TRANSPORT_WS_PROTOCOL, makeServer, type Context } from 'graphql-ws';
import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocketServer, type RawData, type WebSocket } from 'ws';
import type { Principal } from '../../identity/principal.js';
import { DomainError } from '../../shared/errors.js';
import type { UpgradeExchange } from '../../shared/http-exchange.js';
import type { Logger } from '../../shared/logger.js';
import { secretFromHeaders, secretFromParameters } from '../credentials.js';
import { presentError, type ErrorScope, type TranslateError } from '../error-table.js';
import { outcomeOf } from './graphql-errors.js';
import { isSubscription, type Authentication, type Caller, type Operations } from './operations.js';
import type { PreparedOperation } from './pipeline.js';
import { createPacedSocket, type PacedSocket } from './paced-socket.js';

export interface WebSocketLimits {
  /** Operations that run on one socket at a time. */
  maxOperations: number;
  /** For connection_init to arrive. */
  initTimeoutMs: number;
  pingIntervalMs: number;
  /** A peer that sends nothing for so long, not even a pong, is gone. Long, because a slow reader answers late. */
  silenceTimeoutMs: number;
  /** For operations to end, and for sockets to close, when the server does. */
  closeTimeoutMs: number;
}

const defaults: WebSocketLimits = {
  maxOperations: 100,
  initTimeoutMs: 5000,
  pingIntervalMs: 12_000,
  silenceTimeoutMs: 120_000,
  closeTimeoutMs: 2000,
};

export interface OperationObservation {
  surface: string;
  outcome: string;
  seconds?: number;
}

interface Dependencies {
  operations: Operations;
  authentication: Authentication;
  translateError: TranslateError;
  metrics: { requestFinished(observation: OperationObservation): void };
  maxMessageBytes: number;
  limits?: Partial<WebSocketLimits> | undefined;
  logger: Logger;
}

export interface WebSocketEndpoint {
  upgrade(exchange: UpgradeExchange): void;
  /** Expects that the subscriptions have been ended; waits until their completion is sent, then closes the sockets. */
  close(): Promise<void>;
}

/** What one socket knows beside the protocol's own state. */
interface Connection extends ErrorScope {
  /** Of the upgrade: clients that are no browsers authenticate there. */
  headers: IncomingHttpHeaders;
  paced: PacedSocket;
  /** Set by a connection_init that was accepted. */
  secret?: string | undefined;
  operationCount: number;
  lastHeardMs: number;
}

type Extra = { connection: Connection };
type ProtocolContext = Context<Record<string, unknown>, Extra>;

/** Rides through graphql-ws in the place of a context: what is to be executed, and for whom. */
interface Job {
  prepared: PreparedOperation;
  caller: Caller;
  connection: Connection;
}

const surfaceName = 'graphql-ws';
const closePollMs = 10;
/** The protocol allows 123 bytes. */
const maxReasonLength = 120;

/** Clients give up at 4401 and 4403 and come back after 1013. */
const closeCodes: Partial<Record<DomainError['code'], number>> = {
  UNAUTHENTICATED: CloseCode.Unauthorized,
  FORBIDDEN: CloseCode.Forbidden,
  RATE_LIMITED: 1013,
  UNAVAILABLE: 1013,
};

export function createWebSocketEndpoint(dependencies: Dependencies): WebSocketEndpoint {
  const { operations, authentication, translateError, metrics, maxMessageBytes } = dependencies;
  const limits = { ...defaults, ...dependencies.limits };
  const connections = new Map<WebSocket, Connection>();
  let running = 0;

  async function onConnect({ connectionParams, extra: { connection } }: ProtocolContext): Promise<boolean> {
    try {
      connection.secret = secretFromParameters(connectionParams) ?? secretFromHeaders(connection.headers);
      await authentication.authenticate(connection.secret);
      return true;
    } catch (error) {
      const { code, message } = presentError(error, connection, translateError);
      connection.paced.close(closeCodes[code] ?? CloseCode.InternalServerError, message.slice(0, maxReasonLength));
      return false;
    }
  }

  /** The key may have been revoked since the connection began. */
  const authenticateAgain = ({ secret }: Connection): Promise<Principal> => authentication.authenticate(secret);

  function finish(
    prepared: PreparedOperation | undefined,
    caller: ErrorScope,
    startedAt: number,
    outcome: string,
  ): void {
    const seconds = (performance.now() - startedAt) / 1000;
    const { operation } = prepared ?? {};
    const isStream = operation?.operation === OperationTypeNode.SUBSCRIPTION;
    metrics.requestFinished({ surface: surfaceName, outcome, ...(!isStream && { seconds }) });
    const names = { operation: operation?.operation, operationName: operation?.name?.value };
    const durationMs = Math.round(seconds * 1e6) / 1e3;
    caller.logger.info({ surface: surfaceName, ...names, outcome, durationMs }, 'operation');
  }

  async function onSubscribe(
    { extra: { connection }, subscriptions }: ProtocolContext,
    _id: string,
    payload: { query: string; variables?: Record<string, unknown> | null; operationName?: string | null },
  ): Promise<ExecutionArgs | GraphQLError[]> {
    const startedAt = performance.now();
    connection.operationCount += 1;
    const requestId = `${connection.requestId}.${connection.operationCount}`;
    const scope = { requestId, logger: connection.logger };
    const refuse = (errors: readonly GraphQLError[]): GraphQLError[] => {
      finish(undefined, scope, startedAt, outcomeOf({ errors }));
      return [...errors];
    };
    try {
      if (Object.keys(subscriptions).length > limits.maxOperations) {
        const message = `${limits.maxOperations} operations run on this socket already: end one, or open another socket.`;
        throw new DomainError('LIMIT_EXCEEDED', message);
      }
      const principal = await authenticateAgain(connection);
      const prepared = operations.prepare(payload);
      if ('errors' in prepared) return refuse(prepared.errors);
      const caller: Caller = { ...scope, principal, transport: 'websocket' };
      const job: Job = { prepared, caller, connection };
      return {
        // graphql-ws looks at the document and calls execute; the schema is not used on the way.
        schema: undefined as never,
        document: prepared.document,
        operationName: prepared.operation.name?.value,
        rootValue: undefined,
        contextValue: job,
      };
    } catch (error) {
      return refuse([operations.present(error, scope)]);
    }
  }

  async function execute({ contextValue }: ExecutionArgs): Promise<ExecutionResult | AsyncIterable<ExecutionResult>> {
    const { prepared, caller, connection } = contextValue as Job;
    const startedAt = performance.now();
    running += 1;
    let outcome = 'OK';
    let isOver = false;
    const over = () => {
      if (isOver) return;
      isOver = true;
      running -= 1;
      finish(prepared, caller, startedAt, outcome);
    };
    const result = await operations.execute(prepared, caller);
    if (!isSubscription(result)) {
      outcome = outcomeOf(result);
      over();
      return result;
    }
    const paced: AsyncIterableIterator<ExecutionResult> = {
      async next() {
        // What a slow client leaves is to wait at the source, where it is bounded, not here.
        await connection.paced.drained();
        const step = await result.next();
        if (step.done) over();
        else outcome = outcomeOf(step.value);
        return step;
      },
      return() {
        over();
        return result.return();
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
    return paced;
  }

  const protocol = makeServer<Record<string, unknown>, Extra>({
    connectionInitWaitTimeout: limits.initTimeoutMs,
    onConnect,
    onSubscribe: (context, id, payload) => onSubscribe(context, id, payload),
    execute,
    subscribe: execute,
  });

  const server = new WebSocketServer({
    noServer: true,
    maxPayload: maxMessageBytes,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(GRAPHQL_TRANSPORT_WS_PROTOCOL) ? GRAPHQL_TRANSPORT_WS_PROTOCOL : false),
  });

  function accept(socket: WebSocket, exchange: UpgradeExchange): void {
    const { requestId, logger } = exchange;
    const { headers } = exchange.request;
    const paced = createPacedSocket(socket);
    const connection: Connection = { headers, paced, requestId, logger, operationCount: 0, lastHeardMs: Date.now() };
    connections.set(socket, connection);
    const fail = (error: unknown) => {
      if (error instanceof Error && error.message.startsWith('Unexpected message of type')) {
        socket.close(CloseCode.BadRequest, 'Only servers send messages of this type');
        return;
      }
      logger.error({ err: error }, 'unexpected error on a WebSocket');
      socket.close(CloseCode.InternalServerError, 'Internal server error');
    };
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        send: (data) => paced.send(data),
        close: (code, reason) => paced.close(code ?? CloseCode.InternalServerError, reason ?? ''),
        onMessage: (receive) => {
          socket.on('message', (data: RawData, isBinary: boolean) => {
            connection.lastHeardMs = Date.now();
            // After a close frame of ours nothing that was on its way may start anything.
            if (socket.readyState !== socket.OPEN) return;
            if (isBinary) socket.close(CloseCode.BadRequest, 'Send text frames');
            else receive((data as Buffer).toString('utf8')).catch(fail);
          });
        },
      },
      { connection },
    );
    socket.on('pong', () => (connection.lastHeardMs = Date.now()));
    // Malformed frames: ws answers with the protocol's close code by itself.
    socket.on('error', (error) => logger.debug({ err: error }, 'WebSocket error'));
    socket.once('close', (code, reason) => {
      connections.delete(socket);
      paced.release();
      closed(code, reason.toString('utf8')).catch(fail);
    });
  }

  // One timer for all sockets: a timer each would be most of what an idle socket costs.
  const heartbeat = setInterval(() => {
    const silentSinceMs = Date.now() - limits.silenceTimeoutMs;
    for (const [socket, { lastHeardMs }] of connections) {
      if (lastHeardMs < silentSinceMs) socket.terminate();
      else if (socket.readyState === socket.OPEN && socket.bufferedAmount === 0) socket.ping();
    }
  }, limits.pingIntervalMs);
  heartbeat.unref();

  /** @returns when `condition` holds or the time is over */
  async function waitUntil(condition: () => boolean): Promise<void> {
    const deadlineMs = Date.now() + limits.closeTimeoutMs;
    while (!condition() && Date.now() < deadlineMs) await sleep(closePollMs);
  }

  return {
    upgrade(exchange) {
      const { request, socket, head } = exchange;
      server.handleUpgrade(request, socket, head, (webSocket) => accept(webSocket, exchange));
    },

    async close() {
      clearInterval(heartbeat);
      await waitUntil(() => running === 0);
      for (const socket of connections.keys()) socket.close(1001, 'The server is closing: connect again');
      await waitUntil(() => connections.size === 0);
      for (const socket of connections.keys()) socket.terminate();
      server.close();
    },
  };
}
