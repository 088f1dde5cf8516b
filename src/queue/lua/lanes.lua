do -- Lanes: tasks that wait for their turn, in weighted fair order.
--
-- Start-time fair queueing. Each lane that can start a task is in the zset lanes with a tag, its virtual time. The
-- lane with the lowest tag is next; then its tag grows by 1/weight. The clock is the tag of the lane that was
-- served last. A lane joins at clock + 1/weight: if it joined at the clock, a lane that keeps running empty would
-- get everything. The producers' stream counts as a lane, too; stats has its last tag. Strict lanes have their own
-- clock, and tags far below the others. Tasks without a lane that become ready in large numbers (due tasks,
-- retried dead letters) wait in the lane ''.
--
-- waiting has the task; laned has, in lexical order, lane NUL tid of fixed width. A lane leaves lanes if it has no
-- task, if it is at its cap (it comes back when a slot becomes free: lane_ended) or if it waits for a rate token
-- ('l:LANE' in delayed). Invariant: if lanes has a lane that can start a task, then an undelivered entry is in go
-- or in the stream, or every worker with a free slot is about to call leat_claim. A worker that reads such an
-- entry calls leat_claim, and that ends with offer_lane_task.
--
-- stats has 'r:LANE', how many of the lane's tasks run, and 't:LANE', its rate. leat_claim enforces caps and rates
-- and returns tasks that may not start; the order of lanes is only a preview of that.

local JOINS_EARLIER = 2 ^ -10 -- share of a step; it must show beside STRICT
local STRICT = 1e12 -- subtracted from the tags of strict lanes
local CLOCK_MOST = STRICT / 4 -- a larger clock was not written by leat: it would hide which lanes are strict
local FAR = CHUNK -- from the clock, beside a step: a call may serve so many of the stream before a lane's turn
local LANES_AT_ONCE = 100 -- lanes that one call examines without finding a task
local DEFAULT = '*'
local REJOIN_AT_ONCE = 1000 -- lanes that one call puts under a new default

leat.LANE_PROBLEM = 'lane: longer than ' .. MAX_LANE .. ' bytes, or with a NUL; shorten it'

function leat.may_be_lane(name)
  return name ~= '' and #name <= MAX_LANE and not name:find('%z')
end

local function tag_text(tag)
  return string.format('%.17g', tag)
end

-- Settings in conf for all lanes: 'lane:*', the settings of those with a name that have none of their own, and
-- 'lanes_only': with 'named', a lane without settings of its own is none. Returns the setting `also`, which it reads
-- with them.
local function read_lane_conf(q, also)
  local default, only = 'lane:' .. DEFAULT, 'lanes_only'
  local v
  if q.consumer then
    v = redis.call('HMGET', q[CONF], default, only, also)
  else -- users who may only add tasks have HGET here, and no HMGET
    v = {
      redis.call('HGET', q[CONF], default), redis.call('HGET', q[CONF], only), redis.call('HGET', q[CONF], also),
    }
  end
  q.lane_conf = { default = v[1], only_named = v[2] == 'named' }
  return v[3]
end

-- The settings of a lane: conf 'lane:NAME' is 'WEIGHT, MAX_RUNNING, RATE, BURST', with 'strict' for a weight. A
-- missing part or '-' means 1, no limit, no limit, 1. 'lane:*' is the default of lanes with a name; it does not name a
-- lane '*'. The second result is whether the lane has settings of its own.
function leat.lane_settings(q, lane)
  local name = 'lane:' .. lane
  local own
  if q.lane_conf then
    own = redis.call('HGET', q[CONF], name) or ''
  else
    own = read_lane_conf(q, name) or ''
  end
  if own ~= '' or lane == '' then
    return own, own ~= '' and lane ~= DEFAULT
  end
  return q.lane_conf.default or '', false
end

local UNSET = { is_named = false, strict = false, step = 1, burst = DEFAULT_BURST } -- no settings

-- Settings that leat_conf would not take count as none.
local function spec_of(q, lane)
  q.specs = q.specs or {}
  local spec = q.specs[lane]
  if not spec then
    local settings, is_named = leat.lane_settings(q, lane)
    spec = UNSET
    if settings ~= '' then
      local parts = leat.spec_parts(leat.is_lane(settings) and settings or '')
      spec = {
        is_named = is_named, strict = parts[1] == 'strict', step = 1 / math.max(number_or(parts[1], 1), 0.001),
        most = number_or(parts[2]), every_us = leat.interval_us(parts[3]), burst = number_or(parts[4], DEFAULT_BURST),
      }
    end
    q.specs[lane] = spec
  end
  return spec
end

-- The lane in which a task waits that names this lane (nil: none).
function leat.lane_of(q, lane)
  return lane and (spec_of(q, lane).is_named or not q.lane_conf.only_named) and lane or nil
end

local function clock_name(spec)
  return spec.strict and 'clock_strict' or 'clock'
end

-- A virtual time of stats.
local function virtual(text)
  local time = number_or(text, 0)
  return time >= 0 and time < CLOCK_MOST and time or 0
end

local function clock_of(q, spec)
  return virtual(redis.call('HGET', q[STATS], clock_name(spec)))
end

-- Both halves of the tid are padded, so that tids sort as bytes.
local function member_of(lane, tid)
  local ms, sequence = tid:match('^(%d+)%-(%d+)$')
  return lane .. '\0' .. ('0'):rep(ID_WIDTH - #ms) .. ms .. '-' .. ('0'):rep(ID_WIDTH - #sequence) .. sequence
end

-- Lane and tid of a member of laned, or nil if it was damaged by hand.
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

-- All members of laned have the score 0: otherwise Redis does not find them by their names. Returns up to `limit` members
-- to which someone has given another one, or twice as many.
function leat.misplaced(q, limit)
  local found = {}
  for _, range in ipairs({ { '-inf', '(0' }, { '(0', '+inf' } }) do
    for _, member in ipairs(redis.call('ZRANGE', q[LANED], range[1], range[2], 'BYSCORE', 'LIMIT', '0', limit)) do
      found[#found + 1] = member
    end
  end
  return found
end

local function running(q, lane)
  return natural(redis.call('HGET', q[STATS], 'r:' .. lane)) or 0
end

local function is_capped(q, lane, spec)
  return spec.most and running(q, lane) >= spec.most
end

-- Part of a whole step: the lane joins at the present clock. A lane that joins others goes before those that it would
-- tie with, whatever their names are: each of them has just been served, or has a task in the stream.
local function put_at_present(q, lane, spec)
  local others, clock = redis.call('EXISTS', q[LANES]), clock_of(q, spec)
  if others == 0 and clock > CLOCK_MOST / 2 then
    -- Lanes of small weights make large steps. While no lane waits, the clock can start again.
    hash_drop(q, STATS, clock_name(spec))
    hash_drop(q, STATS, 'stream_tag')
    clock = 0
  end
  local step = spec.step * (1 - others * JOINS_EARLIER)
  zset_put(q, LANES, tag_text(clock + step - (spec.strict and STRICT or 0)), lane)
  q.plain = false
end

-- Part of a whole step: the lane has a task that can start.
local function join(q, lane, spec)
  if not redis.call('ZSCORE', q[LANES], lane) then
    put_at_present(q, lane, spec)
  end
end

local function join_if_startable(q, lane)
  local spec = spec_of(q, lane)
  if not is_capped(q, lane, spec) and not leat.waits_for_token(q, lane, spec) then
    join(q, lane, spec)
  end
end

-- Part of a whole step: a task that is in waiting waits for the turn of its lane.
function leat.to_lane(q, tid, lane)
  zset_put(q, LANED, '0', member_of(lane, tid))
  join_if_startable(q, lane)
end

-- Part of a whole step. Costs less than zset_drop, as all members have the score 0 (see misplaced).
local function drop_member(q, member)
  zset_remove(q, LANED, '0', member)
end

-- Part of a whole step. lane: the one that the task names (nil: none). It may wait in the lane '', see lane_of.
function leat.leave_lane(q, tid, lane)
  drop_member(q, member_of('', tid))
  if lane then
    drop_member(q, member_of(lane, tid))
  end
end

-- lane: as in leave_lane.
function leat.is_laned(q, tid, lane)
  return redis.call('ZSCORE', q[LANED], member_of('', tid)) ~= false
    or lane ~= nil and redis.call('ZSCORE', q[LANED], member_of(lane, tid)) ~= false
end

-- Part of a whole step: the lane has a rate token or a free slot again.
function leat.wake_lane(q, lane)
  if #members(q, lane, 1) > 0 then
    join_if_startable(q, lane)
  end
end

-- Part of a whole step.
local function put_in_place(q, member)
  redis.call('ZADD', q[LANED], '0', member)
  local lane = parts_of(member)
  if lane then
    leat.wake_lane(q, lane)
  end
end

-- For the scan: mends up to CHUNK scores that someone has written by hand, or twice as many.
function leat.mend_scores(q, out)
  for _, member in ipairs(leat.misplaced(q, CHUNK)) do
    try(out, whole_step, put_in_place, q, member)
  end
end

-- The lowest and the highest tag of strict lanes, and those of all others.
local BELOW, REST = '(-5e11', '-5e11' -- half of STRICT
local ENDS = {
  { '-inf', BELOW, 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES' },
  { BELOW, '-inf', 'BYSCORE', 'REV', 'LIMIT', '0', '1', 'WITHSCORES' },
  { REST, '+inf', 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES' },
  { '+inf', REST, 'BYSCORE', 'REV', 'LIMIT', '0', '1', 'WITHSCORES' },
}

-- For the scan: a tag far from the clock, which no step gives, would keep its lane, the stream or all others from their
-- turn.
function leat.mend_tags(q, out)
  local v = redis.call('HMGET', q[STATS], 'stream_tag', 'clock')
  if virtual(v[1]) > virtual(v[2]) + FAR then
    redis.call('HDEL', q[STATS], 'stream_tag')
  end
  for _, range in ipairs(ENDS) do
    for _ = 1, LANES_AT_ONCE do
      local lane, tag = unpack(redis.call('ZRANGE', q[LANES], unpack(range)))
      local spec = lane and spec_of(q, lane)
      if not lane or math.abs(tag + (spec.strict and STRICT or 0) - clock_of(q, spec)) <= spec.step + FAR then
        break
      end
      try(out, whole_step, put_at_present, q, lane, spec)
    end
  end
end

-- Part of a whole step: the lane's settings have changed. It no longer waits for a slot or token of the old ones.
local function rejoin(q, lane)
  zset_drop(q, LANES, lane)
  zset_drop(q, DELAYED, 'l:' .. lane)
  leat.wake_lane(q, lane)
  leat.forget_rate(q, 't:' .. lane)
end

-- Part of a whole step: the default has changed for one page of lanes after `after` (nil: from the first). stats has
-- where the next page begins. Each scan continues there.
local function rejoin_page(q, after)
  local last = leat.walk_lanes(q, after, REJOIN_AT_ONCE, function(lane)
    local _, has_own = leat.lane_settings(q, lane)
    if not has_own then
      rejoin(q, lane)
    end
  end)
  if last then
    hash_set(q, STATS, 'rejoin', last)
  else
    hash_drop(q, STATS, 'rejoin')
  end
  q.freed = true
end

function leat.lane_changed(q, lane)
  q.specs, q.lane_conf = nil, nil
  rejoin(q, lane)
  if lane == DEFAULT then
    rejoin_page(q)
  end
end

-- For the scan. Returns true if there was a page of lanes whose default had changed.
function leat.continue_rejoin(q)
  local after = redis.call('HGET', q[STATS], 'rejoin')
  if after then
    whole_step(rejoin_page, q, after)
  end
  return after and true
end

-- Counts of running tasks belong to the steps that start and end them, because caps rely on them.
-- A counter that is no number starts again from 0.
local function add_running(q, lane, by)
  local left = add_to_counter(q, 'r:' .. lane, by)
  if not left then
    return hash_set(q, STATS, 'r:' .. lane, str(math.max(by, 0)))
  end
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

-- Whether a task of that lane may start now. If so, this takes its rate token.
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

-- Part of a whole step: a task that was read and may not start goes (back) into its lane.
function leat.back_to_lane(q, task)
  hash_set(q, WAITING, task.tid, cmsgpack.pack(encode(task)))
  leat.watch_expiry(q, task, task.tid)
  leat.move_record(q, task.from, task.token, 'w' .. task.tid)
  leat.to_lane(q, task.tid, task.lane)
  leat.remove(q, task.token, task.tid)
end

-- ---------------------------------------------------------------- whose turn it is

-- Part of a whole step: a lane that cannot start anything leaves lanes.
local function park(q, lane, due)
  if due then
    leat.schedule(q, due, 'l:' .. lane)
  end
  zset_drop(q, LANES, lane)
end

-- How many tasks the lane can start now. If its rate is what prevents any, also when the next can start (ms).
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

-- The next lane, its tag, its first member and the second (nil: none), or nil. Drops lanes that cannot start anything
-- on the way; if there are very many of them, a wakeup leaves the rest to other calls. The search ends at a lane for
-- which this call has already put as many tasks into go as it may start: whether they start is not yet known.
local function first_lane(q)
  for _ = 1, LANES_AT_ONCE do
    local top = redis.call('ZRANGE', q[LANES], '0', '0', 'WITHSCORES')
    local lane, tag = top[1], tonumber(top[2])
    if not lane then
      return nil
    end
    local spec = spec_of(q, lane)
    if spec.strict == (tag < -STRICT / 2) then
      local member, second = unpack(members(q, lane, 2))
      local most, due = startable(q, lane, spec)
      if member and most > 0 then
        local is_used_up = q.promoted and (q.promoted[lane] or 0) >= most
        return not is_used_up and lane or nil, tag, member, second
      end
      whole_step(park, q, lane, member and due)
    else
      -- The lane has become strict, or is no longer strict.
      whole_step(put_at_present, q, lane, spec)
    end
  end
  leat.wake_workers(q, 'lanes')
  return nil
end

-- Starts the first member of a lane; then the second is the first. The record of the task's earlier attempt follows it.
local function start_step(q, lane, tag, member, second)
  local spec, tid = spec_of(q, lane), tid_of(member)
  local packed = redis.call('HGET', q[WAITING], tid)
  local list = leat.unpack_waiting(packed)
  q.promoted_bytes = (q.promoted_bytes or 0) + #(packed or '')
  leat.note_size(q, #(packed or ''))
  drop_member(q, member)
  if second then
    redis.call('ZADD', q[LANES], tag_text(tag + spec.step), lane)
    undo_with(q, 'ZADD', q[LANES], tag_text(tag), lane)
  else
    zset_remove(q, LANES, tag_text(tag), lane)
  end
  if not list then
    return false
  end
  local id = add_entry(q, q[GO], list)
  leat.put_new_index(q, tid, 'g' .. id)
  leat.move_record(q, trailing(list, 'leat.from'), 'w' .. tid, 'g' .. id)
  redis.call('HDEL', q[WAITING], tid)
  undo_with(q, 'HSET', q[WAITING], tid, packed)
  return true
end

-- Puts the next task of all lanes into go. If `before` is given, only a lane with no higher tag counts. Returns
-- whether there was one.
local function start_next(q, before)
  for _ = 1, LANES_AT_ONCE do
    local lane, tag, member, second = first_lane(q)
    if not lane or before and tag > before then
      return false
    end
    local spec = spec_of(q, lane)
    local clock = tag + (spec.strict and STRICT or 0)
    redis.call('HSET', q[STATS], clock_name(spec), tag_text(clock))
    if whole_step(start_step, q, lane, tag, member, second) then
      q.promoted = q.promoted or {}
      q.promoted[lane] = (q.promoted[lane] or 0) + 1
      return true
    end
  end
  return false
end

function leat.has_lanes(q)
  return not q.plain and redis.call('EXISTS', q[LANES]) == 1
end

-- The tag of the stream; it joins at the present clock.
local function stream_tag(q)
  local v = redis.call('HMGET', q[STATS], 'stream_tag', 'clock')
  return math.max(virtual(v[1]), virtual(v[2]))
end

-- Puts tasks of lanes whose tags are not above the stream's (tag; nil: all) into go and claims them, up to `wanted`.
-- Returns how many were put there, how many of them were claimed, and whether there may be more.
local function read_lanes(q, wanted, tag, read)
  local up, more = 0, true
  q.promoted_bytes = 0
  while more and up < wanted and up < PAGE and q.promoted_bytes < MOVE_BYTES do
    more = start_next(q, tag)
    up = up + (more and 1 or 0)
  end
  local left = up > 0 and read('g', up, up) or 0
  q.promoted = nil
  return up, up - left, more
end

-- Claims up to `wanted` tasks in fair order as long as may_go_on(). read(kind, how many, how many of them at once)
-- claims tasks of go or the stream and returns how many are still wanted. Dropped tasks count, too, which limits the
-- work.
function leat.read_fair(q, wanted, read, may_go_on)
  local stream_is_empty, dropped = false, 0
  while wanted > 0 and dropped < PAGE and may_go_on() do
    local tag = not stream_is_empty and stream_tag(q) or nil
    local up, claimed, more = read_lanes(q, wanted, tag, read)
    wanted, dropped = wanted - claimed, dropped + up - claimed
    if stream_is_empty and up == 0 then
      return
    elseif wanted > 0 and not more and not stream_is_empty then
      stream_is_empty = read('s', 1) == 1
      if not stream_is_empty then
        wanted = wanted - 1
        redis.call('HSET', q[STATS], 'stream_tag', tag_text(tag + 1), 'clock', tag_text(tag))
      end
    end
  end
end

-- How many entries have not been read. Finished entries are deleted before they are acked, so an entry that is not
-- pending has not been read. group may be nil.
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

-- Whether the next read would return an entry. This is exact.
local function has_unread(q, key, group)
  if redis.call('EXISTS', q[key]) == 0 then
    return false
  end
  for _, info in ipairs(redis.call('XINFO', 'GROUPS', q[key])) do
    if info[2] == group then
      return #entries_after(q[key], info[8], '+', '1') > 0
    end
  end
  return false
end

-- As undelivered() > 0 of go or the stream. If each entry has a lease record, none waits, which is usual. Records that
-- outlive their entries may hide that one waits; then a lane's task starts a little early.
local function seems_unread(q, group)
  return redis.call('XLEN', q[GO]) + redis.call('XLEN', q[STREAM]) > redis.call('HLEN', q[RUNNING])
    and (leat.undelivered(q, GO, group) > 0 or leat.undelivered(q, STREAM, group) > 0)
end

-- If a lane could start a task and no entry waits to be read, puts one task into go. Whoever reads it calls
-- leat_claim, which offers the next. exactly: for a scan, because entries that someone acked by hand count as
-- undelivered for ever.
function leat.offer_lane_task(q, exactly)
  if not leat.has_lanes(q) then
    return
  end
  local group = q.group or redis.call('HGET', q[CONF], 'group') or nil
  local is_waiting
  if exactly then
    is_waiting = has_unread(q, GO, group) or has_unread(q, STREAM, group)
  else
    is_waiting = seems_unread(q, group)
  end
  if not is_waiting then
    start_next(q)
  end
end

-- For functions that are not followed by a claim: a lane may have got a slot or a task. Never fails them.
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

-- Calls visit(lane, tid of its first task) for up to limit lanes that have tasks, in lexical order, after the lane
-- `after` (nil: from the first). Returns the last one, or nil if these were all.
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

-- How many tasks of the lane come before that one, or nil if it does not wait there.
function leat.place_in_lane(q, lane, tid)
  local member = member_of(lane, tid)
  return redis.call('ZSCORE', q[LANED], member)
    and redis.call('ZLEXCOUNT', q[LANED], '[' .. lane .. '\0', '(' .. member)
end

function leat.lane_figures(q)
  return redis.call('ZCARD', q[LANED]), redis.call('ZCARD', q[LANES])
end

leat.lane_members, leat.lane_spec, leat.lane_running = members, spec_of, running
leat.lane_tid = tid_of

end
