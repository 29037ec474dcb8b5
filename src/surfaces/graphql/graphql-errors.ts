// From whatever was thrown to the GraphQL error that a client may read.
import { GraphQLError, type ExecutionResult } from 'graphql';
import type { DomainError } from '../../shared/errors.js';
import { shorten } from '../../shared/text.js';
import { withinAnswerSize } from './answer-size.js';
import { errorTable, presentError, publicDetails, type ErrorScope, type TranslateError } from '../error-table.js';

/** The extensions' codes of documents that are refused before anything is executed. */
export const parseFailed = 'GRAPHQL_PARSE_FAILED';
export const validationFailed = 'GRAPHQL_VALIDATION_FAILED';

/** Strips the wrappers that say where in the document an error happened. */
function rootCause(error: unknown): unknown {
  let cause = error;
  while (cause instanceof GraphQLError && cause.originalError !== undefined) cause = cause.originalError;
  return cause;
}

const place = (error: unknown) =>
  error instanceof GraphQLError
    ? { nodes: error.nodes, source: error.source, positions: error.positions, path: error.path }
    : {};

/** An error of the domain, with where it happened if `thrown` knows. */
export const domainToGraphqlError = (error: DomainError, requestId: string, thrown?: unknown): GraphQLError =>
  new GraphQLError(error.message, {
    ...place(thrown),
    extensions: { code: errorTable[error.code].graphqlCode, ...publicDetails(error, requestId) },
  });

/** GraphQL.js says where in a variable the mistake is, but in words alone: `Variable "$input" got invalid value 1 at "input.list[0]"; …`. */
function pathOf(message: string): (string | number)[] {
  const variable = /^Variable "\$(\w+)" /.exec(message)?.[1];
  if (variable === undefined) return [];
  const place = / at "(\w+(?:\.\w+|\[\d+\])+)"; /.exec(message)?.[1] ?? variable;
  return (place.match(/\w+/g) ?? []).map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

/** GraphQL's own complaints (a variable of the wrong type) are meant for the client and only lack a code and the list of issues. */
export function toGraphqlError(thrown: unknown, scope: ErrorScope, translate: TranslateError): GraphQLError {
  const cause = rootCause(thrown);
  if (!(cause instanceof GraphQLError)) {
    return domainToGraphqlError(presentError(cause, scope, translate), scope.requestId, thrown);
  }
  if (thrown === cause && cause.extensions.code !== undefined) return cause;
  const message = shorten(cause.message);
  const path = thrown instanceof GraphQLError ? pathOf(thrown.message) : [];
  return new GraphQLError(message, {
    ...place(thrown),
    extensions: { code: errorTable.INVALID_INPUT.graphqlCode, issues: [{ path, message }], ...cause.extensions },
  });
}

/** The same result with every error fit for the client, and no larger than an answer may be. */
export const presentResult = (
  result: ExecutionResult,
  scope: ErrorScope,
  translate: TranslateError,
): ExecutionResult =>
  result.errors === undefined
    ? withinAnswerSize(result)
    : { ...withinAnswerSize(result), errors: result.errors.map((error) => toGraphqlError(error, scope, translate)) };

/** What metrics call the outcome of `result`. */
export function outcomeOf(result: ExecutionResult): string {
  const code = result.errors?.[0]?.extensions.code;
  return result.errors === undefined ? 'OK' : typeof code === 'string' ? code : 'INTERNAL';
}
