// A WebSocket that does not buffer without bound for a client that reads slowly, or not at all.
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';

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

export interface PacedSocket {
  /** Resolves when the operating system has taken the message; at once when the socket is closing. */
  send(data: string): Promise<void>;
  /** Whether the socket is open and little enough waits to be sent. */
  isReady(): boolean;
  /** Writes frames that are ready made. Only for a socket that is ready. */
  write(frames: readonly Buffer[]): void;
  /** Resolves when little enough waits to be sent, or the socket is closed. */
  drained(): Promise<void>;
  close(code: number, reason: string): void;
  /** Lets go of everybody who waits: the socket is closed. */
  release(): void;
}

/** Subscriptions are not asked for more while so much waits. */
const highWaterMarkBytes = 1_048_576;
/** The client is not listened to while so much waits: it could otherwise ask faster than it reads. */
const pauseMarkBytes = 4 * highWaterMarkBytes;

/** @param stream what the frames of `socket` are written to; whole ones may be written between its own, as long as it compresses nothing */
export function createPacedSocket(socket: WebSocket, stream: Duplex, batch: WriteBatch): PacedSocket {
  let waiting: (() => void)[] = [];

  function release(): void {
    const released = waiting;
    waiting = [];
    for (const resolve of released) resolve();
  }

  function onSent(): void {
    if (socket.bufferedAmount > highWaterMarkBytes) return;
    if (socket.isPaused) socket.resume();
    release();
  }

  // What is written here has no callback each.
  stream.on('drain', onSent);

  return {
    isReady: () => socket.readyState === socket.OPEN && stream.writableLength <= highWaterMarkBytes,
    write: (frames) => batch.write(stream, frames),

    send: (data) =>
      new Promise((resolve) => {
        if (socket.readyState !== socket.OPEN) {
          resolve();
          return;
        }
        // An error here is the end of the socket, whose close event ends everything on it.
        socket.send(data, () => {
          onSent();
          resolve();
        });
        if (socket.bufferedAmount > pauseMarkBytes) socket.pause();
      }),

    drained: () =>
      socket.bufferedAmount <= highWaterMarkBytes || socket.readyState !== socket.OPEN
        ? Promise.resolve()
        : new Promise((resolve) => waiting.push(resolve)),

    close(code, reason) {
      if (socket.isPaused) socket.resume();
      socket.close(code, reason);
    },

    release,
  };
}
