// The opaque cursor of scratchpad events: how far a client has seen each plane of one pad.
import { createHash } from 'node:crypto';
import { invalidInput } from '../shared/errors.js';
import type { PadAddress } from '../redis/redis-keys.js';

/**
 * A place in a pad's history: the number of the last write to each plane that was seen, 0 for none. Two numbers, because a
 * replay tells one plane after the other, and a client that drops in the middle must be able to go on from there.
 */
export interface EventPosition {
  readonly entries: number;
  readonly content: number;
}

export const startOfHistory: EventPosition = Object.freeze({ entries: 0, content: 0 });

export const isSamePosition = (one: EventPosition, other: EventPosition): boolean =>
  one.entries === other.entries && one.content === other.content;

/** The number of the last write that was seen. */
export const lastNumber = (position: EventPosition): number => Math.max(position.entries, position.content);

/** A few characters that stand for the pad and its owner, so that a cursor of another pad is refused. */
const checkOf = ({ ownerId, scratchpadId }: PadAddress): string =>
  createHash('sha256').update(`${ownerId}:${scratchpadId}`).digest('base64url').slice(0, 6);

export interface EventCursorCodec {
  encode(position: EventPosition): string;
  /** @throws DomainError INVALID_INPUT for anything that `encode` did not make for this pad */
  decode(cursor: string): EventPosition;
}

export function createEventCursorCodec(pad: PadAddress): EventCursorCodec {
  const check = checkOf(pad);
  const encode = ({ entries, content }: EventPosition): string =>
    entries === content
      ? `${entries.toString(36)}.${check}`
      : `${entries.toString(36)}.${content.toString(36)}.${check}`;
  return {
    encode,
    decode(cursor) {
      const parts = cursor.length <= 40 ? cursor.split('.') : [];
      const [entries = NaN, content = entries] = parts.slice(0, -1).map((part) => Number.parseInt(part, 36));
      const position = { entries, content };
      const isPossible = [entries, content].every((number) => Number.isSafeInteger(number) && number >= 0);
      if (!isPossible || encode(position) !== cursor) {
        throw invalidInput(
          'after is not a cursor of this scratchpad: give back a cursor that an event or eventCursor had.',
        );
      }
      return position;
    },
  };
}
