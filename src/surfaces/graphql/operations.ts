// Executes operations for whoever asks, the same way for every transport, and keeps track of the subscriptions that are open.
import type { ExecutionResult, GraphQLError } from 'graphql';
import type { Principal } from '../../identity/principal.js';
import type { DomainError } from '../../shared/errors.js';
import type { ErrorScope, TranslateError } from '../error-table.js';
import { domainToGraphqlError, presentResult, toGraphqlError } from './graphql-errors.js';
import type { OperationRequest, Pipeline, PreparedOperation } from './pipeline.js';
import type { ResultStream } from './shared-results.js';
import { openSubscription, type OpenSubscription } from './subscriptions.js';

/** The part of authentication that the transports need. */
export interface Authentication {
  /** For one operation. @throws DomainError UNAUTHENTICATED, RATE_LIMITED; at once or by the promise */
  authenticate(secret: string | undefined): Principal | Promise<Principal>;
  /** For a connection that asks nothing yet. @throws DomainError UNAUTHENTICATED */
  identify(secret: string | undefined): Promise<Principal>;
  /** Calls `onEnd` when the principal may no longer be served; returns the way to stop watching. */
  watch(principal: Principal, onEnd: (error: DomainError) => void): () => void;
}

export interface SubscriptionMetrics {
  /** @returns what to call, once, when the subscription ends */
  subscriptionOpened(transport: string): () => void;
  eventDelivered(transport: string): void;
}

/** Who asks, and on which transport. */
export interface Caller {
  principal: Principal;
  transport: 'http' | 'sse' | 'websocket';
  scope: ErrorScope;
}

export interface Operations {
  prepare(request: OperationRequest): PreparedOperation | { errors: readonly GraphQLError[] };
  /** Never throws for what an operation does: errors are in the result, fit for the client. */
  execute(operation: PreparedOperation, caller: Caller): Promise<ExecutionResult | OpenSubscription>;
  present(error: unknown, scope: ErrorScope): GraphQLError;
  /** Completes every open subscription, and from now on each that opens. */
  close(): void;
}

interface Dependencies {
  pipeline: Pipeline;
  authentication: Authentication;
  /** Called for each operation and for each event of a subscription. */
  createContext: (principal: Principal, requestId: string) => object;
  translateError: TranslateError;
  metrics: SubscriptionMetrics;
}

export const isSubscription = (result: ExecutionResult | OpenSubscription): result is OpenSubscription =>
  Symbol.asyncIterator in result;

export function createOperations(dependencies: Dependencies): Operations {
  const { pipeline, authentication, createContext, translateError, metrics } = dependencies;
  const open = new Set<OpenSubscription>();
  let closing = false;

  function guard(results: ResultStream, caller: Caller): OpenSubscription {
    const { principal, transport, scope } = caller;
    const countClosed = metrics.subscriptionOpened(transport);
    let stopWatching: (() => void) | undefined;
    const subscription = openSubscription({
      source: results,
      onClose() {
        open.delete(subscription);
        stopWatching?.();
        countClosed();
      },
      onDeliver: () => metrics.eventDelivered(transport),
      present: (result) => presentResult(result, scope, translateError),
      describeFailure: (error) => ({ errors: [toGraphqlError(error, scope, translateError)] }),
    });
    open.add(subscription);
    if (closing) subscription.end();
    else {
      stopWatching = authentication.watch(principal, (error) =>
        subscription.end({ errors: [domainToGraphqlError(error, scope.requestId)] }),
      );
      // It may have ended inside watch, before there was anything to stop.
      if (!open.has(subscription)) stopWatching();
    }
    return subscription;
  }

  return {
    prepare: (request) => pipeline.prepare(request),

    async execute(operation, caller) {
      const { principal, scope } = caller;
      try {
        const result = await pipeline.run(operation, () => createContext(principal, scope.requestId));
        if (!(Symbol.asyncIterator in result)) return presentResult(result, scope, translateError);
        return guard(result, caller);
      } catch (error) {
        return { errors: [toGraphqlError(error, scope, translateError)] };
      }
    },

    present: (error, scope) => toGraphqlError(error, scope, translateError),

    close() {
      closing = true;
      for (const subscription of open) subscription.end();
    },
  };
}
