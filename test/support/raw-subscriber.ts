// A subscriber that keeps what it is told as it came over the wire, and may stop to read.
import { get } from 'node:http';
import { WebSocket } from 'ws';

export interface Listener {
  /** Messages as they came over the wire; event streams' without their comments. */
  readonly messages: string[];
  received(count: number): Promise<string[]>;
  readonly socket?: WebSocket;
  close(): void;
}

export const until = async (isTrue: () => boolean, what: () => string): Promise<void> => {
  const deadline = Date.now() + 20_000;
  while (!isTrue()) {
    if (Date.now() > deadline) throw new Error(`not within 20 s: ${what()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

const listenerOf = (messages: string[], close: () => void, socket?: WebSocket): Listener => ({
  messages,
  close,
  ...(socket && { socket }),
  async received(count) {
    await until(
      () => messages.length >= count,
      () => `${messages.length} of ${count}: ${messages.join('\n').slice(0, 500)}`,
    );
    return messages;
  },
});

export interface Request {
  query: string;
  variables: Record<string, unknown>;
}

/** Resolves when the subscription is asked for. */
export async function overWebSocket(url: string, secret: string, payload: Request, id = '1'): Promise<Listener> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  const messages: string[] = [];
  let acknowledged = false;
  socket.on('message', (data: Buffer) => {
    const text = data.toString('utf8');
    if (text === '{"type":"connection_ack"}') acknowledged = true;
    else messages.push(text);
  });
  await new Promise((resolve) => socket.once('open', resolve));
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${secret}` } }));
  await until(
    () => acknowledged,
    () => 'acknowledged',
  );
  socket.send(JSON.stringify({ id, type: 'subscribe', payload }));
  return listenerOf(messages, () => socket.terminate(), socket);
}

async function overEventStream(url: string, secret: string, { query, variables }: Request): Promise<Listener> {
  const messages: string[] = [];
  let close: () => void = () => undefined;
  const parameters = new URLSearchParams({ query, variables: JSON.stringify(variables) });
  const headers = { accept: 'text/event-stream', authorization: `Bearer ${secret}` };
  await new Promise<void>((resolve, reject) => {
    const request = get(`${url}/graphql?${parameters.toString()}`, { headers }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString('utf8');
        const parts = text.split('\n\n');
        text = parts.pop() ?? '';
        messages.push(...parts.filter((part) => part !== ':'));
      });
      response.on('error', () => undefined);
      resolve();
    });
    request.on('error', reject);
    close = () => request.destroy();
  });
  return listenerOf(messages, () => close());
}

export const transports = { WebSocket: overWebSocket, SSE: overEventStream };
export type Transport = keyof typeof transports;
