// Reads a request's body, and never more of it than allowed.
import type { IncomingMessage } from 'node:http';
import { DomainError } from '../shared/errors.js';

/** What a refused client may still send before it is cut off: enough for it to finish and read the refusal. */
const discardedBodies = 4;

const tooLarge = (maxBytes: number): DomainError =>
  new DomainError('LIMIT_EXCEEDED', `The request's body is larger than ${maxBytes} bytes: send less at once.`);

/**
 * @returns the whole body
 * @throws DomainError LIMIT_EXCEEDED over `maxBytes`, by the declared length or by what really comes; any other error means that the
 * client went away
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge(maxBytes));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    // The listeners stay: taking them off costs more than a promise that is settled already.
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      chunks.length = 0;
      request.off('data', onData);
      reject(tooLarge(maxBytes));
    };
    let isRead = false;
    const onGone = () => {
      // Every request closes in the end, and an error with its stack is dear.
      if (!isRead) reject(new Error('The client went away before its request was complete.'));
    };
    request.on('data', onData).on('error', onGone).on('close', onGone);
    request.on('end', () => {
      isRead = true;
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
    });
  });
}

/**
 * Reads on, keeping nothing: closing at once would reset the connection, and the client would never read why it was
 * refused. Who goes on sending is cut off.
 */
export function discardBody(request: IncomingMessage, maxBytes: number): void {
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxBytes * discardedBodies) request.destroy();
  });
  request.on('error', () => undefined);
}
