// Results as server-sent events: the distinct-connections mode of the GraphQL over SSE protocol, as graphql-sse and GraphiQL speak it.
import type { ServerResponse } from 'node:http';
import type { ExecutionResult } from 'graphql';
import { eventStreamType, serializeResult } from './http-response.js';

/** Resolves when more may be written, or there is nobody left to write to. */
const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const settle = () => {
      response.off('drain', settle).off('close', settle);
      resolve();
    };
    response.on('drain', settle).on('close', settle);
  });

/**
 * Sends every result and then "complete". Asks for the next one only when the client has taken the last: what a slow client
 * leaves waits at the source. A client that goes away ends the source through return().
 * @param keepAliveMs between the comments that keep proxies from closing a silent stream
 */
export async function sendEventStream(
  response: ServerResponse,
  results: AsyncIterator<ExecutionResult>,
  keepAliveMs: number,
): Promise<void> {
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
  const keepAlive = setInterval(() => {
    if (!response.writableNeedDrain) response.write(':\n\n');
  }, keepAliveMs);
  try {
    for (let step = await results.next(); !step.done; step = await results.next()) {
      if (response.destroyed) return;
      if (!response.write(`event: next\ndata: ${serializeResult(step.value)}\n\n`)) await drained(response);
    }
    // The empty data makes browsers' EventSource deliver it.
    if (!response.destroyed) response.end('event: complete\ndata:\n\n');
  } finally {
    clearInterval(keepAlive);
  }
}

/** One result as a source of results. */
export async function* oneResult(result: ExecutionResult): AsyncGenerator<ExecutionResult, undefined> {
  yield result;
  return undefined;
}
