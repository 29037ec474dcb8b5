// Legacy working state (one notebook for each thread) becomes a pad's content, exactly once; nothing writes the old key again.
import { notFound } from '../shared/errors.js';
import type { Logger } from '../shared/logger.js';
import { byteLength, cutToBytes, toStorableText } from '../shared/text.js';
import { largestContentInEventBytes, type DataPlaneLimits } from './data-plane.js';
import { askRedis, type RedisAccess } from '../redis/redis-access.js';
import { legacyNotebook } from './schemas.js';
import {
  contentKey,
  entriesKey,
  eventChannel,
  legacyNotebookKey,
  sequenceKey,
  tombstoneKey,
  type PadAddress,
} from '../redis/redis-keys.js';
import { convergeScript } from './scripts/converge.js';
import { defineScript } from '../redis/run-script.js';

/**
 * If the thread has a legacy notebook, it becomes the pad's content when the pad is empty, and is removed unread otherwise. There is no
 * moment when both can be read. Costs one round trip when there is none.
 * @throws DomainError UNAVAILABLE, NOT_FOUND when the pad was deleted meanwhile
 */
export type ConvergeNotebook = (pad: PadAddress, threadId: string) => Promise<void>;

interface Notebook {
  text: string;
  /** Undefined when the notebook does not say. */
  writtenAtMs: number | undefined;
}

/** Whatever an old writer left is kept as text: what is no notebook is its own text, what no store can hold is replaced. */
function readNotebook(raw: string): Notebook {
  let parsed: unknown;
  try {
    parsed = JSON.parse(raw);
  } catch {
    parsed = undefined;
  }
  const result = legacyNotebook.safeParse(parsed);
  const text = result.success ? result.data.content : raw;
  const writtenAtMs = Math.floor((result.data?.last_updated ?? NaN) * 1000);
  return {
    text: toStorableText(text),
    writtenAtMs: writtenAtMs >= 0 && writtenAtMs < 253_402_300_800_000 ? writtenAtMs : undefined,
  };
}

/** The limit on contents holds for an old one as well: what is over it is cut, and the content says so. */
function fit(text: string, maxBytes: number): string {
  const bytes = byteLength(text);
  if (bytes <= maxBytes) return text;
  const note = `\n(cut here: the legacy notebook had ${bytes} bytes)`;
  return cutToBytes(cutToBytes(text, maxBytes - byteLength(note)) + note, maxBytes);
}

interface Dependencies {
  redis: RedisAccess;
  limits: Pick<DataPlaneLimits, 'scratchpadTtlSeconds' | 'maxContentBytes'>;
  logger: Pick<Logger, 'warn'>;
}

export function createNotebookConverger({ redis, limits, logger }: Dependencies): ConvergeNotebook {
  const converge = defineScript(redis.commands, convergeScript);

  return async (pad, threadId) => {
    const notebookKey = legacyNotebookKey(threadId);
    const keys = [contentKey(pad), entriesKey(pad), sequenceKey(pad), tombstoneKey(pad.scratchpadId), notebookKey];
    for (;;) {
      const raw = await askRedis(redis, () => redis.commands.get(notebookKey));
      if (raw === null) return;
      const { text: whole, writtenAtMs } = readNotebook(raw);
      const text = fit(whole, limits.maxContentBytes);
      if (text !== whole)
        logger.warn({ ...pad, bytes: byteLength(whole) }, 'a legacy notebook is over MAX_CONTENT_BYTES: it is cut');
      const outcome = await askRedis(redis, () =>
        converge(keys, [
          eventChannel(pad),
          limits.scratchpadTtlSeconds,
          raw,
          text === '' ? '' : `{"content":${JSON.stringify(text)}`,
          writtenAtMs ?? '',
          byteLength(text) <= largestContentInEventBytes ? '1' : '0',
        ]),
      );
      if (outcome === 'GONE') throw notFound();
      // An old writer may have changed it in between: what is removed is always what was read.
      if (outcome !== 'CHANGED') return;
    }
  };
}
