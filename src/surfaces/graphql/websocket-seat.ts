// Where one operation on a WebSocket is told what others are told as well. A class with few fields: a thousand are told at once, and
// what each of them touches in memory is what it costs.
import type { Seat } from '../../shared/divertible.js';
import type { PacedSocket } from './paced-socket.js';
import type { NextStart, SharedFrames } from './shared-frames.js';
import type { SharedResult } from './shared-results.js';

/** The same for all seats. */
export interface SeatService {
  readonly frames: SharedFrames;
  onDeliver(): void;
}

export class WebSocketSeat implements Seat<SharedResult> {
  /** Of the last result that the operation was told, here or in the ordinary way. */
  outcome = 'OK';
  readonly #socket: PacedSocket;
  readonly #start: NextStart;
  readonly #service: SeatService;

  constructor(socket: PacedSocket, operationId: string, service: SeatService) {
    this.#socket = socket;
    this.#start = service.frames.startOf(operationId);
    this.#service = service;
  }

  /** While graphql-ws waits for the next result: the same bytes that it would send. */
  take(shared: SharedResult): boolean {
    const socket = this.#socket;
    if (!socket.isReady()) return false;
    socket.write(this.#service.frames.of(shared, this.#start));
    this.#service.onDeliver();
    this.outcome = 'OK';
    return true;
  }
}
