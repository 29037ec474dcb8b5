// A WebSocket that does not buffer without bound for a client that reads slowly, or not at all.
import type { Duplex } from 'node:stream';
import { setImmediate as nextTurnOfTheLoop } from 'node:timers/promises';
import { WebSocket } from 'ws';

/** Sockets with frames to be written at the end of the turn: a system call leaves little in the processor's caches for the next socket. */
export interface WriteBatch {
  add(socket: { flush(): void }): void;
}

export function createWriteBatch(): WriteBatch {
  let waiting: { flush(): void }[] = [];
  const flush = (): void => {
    const flushed = waiting;
    waiting = [];
    for (const socket of flushed) socket.flush();
  };
  return {
    add(socket) {
      if (waiting.length === 0) process.nextTick(flush);
      waiting.push(socket);
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
  /** As it was when something was last written, or sent: so that who asks looks at nothing but this object. */
  #hasRoom = true;
  /** What is written at the end of the turn. */
  #frames: readonly Buffer[] | undefined;
  #isCorked = false;
  /** Of those who have been given a turn; undefined before the first. */
  #lastTurn: Promise<void> | undefined;

  /** @param stream what the frames of `socket` are written to; whole ones may be written between its own, as long as it compresses nothing */
  constructor(socket: WebSocket, stream: Duplex, batch: WriteBatch) {
    this.#socket = socket;
    this.#stream = stream;
    this.#batch = batch;
    // What is written here has no callback each.
    stream.on('drain', () => this.#onSent());
  }

  /** Whether little enough waits to be sent. */
  isReady(): boolean {
    return this.#hasRoom;
  }

  /** Writes frames that are ready made, at the end of the turn; to a socket that is closing nothing. Only for a socket that is ready. */
  write(frames: readonly Buffer[]): void {
    if (this.#frames === undefined) {
      this.#batch.add(this);
    } else {
      // What goes to one socket in one turn goes out together, and waits where it is counted.
      if (!this.#isCorked) this.#stream.cork();
      this.#isCorked = true;
      this.#pour();
    }
    this.#frames = frames;
  }

  /** The turn is over. */
  flush(): void {
    this.#pour();
    if (this.#isCorked) this.#stream.uncork();
    this.#isCorked = false;
  }

  #pour(): void {
    const frames = this.#frames;
    this.#frames = undefined;
    if (frames === undefined || this.#socket.readyState !== WebSocket.OPEN) return;
    const stream = this.#stream;
    if (frames.length === 1) {
      stream.write(frames[0]!);
    } else {
      stream.cork();
      for (const frame of frames) stream.write(frame);
      stream.uncork();
    }
    this.#hasRoom = stream.writableLength <= highWaterMarkBytes;
  }

  /** Resolves when the operating system has taken the message; at once when the socket is closing. */
  send(data: string): Promise<void> {
    this.#pour();
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
      this.#hasRoom = socket.bufferedAmount <= highWaterMarkBytes;
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

  /**
   * Resolves when there is room, for one caller after the other: what one of them sends is counted before the next one's turn. To be
   * awaited before an answer is made into text, of which a client may ask for many at once.
   */
  async turn(): Promise<void> {
    const mine = (this.#lastTurn ?? Promise.resolve()).then(() => this.drained());
    // What becomes of a turn is sent within the microtasks that follow it.
    this.#lastTurn = mine.then(() => nextTurnOfTheLoop());
    await mine;
  }

  close(code: number, reason: string): void {
    this.#pour();
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
    this.#hasRoom = true;
    if (this.#socket.isPaused) this.#socket.resume();
    this.release();
  }
}
