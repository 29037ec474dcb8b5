// An OpenAI-compatible model server over real HTTP and SSE whose answers are decided by whoever starts it. It keeps what it was sent.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface WireMessage {
  role: string;
  content: string | null;
  tool_call_id?: string;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
  [field: string]: unknown;
}

export interface RequestBody {
  model: string;
  stream?: boolean;
  messages: WireMessage[];
  tools?: { type: string; function: { name: string; description: string; parameters: Record<string, unknown> } }[];
}

export interface ModelRequest {
  /** Counted from 0 in the order of arrival. */
  index: number;
  path: string;
  headers: IncomingMessage['headers'];
  body: RequestBody;
  receivedAtMs: number;
  /** Resolves when the connection is closed before the answer was complete: the client hung up. */
  hungUp: Promise<void>;
  /** Whether that has happened already. */
  hasHungUp(): boolean;
}

/** What to answer. Without anything: an empty, complete stream. */
export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  /** Sent as it is, with a status of its own: no stream. */
  body?: string;
  /** Objects become SSE events; text is written to the socket as it is. */
  chunks?: (object | string)[];
  /** Whether [DONE] follows the chunks; true unless said otherwise. */
  done?: boolean;
  /** After the chunks: close the connection in the middle, or say nothing more until the client hangs up. */
  ending?: 'die' | 'hang';
  /** Waited for before the answer begins. */
  after?: Promise<unknown>;
  pauseMsBetweenChunks?: number;
}

/** One chunk of a stream, as the protocol has it. */
export const chunkOf = (delta: object, finishReason: string | null = null): object => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'scripted',
  choices: [{ index: 0, delta, finish_reason: finishReason }],
});

/** An answer of plain text, in pieces of a few characters. */
export const textReply = (text: string, rest: Reply = {}): Reply => ({
  chunks: [
    chunkOf({ role: 'assistant', content: '' }),
    ...(text.match(/[^]{1,16}/g) ?? []).map((content) => chunkOf({ content })),
    chunkOf({}, 'stop'),
  ],
  ...rest,
});

export interface ScriptedCall {
  id: string;
  name: string;
  /** An object, or text where the model is meant to write something that is no JSON. */
  arguments: object | string;
}

/** Tool calls as OpenAI itself streams them: the head of each call, then its arguments in fragments. */
export const callsReply = (
  calls: ScriptedCall[],
  rest: Reply & { text?: string; finishReason?: string } = {},
): Reply => {
  const { text, finishReason = 'tool_calls', ...reply } = rest;
  const fragments = calls.flatMap((call, index) => {
    const written = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments);
    const head = { index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } };
    const pieces = (written.match(/[^]{1,12}/g) ?? []).map((piece) => ({ index, function: { arguments: piece } }));
    return [head, ...pieces].map((fragment) => chunkOf({ tool_calls: [fragment] }));
  });
  return {
    chunks: [chunkOf({ role: 'assistant', content: text ?? null }), ...fragments, chunkOf({}, finishReason)],
    ...reply,
  };
};

/** An error before the first byte. */
export const errorReply = (status: number, message: string, headers: Record<string, string> = {}): Reply => ({
  status,
  headers,
  body: JSON.stringify({ error: { message, type: 'scripted' } }),
});

export interface ModelServer {
  /** What a client takes as the provider's base URL. */
  baseUrl: string;
  /** In the order of arrival. */
  requests: ModelRequest[];
  close(): Promise<void>;
}

async function readBody(request: IncomingMessage): Promise<RequestBody> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return JSON.parse(Buffer.concat(parts).toString('utf8')) as RequestBody;
}

async function send(response: ServerResponse, reply: Reply): Promise<void> {
  await reply.after;
  if (reply.body !== undefined) {
    response.writeHead(reply.status ?? 200, { 'content-type': 'application/json', ...reply.headers }).end(reply.body);
    return;
  }
  response.writeHead(reply.status ?? 200, { 'content-type': 'text/event-stream', ...reply.headers });
  response.flushHeaders();
  for (const chunk of reply.chunks ?? []) {
    if (response.destroyed) return;
    response.write(typeof chunk === 'string' ? chunk : `data: ${JSON.stringify(chunk)}\n\n`);
    if (reply.pauseMsBetweenChunks) await sleep(reply.pauseMsBetweenChunks);
  }
  if (reply.ending === 'hang') return;
  if (reply.ending === 'die') {
    // What was written shall arrive before the connection breaks.
    await sleep(20);
    response.destroy();
    return;
  }
  if (reply.done !== false) response.write('data: [DONE]\n\n');
  response.end();
}

export async function startModelServer(decide: (request: ModelRequest) => Reply): Promise<ModelServer> {
  const requests: ModelRequest[] = [];

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    let gone = false;
    const hungUp = new Promise<void>((resolve) => {
      response.on('close', () => {
        if (response.writableFinished) return;
        gone = true;
        resolve();
      });
    });
    const request: ModelRequest = {
      index: requests.length,
      path: incoming.url ?? '',
      headers: incoming.headers,
      body: await readBody(incoming),
      receivedAtMs: Date.now(),
      hungUp,
      hasHungUp: () => gone,
    };
    request.index = requests.push(request) - 1;
    await send(response, decide(request));
  }

  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    async close() {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      server.closeAllConnections();
      await closed;
    },
  };
}
