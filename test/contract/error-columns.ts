// The doors through which an error can be raised: what one attempt looks like at each of them, and how its failure reads there.
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { WebSocket, type RawData } from 'ws';
import type { ErrorCode } from '../../src/shared/errors.js';
import { errorTable } from '../../src/surfaces/error-table.js';
import { createGraphqlClient } from '../support/graphql-client.js';
import { createToken } from '../support/operations.js';
import { bearer, wires, type WireAnswer, type WireName, type WireResult } from '../support/wire.js';

/** Something that a client tries to do, said without any surface. */
export type Attempt =
  | { to: 'read'; scratchpadId: string }
  | { to: 'append'; scratchpadId: string; content: string; idempotencyKey?: string }
  | { to: 'set content'; scratchpadId: string; text: string; expectedVersion?: string }
  | { to: 'create user'; name: string }
  | { to: 'subscribe'; scratchpadId: string; after?: string };

/** An error as a client sees it. */
export interface Raised {
  code: ErrorCode;
  message: string;
  /** What stands beside the two. */
  details: Record<string, unknown>;
  /** Everything that came over the wire, but where in the document it happened. */
  bytes: string;
}

export interface SlowReading {
  /** The cursors of the events that came before the end. */
  cursors: string[];
  raised: Raised;
}

/** One surface over one transport. A later one (MCP, the client) is a further column. */
export interface Column {
  name: string;
  /** Makes the secret that this surface wants out of a tenant's, while everything still works. */
  prepare?(this: void, url: string, secret: string, scratchpadId: string): Promise<string>;
  /** @returns undefined when this column has no such operation */
  attempt(url: string, secret: string, attempt: Attempt): Promise<Raised | undefined>;
  /** Subscribes, stops reading while `flood` runs, and then reads to the end. Undefined: it has no subscriptions. */
  readTooSlowly?(url: string, secret: string, scratchpadId: string, flood: () => Promise<void>): Promise<SlowReading>;
}

const documents: Record<Attempt['to'], string> = {
  read: 'query ($scratchpadId: ID!) { scratchpad(id: $scratchpadId) { id metaData } }',
  append: `mutation ($scratchpadId: ID!, $content: String!, $idempotencyKey: String) {
    appendScratchpadEntry(input: { scratchpadId: $scratchpadId, content: $content, idempotencyKey: $idempotencyKey }) { entry { id } }
  }`,
  'set content': `mutation ($scratchpadId: ID!, $text: String!, $expectedVersion: String) {
    setScratchpadContent(input: { scratchpadId: $scratchpadId, text: $text, expectedVersion: $expectedVersion }) { content { version } }
  }`,
  'create user': 'mutation ($name: String!) { createUser(input: { name: $name }) { secret } }',
  subscribe:
    'subscription ($scratchpadId: ID!, $after: String) { scratchpadEvents(scratchpadId: $scratchpadId, after: $after) { cursor entry { content } } }',
};

/** A socket that is refused as a whole can say no more than this. */
const closeCodes: Record<number, ErrorCode> = { 4401: 'UNAUTHENTICATED', 4403: 'FORBIDDEN', 1013: 'UNAVAILABLE' };

const toCode = (code: unknown): ErrorCode => (code === 'BAD_USER_INPUT' ? 'INVALID_INPUT' : code) as ErrorCode;

function readFailure(results: readonly WireResult[], bytes: string): Raised {
  const errors = results.flatMap((result) => result.errors ?? []);
  const [error] = errors;
  if (!error || errors.length > 1) throw new Error(`expected one error: ${bytes.slice(0, 2000)}`);
  const { code, ...details } = error.extensions ?? {};
  return { code: toCode(code), message: error.message, details, bytes };
}

function readAnswer(answer: WireAnswer): Raised {
  const bytes = `${JSON.stringify(answer.headers)}\n${answer.body.replaceAll(/"locations":\[.*?\],/g, '')}`;
  const code = closeCodes[answer.status];
  if (code === undefined) return readFailure(answer.results, bytes);
  return { code, message: answer.body.replace(/^\d+ /, ''), details: {}, bytes };
}

const graphqlColumn = (wire: WireName, more: Partial<Column> = {}): Column => ({
  name: `GraphQL over ${wire}`,
  async attempt(url, secret, { to, ...variables }) {
    if (to === 'subscribe' && !more.readTooSlowly) return undefined;
    const answer = await wires[wire]({ url, credentials: bearer(secret), document: documents[to], variables });
    return readAnswer(answer);
  },
  ...more,
});

const cursorsOf = (results: readonly WireResult[]): string[] =>
  results.flatMap((result) => {
    const data = result.data as { scratchpadEvents: { cursor: string } } | null | undefined;
    return data ? [data.scratchpadEvents.cursor] : [];
  });

const slowReading = (results: readonly WireResult[]): SlowReading => {
  const last = results.at(-1) ?? {};
  return { cursors: cursorsOf(results), raised: readFailure([last], JSON.stringify(last)) };
};

const readSlowlyOverSse: Column['readTooSlowly'] = async (url, secret, scratchpadId, flood) => {
  const outgoing = request(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...bearer(secret) },
  });
  outgoing.end(JSON.stringify({ query: documents.subscribe, variables: { scratchpadId, after: '' } }));
  // Nothing is read before somebody asks for data.
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  await flood();
  let body = '';
  for await (const chunk of response.setEncoding('utf8')) body += String(chunk);
  return slowReading([...body.matchAll(/^data: (.+)$/gm)].map((match) => JSON.parse(match[1] ?? '') as WireResult));
};

const readSlowlyOverWebSocket: Column['readTooSlowly'] = async (url, secret, scratchpadId, flood) => {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  const results: WireResult[] = [];
  const acknowledged = new Promise<void>((resolve) => socket.once('message', () => resolve()));
  const ended = new Promise<void>((resolve) => {
    socket.on('message', (data: RawData) => {
      const { type, payload } = JSON.parse((data as Buffer).toString('utf8')) as { type: string; payload: WireResult };
      if (type === 'next') results.push(payload);
      if (type === 'complete') resolve();
    });
  });
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init', payload: bearer(secret) }));
  await acknowledged;
  const payload = { query: documents.subscribe, variables: { scratchpadId, after: '' } };
  socket.send(JSON.stringify({ id: 'one', type: 'subscribe', payload }));
  socket.pause();
  await flood();
  socket.resume();
  await ended;
  socket.close();
  return slowReading(results);
};

interface RestAttempt {
  method: string;
  path: string;
  headers?: Headers;
  body?: string;
}

const restRequests: {
  [To in Attempt['to']]?: (attempt: Extract<Attempt, { to: To }>) => RestAttempt;
} = {
  read: ({ scratchpadId }) => ({ method: 'GET', path: scratchpadId }),
  append: ({ scratchpadId, content, idempotencyKey }) => ({
    method: 'POST',
    path: `${scratchpadId}/entries`,
    headers: new Headers(idempotencyKey === undefined ? [] : [['idempotency-key', idempotencyKey]]),
    body: JSON.stringify({ content }),
  }),
  'set content': ({ scratchpadId, text, expectedVersion }) => ({
    method: 'PUT',
    path: `${scratchpadId}/content`,
    headers: new Headers(expectedVersion === undefined ? [] : [['if-match', `"${expectedVersion}"`]]),
    body: JSON.stringify({ content: text }),
  }),
};

interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: ErrorCode;
  request_id: string;
  issues?: unknown;
  current_version?: string;
  retry_after_seconds?: number;
}

/** The status of a lost update is that of a failed precondition. */
const restStatusOf = ({ code, current_version: version }: Problem): number =>
  code === 'CONFLICT' && version !== undefined ? 412 : errorTable[code].status;

function readProblem(response: Response, problem: Problem): Raised {
  const { type, title, status, detail, code, request_id: requestId, ...rest } = problem;
  const isWellFormed =
    response.headers.get('content-type') === 'application/problem+json' &&
    response.headers.get('x-request-id') === requestId &&
    response.status === restStatusOf(problem) &&
    status === response.status &&
    title === errorTable[code].title &&
    type.startsWith('urn:problem-type:');
  if (!isWellFormed) throw new Error(`no problem document: ${response.status} ${JSON.stringify(problem)}`);
  const { issues, current_version: currentVersion, retry_after_seconds: retryAfterSeconds, ...unknown } = rest;
  const details = {
    ...(issues !== undefined && { issues }),
    ...(currentVersion !== undefined && { currentVersion }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(code === 'INTERNAL' && { requestId }),
    ...unknown,
  };
  const bytes = `${JSON.stringify([...response.headers])}\n${JSON.stringify(problem)}`;
  return { code, message: detail, details, bytes };
}

const restColumn: Column = {
  name: 'REST',
  async attempt(url, secret, attempt) {
    const toRequest = restRequests[attempt.to] as ((given: Attempt) => RestAttempt) | undefined;
    if (!toRequest) return undefined;
    const { path, headers = new Headers(), ...init } = toRequest(attempt);
    headers.set('authorization', `Bearer ${secret}`);
    headers.set('content-type', 'application/json');
    const response = await fetch(`${url}/v1/scratchpads/${path}`, { ...init, headers });
    return readProblem(response, (await response.json()) as Problem);
  },
};

const tools: Partial<Record<Attempt['to'], (attempt: never) => { name: string; arguments: object }>> = {
  append: ({ content }: { content: string }) => ({ name: 'append_scratchpad', arguments: { note: content } }),
  'set content': ({ text }: { text: string }) => ({ name: 'update_scratchpad', arguments: { content: text } }),
};

interface RpcAnswer {
  result?: { content: { text: string }[]; isError: boolean };
  error?: { message: string; data: { code: ErrorCode } };
}

interface ToolFailure extends Record<string, unknown> {
  is_error: true;
  code: ErrorCode;
  error: string;
}

/** The pad that each token is for. */
const padOfToken = new Map<string, string>();

const mcpColumn: Column = {
  name: 'MCP',
  async prepare(url, secret, scratchpadId) {
    const token = await createToken(createGraphqlClient(url, secret), scratchpadId, 'SUPERVISOR');
    padOfToken.set(token.secret, scratchpadId);
    return token.secret;
  },
  async attempt(url, secret, attempt) {
    const params = tools[attempt.to]?.(attempt as never);
    if (!params || 'expectedVersion' in attempt || 'idempotencyKey' in attempt) return undefined;
    // No tool takes a pad: of another one than its own an agent cannot even ask.
    const padId = padOfToken.get(secret);
    if (padId !== undefined && 'scratchpadId' in attempt && attempt.scratchpadId !== padId) return undefined;
    const response = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...bearer(secret),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    });
    const text = await response.text();
    const { result, error } = JSON.parse(text) as RpcAnswer;
    const bytes = `${JSON.stringify([...response.headers])}\n${text}`;
    if (error) {
      const { code, ...details } = error.data;
      return { code, message: error.message, details, bytes };
    }
    // What is "note" to a model is "content" elsewhere.
    const told = (result?.content[0]?.text ?? '').replaceAll(/\bnote\b/g, 'content');
    if (result?.isError !== true) throw new Error(`expected an error: ${text}`);
    const { code, error: message, is_error: _, ...details } = JSON.parse(told) as ToolFailure;
    return { code, message, details, bytes };
  },
};

export const columns: Column[] = [
  graphqlColumn('HTTP'),
  graphqlColumn('HTTP with its own media type'),
  graphqlColumn('SSE', { readTooSlowly: readSlowlyOverSse }),
  graphqlColumn('WebSocket', { readTooSlowly: readSlowlyOverWebSocket }),
  restColumn,
  mcpColumn,
];
