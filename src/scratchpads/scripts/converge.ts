// The script behind the convergence of a legacy notebook: it becomes the content, or goes, exactly once whoever races.
import { advance, announce, isoTime, takeNumber } from './lua.js';

/**
 * KEYS  1 content  2 entries  3 sequence  4 tombstone  5 legacy notebook
 * ARGV  1 channel  2 lifetime in seconds, 0 = for ever  3 the notebook as it was read  4 the content's JSON up to its text, or "" when
 *       there is nothing to keep  5 when it was last written, in ms, or "" for now  6 "1" when the event carries the content
 * Reply "ADOPTED", "DROPPED" (the pad has a state of its own, or the notebook is empty), "CHANGED" (read it again) or "GONE"
 */
export const convergeScript = `
if redis.call('EXISTS', KEYS[4]) == 1 then return 'GONE' end
if redis.call('GET', KEYS[5]) ~= ARGV[3] then return 'CHANGED' end
redis.call('UNLINK', KEYS[5])
if ARGV[4] == '' or redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return 'DROPPED' end
${takeNumber}${isoTime}${advance}${announce}
local written_at = tonumber(ARGV[5]) or now_ms
local content = ARGV[4] .. ',"updated_at":"' .. iso_time(written_at) .. '","version":"' .. number .. '"}'
redis.call('SET', KEYS[1], content)
local expires_at = advance(ARGV[2], 'content', number)
announce('UPDATE', expires_at, (ARGV[6] == '1' and ',"content":' .. content or '') .. '}')
return 'ADOPTED'
`;
