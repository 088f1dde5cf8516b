do -- Lanes: tasks that wait for their turn, in weighted fair order.
--
-- Start-time fair queueing: each lane with startable tasks stands in lanes under a tag, its virtual time. The
-- lowest goes first; its tag grows by 1/weight, and the clock is the tag of what went last. A lane joins at
-- clock + 1/weight: at the plain clock, one that keeps emptying would take everything. The producers' own
-- stream is a lane too, with its tag in stats. Strict lanes have a clock of their own and tags far below.
--
-- waiting holds the task; laned, in lexical order, lane NUL tid of fixed width. A lane leaves lanes while it has
-- nothing, is capped (it comes back when a slot frees: lane_ended) or waits for a rate token ('l:LANE' in
-- delayed). Invariant: where lanes has one, an undelivered entry is in go or the stream, or every worker with
-- room is about to claim: whoever takes such an entry calls claim, and claim ends with pump.

local STRICT = 1e12 -- strict lanes' tags are that much lower
local ID_WIDTH = 20 -- of each half of a padded tid: ids are two numbers of 64 bits
local LANES_AT_ONCE = 100 -- that one call looks at without finding a task

local function tag_text(tag)
  return string.format('%.17g', tag)
end

-- conf 'lane:NAME' is 'WEIGHT, MAX_RUNNING, RATE, BURST', each but the first may be missing or '-'; 'strict'
-- stands for a weight.
local function spec_of(q, lane)
  q.specs = q.specs or {}
  local spec = q.specs[lane]
  if not spec then
    local parts = {}
    for part in (redis.call('HGET', q[CONF], 'lane:' .. lane) or ''):gmatch('[^,]+') do
      parts[#parts + 1] = part:match('^%s*(.-)%s*$')
    end
    spec = {
      strict = parts[1] == 'strict', step = 1 / math.max(number_or(parts[1], 1), 0.001),
      most = number_or(parts[2]), every_us = leat.interval_us(parts[3]), burst = number_or(parts[4], 1),
    }
    q.specs[lane] = spec
  end
  return spec
end

local function clock_name(spec)
  return spec.strict and 'clock_strict' or 'clock'
end

local function clock_of(q, spec)
  return number_or(redis.call('HGET', q[STATS], clock_name(spec)), 0)
end

-- ms and sequence padded, so that tids sort as bytes.
local function member_of(lane, tid)
  local ms, sequence = tid:match('^(%d+)%-(%d+)$')
  return lane .. '\0' .. ('0'):rep(ID_WIDTH - #ms) .. ms .. '-' .. ('0'):rep(ID_WIDTH - #sequence) .. sequence
end

-- Lane and tid of a member, or nil where it was damaged by hand.
local function parts_of(member)
  local lane, digits = member:sub(1, -2 * ID_WIDTH - 3), member:sub(-2 * ID_WIDTH - 2)
  local ms, sequence = digits:match('^%z0*(%d+)%-0*(%d+)$')
  if #digits == 2 * ID_WIDTH + 2 and ms then
    return lane, ms .. '-' .. sequence
  end
end
leat.lane_parts = parts_of

local function tid_of(member)
  local _, tid = parts_of(member)
  return tid or ''
end

local function members(q, lane, count_wanted)
  return redis.call('ZRANGE', q[LANED], '[' .. lane .. '\0', '(' .. lane .. '\1', 'BYLEX', 'LIMIT', '0',
    count_wanted)
end

local function running(q, lane)
  return number_or(redis.call('HGET', q[STATS], 'r:' .. lane), 0)
end

local function is_capped(q, lane, spec)
  return spec.most and running(q, lane) >= spec.most
end

-- Part of a whole step: the lane has something that can start.
local function join(q, lane, spec)
  if not redis.call('ZSCORE', q[LANES], lane) then
    local tag = clock_of(q, spec) + spec.step - (spec.strict and STRICT or 0)
    redis.call('ZADD', q[LANES], tag_text(tag), lane)
    undo_with(q, 'ZREM', q[LANES], lane)
    q.plain = false
  end
end

local function join_if_startable(q, lane)
  local spec = spec_of(q, lane)
  if not is_capped(q, lane, spec) and not (spec.every_us and redis.call('ZSCORE', q[DELAYED], 'l:' .. lane)) then
    join(q, lane, spec)
  end
end

-- Part of a whole step: the task, which stands in waiting, waits for its lane's turn.
function leat.to_lane(q, tid, lane)
  zset_put(q, LANED, '0', member_of(lane, tid))
  join_if_startable(q, lane)
end

function leat.leave_lane(q, tid, lane)
  zset_drop(q, LANED, member_of(lane, tid))
end

function leat.is_laned(q, tid, lane)
  return redis.call('ZSCORE', q[LANED], member_of(lane, tid)) ~= false
end

-- Part of a whole step: the lane's rate token is there, a slot was freed, or its settings changed.
function leat.wake_lane(q, lane)
  if #members(q, lane, 1) > 0 then
    join_if_startable(q, lane)
  end
end

-- Counts of running tasks are part of the steps that begin and end them: caps rely on them.
local function add_running(q, lane, by)
  local left = redis.call('HINCRBY', q[STATS], 'r:' .. lane, str(by))
  undo_with(q, 'HINCRBY', q[STATS], 'r:' .. lane, str(-by))
  if left == 0 then
    redis.call('HDEL', q[STATS], 'r:' .. lane)
  end
end

function leat.lane_begun(q, lane)
  add_running(q, lane, 1)
end

function leat.lane_ended(q, lane)
  add_running(q, lane, -1)
  if spec_of(q, lane).most then
    leat.wake_lane(q, lane)
    q.freed = true
  end
end

-- Whether a task of that lane may begin now. turned: it came by way of its lane's turn, which took the rate token.
function leat.lane_is_open(q, lane, turned)
  local spec = spec_of(q, lane)
  if is_capped(q, lane, spec) then
    return false
  end
  if spec.every_us and not turned then
    if leat.tokens(q, 't:' .. lane, spec.every_us, spec.burst) < 1 then
      return false
    end
    leat.take_tokens(q, 't:' .. lane, spec.every_us, 1)
  end
  return true
end

-- Part of a whole step: a task that was read and may not begin goes (back) into its lane.
function leat.back_to_lane(q, task)
  hash_set(q, WAITING, task.tid, cmsgpack.pack(encode(task)))
  leat.to_lane(q, task.tid, task.lane)
  leat.remove(q, task.token)
end

-- ---------------------------------------------------------------- whose turn it is

-- The lane that goes first, its tag and the member, or nil. Lanes that cannot start anything leave on the way.
local function first_lane(q)
  for _ = 1, LANES_AT_ONCE do
    local top = redis.call('ZRANGE', q[LANES], '0', '0', 'WITHSCORES')
    local lane = top[1]
    if not lane then
      return nil
    end
    local spec, found, due = spec_of(q, lane), members(q, lane, 1), nil
    local promoted = q.promoted and q.promoted[lane] or 0
    if spec.every_us and #found > 0 then
      local ready, next_ms = leat.tokens(q, 't:' .. lane, spec.every_us, spec.burst)
      due = ready < 1 and next_ms
    end
    if #found > 0 and not due and not (spec.most and running(q, lane) + promoted >= spec.most) then
      return lane, tonumber(top[2]), found[1]
    end
    redis.call('ZREM', q[LANES], lane)
    if due then
      leat.put_due(q, due, 'l:' .. lane)
    end
  end
  return nil
end

local function start_step(q, lane, tag, member)
  local spec, tid = spec_of(q, lane), tid_of(member)
  local list = leat.unpack_waiting(redis.call('HGET', q[WAITING], tid))
  zset_drop(q, LANED, member)
  if #members(q, lane, 1) > 0 then
    zset_put(q, LANES, tag_text(tag + spec.step), lane)
  else
    zset_drop(q, LANES, lane)
  end
  if not list then
    return false
  end
  add_entry(q, q[GO], list)
  hash_drop(q, WAITING, tid)
  if spec.every_us then
    leat.take_tokens(q, 't:' .. lane, spec.every_us, 1)
  end
  return true
end

-- Puts the next task up into go. Its tag must be lower than before, where that is given. Answers whether it did.
local function start_next(q, before)
  for _ = 1, LANES_AT_ONCE do
    local lane, tag, member = first_lane(q)
    if not lane or before and tag >= before then
      return false
    end
    local spec = spec_of(q, lane)
    local clock = tag + (spec.strict and STRICT or 0)
    redis.call('HSET', q[STATS], clock_name(spec), tag_text(clock))
    if whole_step(start_step, q, lane, tag, member) then
      q.promoted = q.promoted or {}
      q.promoted[lane] = (q.promoted[lane] or 0) + 1
      return true
    end
  end
  return false
end

function leat.has_lanes(q)
  return not leat.is_plain(q) and redis.call('EXISTS', q[LANES]) == 1
end

-- The stream's tag: it joins at the present.
local function stream_tag(q)
  local v = redis.call('HMGET', q[STATS], 'stream_tag', 'clock')
  return math.max(number_or(v[1], 0), number_or(v[2], 0))
end

-- Begins up to `wanted` tasks in fair order by read(kind, how many), which answers how many are still wanted.
function leat.read_fair(q, wanted, read)
  local stream_is_empty = false
  while wanted > 0 do
    local up, tag = 0, not stream_is_empty and stream_tag(q) or nil
    while up < wanted and up < PAGE and start_next(q, tag) do
      up = up + 1
    end
    local left = up > 0 and read('g', up) or 0
    q.promoted = nil
    wanted = wanted - (up - left)
    if left > 0 then
      return wanted
    end
    if wanted > 0 and not stream_is_empty then
      left = read('s', 1)
      wanted = wanted - (1 - left)
      stream_is_empty = left == 1
      redis.call('HSET', q[STATS], 'stream_tag', tag_text(tag + 1))
      if left == 0 then
        redis.call('HSET', q[STATS], 'clock', tag_text(tag))
      end
    elseif wanted > 0 and up == 0 then
      return wanted
    end
  end
  return wanted
end

-- How many entries nobody has read. Finished ones are deleted before they are acked, so what is not pending has
-- not been read. group may be nil.
function leat.undelivered(q, key, group)
  local length = redis.call('XLEN', q[key])
  if length == 0 or not group then
    return length
  end
  for _, info in ipairs(redis.call('XINFO', 'GROUPS', q[key])) do
    if info[2] == group then
      return length - info[6]
    end
  end
  return length
end

-- Where a lane could start something and no entry waits to be read: one goes up, and whoever reads it claims and
-- pumps again. At a scan, even if there is one: it may be one that nobody will read.
function leat.pump(q, anyway)
  if not leat.has_lanes(q) then
    return
  end
  local group = q.group or redis.call('HGET', q[CONF], 'group') or nil
  if anyway or leat.undelivered(q, GO, group) < 1 and leat.undelivered(q, STREAM, group) < 1 then
    start_next(q)
  end
end

-- Whether a new task of that lane may go straight to the stream, where a blocked worker gets it at once.
function leat.is_idle(q, lane)
  if q.idle == nil then
    local group = redis.call('HGET', q[CONF], 'group')
    q.idle = redis.call('EXISTS', q[LANES]) == 0 and leat.undelivered(q, STREAM, group) < 1
  end
  return q.idle and #members(q, lane, 1) == 0 and not is_capped(q, lane, spec_of(q, lane))
end

function leat.lane_figures(q)
  return redis.call('ZCARD', q[LANED]), redis.call('ZCARD', q[LANES])
end

leat.lane_members, leat.lane_spec, leat.lane_running = members, spec_of, running
leat.lane_tid = tid_of

end
