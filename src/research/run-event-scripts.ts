// The Lua scripts behind the stream of a run: write, read on from a number, forget.

/**
 * Writes events in one step, so that a stream has one order, nothing behind its last event, and no life after its run was deleted.
 * Numbers only grow, also over a stream that expired in between and a Redis that lost its last second: the clock takes over.
 *
 * KEYS  1 list  2 tombstone of the run
 * ARGV  1 channel  2 life in ms after this write  3 life in ms after the last event
 *       4 the number of the last event that the writer knows, or "": with a newer one in the list, a retried write was applied before
 *       5... rows: each the event's JSON after its number, beginning with ',"end":true' for the last one of a stream
 * Reply the number of the last event; "ENDED"; "GONE": the run was deleted
 */
export const appendEventsScript = `
if redis.call('EXISTS', KEYS[2]) == 1 then return 'GONE' end
local number = 0
local last = redis.call('LINDEX', KEYS[1], -1)
if last then
  if string.find(last, '^{"number":%d+,"end":true') then return 'ENDED' end
  number = tonumber(string.match(last, '^{"number":(%d+)'))
  if ARGV[4] ~= '' and number > tonumber(ARGV[4]) then return string.format('%.0f', number) end
end
local time = redis.call('TIME')
local life = ARGV[2]
for i = 5, #ARGV do
  number = math.max(number + 1, time[1] * 1000000 + time[2])
  redis.call('RPUSH', KEYS[1], '{"number":' .. string.format('%.0f', number) .. ARGV[i])
  if string.find(ARGV[i], '^,"end":true') then
    life = ARGV[3]
    break
  end
end
redis.call('PEXPIRE', KEYS[1], life)
local text = string.format('%.0f', number)
redis.call('PUBLISH', ARGV[1], text)
return text
`;

/**
 * KEYS  1 list
 * ARGV  1 the number behind which to read, or "now" for nothing but the place  2 most rows  3 most bytes (one row is always read)
 * Reply { "NONE" } there is no list
 *       { "MORE" | "OPEN" | "ENDED", number of the last event in the list, row... }   ENDED: the last row is the last event of the stream
 */
export const readEventsScript = `
local length = redis.call('LLEN', KEYS[1])
if length == 0 then return { 'NONE' } end
local function number_of(row) return tonumber(string.match(row, '^{"number":(%d+)')) end
local last = redis.call('LINDEX', KEYS[1], -1)
local state = string.find(last, '^{"number":%d+,"end":true') and 'ENDED' or 'OPEN'
local reply = { state, string.format('%.0f', number_of(last)) }
if ARGV[1] == 'now' then return reply end
local after = tonumber(ARGV[1])
if number_of(last) <= after then return reply end
local low, high = 0, length - 1
while after > 0 and low < high do
  local middle = math.floor((low + high) / 2)
  if number_of(redis.call('LINDEX', KEYS[1], middle)) > after then high = middle else low = middle + 1 end
end
local rows = redis.call('LRANGE', KEYS[1], low, low + ARGV[2] - 1)
local bytes = 0
for i, row in ipairs(rows) do
  bytes = bytes + #row
  if i > 1 and bytes > tonumber(ARGV[3]) then
    rows[i] = nil
    reply[1] = 'MORE'
    return reply
  end
  reply[i + 2] = row
end
if low + #rows < length then reply[1] = 'MORE' end
return reply
`;

/**
 * Nothing of a deleted run's stream stays, and nothing can bring it back.
 *
 * KEYS  1 list  2 tombstone of the run
 * ARGV  1 channel  2 life of the tombstone in seconds
 */
export const purgeEventsScript = `
redis.call('SET', KEYS[2], '1', 'EX', ARGV[2])
redis.call('UNLINK', KEYS[1])
redis.call('PUBLISH', ARGV[1], '0')
return 'OK'
`;
