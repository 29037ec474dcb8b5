// The script behind appendEntry: one entry, its place in the order, its expiry and its event, in one step.
import { advance, announce, isoTime, remember, takeNumber } from './lua.js';

/**
 * KEYS  1 content  2 entries  3 sequence  4 tombstone; with an idempotency key also: 5 index  6 idempotency
 * ARGV  1 channel  2 lifetime in seconds, 0 = for ever  3 most entries
 *       4 the row's JSON up to its content  5 the row's JSON after its sequence  6 the event's JSON after the entry
 *       7 entry id  8 hash of the input
 *       from 5 on left out where there is nothing to say: each argument costs its writer
 * Reply { "OK", number, created_at, position }
 *       { "AGAIN", record, row at its position }   the key was used with this input: nothing is written
 *       { "REUSED" }   the key was used with another input
 *       { "FULL" }     { "GONE" } the pad was deleted
 */
export const appendScript = `
if redis.call('EXISTS', KEYS[4]) == 1 then return { 'GONE' } end
local record = KEYS[6] and redis.call('GET', KEYS[6])
if record then
  if string.match(record, '"input":"(%x+)"') ~= ARGV[8] then return { 'REUSED' } end
  local position = string.match(record, '"position":(%d+)')
  return { 'AGAIN', record, position and redis.call('LINDEX', KEYS[2], position) }
end
if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[3]) then return { 'FULL' } end
${takeNumber}${isoTime}${advance}${announce}${remember}
local created_at = iso_time(now_ms)
local row = ARGV[4] .. ',"created_at":"' .. created_at .. '","sequence":' .. number .. (ARGV[5] or '}')
local position = redis.call('RPUSH', KEYS[2], row) - 1
local expires_at = advance(ARGV[2], 'entries', number)
if KEYS[6] then
  remember('{"input":"' .. ARGV[8] .. '","id":"' .. ARGV[7] .. '","created_at":"' .. created_at
    .. '","sequence":' .. number .. ',"position":' .. position .. '}')
end
announce('APPEND', expires_at, ',"entry":' .. row .. (ARGV[6] or '}'))
return { 'OK', number, created_at, position }
`;
