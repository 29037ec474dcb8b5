// How much one turn of a provider may be: a stream that never ends must not fill the memory, the database or the events.
import { ProviderError } from './provider-error.js';

/** Text, reasoning, and the names and arguments of calls, together. What a message may have at most in bytes, unless it is configured. */
export const MOST_TURN_CHARACTERS = 1_048_576;
/** Tool calls of one turn. */
export const MOST_TURN_CALLS = 128;
/** On the wire, where one word may take 300 bytes. */
const mostBytes = 128 * 1024 * 1024;
/** Of one line of the stream: all that a turn may be, with every character escaped, and more. */
const mostLineBytes = 8 * 1024 * 1024;
/** Of an answer that is an error. */
const mostErrorBytes = 64 * 1024;

const lineFeed = 0x0a;

/** Not retried: it would be asked to say as much once more. */
export const tooLong = (what: string): ProviderError =>
  new ProviderError('PROVIDER_PROTOCOL', `The model provider's answer was broken off: ${what}.`);

/** Passes an answer's bytes on. Its readable side fails with a ProviderError as soon as they are too many; `heard` is called for each piece. */
export function createByteLimit(heard: () => void): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  let lineBytes = 0;
  return new TransformStream({
    transform(piece, controller) {
      heard();
      bytes += piece.length;
      const lastEnd = piece.lastIndexOf(lineFeed);
      lineBytes = lastEnd === -1 ? lineBytes + piece.length : piece.length - lastEnd - 1;
      if (lineBytes > mostLineBytes) throw tooLong(`one line of it has more than ${mostLineBytes} bytes`);
      if (bytes > mostBytes) throw tooLong(`it has more than ${mostBytes} bytes`);
      controller.enqueue(piece);
    },
  });
}

/** The beginning of an error's body: more than the log keeps of it. */
export function createErrorBodyLimit(): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  return new TransformStream({
    transform(piece, controller) {
      controller.enqueue(piece.subarray(0, mostErrorBytes - bytes));
      bytes += piece.length;
      if (bytes >= mostErrorBytes) controller.terminate();
    },
  });
}
