// The one kind of error that the client throws, and which of its causes pass by themselves.

/** The server's codes as they are on the wire, and behind them those that only a client can notice. A newer server may know more. */
export type ErrorCode =
  | 'BAD_USER_INPUT'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'CONFLICT'
  | 'LIMIT_EXCEEDED'
  | 'RATE_LIMITED'
  | 'UNAVAILABLE'
  | 'SUBSCRIBER_TOO_SLOW'
  | 'INTERNAL'
  | 'GRAPHQL_PARSE_FAILED'
  | 'GRAPHQL_VALIDATION_FAILED'
  /** No server answers, the connection broke, or something else answered. A write may have been performed. */
  | 'CONNECTION_FAILED'
  /** No answer in time. A write may have been performed. */
  | 'TIMEOUT'
  /** By the signal of the call; `cause` is its reason. */
  | 'ABORTED';

/** One mistake in an input: where it is and what to do about it. */
export interface InputIssue {
  path: (string | number)[];
  message: string;
}

/** One error as the server sends it. */
export interface GraphqlFailure {
  message: string;
  path?: (string | number)[];
  extensions?: { code?: string; [detail: string]: unknown };
}

export interface ErrorDetails {
  /** Of the answer; undefined when there was none. */
  status?: number | undefined;
  requestId?: string | undefined;
  retryAfterMs?: number | undefined;
  /** Every error of the answer; code and extensions are those of the first one. */
  failures?: readonly GraphqlFailure[] | undefined;
}

/** What a call failed with. `code` is for programs, `message` says what to do. */
export class ScratchpadError extends Error {
  override readonly name = 'ScratchpadError';
  readonly status: number | undefined;
  /** For whoever operates the server: its log has the same. */
  readonly requestId: string | undefined;
  /** When to come back, if the server said so. */
  readonly retryAfterMs: number | undefined;
  /** BAD_USER_INPUT: every mistake that was found. Empty for other codes. */
  readonly issues: readonly InputIssue[];
  /** CONFLICT of a write with expectedVersion: the version that is current. */
  readonly currentVersion: string | undefined;
  /** Everything that the server said beside the message. */
  readonly extensions: Readonly<Record<string, unknown>>;
  readonly failures: readonly GraphqlFailure[];

  constructor(
    readonly code: ErrorCode,
    message: string,
    { status, requestId, retryAfterMs, failures = [] }: ErrorDetails = {},
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.status = status;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
    this.failures = failures;
    this.extensions = failures[0]?.extensions ?? {};
    const { issues, currentVersion } = this.extensions;
    this.issues = Array.isArray(issues) ? (issues as InputIssue[]) : [];
    this.currentVersion = typeof currentVersion === 'string' ? currentVersion : undefined;
  }
}

export const aborted = (signal: AbortSignal): ScratchpadError =>
  new ScratchpadError('ABORTED', 'The call was aborted by its signal.', {}, { cause: signal.reason });

/** An address where something else answers stays one: only what a server or a gateway in trouble says passes. */
const isElsewhere = ({ code, status = 0 }: ScratchpadError): boolean =>
  code === 'CONNECTION_FAILED' && status >= 300 && status < 500 && status !== 408;

const passingCodes = new Set<ErrorCode>(['CONNECTION_FAILED', 'TIMEOUT', 'UNAVAILABLE', 'RATE_LIMITED']);

/** Whether the same operation may succeed later. */
export const mayPass = (error: unknown): error is ScratchpadError =>
  error instanceof ScratchpadError && passingCodes.has(error.code) && !isElsewhere(error);

/**
 * Whether a subscription is worth opening again. One that was open before is patient with more: a proxy says odd things while the
 * server behind it is replaced.
 */
export const mayResume = (error: unknown, wasOpen: boolean): error is ScratchpadError =>
  mayPass(error) ||
  (error instanceof ScratchpadError &&
    (error.code === 'SUBSCRIBER_TOO_SLOW' ||
      error.code === 'INTERNAL' ||
      (wasOpen && error.code === 'CONNECTION_FAILED')));
