do -- Limits: rates, and workers that may start nothing.

local SLACK_US = 100000 -- a start that is so much late does not lower the rate: workers may be busy
local ASKERS = 3 -- workers that are told to ask for the same token: if one of them is gone, the others ask
local SPREAD_US = 1000000 -- a worker waits at most so long after the next token
local CLOSED_MS = 3600000 -- how long a paused or drained worker waits at most; a wakeup ends it earlier
local PERIODS_US = { s = 1e6, m = 60e6, min = 60e6, h = 3600e6, d = 86400e6 }

-- The µs between two starts at a rate such as '20/s', or nil: no limit.
function leat.interval_us(text)
  local number, unit = short(text):match('^(%d+%.?%d*)/(%a+)$')
  local period = unit and PERIODS_US[unit]
  return period and tonumber(number) > 0 and period / tonumber(number) or nil
end

-- How many tasks may start now by a token bucket that is full again at that time (µs), and when the next may start
-- (ms).
local function tokens_of(q, full_at, every_us, burst)
  local earliest = full_at - (math.max(burst, 1) - 1) * every_us
  if q.now_us < earliest then
    return 0, math.ceil(earliest / 1000)
  end
  local from = math.max(full_at, q.now_us - SLACK_US)
  local last = q.now_us + (math.max(burst, 1) - 1) * every_us
  return math.floor((last - from) / every_us) + 1, q.now
end

-- When the bucket will be full again (µs), and whether the stored time is wrong: more than the bucket holds cannot have
-- been taken, so the clock was set back.
local function full_at(q, name, every_us, burst)
  local stored = number_or(redis.call('HGET', q[STATS], name), 0)
  local most = q.now_us + math.max(burst, 1) * every_us
  if stored > most + SLACK_US then
    return most, true
  end
  return stored, false
end

-- A token bucket, stored as one time (stats NAME, µs): when the bucket will be full again. Returns how many tasks
-- may start now, and when the next may start (ms).
function leat.tokens(q, name, every_us, burst)
  local full, is_wrong = full_at(q, name, every_us, burst)
  if is_wrong then
    redis.call('HSET', q[STATS], name, str(full))
  end
  return tokens_of(q, full, every_us, burst)
end

-- The same for a caller that may not write.
function leat.peek_tokens(q, name, every_us, burst)
  return tokens_of(q, full_at(q, name, every_us, burst), every_us, burst)
end

function leat.take_tokens(q, name, every_us, number)
  local full = number_or(redis.call('HGET', q[STATS], name), 0)
  full = math.max(full, q.now_us - SLACK_US) + number * every_us
  redis.call('HSET', q[STATS], name, str(full))
end

-- When a worker that waits for a token should ask for it (ms); the next token is there at next_ms. For each token
-- only ASKERS workers ask, and the next ones for the token after it. Otherwise all would ask, and all but one in
-- vain. stats 'turn' is the time that the last worker got, in fractions of a token.
function leat.turn_ms(q, next_ms, every_us)
  local next_us = next_ms * 1000
  local turn = number_or(redis.call('HGET', q[STATS], 'turn'), 0) + math.ceil(every_us / ASKERS)
  if turn < next_us or turn > next_us + SPREAD_US then
    turn = next_us
  end
  redis.call('HSET', q[STATS], 'turn', str(turn))
  return next_ms + math.ceil(math.floor((turn - next_us) / every_us) * every_us / 1000)
end

-- Whether the lane has to wait for its rate. It never waits longer than for one token: a later time is one of a clock
-- that was set back since.
function leat.waits_for_token(q, lane, spec)
  local due = spec.every_us and redis.call('ZSCORE', q[DELAYED], 'l:' .. lane)
  return due and due * 1000 <= q.now_us + spec.every_us + SLACK_US
end

-- For a changed rate: forgets what was taken at the old one.
function leat.forget_rate(q, name)
  redis.call('HDEL', q[STATS], name, 'turn')
end

-- Forgets, in one page of stats, the buckets of lanes that are full, which is what a missing one means. The lanes of the
-- others may wait by a clock that was set back. Returns where to go on.
function leat.sweep_rates(q, cursor, out)
  local page = redis.call('HSCAN', q[STATS], cursor, 'MATCH', 't:*', 'COUNT', CHUNK)
  for i = 1, #page[2], 2 do
    if number_or(page[2][i + 1], math.huge) <= q.now_us - SLACK_US then
      redis.call('HDEL', q[STATS], page[2][i])
    else
      try(out, whole_step, leat.wake_lane, q, page[2][i]:sub(3))
    end
  end
  return page[1]
end

-- Until when the field of conf stops all starts, or nil.
local function stopped_until(q, name, until_ms)
  if until_ms <= q.now then
    return nil
  end
  local most = q.now + leat.read_reclaim(q)
  if until_ms > most then
    -- It is never longer than that: the clock was set back.
    until_ms = most
    redis.call('HSET', q[CONF], name, str(until_ms))
  end
  return until_ms
end

-- Until when this worker may start nothing (0: it may), and why.
local function closed(q, hold_until, outage_until, paused, drained)
  hold_until = stopped_until(q, 'hold_until', hold_until)
  outage_until = stopped_until(q, 'outage_until', outage_until)
  if hold_until then
    return hold_until, 'hold'
  elseif outage_until then
    return outage_until, 'outage'
  elseif paused then
    return q.now + CLOSED_MS, 'paused'
  elseif drained then
    return q.now + CLOSED_MS, 'drained'
  end
  return 0, ''
end

-- The host of a worker, whose name is HOST:PID:NONCE.
function leat.host_of(consumer)
  return consumer:match('^(.-):%d+:[^:]*$') or consumer
end

-- What leat_claim must know of conf, in one read.
function leat.read_claim_conf(conf, consumer)
  return redis.call('HMGET', conf, 'lease_ms', 'hold_until', 'outage_until', 'paused', 'drain:*',
    'drain:' .. leat.host_of(consumer), 'rate', 'fence', 'sizes')
end

-- What these values mean for most queues, where nothing limits starts: the lease (ms), and a fencing token that is
-- greater than all that were given. Returns nil if anything may limit them.
function leat.unlimited(v, now_us)
  if not v[1] or v[4] or v[5] or v[6] or v[7] or v[2] and leat.setting(v[2], 0, 0) * 1000 > now_us
    or v[3] and leat.setting(v[3], 0, 0) * 1000 > now_us then
    return nil
  end
  return leat.known_lease(v[1]), v[8] and leat.setting(v[8], 0, 0) or 0
end

-- What they mean for all queues: the lease (ms); until when this worker may start nothing (ms; 0: it may) and why ('',
-- hold, outage, paused, drained); the queue's rate as every_us (nil: none) and burst. q.fence_floor gets a fencing token
-- that is greater than all that were given.
function leat.pause_state(q, v)
  local lease = leat.known_lease(v[1])
  local closed_until, why = 0, ''
  if v[2] or v[3] or v[4] or v[5] or v[6] then
    closed_until, why = closed(q, leat.setting(v[2], 0, 0), leat.setting(v[3], 0, 0), v[4], v[5] or v[6])
  end
  if v[8] then
    q.fence_floor = leat.setting(v[8], 0, 0)
  end
  q.sizes = v[9] and leat.setting(v[9], 0, 0) or 0
  local every_us = v[7] and leat.interval_us(v[7])
  local burst = every_us and leat.setting(redis.call('HGET', q[CONF], 'burst'), 1, DEFAULT_BURST)
  return lease, closed_until, why, every_us or nil, burst
end

end
