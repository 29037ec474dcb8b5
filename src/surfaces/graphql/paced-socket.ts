// A WebSocket that does not buffer without bound for a client that reads slowly, or not at all.
import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';

/** Writes to many streams: what goes to one of them in the same turn goes out together. */
export interface WriteBatch {
  write(stream: Duplex, chunks: readonly Buffer[]): void;
}

export function createWriteBatch(): WriteBatch {
  let corked: Duplex[] = [];
  const flush = (): void => {
    const streams = corked;
    corked = [];
    for (const stream of streams) stream.uncork();
  };
  return {
    write(stream, chunks) {
      if (stream.writableCorked === 0) {
        if (corked.length === 0) process.nextTick(flush);
        stream.cork();
        corked.push(stream);
      }
      for (const chunk of chunks) stream.write(chunk);
    },
  };
}

/** Subscriptions are not asked for more while so much waits. */
const highWaterMarkBytes = 1_048_576;
/** The client is not listened to while so much waits: it could otherwise ask faster than it reads. */
const pauseMarkBytes = 4 * highWaterMarkBytes;

/** A class, because a thousand of them are asked and written to at once: what each touches in memory is what it costs. */
export class PacedSocket {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  readonly #batch: WriteBatch;
  #waiting: (() => void)[] = [];

  /** @param stream what the frames of `socket` are written to; whole ones may be written between its own, as long as it compresses nothing */
  constructor(socket: WebSocket, stream: Duplex, batch: WriteBatch) {
    this.#socket = socket;
    this.#stream = stream;
    this.#batch = batch;
    // What is written here has no callback each.
    stream.on('drain', () => this.#onSent());
  }

  /** Whether the socket is open and little enough waits to be sent. */
  isReady(): boolean {
    return this.#socket.readyState === WebSocket.OPEN && this.#stream.writableLength <= highWaterMarkBytes;
  }

  /** Writes frames that are ready made. Only for a socket that is ready. */
  write(frames: readonly Buffer[]): void {
    this.#batch.write(this.#stream, frames);
  }

  /** Resolves when the operating system has taken the message; at once when the socket is closing. */
  send(data: string): Promise<void> {
    return new Promise((resolve) => {
      const socket = this.#socket;
      if (socket.readyState !== WebSocket.OPEN) {
        resolve();
        return;
      }
      // An error here is the end of the socket, whose close event ends everything on it.
      socket.send(data, () => {
        this.#onSent();
        resolve();
      });
      if (socket.bufferedAmount > pauseMarkBytes) socket.pause();
    });
  }

  /** Resolves when little enough waits to be sent, or the socket is closed. */
  drained(): Promise<void> {
    const socket = this.#socket;
    return socket.bufferedAmount <= highWaterMarkBytes || socket.readyState !== WebSocket.OPEN
      ? Promise.resolve()
      : new Promise((resolve) => this.#waiting.push(resolve));
  }

  close(code: number, reason: string): void {
    if (this.#socket.isPaused) this.#socket.resume();
    this.#socket.close(code, reason);
  }

  /** Lets go of everybody who waits: the socket is closed. */
  release(): void {
    const released = this.#waiting;
    this.#waiting = [];
    for (const resolve of released) resolve();
  }

  #onSent(): void {
    if (this.#socket.bufferedAmount > highWaterMarkBytes) return;
    if (this.#socket.isPaused) this.#socket.resume();
    this.release();
  }
}
