// The `next` messages of shared results as WebSocket frames: what all subscribers are told is made into bytes once.
import { createInterned } from '../../shared/interned.js';
import type { SharedResult } from './shared-results.js';

export interface SharedFrames {
  /** The same one for all operations with this id: many clients number theirs alike. */
  startOf(operationId: string): NextStart;
  of(shared: SharedResult, start: NextStart): readonly Buffer[];
}

/** A `next` message of one operation up to its payload. */
export interface NextStart {
  readonly bytes: Buffer;
}

const makeStart = (operationId: string): NextStart => ({
  bytes: Buffer.from(`{"id":${JSON.stringify(operationId)},"type":"next","payload":`),
});

const suffix = Buffer.from('}');
/** Longer messages are not copied for each subscriber. */
const longestCopy = 16_384;
const finalText = 0x81;

/** The head of an unmasked text frame: RFC 6455, section 5.2. */
function frameHead(length: number): Buffer {
  if (length < 126) return Buffer.from([finalText, length]);
  if (length < 65_536) return Buffer.from([finalText, 126, length >> 8, length & 255]);
  const head = Buffer.from([finalText, 127, 0, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(length, 6);
  return head;
}

function makeFrames({ payload }: SharedResult, { bytes }: NextStart): readonly Buffer[] {
  const head = frameHead(bytes.length + payload.length + suffix.length);
  const parts = [head, bytes, payload, suffix];
  return payload.length > longestCopy ? parts : [Buffer.concat(parts)];
}

export function createSharedFrames(): SharedFrames {
  const starts = createInterned<NextStart>();
  let latest: { shared: SharedResult; start: NextStart; frames: readonly Buffer[] } | undefined;
  return {
    startOf: (operationId) => starts(operationId, () => makeStart(operationId)),
    of(shared, start) {
      if (latest?.shared !== shared || latest.start !== start) {
        latest = { shared, start, frames: makeFrames(shared, start) };
      }
      return latest.frames;
    },
  };
}
