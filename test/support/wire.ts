// One operation over each transport, with everything that came back: for tests that compare answers to the byte.
import { once } from 'node:events';
import { WebSocket, type RawData } from 'ws';

export interface WireRequest {
  url: string;
  /** Credentials: HTTP headers, or a WebSocket's connection parameters. */
  credentials: Readonly<Record<string, unknown>>;
  document: string;
  variables?: object;
  /** For a subscription that goes on: leave as soon as its first result is there. */
  untilFirstResult?: boolean;
}

export interface WireAnswer {
  /** HTTP status, or the close code of a WebSocket that the server closed, or 0. */
  status: number;
  /** Without the date and the request id; a WebSocket has none. */
  headers: Record<string, string>;
  body: string;
  /** In the order of their arrival. */
  results: WireResult[];
}

export interface WireResult {
  data?: unknown;
  errors?: WireError[];
}

export interface WireError {
  message: string;
  path?: (string | number)[];
  extensions?: { code?: string } & Record<string, unknown>;
}

export type Wire = (request: WireRequest) => Promise<WireAnswer>;

const passing = new Set(['date', 'x-request-id', 'connection', 'keep-alive', 'transfer-encoding']);

const overHttp =
  (accept: string): Wire =>
  async ({ url, credentials, document, variables, untilFirstResult }) => {
    const aborter = new AbortController();
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept, ...(credentials as Record<string, string>) },
      body: JSON.stringify({ query: document, variables }),
      signal: aborter.signal,
    });
    const decoder = new TextDecoder();
    let body = '';
    for await (const chunk of response.body ?? []) {
      body += decoder.decode(chunk as Uint8Array, { stream: true });
      if (untilFirstResult && /data: .*\n/.test(body)) break;
    }
    if (untilFirstResult) aborter.abort();
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
    const texts = isStream ? [...body.matchAll(/^data: (.+)$/gm)].map((match) => match[1] ?? '') : [body];
    return {
      status: response.status,
      headers: Object.fromEntries([...response.headers].filter(([name]) => !passing.has(name))),
      body,
      results: texts.map((text) => JSON.parse(text) as WireResult),
    };
  };

const overWebSocket: Wire = async ({ url, credentials, document, variables, untilFirstResult }) => {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  const messages: string[] = [];
  const results: WireResult[] = [];
  const closed = once(socket, 'close') as Promise<[number, Buffer]>;
  let closedByUs = false;
  const leave = (): void => {
    closedByUs = true;
    socket.close();
  };
  socket.on('open', () => socket.send(JSON.stringify({ type: 'connection_init', payload: credentials })));
  socket.on('message', (data: RawData) => {
    const text = (data as Buffer).toString('utf8');
    const message = JSON.parse(text) as { type: string; payload?: unknown };
    if (message.type === 'connection_ack') {
      socket.send(JSON.stringify({ id: 'one', type: 'subscribe', payload: { query: document, variables } }));
      return;
    }
    messages.push(text);
    if (message.type === 'next') results.push(message.payload as WireResult);
    if (message.type === 'error') results.push({ errors: message.payload as WireError[] });
    if (message.type === 'error' || message.type === 'complete' || (untilFirstResult && message.type === 'next')) {
      leave();
    }
  });
  const [code, reason] = await closed;
  const status = closedByUs ? 0 : code;
  return {
    status,
    headers: {},
    body: [...messages, ...(closedByUs ? [] : [`${code} ${reason.toString('utf8')}`])].join('\n'),
    results,
  };
};

export const wires = {
  HTTP: overHttp('application/json'),
  'HTTP with its own media type': overHttp('application/graphql-response+json'),
  SSE: overHttp('text/event-stream'),
  WebSocket: overWebSocket,
} as const satisfies Record<string, Wire>;

export type WireName = keyof typeof wires;
export const wireNames = Object.keys(wires) as WireName[];

export const bearer = (secret: string): Record<string, string> => ({ authorization: `Bearer ${secret}` });
