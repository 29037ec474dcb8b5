// A subscriber as a user would write it, over a WebSocket (graphql-ws) or over SSE (graphql-sse, distinct connections).
import { createClient as createEventStreamClient } from 'graphql-sse';
import { createClient as createWebSocketClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import type { AppendedEntry, WrittenContent } from './operations.js';

export interface ReceivedEvent {
  cursor: string;
  operation: string;
  state: string;
  replayed: boolean;
  scratchpadId: string;
  entry: AppendedEntry | null;
  content: WrittenContent | null;
  expiresAt: string | null;
  occurredAt: string;
}

export interface Subscriber {
  /** Everything that was received so far, in order. */
  readonly events: ReceivedEvent[];
  /** GraphQL errors, in the order of their arrival. */
  readonly errors: { message: string; extensions?: { code?: string; lastCursor?: string } }[];
  /** Resolves once this many events are there. */
  received(count: number, timeoutMs?: number): Promise<ReceivedEvent[]>;
  /** Resolves when the subscription has ended, whoever ended it. */
  readonly ended: Promise<void>;
  readonly isOver: boolean;
  close(): void;
}

export type Transport = 'WebSocket' | 'SSE';
export const transports: Transport[] = ['WebSocket', 'SSE'];

export const eventsDocument = `subscription ($id: ID!, $after: String) {
  scratchpadEvents(scratchpadId: $id, after: $after) {
    cursor operation state replayed scratchpadId expiresAt occurredAt
    entry { id content author runId createdAt } content { text version updatedAt }
  }
}`;

interface Options {
  transport: Transport;
  url: string;
  secret: string;
  scratchpadId: string;
  after?: string;
  /** Called for each event instead of keeping it in `events`. */
  onEvent?: (event: ReceivedEvent) => void;
}

/** Begins to subscribe at once; resolves when the server is known to listen on the subscriber's behalf. */
export async function subscribe(options: Options): Promise<Subscriber> {
  const { transport, url, secret, scratchpadId, after } = options;
  const events: ReceivedEvent[] = [];
  const keep = options.onEvent ?? ((event: ReceivedEvent) => void events.push(event));
  const errors: Subscriber['errors'] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  let isOver = false;
  let end: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    end = () => {
      isOver = true;
      resolve();
    };
  });
  const sink = {
    next(result: { data?: unknown; errors?: readonly unknown[] | undefined }) {
      errors.push(...((result.errors ?? []) as Subscriber['errors']));
      const data = result.data as { scratchpadEvents: ReceivedEvent } | null | undefined;
      if (data) keep(data.scratchpadEvents);
      for (const one of waiting) if (events.length >= one.count) one.resolve();
    },
    error(error: unknown) {
      errors.push(...((Array.isArray(error) ? error : [error]) as Subscriber['errors']));
      end();
    },
    complete: () => end(),
  };
  const payload = { query: eventsDocument, variables: { id: scratchpadId, after } };
  const headers = { authorization: `Bearer ${secret}` };
  const stop =
    transport === 'WebSocket'
      ? startWebSocket(`${url.replace('http', 'ws')}/graphql`, headers, payload, sink)
      : startEventStream(`${url}/graphql`, headers, payload, sink);
  return {
    events,
    errors,
    ended,
    get isOver() {
      return isOver;
    },
    async received(count, timeoutMs = 10_000) {
      if (events.length >= count) return events;
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve, reject) => {
        waiting.push({ count, resolve });
        timer = setTimeout(
          () =>
            reject(
              new Error(
                `${events.length} of ${count} events within ${timeoutMs} ms: ${JSON.stringify({ events, errors }).slice(0, 2000)}`,
              ),
            ),
          timeoutMs,
        );
      }).finally(() => clearTimeout(timer));
      return events;
    },
    close: stop,
  };
}

type Sink = {
  next(result: { data?: unknown; errors?: readonly unknown[] | undefined }): void;
  error(error: unknown): void;
  complete(): void;
};

function startWebSocket(
  url: string,
  connectionParams: object,
  payload: { query: string; variables: object },
  sink: Sink,
): () => void {
  const client = createWebSocketClient({
    url,
    connectionParams: { ...connectionParams },
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  const unsubscribe = client.subscribe(payload as never, sink);
  return () => {
    unsubscribe();
    Promise.resolve(client.dispose()).catch(() => undefined); // a connection that is only being made may fail
  };
}

function startEventStream(
  url: string,
  headers: Record<string, string>,
  payload: { query: string; variables: object },
  sink: Sink,
): () => void {
  const client = createEventStreamClient({ url, headers, retryAttempts: 0 });
  const unsubscribe = client.subscribe(payload as never, sink);
  return () => {
    unsubscribe();
    client.dispose();
  };
}
