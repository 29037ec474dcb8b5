// The opaque cursor of a run's stream: the number of the last event that was seen.
import { createHash } from 'node:crypto';
import { invalidInput } from '../shared/errors.js';

/** A few characters of the run's id, so that a cursor of another stream is refused. */
const checkOf = (runId: string): string => createHash('sha256').update(runId).digest('base64url').slice(0, 6);

export interface RunCursorCodec {
  encode(number: number): string;
  /** @throws DomainError INVALID_INPUT for anything that `encode` did not make for this run */
  decode(cursor: string): number;
}

export function createRunCursorCodec(runId: string): RunCursorCodec {
  const check = checkOf(runId);
  const encode = (number: number): string => `${number.toString(36)}.${check}`;
  return {
    encode,
    decode(cursor) {
      const number = cursor.length <= 40 ? Number.parseInt(cursor, 36) : NaN;
      if (!Number.isSafeInteger(number) || number < 0 || encode(number) !== cursor) {
        throw invalidInput(
          "after is not a cursor of this run's stream: give back a cursor that one of its events had.",
        );
      }
      return number;
    },
  };
}
