// The script behind read: whatever is asked of any number of pads, in one round trip and one atomic step.
import { sequenceOf } from './lua.js';

/**
 * KEYS  for each pad: content, entries, sequence
 * ARGV  for each pad: wishes (letters: c content, n number of entries, s sequence and expiry, t tail),
 *       bytes of tail, number of pages, and for each page:
 *       size, "1" from the end, position after which and position before which it lies (-1: no bound)
 * Reply for each pad { content, number of entries, { entries number, content number, expires_at }, tail, pages }; nil for what was
 *       not asked. The tail is newest first and just exceeds its bytes, unless it is the whole ledger.
 *       A page is { rows, position of the first row, sequence at the after position, sequence at the before position },
 *       its rows in ledger order, one more than its size when there are more.
 */
export const readScript = `
${sequenceOf}
local function tail_of(key, count, bytes)
  local rows = {}
  while count > 0 and bytes > 0 do
    local from = math.max(count - 20, 0)
    local chunk = redis.call('LRANGE', key, from, count - 1)
    for i = #chunk, 1, -1 do
      if bytes > 0 then
        rows[#rows + 1] = chunk[i]
        bytes = bytes - #chunk[i]
      end
    end
    count = from
  end
  return rows
end

local function page_of(key, count, size, from_end, after, before)
  local from = after + 1
  local to = (before >= 0 and before < count) and before - 1 or count - 1
  if from_end then from = math.max(from, to - size) else to = math.min(to, from + size) end
  return {
    to >= from and redis.call('LRANGE', key, from, to) or {},
    from,
    after >= 0 and sequence_of(redis.call('LINDEX', key, after)),
    before >= 0 and sequence_of(redis.call('LINDEX', key, before)),
  }
end

local reply, next_argument = {}, 1
for pad = 1, #KEYS / 3 do
  local content, entries, sequence = KEYS[pad * 3 - 2], KEYS[pad * 3 - 1], KEYS[pad * 3]
  local wishes, tail_bytes, pages = ARGV[next_argument], tonumber(ARGV[next_argument + 1]), tonumber(ARGV[next_argument + 2])
  next_argument = next_argument + 3
  local function wants(letter) return string.find(wishes, letter, 1, true) ~= nil end
  local count = (wants('n') or wants('t') or pages > 0) and redis.call('LLEN', entries)
  local answer = {
    wants('c') and redis.call('GET', content),
    count,
    wants('s') and redis.call('HMGET', sequence, 'entries', 'content', 'expires_at', 'entries_cleared', 'content_cleared'),
    wants('t') and tail_of(entries, count, tail_bytes),
    {},
  }
  for page = 1, pages do
    answer[5][page] = page_of(entries, count, tonumber(ARGV[next_argument]), ARGV[next_argument + 1] == '1',
      tonumber(ARGV[next_argument + 2]), tonumber(ARGV[next_argument + 3]))
    next_argument = next_argument + 4
  end
  reply[pad] = answer
end
return reply
`;
