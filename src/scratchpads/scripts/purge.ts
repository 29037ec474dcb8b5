// The script behind a purge: nothing of a deleted pad stays, and nothing can bring it back.
import { announce, takeNumber } from './lua.js';

/**
 * Safe to run any number of times, by any number of processes: the first one to set the tombstone publishes the DELETE event.
 * Called again with the idempotency keys that it named, until it names none.
 *
 * KEYS  1 content  2 entries  3 sequence  4 tombstone  5 index of the idempotency keys  6... idempotency keys to remove
 * ARGV  1 channel  2 life of the tombstone in seconds  3 most names to reply
 * Reply names of idempotency keys that are still there
 */
export const purgeScript = `
local first = redis.call('SET', KEYS[4], '1', 'NX', 'EX', ARGV[2])
${takeNumber}${announce}
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
for i = 6, #KEYS do
  redis.call('UNLINK', KEYS[i])
  redis.call('ZREM', KEYS[5], KEYS[i])
end
if first then announce('DELETE', 'null', '}') end
return redis.call('ZRANGE', KEYS[5], 0, ARGV[3] - 1)
`;
