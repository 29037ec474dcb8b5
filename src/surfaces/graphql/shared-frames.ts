// The `next` messages of shared results as WebSocket frames: what all subscribers are told is made into bytes once.
import type { SharedResult } from './shared-results.js';

export interface SharedFrames {
  /** @param prefix see {@link nextPrefix} */
  of(shared: SharedResult, prefix: Buffer): readonly Buffer[];
}

/** A `next` message of this operation up to its payload. */
export const nextPrefix = (operationId: string): Buffer =>
  Buffer.from(`{"id":${JSON.stringify(operationId)},"type":"next","payload":`);

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

function makeFrames(payload: Buffer, prefix: Buffer): readonly Buffer[] {
  const head = frameHead(prefix.length + payload.length + suffix.length);
  const parts = [head, prefix, payload, suffix];
  return payload.length > longestCopy ? parts : [Buffer.concat(parts)];
}

export function createSharedFrames(): SharedFrames {
  let latest: { shared: SharedResult; prefix: Buffer; frames: readonly Buffer[] } | undefined;
  return {
    of(shared, prefix) {
      // Many clients number their operations alike.
      if (latest?.shared !== shared || !latest.prefix.equals(prefix)) {
        latest = { shared, prefix, frames: makeFrames(shared.payload, prefix) };
      }
      return latest.frames;
    },
  };
}
