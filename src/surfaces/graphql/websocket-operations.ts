// What the operations of WebSockets go through: the key, the limits, the pipeline, and the pace of the socket that they run on.
import { OperationTypeNode, type ExecutionArgs, type ExecutionResult, type GraphQLError } from 'graphql';
import { CloseCode, type Context } from 'graphql-ws';
import { DomainError, invalidInput } from '../../shared/errors.js';
import type { Logger } from '../../shared/logger.js';
import { onlySecret, secretFromHeaders, secretFromParameters } from '../credentials.js';
import { errorScope, presentError, type ErrorScope, type TranslateError } from '../error-table.js';
import type { JsonFlaw } from '../strict-json.js';
import { outcomeOf } from './graphql-errors.js';
import { isSubscription, type Authentication, type Caller, type Operations } from './operations.js';
import type { PacedSocket } from './paced-socket.js';
import type { PreparedOperation } from './pipeline.js';
import { createSharedFrames } from './shared-frames.js';
import { WebSocketSeat, type SeatService } from './websocket-seat.js';

export interface OperationObservation {
  surface: string;
  outcome: string;
  seconds?: number;
}

export interface WebSocketOperationsDependencies {
  operations: Operations;
  authentication: Authentication;
  translateError: TranslateError;
  metrics: { requestFinished(observation: OperationObservation): void; eventDelivered(transport: string): void };
  /** Operations that run on one socket at a time. */
  maxOperations: number;
  logger: Logger;
}

/** What one socket knows beside the protocol's own state. */
export interface Connection {
  scope: ErrorScope;
  /** Of the upgrade: clients that are no browsers authenticate there. Empty once they have. */
  rawHeaders: readonly string[];
  paced: PacedSocket;
  /** Set by connection_init. */
  secret?: string | undefined;
  /** Of the message that is being received. */
  flaw?: JsonFlaw | undefined;
  operationCount: number;
  lastHeardMs: number;
}

export type Extra = { connection: Connection };
type ProtocolContext = Context<Record<string, unknown>, Extra>;

/** Rides through graphql-ws in the place of a context: what is to be executed, and for whom. */
interface Job {
  id: string;
  prepared: PreparedOperation;
  caller: Caller;
  connection: Connection;
}

const surfaceName = 'graphql-ws';
/** The protocol allows 123 bytes. */
export const maxReasonLength = 120;

const longestOperationId = 256;

/** Clients give up at 4401 and 4403 and come back after 1013. */
const closeCodes: Partial<Record<DomainError['code'], number>> = {
  UNAUTHENTICATED: CloseCode.Unauthorized,
  FORBIDDEN: CloseCode.Forbidden,
  UNAVAILABLE: 1013,
};

/** The hooks that graphql-ws calls, and the number of operations that run now on all sockets. */
export function createWebSocketOperations(dependencies: WebSocketOperationsDependencies) {
  const { operations, authentication, translateError, metrics, maxOperations, logger } = dependencies;
  const seatService: SeatService = {
    frames: createSharedFrames(),
    onDeliver: () => metrics.eventDelivered('websocket'),
  };
  let running = 0;

  async function onConnect({ connectionParams, extra: { connection } }: ProtocolContext): Promise<boolean> {
    try {
      connection.secret = onlySecret(secretFromParameters(connectionParams), secretFromHeaders(connection.rawHeaders));
      connection.rawHeaders = [];
      await authentication.identify(connection.secret);
      return true;
    } catch (error) {
      const { code, message } = presentError(error, connection.scope, translateError);
      connection.paced.close(closeCodes[code] ?? CloseCode.InternalServerError, message.slice(0, maxReasonLength));
      return false;
    }
  }

  function finish(
    prepared: PreparedOperation | undefined,
    scope: ErrorScope,
    startedAt: number,
    outcome: string,
  ): void {
    const seconds = (performance.now() - startedAt) / 1000;
    const { operation } = prepared ?? {};
    const isStream = operation?.operation === OperationTypeNode.SUBSCRIPTION;
    metrics.requestFinished({ surface: surfaceName, outcome, ...(!isStream && { seconds }) });
    const names = { operation: operation?.operation, operationName: operation?.name?.value };
    const durationMs = Math.round(seconds * 1e6) / 1e3;
    scope.logger.info({ surface: surfaceName, ...names, outcome, durationMs }, 'operation');
  }

  async function onSubscribe(
    { extra: { connection }, subscriptions }: ProtocolContext,
    id: string,
    payload: { query: string; variables?: Record<string, unknown> | null; operationName?: string | null },
  ): Promise<ExecutionArgs | GraphQLError[]> {
    const startedAt = performance.now();
    const { flaw } = connection;
    connection.operationCount += 1;
    const scope = errorScope(`${connection.scope.requestId}.${connection.operationCount}`, logger);
    const refuse = (errors: readonly GraphQLError[]): GraphQLError[] => {
      finish(undefined, scope, startedAt, outcomeOf({ errors }));
      return [...errors];
    };
    try {
      if (Object.keys(subscriptions).length > maxOperations) {
        const message = `${maxOperations} operations run on this socket already: end one, or open another socket.`;
        throw new DomainError('LIMIT_EXCEEDED', message);
      }
      if (id.length > longestOperationId) {
        // It comes again with every event.
        throw new DomainError('LIMIT_EXCEEDED', `The id of an operation has at most ${longestOperationId} characters.`);
      }
      if (flaw) throw invalidInput(`The message ${flaw.message}`);
      // The key may have been revoked since the connection began.
      const principal = await authentication.authenticate(connection.secret);
      const prepared = operations.prepare(payload);
      if ('errors' in prepared) return refuse(prepared.errors);
      // graphql-ws keeps the message for as long as the operation runs, and the text is not used any more.
      payload.query = '';
      const caller: Caller = { principal, transport: 'websocket', scope };
      const job: Job = { id, prepared, caller, connection };
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
    const { id, prepared, caller, connection } = contextValue as Job;
    const startedAt = performance.now();
    running += 1;
    const seat = new WebSocketSeat(connection.paced, id, seatService);
    let isOver = false;
    const over = () => {
      if (isOver) return;
      isOver = true;
      running -= 1;
      finish(prepared, caller.scope, startedAt, seat.outcome);
    };
    const result = await operations.execute(prepared, caller);
    if (!isSubscription(result)) {
      await connection.paced.turn();
      seat.outcome = outcomeOf(result);
      over();
      return result;
    }
    result.divert?.(seat);
    const paced: AsyncIterableIterator<ExecutionResult> = {
      async next() {
        // What a slow client leaves is to wait at the source, where it is bounded, not here.
        await connection.paced.drained();
        const step = await result.next();
        if (step.done) {
          over();
          return step;
        }
        await connection.paced.turn();
        seat.outcome = outcomeOf(step.value);
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

  return { onConnect, onSubscribe, execute, runningCount: () => running };
}
