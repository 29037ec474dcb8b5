// Cuts long tool results down to a common size, so that short ones stay whole, and says in each what is missing.
import { byteLength } from '../../shared/text.js';
import { bytesPerToken, estimateTokens } from './token-estimate.js';

/** Below this a cut result says too little to go on with. */
const minimumTokens = 60;

/** The start of `text`, at most `maxBytes` long in UTF-8, cut between characters. */
function startOf(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text, 'utf8').subarray(0, maxBytes);
  // In streaming mode the decoder holds an incomplete character back instead of replacing it.
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true });
}

function shorten(text: string, maxTokens: number): string {
  if (estimateTokens(text) <= maxTokens) return text;
  const note = (kept: number): string =>
    `\n[shortened to fit the context: the first ${kept} of ${text.length} characters. Read less at a time.]`;
  const start = startOf(text, maxTokens * bytesPerToken - byteLength(note(text.length)));
  return start + note(start.length);
}

/** The texts, together at most `roomTokens`; undefined when there is no useful room. */
export function shortenResults(texts: readonly string[], roomTokens: number): string[] | undefined {
  // Fill up from the shortest: what it does not need is shared by the longer ones.
  const sizes = texts.map(estimateTokens).sort((a, b) => a - b);
  let room = roomTokens;
  let share = 0;
  for (const [place, size] of sizes.entries()) {
    share = Math.floor(room / (sizes.length - place));
    if (size > share) break;
    room -= size;
    share = size;
  }
  const longest = sizes.at(-1) ?? 0;
  if (room < 0 || (share < longest && share < minimumTokens)) return undefined;
  return texts.map((text) => shorten(text, share));
}
