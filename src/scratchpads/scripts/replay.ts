// The script behind a replay: what a pad's state has beyond a position, one bounded page of it, in one atomic step.
import { sequenceOf } from './lua.js';

/**
 * KEYS  1 content  2 entries  3 sequence  4 tombstone
 * ARGV  1 "now" (only where the state is), "start" (all of it) or "after" (what is beyond the position)
 *       2 entries number and 3 content number of the position  4 most rows  5 bytes of rows after which the page ends
 * Reply { "GONE" }   the pad was deleted
 *       { "AT", entries number, content number, expires_at in ms or "null", "1" when the state of the position, and there was one, has expired,
 *         entries number and content number from which the page is told, number of a clear of the entries that is to be told or nil, the same of the content, rows, "1" when no rows are left,
 *         the content when it is to be told (only when no rows are left) or nil }
 *
 * A position is told apart from a state that lost what it saw (a Redis that lost its last second): its entry must be in the
 * ledger, unless the ledger was cleared since; if it is not, a clear is told and then everything.
 */
export const replayScript = `
if redis.call('EXISTS', KEYS[4]) == 1 then return { 'GONE' } end
${sequenceOf}
local fields = redis.call('HMGET', KEYS[3], 'entries', 'content', 'entries_cleared', 'content_cleared', 'born', 'expires_at')
for i = 1, 6 do fields[i] = fields[i] or '0' end
local entries, content, entries_cleared, content_cleared, born = tonumber(fields[1]), tonumber(fields[2]), tonumber(fields[3]),
  tonumber(fields[4]), tonumber(fields[5])
local is_empty = entries == entries_cleared and content == content_cleared
local expires_at = is_empty and 'null' or fields[6]
if ARGV[1] == 'now' then return { 'AT', fields[1], fields[2], expires_at, '0', fields[1], fields[2], false, false, {}, '1', false } end

local from_entries, from_content = tonumber(ARGV[2]), tonumber(ARGV[3])
local seen = math.max(from_entries, from_content)
local expired = seen > 0 and (seen <= born or math.max(entries, content) == 0)
-- Only a clear of both planes leaves equal numbers: whoever has seen that knows of nothing that could have expired.
local tells_expiry = expired and from_entries ~= from_content
if expired or ARGV[1] == 'start' then from_entries, from_content = entries_cleared, content_cleared end

local count = redis.call('LLEN', KEYS[2])
local function position_after(number)
  if number == entries then return count end
  local low, high = 0, count - 1
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local sequence = tonumber(sequence_of(redis.call('LINDEX', KEYS[2], middle)))
    if sequence == number then return middle + 1 end
    if sequence < number then low = middle + 1 else high = middle - 1 end
  end
  return nil
end

local position, clear_entries = 0, false
if from_entries < entries_cleared then
  clear_entries = fields[3]
elseif from_entries > entries_cleared then
  position = position_after(from_entries)
  if not position then position, clear_entries = 0, fields[3] end
end
local clear_content = (from_content < content_cleared or (from_content > content and content == content_cleared))
  and fields[4]

local rows, bytes = {}, 0
while position < count and #rows < tonumber(ARGV[4]) and bytes < tonumber(ARGV[5]) do
  local chunk = redis.call('LRANGE', KEYS[2], position, position + 19)
  for i = 1, #chunk do
    rows[#rows + 1] = chunk[i]
    bytes = bytes + #chunk[i]
  end
  position = position + #chunk
end
local complete = position >= count
local new_content = complete and from_content ~= content and content ~= content_cleared and redis.call('GET', KEYS[1])
return { 'AT', fields[1], fields[2], expires_at, tells_expiry and '1' or '0', string.format('%.0f', from_entries),
  string.format('%.0f', from_content), clear_entries, clear_content, rows, complete and '1' or '0', new_content }
`;
