// The one kind of error that the domain throws. How a code looks on a wire is decided in surfaces/error-table.ts alone.
import type { z } from 'zod';
import { shorten } from './text.js';

/** Everything that can go wrong by contract. What is not one of these is a bug: it is logged and masked. */
export type ErrorCode =
  | 'INVALID_INPUT'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'CONFLICT'
  | 'LIMIT_EXCEEDED'
  | 'RATE_LIMITED'
  | 'UNAVAILABLE'
  | 'SUBSCRIBER_TOO_SLOW'
  | 'INTERNAL';

/** One mistake in an input: where it is and what to do about it. */
export interface InputIssue {
  path: (string | number)[];
  message: string;
}

/** What a client may read beside the code and the message. */
export interface ErrorDetails {
  /** INVALID_INPUT: every mistake that was found. */
  issues?: InputIssue[];
  /** CONFLICT of a compare-and-set: the version that is current now. */
  currentVersion?: string;
  /** RATE_LIMITED: when to come back, in seconds. */
  retryAfterSeconds?: number;
  /** SUBSCRIBER_TOO_SLOW: the last cursor that was delivered; resume from it. */
  lastCursor?: string;
}

/** An error that the caller is meant to read: `message` says what to do, `cause` is for the log only. */
export class DomainError extends Error {
  override readonly name = 'DomainError';

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details: ErrorDetails = {},
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/**
 * The one answer for a thing that does not exist, belongs to another tenant, or is an id of another kind.
 * It names no id, so that the three are the same to the byte.
 */
export const notFound = (): DomainError =>
  new DomainError('NOT_FOUND', 'Nothing with this id exists here. Check the id and the API key that you use.');

export const unauthenticated = (): DomainError =>
  new DomainError(
    'UNAUTHENTICATED',
    'This needs a valid API key or agent token: send it as "Authorization: Bearer <key>" or "X-API-Key: <key>".',
  );

/** `store` is "SQL" or "Redis": enough for an operator, nothing about hosts. */
export const unavailable = (store: 'SQL' | 'Redis', cause?: unknown): DomainError =>
  new DomainError(
    'UNAVAILABLE',
    `${store} does not answer at the moment. Try again; a retry with the same idempotency key is safe.`,
    {},
    { cause },
  );

export const invalidInput = (message: string, issues?: InputIssue[]): DomainError =>
  new DomainError('INVALID_INPUT', message, { issues: issues ?? [{ path: [], message }] });

/** What a person can mend at once. */
const mostIssues = 50;

/** The mistakes that a schema found, as one error. */
export function invalidInputFrom(error: z.core.$ZodError): DomainError {
  const issues = error.issues.slice(0, mostIssues).map((issue) => ({
    path: issue.path.map((part) => (typeof part === 'number' ? part : shorten(String(part)))),
    message: shorten(issue.message),
  }));
  const summary = issues.map(({ path, message }) => (path.length > 0 ? `${path.join('.')}: ${message}` : message));
  return invalidInput(shorten(summary.join('; ')), issues);
}

/** Checks `value` against `schema`; every mistake is reported at once. @throws DomainError INVALID_INPUT */
export function parseInput<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw invalidInputFrom(result.error);
}
