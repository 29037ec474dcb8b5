// Results as server-sent events: the distinct-connections mode of the GraphQL over SSE protocol, as graphql-sse and GraphiQL speak it.
import type { ServerResponse } from 'node:http';
import type { ExecutionResult } from 'graphql';
import { eventStreamType, serializeResult } from './http-response.js';
import type { ResultStream, SharedResult } from './shared-results.js';

/** Resolves when more may be written, or there is nobody left to write to. */
const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const settle = () => {
      response.off('drain', settle).off('close', settle);
      resolve();
    };
    response.on('drain', settle).on('close', settle);
  });

/** Results, and where they are shared the way to be shown them first. */
type Results = AsyncIterator<ExecutionResult> & Pick<ResultStream, 'divert'>;

export interface EventStreams {
  /**
   * Sends every result and then "complete". Asks for the next one only when the client has taken the last: what a slow client
   * leaves waits at the source. A client that goes away ends the source through return().
   */
  send(response: ServerResponse, results: Results): Promise<void>;
}

const nextEvent = (json: string): string => `event: next\ndata: ${json}\n\n`;

/** One timer for all streams. @returns the way to begin, which returns the way to stop */
function createKeepAlive(intervalMs: number): (response: ServerResponse) => () => void {
  const open = new Set<ServerResponse>();
  let timer: NodeJS.Timeout | undefined;
  const beat = (): void => {
    for (const response of open) if (!response.writableNeedDrain) response.write(':\n\n');
  };
  return (response) => {
    open.add(response);
    timer ??= setInterval(beat, intervalMs).unref();
    return () => {
      open.delete(response);
      if (open.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  };
}

/**
 * @param keepAliveMs between the comments that keep proxies from closing a silent stream
 * @param onDeliver called for each result that is sent as others are told it, without being asked for
 */
export function createEventStreams(keepAliveMs: number, onDeliver: () => void): EventStreams {
  const keepAlive = createKeepAlive(keepAliveMs);
  let latest: { shared: SharedResult; bytes: Buffer } | undefined;

  const bytesOf = (shared: SharedResult): Buffer => {
    if (latest?.shared !== shared) latest = { shared, bytes: Buffer.from(nextEvent(shared.payload.toString('utf8'))) };
    return latest.bytes;
  };

  return {
    async send(response, results) {
      const stop = () => void results.return?.();
      response.once('close', stop);
      if (response.destroyed) {
        stop();
        return;
      }
      response.writeHead(200, {
        'content-type': `${eventStreamType}; charset=utf-8`,
        'cache-control': 'no-store',
        // nginx and its kin would hold events back to fill their buffers.
        'x-accel-buffering': 'no',
      });
      // Some clients see the answer only with its first byte.
      response.write(':\n\n');
      const endKeepAlive = keepAlive(response);
      results.divert?.({
        take(shared) {
          if (response.destroyed || response.writableNeedDrain) return false;
          response.write(bytesOf(shared));
          onDeliver();
          return true;
        },
      });
      try {
        for (let step = await results.next(); !step.done; step = await results.next()) {
          if (response.destroyed) return;
          if (!response.write(nextEvent(serializeResult(step.value).json))) await drained(response);
        }
        // The empty data makes browsers' EventSource deliver it.
        if (!response.destroyed) response.end('event: complete\ndata:\n\n');
      } finally {
        endKeepAlive();
      }
    },
  };
}

/** One result as a source of results. */
export async function* oneResult(result: ExecutionResult): AsyncGenerator<ExecutionResult, undefined> {
  yield result;
  return undefined;
}
