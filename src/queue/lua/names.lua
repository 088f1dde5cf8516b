do -- Names: the ids and unique keys that tasks hold.
--
-- names has these entries:
-- 'i:ID' → tid.
-- 'u:KEY' → 'tid'; 'tid token' while that task runs; '@until tid' after a success with unique_for (ms).
-- 'n:KEY' → 'tid due': the only follow-up of the key's holder. It is in waiting, and becomes ready when the holder
-- ends.

-- The holder of the key: its tid and the token of its running attempt (''), or nil. With until_ms, the task has
-- ended, and the key stays refused until then.
function leat.holder_of(q, key)
  local value = redis.call('HGET', q[NAMES], 'u:' .. key)
  if not value or #value > LONG_VALUE then
    return nil
  end
  local until_ms, former = value:match('^@(%d+) (%S+)$')
  if until_ms then
    if tonumber(until_ms) <= q.now then
      return nil
    end
    return former, '', tonumber(until_ms)
  end
  return value:match('^(%S+) ?(%S*)$')
end

local TID_FORM = '^' .. ('%d'):rep(13) .. '%d*%-%d+$'
local NO_LABEL = 'id: has the form of the id of a task; choose another one'
local LONG_LABEL = 'id: longer than ' .. MAX_KEY .. ' bytes; shorten it'
local LONG_KEY = 'unique: longer than ' .. MAX_KEY .. ' bytes; shorten it, or give its hash'

-- Why a task may not have its label or its unique key at any time, or nil. A label of the form of a task's id could
-- stand for that task.
function leat.name_problem(task)
  if task.id and (#task.id > MAX_KEY or task.id:match(TID_FORM)) then
    return #task.id > MAX_KEY and LONG_LABEL or NO_LABEL
  end
  return task.unique and #task.unique > MAX_KEY and LONG_KEY or nil
end

-- Why a task may not have its unique key now, or nil.
function leat.unique_problem(q, task)
  if not task.unique then
    return nil
  end
  local holder, _, until_ms = leat.holder_of(q, task.unique)
  if not holder or holder == task.tid then
    return nil
  end
  local name = 'unique key ' .. task.unique:sub(1, 100)
  if until_ms then
    return name .. ' is refused for ' .. str(math.ceil((until_ms - q.now) / 1000)) .. ' s more, because ' .. holder
      .. ' has succeeded'
  end
  return name .. ' is held by ' .. holder
end

-- The tid of the living task with that label, or the argument itself. What has the form of a tid is no label. A producer
-- may choose a shorter tid, and that means its task as long as the queue has it.
function leat.tid_of(q, id)
  local tid = not id:match(TID_FORM) and redis.call('HGET', q[NAMES], 'i:' .. id)
  return tid and not (is_tid(id) and leat.place_of(q, id)) and tid or id
end

-- Part of a whole step. token: of the running attempt, or nil.
function leat.hold_unique(q, key, tid, token)
  hash_set(q, NAMES, 'u:' .. key, token and tid .. ' ' .. token or tid)
end

-- Part of a whole step: the task holds its label, unless another task does. A plain XADD does not register it.
function leat.hold_id(q, id, tid)
  if redis.call('HEXISTS', q[NAMES], 'i:' .. id) == 0 then
    hash_set(q, NAMES, 'i:' .. id, tid)
  end
end

-- Part of a whole step: a running attempt holds its label and its unique key, unless another task does. Redis may have
-- forgotten that it runs: then the key says that it waits.
function leat.restore_names(q, token, record)
  if record.id then
    leat.hold_id(q, record.id, record.tid)
  end
  local holder = record.unique and redis.call('HGET', q[NAMES], 'u:' .. record.unique)
  if holder == false or holder == record.tid then
    leat.hold_unique(q, record.unique, record.tid, token)
  end
end

-- Part of a whole step: the attempt has ended or was requeued. Releases what it held while it ran.
function leat.stop_holding(q, token, record)
  if record.lane then
    leat.lane_ended(q, record.lane)
  end
  local name = record.unique and 'u:' .. record.unique
  if name and redis.call('HGET', q[NAMES], name) == record.tid .. ' ' .. token then
    hash_set(q, NAMES, name, record.tid)
  end
  if record.crashed then
    leat.bring_postponed(q)
  end
end

-- Part of a whole step: the follow-up takes the key over and becomes ready. After very large tasks, it is due now: the
-- next claim makes it ready.
local function start_following(q, key, following)
  local tid, due = following:match('^(%S+) (%d+)$')
  hash_drop(q, NAMES, 'n:' .. key)
  local unread = tid and is_full(q) and redis.call('HEXISTS', q[WAITING], tid) == 1
  local list = not unread and tid and is_tid(tid) and leat.read_waiting(q, tid)
  if not list and not unread then
    hash_drop(q, NAMES, 'u:' .. key)
    return
  end
  leat.hold_unique(q, key, tid)
  if unread or tonumber(due) > q.now then
    leat.schedule(q, math.max(tonumber(due), q.now), tid)
  else
    leat.make_ready(q, tid, list)
    q.freed = true
  end
end
leat.start_following = start_following

local function release_unique(q, holder, succeeded)
  local key, tid = holder.unique, holder.tid
  local following = redis.call('HGET', q[NAMES], 'n:' .. key)
  if following and following:match('^%S+') == tid then
    hash_drop(q, NAMES, 'n:' .. key)
    return
  end
  local value = redis.call('HGET', q[NAMES], 'u:' .. key)
  if not value or value:match('^%S+') ~= tid then
    return
  end
  local span = succeeded and duration_ms(holder.unique_for)
  if following then
    start_following(q, key, following)
  elseif span then
    local free_at = str(q.now + span)
    hash_set(q, NAMES, 'u:' .. key, '@' .. free_at .. ' ' .. tid)
    zset_put(q, DELAYED, free_at, 'u:' .. key)
  else
    hash_drop(q, NAMES, 'u:' .. key)
  end
end

-- Part of a whole step: releases the names that the task holds. It compares before it deletes: a name that another
-- task holds by now stays.
function leat.release_names(q, holder, succeeded)
  local name = holder.id and 'i:' .. holder.id
  if name and redis.call('HGET', q[NAMES], name) == holder.tid then
    hash_drop(q, NAMES, name)
  end
  if holder.unique then
    release_unique(q, holder, succeeded)
  end
end

-- Part of a whole step: frees the key if the time for which it was refused is over.
function leat.free_unique(q, key)
  local until_ms = (redis.call('HGET', q[NAMES], 'u:' .. key) or ''):match('^@(%d+) ')
  if until_ms and tonumber(until_ms) <= q.now then
    hash_drop(q, NAMES, 'u:' .. key)
  end
end

end
