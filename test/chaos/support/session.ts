// What everybody who takes part in a round shares.
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from './random.js';
import type { Recorder } from './recorder.js';
import type { Requests } from './requests.js';

export interface Session {
  requests: Requests;
  recorder: Recorder;
  /** How many servers there are to choose from. */
  servers: number;
  /** One clock for all times of a history. */
  now: () => number;
  /** Ends everybody's loop. */
  signal: AbortSignal;
  /** Reports what must not happen. */
  complain: (complaint: string) => void;
}

/** Waits, and wakes early when the session ends. */
export const pause = (session: Pick<Session, 'signal'>, ms: number): Promise<void> =>
  delay(ms, undefined, { signal: session.signal }).catch(() => undefined);

/** Somebody who works until the session ends. */
export interface Participant {
  readonly name: string;
  /** Things that this one got done. */
  readonly done: number;
  /** Resolves when it has ended in order. */
  readonly finished: Promise<void>;
}

export interface Part {
  session: Session;
  random: Random;
  name: string;
}

/** Repeats `turn` until the session ends. @param turn returns whether something got done */
export function takePart({ session, name }: Part, turn: (index: number) => Promise<boolean>): Participant {
  let done = 0;
  const work = async (): Promise<void> => {
    for (let index = 1; !session.signal.aborted; index += 1) {
      if (await turn(index)) done += 1;
    }
  };
  const finished = work().catch((error: unknown) => session.complain(`${name} failed: ${(error as Error).stack}`));
  return {
    name,
    finished,
    get done() {
      return done;
    },
  };
}
