// Pieces that several scripts share. Each script's header says what its KEYS and ARGV are; KEYS[3] is always the sequence.

/**
 * Takes the next number of the pad. Numbers only grow: over the expiry of the state (the clock takes over) and over a Redis
 * that lost its last second (the clock again). 2^53 microseconds last until the year 2255. Lua would print one as 1.79e+15.
 * Defines previous (0 when there is no state), number, now_ms, and the text forms that belong into JSON.
 */
export const takeNumber = `
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local previous = tonumber(redis.call('HGET', KEYS[3], 'last') or 0)
local number = string.format('%.0f', math.max(previous + 1, time[1] * 1000000 + time[2]))
`;

/** Defines iso_time(ms): ISO 8601 in UTC with milliseconds. Redis gives scripts no calendar. */
export const isoTime = `
local function iso_time(ms)
  local seconds = math.floor(ms / 1000)
  local days = math.floor(seconds / 86400) + 719468
  local era = math.floor(days / 146097)
  local day_of_era = days - era * 146097
  local year_of_era = math.floor((day_of_era - math.floor(day_of_era / 1460) + math.floor(day_of_era / 36524)
    - math.floor(day_of_era / 146096)) / 365)
  local day_of_year = day_of_era - (365 * year_of_era + math.floor(year_of_era / 4) - math.floor(year_of_era / 100))
  local shifted_month = math.floor((5 * day_of_year + 2) / 153)
  local day = day_of_year - math.floor((153 * shifted_month + 2) / 5) + 1
  local month = shifted_month < 10 and shifted_month + 3 or shifted_month - 9
  local year = year_of_era + era * 400 + (month <= 2 and 1 or 0)
  local second = seconds % 86400
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day,
    math.floor(second / 3600), math.floor(second / 60) % 60, second % 60, ms % 1000)
end
`;

/**
 * Defines advance(ttl_seconds, field, value, ...): writes the number and the given fields of the sequence, gives the three
 * keys of the pad (KEYS[1] to KEYS[3]) one common end of life, and returns it as JSON: milliseconds, or null for never.
 * "born" is the number just before the first write of this life of the state: a cursor up to it saw an earlier life.
 */
export const advance = `
local function advance(ttl_seconds, ...)
  local expires_at = 'null'
  if tonumber(ttl_seconds) > 0 then expires_at = string.format('%.0f', now_ms + ttl_seconds * 1000) end
  redis.call('HSET', KEYS[3], 'last', number, 'expires_at', expires_at, ...)
  if previous == 0 then redis.call('HSET', KEYS[3], 'born', string.format('%.0f', tonumber(number) - 1)) end
  for i = 1, 3 do
    if expires_at == 'null' then
      redis.call('PERSIST', KEYS[i])
    else
      redis.call('PEXPIREAT', KEYS[i], expires_at)
    end
  end
  return expires_at
end
`;

/**
 * Defines announce(operation, expires_at, members): PUBLISHes the event on the channel ARGV[1]. members is JSON text that
 * begins with a comma and ends with the closing brace. The event names the number before it, so that a gap shows.
 */
export const announce = `
local function announce(operation, expires_at, members)
  redis.call('PUBLISH', ARGV[1], '{"operation":"' .. operation .. '","number":' .. number
    .. ',"previous":' .. string.format('%.0f', previous) .. ',"occurred_at_ms":' .. string.format('%.0f', now_ms)
    .. ',"expires_at_ms":' .. expires_at .. members)
end
`;

/**
 * Defines remember(record): keeps what a retry with the same idempotency key is answered (KEYS[6]) for 24 hours, and the key's
 * name in the pad's index (KEYS[5]), where a purge finds it. Names whose time is over leave the index with the next one.
 */
export const remember = `
local function remember(record)
  local ends_at = string.format('%.0f', now_ms + 86400000)
  redis.call('SET', KEYS[6], record)
  redis.call('PEXPIREAT', KEYS[6], ends_at)
  redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', string.format('%.0f', now_ms))
  redis.call('ZADD', KEYS[5], ends_at, KEYS[6])
  redis.call('PEXPIREAT', KEYS[5], ends_at)
end
`;

/**
 * Defines sequence_of(row): the number in a ledger row, as text. Inside a JSON string every quote is escaped, so the pattern can
 * match nothing but the member itself; looking near the end first spares a walk through a long text.
 */
export const sequenceOf = `
local function sequence_of(row)
  if not row then return false end
  return string.match(row, '"sequence":(%d+)', -2000) or string.match(row, '"sequence":(%d+)') or false
end
`;
