// The script behind clear: one plane or both, with the number at which it happened and the event, in one step.
import { advance, announce, takeNumber } from './lua.js';

/**
 * KEYS  1 content  2 entries  3 sequence  4 tombstone
 * ARGV  1 channel  2 lifetime in seconds, 0 = for ever  3 "CONTENT", "ENTRIES" or "ALL"  4 the event's JSON after its expiry
 * Reply { "OK", number }   { "GONE" } the pad was deleted
 */
export const clearScript = `
if redis.call('EXISTS', KEYS[4]) == 1 then return { 'GONE' } end
${takeNumber}${advance}${announce}
local expires_at
if ARGV[3] == 'CONTENT' then
  redis.call('UNLINK', KEYS[1])
  expires_at = advance(ARGV[2], 'content', number, 'content_cleared', number)
elseif ARGV[3] == 'ENTRIES' then
  redis.call('UNLINK', KEYS[2])
  expires_at = advance(ARGV[2], 'entries', number, 'entries_cleared', number)
else
  redis.call('UNLINK', KEYS[1], KEYS[2])
  expires_at = advance(ARGV[2], 'content', number, 'content_cleared', number, 'entries', number, 'entries_cleared', number)
end
if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then expires_at = 'null' end
announce(ARGV[3] == 'ALL' and 'CLEAR' or 'CLEAR_' .. ARGV[3], expires_at, ARGV[4])
return { 'OK', number }
`;
