// What the operations of WebSockets go through: the key, the limits, the pipeline, and the pace of the socket that they run on.
import { OperationTypeNode, type ExecutionArgs, type ExecutionResult, type GraphQLError } from 'graphql';
import { CloseCode, type Context } from 'graphql-ws';
import { DomainError, invalidInput } from '../../shared/errors.js';
import type { Logger } from '../../shared/logger.js';
import { secretFromHeaders, secretFromParameters } from '../credentials.js';
import { presentError, type ErrorScope, type TranslateError } from '../error-table.js';
import type { JsonFlaw } from '../strict-json.js';
import { outcomeOf } from './graphql-errors.js';
import { isSubscription, type Authentication, type Caller, type Operations } from './operations.js';
import type { PacedSocket } from './paced-socket.js';
import type { PreparedOperation } from './pipeline.js';

export interface OperationObservation {
  surface: string;
  outcome: string;
  seconds?: number;
}

export interface WebSocketOperationsDependencies {
  operations: Operations;
  authentication: Authentication;
  translateError: TranslateError;
  metrics: { requestFinished(observation: OperationObservation): void };
  /** Operations that run on one socket at a time. */
  maxOperations: number;
  logger: Logger;
}

/** What one socket knows beside the protocol's own state. */
export interface Connection extends ErrorScope {
  /** Of the upgrade: clients that are no browsers authenticate there. */
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
  prepared: PreparedOperation;
  caller: Caller;
  connection: Connection;
}

const surfaceName = 'graphql-ws';
/** The protocol allows 123 bytes. */
export const maxReasonLength = 120;

/** Clients give up at 4401 and 4403 and come back after 1013. */
const closeCodes: Partial<Record<DomainError['code'], number>> = {
  UNAUTHENTICATED: CloseCode.Unauthorized,
  FORBIDDEN: CloseCode.Forbidden,
  UNAVAILABLE: 1013,
};

/** The hooks that graphql-ws calls, and the number of operations that run now on all sockets. */
export function createWebSocketOperations(dependencies: WebSocketOperationsDependencies) {
  const { operations, authentication, translateError, metrics, maxOperations, logger } = dependencies;
  let running = 0;

  async function onConnect({ connectionParams, extra: { connection } }: ProtocolContext): Promise<boolean> {
    try {
      connection.secret = secretFromParameters(connectionParams) ?? secretFromHeaders(connection.rawHeaders);
      await authentication.identify(connection.secret);
      return true;
    } catch (error) {
      const { code, message } = presentError(error, connection, translateError);
      connection.paced.close(closeCodes[code] ?? CloseCode.InternalServerError, message.slice(0, maxReasonLength));
      return false;
    }
  }

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
    const { flaw } = connection;
    connection.operationCount += 1;
    const requestId = `${connection.requestId}.${connection.operationCount}`;
    const scope = { requestId, logger: logger.child({ requestId }) };
    const refuse = (errors: readonly GraphQLError[]): GraphQLError[] => {
      finish(undefined, scope, startedAt, outcomeOf({ errors }));
      return [...errors];
    };
    try {
      if (Object.keys(subscriptions).length > maxOperations) {
        const message = `${maxOperations} operations run on this socket already: end one, or open another socket.`;
        throw new DomainError('LIMIT_EXCEEDED', message);
      }
      if (flaw) throw invalidInput(`The message ${flaw.message}`);
      // The key may have been revoked since the connection began.
      const principal = await authentication.authenticate(connection.secret);
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

  return { onConnect, onSubscribe, execute, runningCount: () => running };
}
