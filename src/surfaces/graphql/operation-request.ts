// From an HTTP request to the operation that it asks for: what the GraphQL-over-HTTP specification allows, and nothing that a page
// of a foreign origin could send without being asked first (forms, plain text).
import { GraphQLError } from 'graphql';
import type { HttpExchange } from '../../shared/http-exchange.js';
import { errorTable } from '../error-table.js';
import { parseJson, parseJsonBody } from '../strict-json.js';
import type { OperationRequest } from './pipeline.js';

/** The request is refused as such: `status` is sent whatever the client accepts. */
export const refusal = (status: number, message: string, headers: Record<string, string> = {}): GraphQLError =>
  new GraphQLError(message, {
    extensions: {
      code: errorTable.INVALID_INPUT.graphqlCode,
      issues: [{ path: [], message }],
      http: { status, headers },
    },
  });

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function checkParameters(parameters: Record<string, unknown>): OperationRequest {
  const { query, variables, operationName, extensions } = parameters;
  if (typeof query !== 'string' || query === '') {
    throw refusal(400, 'Send a GraphQL document as the string "query".');
  }
  if (variables != null && !isObject(variables)) throw refusal(400, '"variables" must be a JSON object.');
  if (operationName != null && typeof operationName !== 'string')
    throw refusal(400, '"operationName" must be a string.');
  if (extensions != null && !isObject(extensions)) throw refusal(400, '"extensions" must be a JSON object.');
  return {
    query,
    variables: variables ?? null,
    // Forms of some clients send it empty for "none".
    operationName: operationName === '' ? null : (operationName ?? null),
  };
}

function requireJson(parsed: ReturnType<typeof parseJson>): unknown {
  if ('problem' in parsed) throw refusal(400, parsed.problem);
  return parsed.value;
}

function readSearchParameters(searchParams: URLSearchParams): OperationRequest {
  for (const name of ['query', 'variables', 'operationName', 'extensions']) {
    if (searchParams.getAll(name).length > 1) throw refusal(400, `"${name}" must not be given twice.`);
  }
  const json = (name: string): unknown => {
    const text = searchParams.get(name);
    return text === null || text === '' ? null : requireJson(parseJson(text, `"${name}"`));
  };
  return checkParameters({
    query: searchParams.get('query'),
    variables: json('variables'),
    operationName: searchParams.get('operationName'),
    extensions: json('extensions'),
  });
}

const contentTypeRefusal = () => refusal(415, 'Send the operation as JSON with "Content-Type: application/json".');

function checkContentType(contentType: string | undefined): void {
  const [type, ...parameters] = (contentType ?? '').toLowerCase().split(';');
  if (type?.trim() !== 'application/json') throw contentTypeRefusal();
  const charset = parameters.map((parameter) => parameter.trim()).find((parameter) => parameter.startsWith('charset='));
  if (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset)) {
    throw refusal(415, 'JSON travels as UTF-8: send "Content-Type: application/json; charset=utf-8".');
  }
}

/** What can be refused by the headers alone, before anybody is authenticated and before the body is read. */
export function checkRequestHead({ request }: HttpExchange): void {
  const { method, headers } = request;
  if (method === 'GET') return;
  if (method !== 'POST') {
    throw refusal(405, 'Send operations with POST, or queries with GET.', { allow: 'GET, POST, OPTIONS' });
  }
  checkContentType(headers['content-type']);
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw refusal(415, 'Compressed bodies are not read: send the JSON as it is.');
  }
}

/** @throws GraphQLError with the status to refuse with; DomainError LIMIT_EXCEEDED; any other error: the client went away */
export async function readOperationRequest(exchange: HttpExchange): Promise<OperationRequest> {
  if (exchange.request.method === 'GET') return readSearchParameters(exchange.searchParams);
  const parameters = requireJson(parseJsonBody(await exchange.readBody()));
  if (Array.isArray(parameters)) throw refusal(400, 'Batches are not supported: send one operation in each request.');
  if (!isObject(parameters)) throw refusal(400, 'The body must be a JSON object with a "query".');
  return checkParameters(parameters);
}
