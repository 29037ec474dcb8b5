// Waiting between two attempts: longer each time, never at the same moment as everybody else, and as the server asks.
import { aborted } from './client-error.js';

const firstMs = 250;
const longestMs = 5000;

/** @param failures so far, at least 1 */
export function backoff(failures: number, retryAfterMs = 0): number {
  const stepMs = Math.min(firstMs * 2 ** (failures - 1), longestMs);
  // All clients of a server that restarts are disconnected at the same moment.
  return Math.max(stepMs * (0.5 + Math.random() / 2), retryAfterMs + Math.random() * firstMs);
}

/** @throws ScratchpadError ABORTED */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(aborted(signal!));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}
