// The only place that knows how an error code looks on each wire, and what of an error may leave the server.
import { DomainError, type ErrorCode } from '../shared/errors.js';
import type { Logger } from '../shared/logger.js';

export interface WireForm {
  /** extensions.code of a GraphQL error. */
  graphqlCode: string;
  /** HTTP status where one error is the whole answer. */
  status: number;
  /** Short, for a person; the same for every error of this code. */
  title: string;
}

export const errorTable = {
  INVALID_INPUT: { graphqlCode: 'BAD_USER_INPUT', status: 422, title: 'Invalid input' },
  UNAUTHENTICATED: { graphqlCode: 'UNAUTHENTICATED', status: 401, title: 'Not authenticated' },
  FORBIDDEN: { graphqlCode: 'FORBIDDEN', status: 403, title: 'Not allowed' },
  NOT_FOUND: { graphqlCode: 'NOT_FOUND', status: 404, title: 'Not found' },
  CONFLICT: { graphqlCode: 'CONFLICT', status: 409, title: 'Conflict' },
  LIMIT_EXCEEDED: { graphqlCode: 'LIMIT_EXCEEDED', status: 413, title: 'Limit exceeded' },
  RATE_LIMITED: { graphqlCode: 'RATE_LIMITED', status: 429, title: 'Too many requests' },
  UNAVAILABLE: { graphqlCode: 'UNAVAILABLE', status: 503, title: 'Temporarily unavailable' },
  // Ends a subscription, which has no status left to give; the figure is there for the type only.
  SUBSCRIBER_TOO_SLOW: { graphqlCode: 'SUBSCRIBER_TOO_SLOW', status: 503, title: 'Subscriber too slow' },
  INTERNAL: { graphqlCode: 'INTERNAL', status: 500, title: 'Internal error' },
} as const satisfies Record<ErrorCode, WireForm>;

/** Whose request it is: what a masked error refers to, and where its cause is logged. */
export interface ErrorScope {
  requestId: string;
  logger: Logger;
}

interface LazyScope extends ErrorScope {
  readonly parent: Logger;
}

// On a prototype: an accessor in an object literal makes every such object a dictionary.
const lazyLogger: Pick<ErrorScope, 'logger'> & ThisType<LazyScope> = {
  get logger() {
    return this.parent.child({ requestId: this.requestId });
  },
};

/** A scope whose logger is made when there is something to log: one each for all that is open would be much of what it costs. */
export const errorScope = (requestId: string, parent: Logger): ErrorScope =>
  Object.assign(Object.create(lazyLogger) as ErrorScope, { requestId, parent });

/** Turns what a store throws into a DomainError, and leaves everything else as it is. */
export type TranslateError = (error: unknown) => unknown;

const internalError = (requestId: string): DomainError =>
  new DomainError('INTERNAL', `Something went wrong on the server. Report the request id ${requestId}.`);

/**
 * What a client may know of an error. A DomainError stays what it is; anything else is a bug: its cause is logged
 * and INTERNAL with the request id is left of it.
 */
export function presentError(error: unknown, scope: ErrorScope, translate: TranslateError): DomainError {
  const translated = translate(error);
  if (translated instanceof DomainError) {
    if (translated.code === 'UNAVAILABLE') {
      scope.logger.warn({ err: translated.cause ?? translated }, 'a store does not answer');
    }
    if (translated.code !== 'INTERNAL') return translated;
  }
  scope.logger.error({ err: translated }, 'unexpected error');
  return internalError(scope.requestId);
}

/** What stands beside the message on every wire: the details of the error, and for INTERNAL the request id. */
export const publicDetails = (error: DomainError, requestId: string): Record<string, unknown> => ({
  ...error.details,
  ...(error.code === 'INTERNAL' && { requestId }),
});
