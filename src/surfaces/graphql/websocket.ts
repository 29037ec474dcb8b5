// GraphQL over WebSocket (the graphql-transport-ws protocol). An operation that goes wrong ends that operation; the socket, with
// whatever else runs on it, is closed only for breaking the protocol.
import { CloseCode, GRAPHQL_TRANSPORT_WS_PROTOCOL, makeServer } from 'graphql-ws';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocketServer, type RawData, type WebSocket } from 'ws';
import type { UpgradeExchange } from '../../shared/http-exchange.js';
import { errorScope } from '../error-table.js';
import { findFlaw } from '../strict-json.js';
import { PacedSocket, createWriteBatch } from './paced-socket.js';
import {
  createWebSocketOperations,
  maxReasonLength,
  type Connection,
  type Extra,
  type WebSocketOperationsDependencies,
} from './websocket-operations.js';

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
  pingIntervalMs: 25_000,
  silenceTimeoutMs: 120_000,
  closeTimeoutMs: 1000,
};

interface Dependencies extends Omit<WebSocketOperationsDependencies, 'maxOperations'> {
  maxMessageBytes: number;
  limits?: Partial<WebSocketLimits> | undefined;
}

export interface WebSocketEndpoint {
  upgrade(exchange: UpgradeExchange): void;
  /** Expects that the subscriptions have been ended; waits until their completion is sent, then closes the sockets. */
  close(): Promise<void>;
}

const closePollMs = 10;

function isSubscribe(text: string): boolean {
  try {
    return (JSON.parse(text) as { type?: unknown } | null)?.type === 'subscribe';
  } catch {
    return false;
  }
}

export function createWebSocketEndpoint(dependencies: Dependencies): WebSocketEndpoint {
  const { maxMessageBytes, logger } = dependencies;
  const limits = { ...defaults, ...dependencies.limits };
  const connections = new Map<WebSocket, Connection>();
  const batch = createWriteBatch();
  const hooks = createWebSocketOperations({ ...dependencies, maxOperations: limits.maxOperations });
  const protocol = makeServer<Record<string, unknown>, Extra>({
    connectionInitWaitTimeout: limits.initTimeoutMs,
    onConnect: hooks.onConnect,
    onSubscribe: hooks.onSubscribe,
    execute: hooks.execute,
    subscribe: hooks.execute,
  });

  const server = new WebSocketServer({
    noServer: true,
    maxPayload: maxMessageBytes,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(GRAPHQL_TRANSPORT_WS_PROTOCOL) ? GRAPHQL_TRANSPORT_WS_PROTOCOL : false),
  });

  function accept(socket: WebSocket, exchange: UpgradeExchange): void {
    const scope = errorScope(exchange.requestId, logger);
    const paced = new PacedSocket(socket, exchange.socket, batch);
    const connection: Connection = {
      scope,
      rawHeaders: exchange.request.rawHeaders,
      paced,
      operationCount: 0,
      lastHeardMs: Date.now(),
    };
    connections.set(socket, connection);
    const fail = (error: unknown) => {
      if (error instanceof Error && error.message.startsWith('Unexpected message of type')) {
        socket.close(CloseCode.BadRequest, 'Only servers send messages of this type');
        return;
      }
      scope.logger.error({ err: error }, 'unexpected error on a WebSocket');
      socket.close(CloseCode.InternalServerError, 'Internal server error');
    };
    /** A message that could mean two things is refused: as an operation where it names one for sure, else with the socket. */
    const refuseFlaw = (text: string): boolean => {
      connection.flaw = findFlaw(text);
      if (!connection.flaw || (!connection.flaw.outermost && isSubscribe(text))) return false;
      socket.close(CloseCode.BadRequest, `The message ${connection.flaw.message}`.slice(0, maxReasonLength));
      return true;
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
            if (isBinary) {
              socket.close(CloseCode.BadRequest, 'Send text frames');
              return;
            }
            const text = (data as Buffer).toString('utf8');
            if (!refuseFlaw(text)) receive(text).catch(fail);
          });
        },
      },
      { connection },
    );
    socket.on('pong', () => (connection.lastHeardMs = Date.now()));
    // Malformed frames: ws answers with the protocol's close code by itself.
    socket.on('error', (error) => scope.logger.debug({ err: error }, 'WebSocket error'));
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
      await waitUntil(() => hooks.runningCount() === 0);
      for (const socket of connections.keys()) socket.close(1001, 'The server is closing: connect again');
      await waitUntil(() => connections.size === 0);
      for (const socket of connections.keys()) socket.terminate();
      server.close();
    },
  };
}
