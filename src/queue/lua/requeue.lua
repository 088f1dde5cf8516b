do -- Waiting, requeueing and ending tasks.

local LATEST = '9000000000000000' -- no task is due later
leat.LATEST = 9e15
local AFTER_LATEST, MOST_SCORE = '(' .. LATEST, '(9007199254740992' -- the scores of postponed tasks
local HEAD_BYTES = 4096 -- that a dead letter keeps of a task that is too large
local MOST_VALUES = 2 * (MAX_FIELDS + 20) -- of a waiting task: its own fields and leat's

-- Wakes all workers. why: due, lanes or conf (something may be startable earlier than they know), gate (pause or
-- drain has changed), cancel (a running task is to be ended), joined and a number (a new worker), follow and
-- what leat_follow says. A reader that finds as many wakeups as are kept must assume that it missed one of each kind.
-- It has not missed a new worker: each wakeup has the number of the newest one.
function leat.wake_workers(q, why)
  redis.call('XADD', q[BELL], 'MAXLEN', WAKEUPS_KEPT, '*', 'why', why, 'joined', leat.newest(q))
end

-- Part of a whole step. delayed has members of three kinds, each with its due time (ms): a tid, which begins with
-- a digit; 'l:LANE', a lane that waits for a rate token; 'u:KEY', a unique key that stays refused until then. Those
-- with scores below 0 are for expiry alone.
function leat.schedule(q, due, member)
  q.due, q.lowest = nil, nil
  zset_put(q, DELAYED, str(due), member)
  if redis.call('ZRANGE', q[DELAYED], '0', LATEST, 'BYSCORE', 'LIMIT', '0', '1')[1] == member then
    leat.wake_workers(q, 'due')
  end
end

-- Part of a whole step: the task waits until due.
function leat.wait_until(q, task, due)
  hash_set(q, WAITING, task.tid, cmsgpack.pack(encode(task)))
  leat.schedule(q, due, task.tid)
  leat.watch_expiry(q, task, task.tid)
end

-- The fields of a waiting task as names and values, all of them text; nil if they were damaged by hand.
local function unpack_waiting(packed)
  local fine, list = pcall(cmsgpack.unpack, packed or '')
  if not fine or type(list) ~= 'table' or #list < 2 or #list > MOST_VALUES or #list % 2 ~= 0 then
    return nil
  end
  local type_of = type -- a global is looked up each time
  for i = 1, #list do
    if type_of(list[i]) ~= 'string' then
      return nil
    end
  end
  return list
end
leat.unpack_waiting = unpack_waiting

-- As unpack_waiting. The second result is the packed task.
function leat.read_waiting(q, tid)
  local packed = redis.call('HGET', q[WAITING], tid)
  q.bytes = q.bytes + #(packed or '')
  return unpack_waiting(packed), packed
end

-- Part of a whole step: a waiting task goes to where it can start: into its lane, or to go. While lanes exist, a
-- task without a lane waits in the lane '', because go is read before everything else.
function leat.make_ready(q, tid, list)
  local task = decode('w', list)
  local lane = leat.lane_of(q, task.lane)
  leat.note_size(q, task.weight)
  if lane or leat.has_lanes(q) then
    return leat.to_lane(q, tid, lane or '')
  end
  local moved = 'g' .. add_entry(q, q[GO], list)
  leat.put_new_index(q, tid, moved)
  leat.move_record(q, task.from, 'w' .. tid, moved)
  hash_drop(q, WAITING, tid)
end

local function promote_task(q, tid)
  local list, packed = leat.read_waiting(q, tid)
  list = is_tid(tid) and list
  if packed and not list then
    -- The task stays until it is repaired, and does not hold up the others.
    redis.call('ZADD', q[DELAYED], str(q.now + DAMAGED_MS), tid)
    return nil
  end
  zset_drop(q, DELAYED, tid)
  if packed then
    leat.make_ready(q, tid, list)
  end
  return list
end

local function promote_member(q, member)
  local kind, name = member:match('^(%a):(.*)$')
  if not kind then
    return promote_task(q, member)
  end
  zset_drop(q, DELAYED, member)
  if kind == 'l' then
    leat.wake_lane(q, name)
  else
    leat.free_unique(q, name)
  end
end

-- Part of a whole step: a poison candidate waits until another one has ended. Its score in delayed, beyond that of any
-- due time, says since when.
function leat.postpone(q, task)
  leat.wait_until(q, task, leat.LATEST + q.now)
  leat.move_record(q, task.from, task.token, 'w' .. task.tid)
  leat.remove(q, task.token, task.tid)
end

function leat.is_postponed(score)
  local since = (tonumber(score) or 0) - leat.LATEST
  return since > 0 and since < EXACT - leat.LATEST
end

-- Part of a whole step: makes the task ready that was postponed first. Each end of a poison candidate calls this, so
-- as many of them are under way as workers can run. If one of them ended without running, the next scan of a worker
-- that runs none calls it.
function leat.bring_postponed(q)
  local tid = redis.call('ZRANGE', q[DELAYED], AFTER_LATEST, MOST_SCORE, 'BYSCORE', 'LIMIT', '0', '1')[1]
  if tid then
    promote_task(q, tid)
    q.freed = true
  end
end

-- Makes up to limit due tasks ready. One that fails does not hold up the others.
function leat.promote(q, limit, out)
  q.due, q.lowest = nil, nil
  local due = redis.call('ZRANGE', q[DELAYED], '0', q.now_text, 'BYSCORE', 'LIMIT', '0', str(limit))
  for _, member in ipairs(due) do
    if is_full(q) then
      return
    end
    local fine, list = pcall(whole_step, promote_member, q, member)
    out.problem = out.problem or not fine and list or nil
    list = fine and list or nil
    if list and own_count(list) and trailing(list, 'leat.attempts') ~= '0' then
      count(q, 'retrying', -1)
    end
  end
end

-- The lowest score in delayed, or false. It is negative if a task expires.
function LAZY.lowest(q)
  local score = redis.call('ZRANGE', q[DELAYED], '0', '0', 'WITHSCORES')[2]
  q.lowest = score and tonumber(score) or false
  return q.lowest
end

-- The earliest due time as text, or false. It is read again after it may have changed.
function LAZY.due(q)
  local score = q.lowest
  if score and score < 0 then
    score = redis.call('ZRANGE', q[DELAYED], '0', LATEST, 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES')[2]
  end
  q.due = score and tonumber(score) <= leat.LATEST and str(math.ceil(tonumber(score))) or false
  return q.due
end

-- How many of the keys exist in which something waits: a task, a lane or a client. Usually none does.
function leat.count_waiting(keys)
  return redis.call('EXISTS', keys[LANES], keys[CANCEL], keys[AWAITED], keys[DELAYED])
end

-- For a caller that needs both q.plain and q.due. found: what count_waiting has returned, if that is known. Returns
-- whether nothing waits at all.
function leat.read_plain_and_due(q, found)
  found = found or leat.count_waiting(q)
  if found == 0 then
    q.lowest, q.due = false, false
  end
  q.plain = found == (q.lowest and 1 or 0)
  return found == 0
end

-- ---------------------------------------------------------------- requeueing and dead-lettering

-- Part of a whole step: writes the record of an attempt whose lease has expired. It points to the entry that took
-- the task over.
local function put_moved(q, token, record, moved)
  hash_set(q, RUNNING, token, pack_record(record.consumer, record.begun, record.attempt, record, moved))
end

-- Part of a whole step: the record of an earlier attempt, whose late success would still count, points to the new
-- place of the task. A place is the token of an entry, or 'w' and the tid in waiting.
function leat.move_record(q, from, place, following)
  local old = from and record_of(q, from)
  if old and old.moved == place then
    put_moved(q, from, old, following)
  end
end

-- Whether a task is at that place.
function leat.is_at(q, place)
  if place:sub(1, 1) == 'w' then
    return redis.call('HEXISTS', q[WAITING], place:sub(2)) == 1
  end
  return fetch(q, place) ~= nil
end

-- Part of a whole step: ends a waiting task.
function leat.drop_waiting(q, tid)
  local list = unpack_waiting(hash_drop(q, WAITING, tid))
  zset_drop(q, DELAYED, tid)
  leat.leave_lane(q, tid, list and decode('w', list).lane)
end

-- Part of a whole step: drops the record, and releases what the attempt held while it ran. Returns the record.
local function drop_record(q, token)
  local packed = hash_drop(q, RUNNING, token)
  local record = packed and unpack_record(packed)
  if record and packed:sub(1, 1) == BOUND then
    leat.stop_holding(q, token, record)
  end
  return record
end
leat.drop_record = drop_record

-- The last part of a whole step: what the task becomes has been written before. tid: nil if nothing tells it.
local function remove(q, token, tid)
  local stream, id = stream_of(q, token)
  drop_record(q, token)
  if tid and stream == q[GO] then
    leat.drop_index(q, tid, token)
  end
  redis.call('XDEL', stream, id)
  redis.pcall('XACK', stream, q.group, id)
end
leat.remove = remove

-- Whether someone has asked to cancel the task.
function leat.is_cancelled(q, tid)
  return not q.plain and redis.call('SISMEMBER', q[CANCEL], tid) == 1
end

-- Part of a whole step: the task ends, by whatever way.
function leat.forget_cancel(q, tid)
  if leat.is_cancelled(q, tid) then
    redis.call('SREM', q[CANCEL], tid)
    undo_with(q, 'SADD', q[CANCEL], tid)
  end
end

local function end_step(q, task, letter)
  if letter then
    leat.write_dead_letter(q, task, letter)
  end
  if task.from then
    drop_record(q, task.from)
  end
  leat.release_names(q, task)
  leat.forget_expiry(q, task)
  leat.forget_cancel(q, task.tid)
  remove(q, task.token, task.tid)
end

-- For calls that report these ends, because no worker has run the task: q.ended is their list.
local function note_end(q, tid, cause, reason)
  if not q.ended then
    return
  end
  q.ended[#q.ended + 1], q.ended[#q.ended + 2] = tid, cause
  local plain = (reason or ''):gsub('%c', '?')
  q.reasons = q.reasons or {}
  q.reasons[#q.reasons + 1] = plain
end

-- Dead-letters the task of an entry, and releases everything that it held.
function leat.dead_letter(q, task, letter)
  whole_step(end_step, q, task, letter)
  note_end(q, task.tid, letter.cause, letter.reason)
  leat.letter_written(q, letter.cause)
  leat.tell_end(q, task, 'dead', letter)
end

local function end_waiting_step(q, task, letter)
  if letter then
    leat.write_dead_letter(q, task, letter)
  end
  leat.drop_waiting(q, task.tid)
  if task.from then
    drop_record(q, task.from)
  end
  leat.release_names(q, task)
  leat.forget_expiry(q, task)
end

-- Ends a task that waits, with a dead letter if `letter` is given. Returns the task.
function leat.end_waiting(q, tid, packed, letter)
  local task = decode('w', unpack_waiting(packed) or {})
  task.tid = tid
  local was_due = redis.call('ZSCORE', q[DELAYED], tid)
  whole_step(end_waiting_step, q, task, letter)
  if task.attempts > 0 and was_due and not leat.is_postponed(was_due) then
    count(q, 'retrying', -1)
  end
  return task
end

-- Dead-letters a task that waits.
function leat.dead_letter_waiting(q, tid, packed, letter)
  local task = leat.end_waiting(q, tid, packed, letter)
  note_end(q, tid, letter.cause, letter.reason)
  leat.letter_written(q, letter.cause)
  leat.tell_end(q, task, 'dead', letter)
end

-- Ends a task of an entry that is to be cancelled. Only its result remains.
function leat.cancel_entry(q, task, record)
  whole_step(end_step, q, task)
  note_end(q, task.tid, 'cancelled')
  count(q, 'cancelled')
  leat.tell_end(q, task, 'cancelled', { cause = 'cancelled', record = record })
end

-- The beginning of the fields of a task that is too large.
local function cut_fields(task)
  local fields, left = {}, HEAD_BYTES
  for i = 1, math.min(task.count, MAX_FIELDS * 2), 2 do
    if left > 0 then
      fields[i] = task.fields[i]:sub(1, left)
      fields[i + 1] = task.fields[i + 1]:sub(1, left - #fields[i])
      left = left - #fields[i] - #fields[i + 1]
    end
  end
  task.fields, task.count = fields, #fields
end

-- Makes a task that may not start a dead letter, with a reason of leat.misfit, leat.size_problem or another one.
function leat.refuse(q, task, reason)
  if task.size then
    cut_fields(task)
  end
  leat.dead_letter(q, task, {
    cause = task.damaged and 'damaged' or 'refused', reason = reason, worker = q.consumer, damaged = task.damaged,
    size = task.size and str(task.size),
  })
end

-- Why an entry may neither start nor be requeued, or nil.
function leat.misfit(task)
  if task.damaged then
    return 'cannot be read: ' .. shown(task.damaged)
  elseif task.count > MAX_FIELDS * 2 then
    return TOO_MANY_FIELDS
  end
end

local function requeue_step(q, task, record)
  local stream, id = stream_of(q, task.token)
  local old_from, held = task.from, drop_record(q, task.token)
  if held then
    task.fence, task.due = held.fence, q.now_text
  end
  if record then
    task.from = task.token
  end
  leat.note_size(q, task.weight)
  local moved = 'g' .. add_entry(q, q[GO], encode(task))
  leat.put_index(q, task.tid, moved)
  leat.watch_expiry(q, task, task.tid)
  if record then
    put_moved(q, task.token, record, moved)
  else
    leat.move_record(q, old_from, task.token, moved)
  end
  redis.call('XDEL', stream, id)
  redis.pcall('XACK', stream, q.group, id)
end

-- The only routine that makes a task a new entry. With a record, a claimed attempt has lost its lease: its record
-- stays and points to the new entry, so that a late success still counts until the new entry is claimed.
function leat.requeue(q, task, record)
  local misfit = leat.misfit(task)
  if misfit then
    return leat.refuse(q, task, misfit)
  end
  whole_step(requeue_step, q, task, record)
end

-- An entry that another worker has claimed was delivered to this one: the group was recreated, or Redis had forgotten
-- the claim. It goes back to that worker, with the lease that the worker's last heartbeat gave it. Returns whether it
-- did.
function leat.give_back(q, token, record)
  if not record or record.moved or record.consumer == q.consumer then
    return false
  end
  local stream, id = stream_of(q, token)
  local last = number_or((redis.call('HGET', q[WORKERS], record.consumer) or ''):match('^%d+'), 0)
  redis.call('XCLAIM', stream, q.group, record.consumer, '0', id, 'IDLE', str(math.max(q.now - last, 0)), 'JUSTID')
  return true
end

-- Requeues an entry that is pending for this consumer and that it does not have.
function leat.return_entry(q, task)
  if not leat.give_back(q, task.token, record_of(q, task.token)) then
    leat.requeue(q, task)
  end
end

local function settle_vanished_step(q, token, record)
  if record and not record.moved then
    local task = {
      tid = record.tid, fields = {}, count = 0, attempts = record.attempt, crashes = 0,
      fence = record.fence, enqueued = '0', history = '',
    }
    leat.write_dead_letter(q, task, {
      cause = 'vanished', reason = 'the entry was deleted or trimmed while the task ran', record = record,
    })
    leat.release_names(q, record)
    leat.forget_cancel(q, record.tid)
  end
  remove(q, token, record and record.tid)
end

-- Settles an entry that was trimmed or deleted by hand. If it was claimed, its record is all that is left of the
-- task.
function leat.settle_vanished(q, token)
  local record = record_of(q, token)
  whole_step(settle_vanished_step, q, token, record)
  count(q, 'vanished')
  if record and not record.moved then
    leat.letter_written(q, 'vanished')
    note_end(q, record.tid, 'vanished')
    leat.tell_end(q, record, 'dead', { cause = 'vanished', record = record })
  end
end

-- stats 'c:CONSUMER' is the token of the last poison candidate that the worker has claimed, or when (ms) it was taken
-- over. Returns whether the worker has it still, and that value.
function leat.candidate_of(q, consumer)
  local mark = redis.call('HGET', q[STATS], 'c:' .. consumer)
  local record = mark and record_of(q, mark)
  return record and record.consumer == consumer and not record.moved, mark
end

-- Whether a poison candidate was lost with the worker of the task, which is none. Each task is spared once: if it
-- was the task itself that killed the worker, it must not always find a candidate to blame.
local function is_spared(task, record, has_candidate, mark)
  local lost = natural(mark)
  return task.crashes == 0 and not task.spared and (has_candidate or lost and tonumber(record.begun) <= lost)
end

-- Takes over an entry whose lease has expired, or that a dead worker has left. It counts as a crash if the attempt
-- was claimed, unless a poison candidate is to blame.
function leat.take_over(q, task, max_crashes)
  local record = record_of(q, task.token)
  if leat.is_cancelled(q, task.tid) then
    return leat.cancel_entry(q, task, record)
  elseif not record or leat.misfit(task) then
    return leat.requeue(q, task)
  end
  task.fence = record.fence
  local has_candidate, mark = leat.candidate_of(q, record.consumer)
  if is_spared(task, record, has_candidate, mark) then
    task.spared = 1
    add_history(q, task, record, 'crash', 'not-counted')
    return leat.requeue(q, task, record)
  end
  task.crashes = task.crashes + 1
  add_history(q, task, record, 'crash', '')
  if task.crashes >= max_crashes then
    leat.dead_letter(q, task, {
      cause = 'crash', reason = 'its worker was lost ' .. task.crashes .. ' times while it ran',
      record = record,
    })
  else
    leat.requeue(q, task, record)
  end
  if mark == task.token then
    redis.call('HSET', q[STATS], 'c:' .. record.consumer, q.now_text)
  end
  count(q, 'crashes')
end

end
