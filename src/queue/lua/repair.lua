do -- Repair: each finding is repaired in a whole step, and no task is lost.

local repairs = {} -- kind → function(q, subject) → nil, or another answer

local function step(repair_one)
  return function(q, subject)
    whole_step(repair_one, q, subject)
  end
end

local function dropping(key)
  return step(function(q, name)
    hash_drop(q, key, name)
  end)
end

local function dropping_member(key)
  return step(function(q, member)
    zset_drop(q, key, member)
  end)
end

-- If the entry was claimed, its record is all that is left of the task: it becomes a dead letter.
repairs.dangling = leat.settle_vanished
repairs.vanished = leat.settle_vanished
repairs.moved = dropping(RUNNING)
repairs.record = dropping(RUNNING)
repairs.laned = step(function(q, member)
  local _, tid = leat.lane_parts(member)
  if tid and redis.call('HEXISTS', q[WAITING], tid) == 1 then
    return zset_put(q, LANED, '0', member)
  end
  zset_drop(q, LANED, member)
end)
repairs['empty-lane'] = dropping_member(LANES)
repairs['lost-lane'] = step(leat.wake_lane)
repairs.awaited = dropping(AWAITED)
repairs.unnamed = step(function(q, token)
  leat.restore_names(q, token, record_of(q, token))
end)

-- If a worker has claimed the entry, it may still run the task, and a requeued task might run twice. So the entry
-- is leased to that worker again, as if nobody had acked it. If the worker is there, it goes on; otherwise the
-- lease expires. An unclaimed entry is requeued.
function repairs.acked(q, token)
  local record = record_of(q, token)
  local stream, id = stream_of(q, token)
  if record then
    redis.call('XCLAIM', stream, q.group, record.consumer, '0', id, 'FORCE', 'JUSTID')
  else
    leat.requeue(q, fetch(q, token))
  end
end

-- Takes over up to PAGE entries of the consumer whose leases have expired. Returns whether there may be more.
local function take_over_expired(q, name)
  local reclaim, most = str(leat.read_reclaim(q)), leat.read_max_crashes(q)
  for _, kind in ipairs({ 'g', 's' }) do
    local page = redis.call('XPENDING', stream_of(q, kind), q.group, 'IDLE', reclaim, '-', '+', PAGE, name)
    for _, info in ipairs(page) do
      if q.work >= PAGE or is_full(q) then
        return true
      end
      local task = fetch(q, kind .. info[1])
      if task then
        leat.take_over(q, task, most)
      else
        leat.settle_vanished(q, kind .. info[1])
      end
      q.work = q.work + 1
    end
    if #page == PAGE then
      return true
    end
  end
  return false
end

-- DELCONSUMER forgets pending entries, so it comes last, and only if there are none.
function repairs.consumer(q, name)
  if leat.may_return(q) then
    return 'left it may return, as after an outage; repeat the repair in ' .. str(leat.read_reclaim(q) / 1000) .. ' s'
  elseif take_over_expired(q, name) then
    return 'more'
  end
  for _, kind in ipairs({ 'g', 's' }) do
    if #redis.call('XPENDING', stream_of(q, kind), q.group, '-', '+', '1', name) > 0 then
      return 'left some of its entries still have a lease'
    end
  end
  leat.drop_consumer(q, name)
end

repairs['lane-count'] = step(function(q, lane)
  local runs = leat.count_lanes(q)[lane]
  if runs then
    hash_set(q, STATS, 'r:' .. lane, str(runs))
  else
    hash_drop(q, STATS, 'r:' .. lane)
  end
  leat.wake_lane(q, lane)
end)

-- The bytes of a task that cannot be read are kept as a dead letter. One whose id is none gets another.
local function dead_letter_damaged(q, tid)
  local has_tid = is_tid(tid)
  leat.write_dead_letter(q, {
    tid = has_tid and tid or leat.new_tid(q), fields = {}, count = 0, attempts = 0, crashes = 0, fence = 0,
    enqueued = '0', history = '',
  }, {
    cause = 'damaged',
    reason = has_tid and 'its stored fields cannot be read' or 'it was stored under the id ' .. shown(tid),
    damaged = redis.call('HGET', q[WAITING], tid),
  })
  zset_drop(q, DELAYED, tid)
  hash_drop(q, WAITING, tid)
end

function repairs.damaged(q, tid)
  whole_step(dead_letter_damaged, q, tid)
  leat.letter_written(q, 'damaged')
  leat.tell_end(q, { tid = tid }, 'dead', { cause = 'damaged' })
end

-- The task becomes ready, with its names. If another task holds its unique key, it becomes that task's follow-up,
-- which waits for its end. If that task has a follow-up already, this task becomes ready too; leat_claim then
-- refuses it, and it becomes a dead letter.
local function place_waiting(q, tid)
  local list = leat.read_waiting(q, tid)
  local task = decode('w', list)
  local holder = task.unique and leat.holder_of(q, task.unique)
  if task.id and redis.call('HEXISTS', q[NAMES], 'i:' .. task.id) == 0 then
    hash_set(q, NAMES, 'i:' .. task.id, tid)
  end
  if holder and holder ~= tid and redis.call('HEXISTS', q[NAMES], 'n:' .. task.unique) == 0 then
    return hash_set(q, NAMES, 'n:' .. task.unique, tid .. ' ' .. (task.due or '0'))
  elseif task.unique and not holder then
    leat.hold_unique(q, task.unique, tid)
  end
  leat.make_ready(q, tid, list)
end
repairs.waiting = step(place_waiting)

-- A task whose due time never comes starts now, unless it waits in a lane, too.
repairs.delayed = step(function(q, member)
  zset_drop(q, DELAYED, member)
  if leat.checks.waiting(q, member) then
    place_waiting(q, member)
  end
end)

-- A key whose holder is gone passes to its follow-up. A key that is refused for some time is freed after it.
repairs.name = step(function(q, name)
  local kind, key = name:sub(1, 2), name:sub(3)
  local until_ms = redis.call('HGET', q[NAMES], name):match('^@(%d+) ')
  local following = kind ~= 'i:' and redis.call('HGET', q[NAMES], 'n:' .. key)
  if kind == 'u:' and until_ms and tonumber(until_ms) > q.now then
    zset_put(q, DELAYED, until_ms, name)
  elseif following then
    leat.start_following(q, key, following)
  else
    hash_drop(q, NAMES, name)
  end
end)

repairs.holder = step(function(q, name)
  hash_set(q, NAMES, name, redis.call('HGET', q[NAMES], name):match('^%S+'))
end)

function repairs.cancel(q, tid)
  redis.call('SREM', q[CANCEL], tid)
end

repairs.counter = dropping(STATS)

-- A number of leat's own that is none counts as none already. Settings are for people.
local drop_number = dropping(CONF)
function repairs.conf(q, name)
  if not leat.conf_numbers[name] then
    return 'left it has to be repaired by hand'
  end
  drop_number(q, name)
end

function repairs.unreadable(q, token)
  local task = fetch(q, token)
  leat.refuse(q, task, leat.misfit(task))
end

-- The stream has no tasks: it is made again, with the group. Then its last id is that of now, as it would be if no
-- producer had chosen one: older ids, which tasks have had, are not given again.
local function renew_stream(q, key)
  redis.call('DEL', key)
  undo_with(q, 'XGROUP', 'CREATE', key, q.group, '0', 'MKSTREAM')
  redis.call('XGROUP', 'CREATE', key, q.group, '0', 'MKSTREAM')
  redis.call('XDEL', key, add_entry(q, key, { 'leat', 'ids' }))
end

function repairs.exhausted(q, key)
  if redis.call('XLEN', key) > 0 then
    return 'left it is repaired once it is empty'
  end
  whole_step(renew_stream, q, key)
end

function repairs.group(q)
  leat.ensure_groups(q, leat.read_reclaim(q))
end

-- subject: as of the finding.
function repairs.index(q, subject)
  if subject == 't:' then
    leat.index_older(q)
    return not leat.is_indexed(q) and 'more' or nil
  end
  whole_step(function()
    if subject:sub(1, 2) == 't:' then
      hash_drop(q, NAMES, subject)
    else
      leat.put_index(q, leat.task_at(q, subject).tid, subject)
    end
  end, q)
end

local function repair_one(q, kind, subject)
  if not leat.checks[kind] then
    fail('BADARG unknown kind of finding: ' .. shown(kind))
  elseif q.work >= PAGE then
    return 'more'
  elseif not leat.checks[kind](q, subject) then
    return 'gone'
  elseif not repairs[kind] then
    return 'left it has to be repaired by hand'
  end
  q.work = q.work + 1
  local answer = repairs[kind](q, subject)
  if kind ~= 'lane-count' then
    -- The repair may have changed these, so they are read again.
    q.lane_counts, q.consumers, q.delivered = nil, nil, nil
  end
  return answer or 'repaired'
end

-- leat_repair: repairs findings that still hold.
-- KEYS: all.
-- ARGV: group, '', then kind, subject and '' of at most PAGE findings as leat_doctor returned them.
-- Reply: PROTOCOL, then for each: repaired, gone (it does not hold, or no longer), more (call again with it),
-- 'left WHY', or the error.
-- Safe to stop: each finding is checked again in the step that repairs it, and each step can be repeated.
function leat.repair(keys, args)
  local q, reply = open(keys, ALL_KEYS, args[1]), { PROTOCOL }
  if (#args - 2) % 3 ~= 0 or #args - 2 > 3 * PAGE then
    fail('BADARG give kind, subject and an empty text of at most ' .. PAGE .. ' findings')
  end
  leat.check_types(q)
  q.work = 0
  for i = 3, #args, 3 do
    local fine, state = true, 'more'
    if i == 3 or not is_full(q) then
      fine, state = pcall(repair_one, q, args[i], args[i + 1])
    end
    reply[#reply + 1] = fine and state or message_of(state)
  end
  pcall(leat.offer_lane_task, q)
  return reply
end

end
