// Errors as REST clients see them: problem documents of RFC 9457.
import type { ServerResponse } from 'node:http';
import type { DomainError, ErrorCode } from '../../shared/errors.js';
import type { HttpExchange } from '../../shared/http-exchange.js';
import { errorTable } from '../error-table.js';

/** What the answer says beside the problem, when the code alone does not decide it. */
interface HttpForm {
  status: number;
  headers?: Record<string, string>;
}

type ErrorWithForm = DomainError & { http?: HttpForm };

/** The same error, with a status (and headers) of its own on this wire: 405, 412, 415. */
export const withHttpForm = (error: DomainError, http: HttpForm): DomainError =>
  Object.assign<DomainError, Pick<ErrorWithForm, 'http'>>(error, { http });

/** Names the kind of problem for programs; it leads nowhere. */
const typeOf = (code: ErrorCode): string => `urn:problem-type:${code.toLowerCase().replaceAll('_', '-')}`;

const contentType = 'application/problem+json';

function detailHeaders({ details, http }: ErrorWithForm, status: number): Record<string, string> {
  const { currentVersion, retryAfterSeconds } = details;
  return {
    ...(status === 401 && { 'www-authenticate': 'Bearer realm="scratchpad"' }),
    ...(currentVersion !== undefined && { etag: `"${currentVersion}"` }),
    ...(retryAfterSeconds !== undefined && { 'retry-after': String(Math.ceil(retryAfterSeconds)) }),
    ...http?.headers,
  };
}

export function sendProblem(exchange: HttpExchange, error: ErrorWithForm, givenStatus?: number): void {
  const { code, message, details } = error;
  const { title, status: usualStatus } = errorTable[code];
  const status = givenStatus ?? error.http?.status ?? usualStatus;
  exchange.note({ outcome: code });
  const body = JSON.stringify({
    type: typeOf(code),
    title,
    status,
    detail: message,
    code,
    request_id: exchange.requestId,
    ...(details.issues && { issues: details.issues }),
    ...(details.currentVersion !== undefined && { current_version: details.currentVersion }),
    ...(details.retryAfterSeconds !== undefined && { retry_after_seconds: details.retryAfterSeconds }),
  });
  const response: ServerResponse = exchange.response;
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    ...detailHeaders(error, status),
  });
  response.end(exchange.request.method === 'HEAD' ? undefined : body);
}
