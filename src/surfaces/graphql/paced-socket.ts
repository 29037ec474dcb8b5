// A WebSocket that does not buffer without bound for a client that reads slowly, or not at all.
import type { WebSocket } from 'ws';

export interface PacedSocket {
  /** Resolves when the operating system has taken the message; at once when the socket is closing. */
  send(data: string): Promise<void>;
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

export function createPacedSocket(socket: WebSocket): PacedSocket {
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

  return {
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
