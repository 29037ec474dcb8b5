// The one error of a provider: what a client may read of it, and what only the log may.
import { APIConnectionTimeoutError, APIError } from 'openai';

/** PROVIDER_ERROR: it failed. PROVIDER_PROTOCOL: it answered, with something that is no completion. */
export type ProviderErrorCode = 'PROVIDER_ERROR' | 'PROVIDER_PROTOCOL';

/**
 * `message` holds no host, no header and no text of the provider, which may echo a key; `detail` is what the provider said, shortened and
 * with the key blacked out, for the log. There is no `cause`: the package's own errors carry headers and bodies.
 */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';

  constructor(
    readonly code: ProviderErrorCode,
    message: string,
    readonly detail?: string,
    readonly status?: number,
  ) {
    super(message);
  }
}

const maxDetailLength = 500;

/** Whether another try may help, and when the provider wants to be asked again (undefined: it does not say). */
export interface ProviderFailure {
  error: ProviderError;
  retryable: boolean;
  retryAfterMs?: number;
}

/** How long the header asks to wait: seconds or a date. */
function parseRetryAfter(header: string | null | undefined, now: number): number | undefined {
  if (!header) return undefined;
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Math.ceil(Number(header) * 1000);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function describe(error: APIError): string {
  if (error instanceof APIConnectionTimeoutError) return 'The model provider did not begin to answer in time.';
  if (error.status === undefined) {
    return error.headers === undefined && error.error === undefined
      ? 'The model provider could not be reached.'
      : 'The model provider reported an error in the middle of its answer.';
  }
  if (error.status === 401 || error.status === 403) {
    return `The model provider refused the credentials it was given (HTTP ${error.status}).`;
  }
  if (error.status >= 300 && error.status < 400) {
    return `The model provider redirects to another address, which is not followed (HTTP ${error.status}).`;
  }
  if (error.status === 429) return 'The model provider is over its rate limit or quota (HTTP 429).';
  return `The model provider refused the request or failed (HTTP ${error.status}).`;
}

/** Translates whatever the package or the transport threw. `secrets` never come out of here. */
export function toProviderFailure(thrown: unknown, secrets: readonly string[], now: number): ProviderFailure {
  if (thrown instanceof ProviderError) return { error: thrown, retryable: false };
  const detail = redact(describeForLog(thrown), secrets).slice(0, maxDetailLength);
  if (thrown instanceof APIError) {
    const status: number | undefined = thrown.status;
    const retryable = status === undefined || status === 408 || status === 429 || status >= 500;
    const retryAfterMs = parseRetryAfter(thrown.headers?.get('retry-after'), now);
    return { error: new ProviderError('PROVIDER_ERROR', describe(thrown), detail, status), retryable, retryAfterMs };
  }
  if (thrown instanceof SyntaxError) {
    const message = 'The model provider sent something that is not JSON.';
    return { error: new ProviderError('PROVIDER_PROTOCOL', message, detail), retryable: false };
  }
  const message = 'The connection to the model provider broke off.';
  return { error: new ProviderError('PROVIDER_ERROR', message, detail), retryable: true };
}

function describeForLog(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const cause = thrown.cause === undefined ? '' : ` (${describeForLog(thrown.cause)})`;
  return `${thrown.name}: ${thrown.message}${cause}`;
}

/** Cuts every secret out of a text. */
export function redact(text: string, secrets: readonly string[]): string {
  return secrets.reduce((clean, secret) => (secret === '' ? clean : clean.replaceAll(secret, '[secret]')), text);
}
