// Removes all that Redis holds of one deleted pad, and tells its subscribers.
import { askRedis, type RedisAccess } from '../redis/redis-access.js';
import {
  contentKey,
  entriesKey,
  eventChannel,
  idempotencyIndexKey,
  sequenceKey,
  tombstoneKey,
  type PadAddress,
} from '../redis/redis-keys.js';
import { purgeScript } from './scripts/purge.js';
import { defineScript } from '../redis/run-script.js';

/** Outlives every cache of "this pad exists" by far: such a cache lives for a second. */
const tombstoneSeconds = 3600;
const idempotencyKeysAtOnce = 500;

/** Safe to run again, and from several processes at once. @throws DomainError UNAVAILABLE; then run it again */
export function createPadPurger(redis: RedisAccess): (pad: PadAddress) => Promise<void> {
  const purge = defineScript(redis.commands, purgeScript);

  return async (pad) => {
    const keys = [
      contentKey(pad),
      entriesKey(pad),
      sequenceKey(pad),
      tombstoneKey(pad.scratchpadId),
      idempotencyIndexKey(pad),
    ];
    const values = [eventChannel(pad), tombstoneSeconds, idempotencyKeysAtOnce];
    let left: string[] = [];
    do {
      const named = left;
      left = (await askRedis(redis, () => purge([...keys, ...named], values))) as string[];
    } while (left.length > 0);
  };
}
