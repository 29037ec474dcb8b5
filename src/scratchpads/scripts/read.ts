// The script behind read: whatever is asked of any number of pads, in one round trip and one atomic step.
import { sequenceOf } from './lua.js';

/**
 * KEYS  for each pad: content, entries, sequence
 * ARGV  1 bytes of content and rows that may be replied
 *       then for each pad, "wishes:bytes of tail:pages:token of what the reader knows". Wishes are letters: c content, n number of
 *       entries, s sequence and expiry, t tail. A page is "size,1 from the end or 0,position after which,position before which it lies (-1: no bound);"
 * Reply nil, if it would have more bytes; else for each pad { content, number of entries, { entries number, content number, expires_at },
 *       tail, pages, token }, nil for what was not asked. The token changes with every write; where it is the reader's, it is nil, and so
 *       are content and pages. It is empty where nothing is worth remembering. The tail is newest first and just exceeds its bytes,
 *       unless it is the whole ledger.
 *       A page is { number of rows, texts of them, position of the first row, sequence at the after position,
 *       sequence at the before position }, its rows in ledger order, one more than its size when there are more. A text is the JSON of
 *       rows with commas between them: to make each a value of its own is most of what a reader pays for a page.
 */
export const readScript = `
${sequenceOf}
local left = tonumber(ARGV[1])
local function taken(rows)
  for i = 1, #rows do left = left - #rows[i] end
  return rows
end

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
  return taken(rows)
end

-- Some at a time: not much more is read than may be replied, and one text of many megabytes takes twice as long to make.
local function rows_of(key, from, to)
  local texts, count = {}, 0
  while from <= to and left >= 0 do
    local rows = taken(redis.call('LRANGE', key, from, math.min(to, from + 49)))
    texts[#texts + 1] = table.concat(rows, ',')
    count = count + #rows
    from = from + 50
  end
  return texts, count
end

local function page_of(key, count, size, from_end, after, before)
  local from = after + 1
  local to = (before >= 0 and before < count) and before - 1 or count - 1
  if from_end then from = math.max(from, to - size) else to = math.min(to, from + size) end
  local texts, number_of_rows = rows_of(key, from, to)
  return {
    number_of_rows,
    texts,
    from,
    after >= 0 and sequence_of(redis.call('LINDEX', key, after)),
    before >= 0 and sequence_of(redis.call('LINDEX', key, before)),
  }
end

local reply = {}
for pad = 1, #ARGV - 1 do
  local content, entries, sequence = KEYS[pad * 3 - 2], KEYS[pad * 3 - 1], KEYS[pad * 3]
  local wishes, tail_bytes, pages, known = string.match(ARGV[pad + 1], '^(%a*):(%d*):([^:]*):(.*)$')
  local function wants(letter) return string.find(wishes, letter, 1, true) ~= nil end
  local count = (wishes ~= '' or pages ~= '') and redis.call('LLEN', entries)
  local token = ''
  if (wants('c') or pages ~= '') and not wants('t') then
    -- The number of the last write would do; lengths also show most of what another program has done.
    token = (redis.call('HGET', sequence, 'last') or '') .. ',' .. count .. ',' .. redis.call('STRLEN', content)
  end
  local is_known = token ~= '' and token == known
  if not is_known and wants('c') then left = left - redis.call('STRLEN', content) end
  if left < 0 then return false end
  local answer = {
    not is_known and wants('c') and redis.call('GET', content),
    count,
    wants('s') and redis.call('HMGET', sequence, 'entries', 'content', 'expires_at', 'entries_cleared', 'content_cleared'),
    wants('t') and tail_of(entries, count, tonumber(tail_bytes)),
    {},
    not is_known and token,
  }
  if not is_known then
    for size, from_end, after, before in string.gmatch(pages, '(%d+),(%d),(-?%d+),(-?%d+);') do
      table.insert(answer[5], page_of(entries, count, tonumber(size), from_end == '1', tonumber(after), tonumber(before)))
      if left < 0 then return false end
    end
  end
  reply[pad] = answer
end
return reply
`;
