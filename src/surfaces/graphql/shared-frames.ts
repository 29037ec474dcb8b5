// The `next` messages of shared results as WebSocket frames: what all subscribers are told is made into bytes once.
import type { SharedResult } from './shared-results.js';

export interface SharedFrames {
  of(shared: SharedResult, start: NextStart): readonly Buffer[];
}

/** A `next` message of one operation up to its payload. */
export interface NextStart {
  readonly operationId: string;
  readonly bytes: Buffer;
}

export const nextStart = (operationId: string): NextStart => ({
  operationId,
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
  let latest: { shared: SharedResult; operationId: string; frames: readonly Buffer[] } | undefined;
  return {
    of(shared, start) {
      // Many clients number their operations alike.
      if (latest?.shared !== shared || latest.operationId !== start.operationId) {
        latest = { shared, operationId: start.operationId, frames: makeFrames(shared, start) };
      }
      return latest.frames;
    },
  };
}
