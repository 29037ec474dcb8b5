// The script behind setContent: compare-and-set, expiry and event, in one step.
import { advance, announce, isoTime, remember, takeNumber } from './lua.js';

/**
 * KEYS  1 content  2 entries  3 sequence  4 tombstone; with an idempotency key also: 5 index  6 idempotency
 * ARGV  1 channel  2 lifetime in seconds, 0 = for ever
 *       3 "" to write in any case, or "=" and the version that must be current
 *       4 the content's JSON up to its text  5 the event's JSON after the content  6 "1" when the event carries the content
 *       7 hash of the input
 * Reply { "OK", version, updated_at }
 *       { "AGAIN", record }   the key was used with this input: nothing is written
 *       { "REUSED" }          the key was used with another input
 *       { "CHANGED", version that is current }     { "GONE" } the pad was deleted
 */
export const setScript = `
if redis.call('EXISTS', KEYS[4]) == 1 then return { 'GONE' } end
local record = KEYS[6] and redis.call('GET', KEYS[6])
if record then
  if string.match(record, '"input":"(%x+)"') ~= ARGV[7] then return { 'REUSED' } end
  return { 'AGAIN', record }
end
if ARGV[3] ~= '' then
  local version = string.match(redis.call('GETRANGE', KEYS[1], -40, -1), '"version":"(%d+)"}$') or '0'
  if ARGV[3] ~= '=' .. version then return { 'CHANGED', version } end
end
${takeNumber}${isoTime}${advance}${announce}${remember}
local updated_at = iso_time(now_ms)
local content = ARGV[4] .. ',"updated_at":"' .. updated_at .. '","version":"' .. number .. '"}'
redis.call('SET', KEYS[1], content)
local expires_at = advance(ARGV[2], 'content', number)
if KEYS[6] then
  remember('{"input":"' .. ARGV[7] .. '","version":"' .. number .. '","updated_at":"' .. updated_at .. '"}')
end
announce('UPDATE', expires_at, (ARGV[6] == '1' and ',"content":' .. content or '') .. ARGV[5])
return { 'OK', number, updated_at }
`;
