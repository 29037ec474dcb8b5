// Legacy working state (one notebook for each thread) becomes a pad's content, exactly once; nothing writes the old key again.
import { isStorableText, byteLength } from '../shared/text.js';
import { notFound } from '../shared/errors.js';
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
    text: isStorableText(text) ? text : text.replaceAll('\u0000', '\uFFFD').toWellFormed(),
    writtenAtMs: writtenAtMs >= 0 && writtenAtMs < 253_402_300_800_000 ? writtenAtMs : undefined,
  };
}

export function createNotebookConverger({
  redis,
  limits,
}: {
  redis: RedisAccess;
  limits: Pick<DataPlaneLimits, 'scratchpadTtlSeconds'>;
}): ConvergeNotebook {
  const converge = defineScript(redis.commands, 'scratchpadConverge', convergeScript);

  return async (pad, threadId) => {
    const notebookKey = legacyNotebookKey(threadId);
    const keys = [contentKey(pad), entriesKey(pad), sequenceKey(pad), tombstoneKey(pad.scratchpadId), notebookKey];
    for (;;) {
      const raw = await askRedis(redis, () => redis.commands.get(notebookKey));
      if (raw === null) return;
      const { text, writtenAtMs } = readNotebook(raw);
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
