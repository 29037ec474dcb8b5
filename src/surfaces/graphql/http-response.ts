// How a result looks over HTTP: its media type, its status, its headers, as the GraphQL-over-HTTP specification says.
import type { ServerResponse } from 'node:http';
import type { ExecutionResult, GraphQLError } from 'graphql';
import { errorTable } from '../error-table.js';
import { stringify } from './answer-text.js';

export const eventStreamType = 'text/event-stream';
export const responseType = 'application/graphql-response+json';
export const jsonType = 'application/json';
export type MediaType = typeof eventStreamType | typeof responseType | typeof jsonType;

/** In the order of preference among what a client likes equally; a client that likes anything gets plain JSON. */
const offers: readonly MediaType[] = [jsonType, responseType, eventStreamType];

const covers = (range: string, type: MediaType): boolean =>
  range === type || range === '*/*' || (range.endsWith('/*') && type.startsWith(range.slice(0, -1)));

const precision = (range: string): number => (range === '*/*' ? 0 : range.endsWith('/*') ? 1 : 2);

function qualityOf(type: MediaType, accept: string): number {
  let best = { precision: -1, quality: 0 };
  for (const item of accept.toLowerCase().split(',')) {
    const [range = '', ...parameters] = item.split(';').map((part) => part.trim());
    if (!covers(range, type) || precision(range) <= best.precision) continue;
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    const quality = weight === undefined ? 1 : Number(weight.slice(2));
    best = { precision: precision(range), quality: Number.isFinite(quality) ? quality : 0 };
  }
  return best.quality;
}

/** The media type to answer in, or undefined when the client accepts none of ours. */
export function negotiate(accept: string | undefined): MediaType | undefined {
  if (accept === undefined || accept.trim() === '' || accept.trim() === '*/*') return jsonType;
  let chosen: { type: MediaType; quality: number } | undefined;
  for (const type of offers) {
    // A stream is sent to those who ask for one by name only.
    if (type === eventStreamType && !accept.toLowerCase().includes(eventStreamType)) continue;
    const quality = qualityOf(type, accept);
    if (quality > (chosen?.quality ?? 0)) chosen = { type, quality };
  }
  return chosen?.type;
}

interface HttpExtension {
  status: number;
  headers?: Record<string, string>;
}

const httpOf = (error: GraphQLError): HttpExtension | undefined => error.extensions.http as HttpExtension | undefined;

const wholeAnswerStatuses = new Map<unknown, number>(
  [errorTable.UNAUTHENTICATED, errorTable.RATE_LIMITED, errorTable.UNAVAILABLE, errorTable.INTERNAL].map((form) => [
    form.graphqlCode,
    form.status,
  ]),
);

function statusOf(result: ExecutionResult, type: MediaType): number {
  const errors = result.errors ?? [];
  const refused = errors.map(httpOf).find((http) => http !== undefined);
  if (refused) return refused.status;
  const nothing = result.data == null;
  if (nothing && errors.some(({ extensions }) => extensions.code === errorTable.UNAUTHENTICATED.graphqlCode))
    return 401;
  // The older media type promises 200 for every request that was understood.
  if (type === jsonType || 'data' in result || errors.length === 0) return 200;
  const statuses = errors.map(({ extensions }) => wholeAnswerStatuses.get(extensions.code) ?? 400);
  return Math.max(...statuses);
}

/** As it goes over the wire: without what only this file needs to know. */
export function serializeResult(result: ExecutionResult): ReturnType<typeof stringify> {
  if (result.errors === undefined) return stringify(result);
  const errors = result.errors.map((error) => {
    const { extensions, ...rest } = error.toJSON();
    const { http: _http, ...visible } = extensions ?? {};
    return Object.keys(visible).length > 0 ? { ...rest, extensions: visible } : rest;
  });
  // Errors first: a person reading a long answer sees them.
  return stringify({ errors, ...('data' in result && { data: result.data }) });
}

export function sendResult(response: ServerResponse, result: ExecutionResult, type: MediaType): void {
  const status = statusOf(result, type);
  for (const error of result.errors ?? []) {
    for (const [name, value] of Object.entries(httpOf(error)?.headers ?? {})) response.setHeader(name, value);
    const { retryAfterSeconds } = error.extensions;
    if (typeof retryAfterSeconds === 'number') response.setHeader('retry-after', String(Math.ceil(retryAfterSeconds)));
  }
  if (status === 401) response.setHeader('www-authenticate', 'Bearer realm="scratchpad"');
  const { json, byteLength } = serializeResult(result);
  response.writeHead(status, {
    'content-type': `${type === eventStreamType ? jsonType : type}; charset=utf-8`,
    'content-length': byteLength,
    'cache-control': 'no-store',
  });
  // Text, not bytes: Node puts it behind the head, and both leave in one piece.
  // Where every character is a byte, Node need not look at each.
  response.end(json, byteLength === json.length ? 'latin1' : 'utf8');
}
