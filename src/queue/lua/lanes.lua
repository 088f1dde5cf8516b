do -- Lanes: tasks that wait for their turn, in weighted fair order.
--
-- Start-time fair queueing: each lane with startable tasks stands in lanes under a tag, its virtual time. The
-- lowest goes first; its tag grows by 1/weight, and the clock is the tag of what went last. A lane joins at
-- clock + 1/weight: at the plain clock, one that keeps emptying would take everything. The producers' own
-- stream is a lane too, whose last tag stays in stats. Strict lanes have a clock of their own and tags far below.
-- Tasks without a lane that would go up in numbers (due, retried dead letters) wait in the lane ''.
--
-- waiting holds the task; laned, in lexical order, lane NUL tid of fixed width. A lane leaves lanes while it has
-- nothing, is capped (it comes back when a slot frees: lane_ended) or waits for a rate token ('l:LANE' in
-- delayed). Invariant: where lanes has one that can start something, an undelivered entry is in go or the stream,
-- or every worker with room is about to claim: whoever takes such an entry calls claim, and claim ends with pump.
--
-- stats: 'r:LANE' how many of its tasks run, 't:LANE' its rate. Caps and rates are held by the gate (claim), which
-- sends back what may not begin; whose turn it is only looks ahead.

local STRICT = 1e12 -- strict lanes' tags are that much lower
local ID_WIDTH = 20 -- of each half of a padded tid: ids are two numbers of 64 bits
local LANES_AT_ONCE = 100 -- that one call looks at without finding a task
local MAX_LANE = 200 -- bytes of a lane's name

leat.LANE_PROBLEM = 'a lane is at most ' .. MAX_LANE .. ' bytes without NUL'

function leat.may_be_lane(name)
  return name ~= '' and #name <= MAX_LANE and not name:find('%z')
end

local function tag_text(tag)
  return string.format('%.17g', tag)
end

-- conf 'lane:NAME' is 'WEIGHT, MAX_RUNNING, RATE, BURST'; 'strict' stands for a weight, and what is missing or '-'
-- is 1, no limit, no limit, 1.
local function spec_of(q, lane)
  q.specs = q.specs or {}
  local spec = q.specs[lane]
  if not spec then
    local parts = leat.spec_parts(redis.call('HGET', q[CONF], 'lane:' .. lane) or '')
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

-- Part of a whole step: the lane joins at the present.
local function put_at_present(q, lane, spec)
  zset_put(q, LANES, tag_text(clock_of(q, spec) + spec.step - (spec.strict and STRICT or 0)), lane)
  q.plain = false
end

-- Part of a whole step: the lane has something that can start.
local function join(q, lane, spec)
  if not redis.call('ZSCORE', q[LANES], lane) then
    put_at_present(q, lane, spec)
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

-- Part of a whole step: the lane's rate token is there, or a slot was freed.
function leat.wake_lane(q, lane)
  if #members(q, lane, 1) > 0 then
    join_if_startable(q, lane)
  end
end

-- Part of a whole step: the lane's settings changed. What it waited for counts no more.
function leat.lane_changed(q, lane)
  zset_drop(q, LANES, lane)
  zset_drop(q, DELAYED, 'l:' .. lane)
  leat.wake_lane(q, lane)
  leat.forget_rate(q, 't:' .. lane)
end

-- Counts of running tasks are part of the steps that begin and end them: caps rely on them.
local function add_running(q, lane, by)
  local left = redis.call('HINCRBY', q[STATS], 'r:' .. lane, str(by))
  undo_with(q, 'HINCRBY', q[STATS], 'r:' .. lane, str(-by))
  if left == 0 then
    redis.call('HDEL', q[STATS], 'r:' .. lane)
  end
end

function leat.lane_started(q, lane)
  add_running(q, lane, 1)
end

function leat.lane_ended(q, lane)
  add_running(q, lane, -1)
  if spec_of(q, lane).most then
    leat.wake_lane(q, lane)
    q.freed = true
  end
end

-- Whether a task of that lane may begin now; it then has taken its rate token.
function leat.lane_is_open(q, lane)
  local spec = spec_of(q, lane)
  if is_capped(q, lane, spec) then
    return false
  end
  if spec.every_us then
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
  leat.move_record(q, task.from, task.token, 'w' .. task.tid)
  leat.to_lane(q, task.tid, task.lane)
  leat.remove(q, task.token)
end

-- ---------------------------------------------------------------- whose turn it is

-- Part of a whole step: a lane that cannot start anything leaves.
local function park(q, lane, due)
  if due then
    leat.schedule(q, due, 'l:' .. lane)
  end
  zset_drop(q, LANES, lane)
end

-- How many tasks the lane can start now, and where its rate is why there are none, when the next can (ms).
local function startable(q, lane, spec)
  local most, next_ms = math.huge, nil
  if spec.most then
    most = spec.most - running(q, lane)
  end
  if spec.every_us and most > 0 then
    local ready, ready_ms = leat.tokens(q, 't:' .. lane, spec.every_us, spec.burst)
    if ready < 1 then
      next_ms = ready_ms
    end
    most = math.min(most, ready)
  end
  return most, next_ms
end

-- The lane that goes first, its tag and the member, or nil. Lanes that cannot start anything leave on the way;
-- where these are very many, the rest is left to whoever hears the bell. A lane for which this call has put up
-- already what may start ends the search: it cannot be known yet whether that will begin.
local function first_lane(q)
  for _ = 1, LANES_AT_ONCE do
    local top = redis.call('ZRANGE', q[LANES], '0', '0', 'WITHSCORES')
    local lane, tag = top[1], tonumber(top[2])
    if not lane then
      return nil
    end
    local spec = spec_of(q, lane)
    if spec.strict == (tag < -STRICT / 2) then
      local member = members(q, lane, 1)[1]
      local most, due = startable(q, lane, spec)
      if member and most > 0 then
        local is_used_up = q.promoted and (q.promoted[lane] or 0) >= most
        return not is_used_up and lane or nil, tag, member
      end
      whole_step(park, q, lane, member and due)
    else
      -- it became strict, or is not any more
      whole_step(put_at_present, q, lane, spec)
    end
  end
  leat.wake_workers(q, 'lanes')
  return nil
end

-- Where a lane's task goes up, the record of its earlier attempt follows it.
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
  local id, known = add_entry(q, q[GO], list), trailer(list)
  leat.move_record(q, known and known['leat.from'], 'w' .. tid, 'g' .. id)
  hash_drop(q, WAITING, tid)
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

-- Puts up and begins the tasks of lanes whose tags are lower than the stream's (tag; nil: all), up to `wanted`.
-- Answers how many were put up and how many of them began.
local function read_lanes(q, wanted, tag, read)
  local up = 0
  while up < wanted and up < PAGE and start_next(q, tag) do
    up = up + 1
  end
  local left = up > 0 and read('g', up) or 0
  q.promoted = nil
  return up, up - left
end

-- Begins up to `wanted` tasks in fair order by read(kind, how many), which answers how many are still wanted, as
-- long as may_go_on(). What is dropped on the way bounds the work.
function leat.read_fair(q, wanted, read, may_go_on)
  local stream_is_empty, dropped = false, 0
  while wanted > 0 and dropped < PAGE and may_go_on() do
    local tag = not stream_is_empty and stream_tag(q) or nil
    local up, claimed = read_lanes(q, wanted, tag, read)
    wanted, dropped = wanted - claimed, dropped + up - claimed
    if stream_is_empty and up == 0 then
      return
    elseif wanted > 0 and not stream_is_empty then
      stream_is_empty = read('s', 1) == 1
      if not stream_is_empty then
        wanted = wanted - 1
        redis.call('HSET', q[STATS], 'stream_tag', tag_text(tag + 1), 'clock', tag_text(tag))
      end
    end
  end
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

-- Whether an entry is there that the next read would bring: exactly so.
local function has_unread(q, key, group)
  if redis.call('EXISTS', q[key]) == 0 then
    return false
  end
  for _, info in ipairs(redis.call('XINFO', 'GROUPS', q[key])) do
    if info[2] == group then
      return #redis.call('XRANGE', q[key], '(' .. info[8], '+', 'COUNT', '1') > 0
    end
  end
  return false
end

-- Where a lane could start something and no entry waits to be read: one goes up, and whoever reads it claims and
-- pumps again. exactly: at a scan, since entries that somebody acked by hand count as undelivered for ever.
function leat.offer_lane_task(q, exactly)
  if not leat.has_lanes(q) then
    return
  end
  local group = q.group or redis.call('HGET', q[CONF], 'group') or nil
  local is_waiting
  if exactly then
    is_waiting = has_unread(q, GO, group) or has_unread(q, STREAM, group)
  else
    is_waiting = leat.undelivered(q, GO, group) > 0 or leat.undelivered(q, STREAM, group) > 0
  end
  if not is_waiting then
    start_next(q)
  end
end

-- For functions after which nobody claims: a lane may have got a slot or a task. Never stops them.
function leat.offer_if_freed(q)
  if q.freed then
    pcall(leat.offer_lane_task, q)
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

-- Calls visit(lane, tid of its first task) for up to limit lanes that have tasks, in lexical order, behind the lane
-- `after` (nil: from the first). Answers the last one, or nil: these were all.
function leat.walk_lanes(q, after, limit, visit)
  for _ = 1, limit do
    local member = redis.call('ZRANGE', q[LANED], after and '[' .. after .. '\1' or '-', '+', 'BYLEX', 'LIMIT', '0',
      '1')[1]
    if not member then
      return nil
    end
    local lane, tid = parts_of(member)
    if lane then
      visit(lane, tid)
    end
    after = lane or member
  end
  return after
end

function leat.lane_length(q, lane)
  return redis.call('ZLEXCOUNT', q[LANED], '[' .. lane .. '\0', '(' .. lane .. '\1')
end

function leat.lane_figures(q)
  return redis.call('ZCARD', q[LANED]), redis.call('ZCARD', q[LANES])
end

leat.lane_members, leat.lane_spec, leat.lane_running = members, spec_of, running
leat.lane_tid = tid_of

end
