do -- Waiting, passing on, ending.

-- Wakes every worker. why: due, lanes or conf (something may be startable earlier than they know), gate (or nothing
-- any more), cancel (a running task is to be ended). Who reads as many as are kept has to take it that one of each
-- was among those that are gone.
function leat.wake_workers(q, why)
  redis.call('XADD', q[BELL], 'MAXLEN', BELL_KEPT, '*', 'why', why)
end

-- delayed: tids with their due time (ms); 'l:LANE' that waits for a rate token; 'u:KEY' that is refused until
-- then. Tids begin with a digit. Part of a whole step.
function leat.schedule(q, due, member)
  q.due = nil
  zset_put(q, DELAYED, str(due), member)
  if redis.call('ZRANGE', q[DELAYED], '0', '0')[1] == member then
    leat.wake_workers(q, 'due')
  end
end

-- Part of a whole step: the task waits until due.
function leat.wait_until(q, task, due)
  hash_set(q, WAITING, task.tid, cmsgpack.pack(encode(task)))
  leat.schedule(q, due, task.tid)
end

-- A waiting task's fields, or nil where it was damaged by hand: names and values, all of them text.
local function unpack_waiting(packed)
  local fine, list = pcall(cmsgpack.unpack, packed or '')
  if not fine or type(list) ~= 'table' or #list < 2 or #list % 2 ~= 0 then
    return nil
  end
  for i = 1, #list do
    if type(list[i]) ~= 'string' then
      return nil
    end
  end
  return list
end
leat.unpack_waiting = unpack_waiting

-- Part of a whole step: a waiting task goes where it can start: its lane's turn, or go. While lanes wait for
-- their turns, tasks without one wait in the lane '': go is read before all.
function leat.make_ready(q, tid, list)
  local lane = decode('w', list).lane
  if lane or leat.has_lanes(q) then
    return leat.to_lane(q, tid, lane or '')
  end
  add_entry(q, q[GO], list)
  hash_drop(q, WAITING, tid)
end

local function promote_task(q, tid)
  local packed = redis.call('HGET', q[WAITING], tid)
  local list = unpack_waiting(packed)
  if packed and not list then
    -- it stays for whoever mends it, and the others do not wait for it
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

-- Up to limit due ones go up.
function leat.promote(q, limit)
  q.due = nil
  local due = redis.call('ZRANGE', q[DELAYED], '-inf', q.now_text, 'BYSCORE', 'LIMIT', '0', str(limit))
  local bytes = 0
  for _, member in ipairs(due) do
    local list = whole_step(promote_member, q, member)
    local known = list and trailer(list)
    if known and known['leat.attempts'] ~= '0' then
      count(q, 'retrying', -1)
    end
    for _, value in ipairs(list or {}) do
      bytes = bytes + #value
    end
    if bytes > MOVE_BYTES then
      break
    end
  end
end

-- The earliest due time as text, or false. Looked up again after it may have changed.
function leat.next_due(q)
  if q.due == nil then
    q.due = redis.call('ZRANGE', q[DELAYED], '0', '0', 'WITHSCORES')[2] or false
  end
  return q.due
end

-- For who needs both, is_plain and next_due: most often nothing of all that is there, and one look tells.
function leat.read_plain_and_due(q)
  local found = redis.call('EXISTS', q[LANES], q[CANCEL], q[AWAITED], q[DELAYED])
  if found == 0 then
    q.plain, q.due = true, false
  elseif found == 1 and leat.next_due(q) then
    q.plain = true
  end
end

-- ---------------------------------------------------------------- passing on and burying

-- Writes the dead letter. letter: cause, status, reason, record, stdout, stderr, usage, damaged. A task with more fields than
-- one call can write keeps them packed in leat.packed.
local function write_dead_letter(q, task, letter)
  local list, n
  if task.count > MAX_FIELDS * 2 then
    local own = {}
    for i = 1, task.count do
      own[i] = task.fields[i]
    end
    list, n = { 'leat.packed', cmsgpack.pack(own) }, 2
  else
    list, n = {}, task.count
    for i = 1, n do
      list[i] = task.fields[i]
    end
  end
  local own_pairs = task.count > MAX_FIELDS * 2 and 0 or task.count / 2
  local function add(name, value)
    if value and value ~= '' then
      list[n + 1], list[n + 2] = name, value
      n = n + 2
    end
  end
  local record = letter.record or {}
  add('leat.tid', task.tid)
  add('leat.cause', letter.cause)
  add('leat.status', letter.status)
  add('leat.reason', letter.reason)
  add('leat.attempts', str(task.attempts))
  add('leat.crashes', str(task.crashes))
  add('leat.fence', str(task.fence))
  add('leat.enqueued', task.enqueued)
  add('leat.begun', record.begun)
  add('leat.died', q.now_text)
  add('leat.worker', record.consumer or letter.worker)
  add('leat.history', task.history)
  add('leat.stdout', letter.stdout)
  add('leat.stderr', letter.stderr)
  add('leat.usage', letter.usage)
  add('leat.damaged', letter.damaged)
  add('leat.fields', str(own_pairs))
  return add_entry(q, q[DEAD], list)
end
leat.write_dead_letter = write_dead_letter

-- Parts of a whole step.

-- The record of an attempt whose lease ran out, pointing to the entry that took the task over.
local function put_moved(q, token, record, moved)
  hash_set(q, RUNNING, token, pack_record(record.consumer, record.begun, record.attempt, record, moved))
end

-- Part of a whole step: the record of an earlier attempt, whose late success would still count, follows the task
-- from one place to the next. A place is an entry's token, or 'w' and the tid in waiting.
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

-- Part of a whole step: the task that waits ends.
function leat.drop_waiting(q, tid)
  local list = leat.unpack_waiting(hash_drop(q, WAITING, tid))
  zset_drop(q, DELAYED, tid)
  leat.leave_lane(q, tid, list and decode('w', list).lane or '')
end

-- With what the attempt held while it ran.
local function drop_record(q, token)
  local packed = hash_drop(q, RUNNING, token)
  local record = packed and packed:sub(1, 1) == BOUND and unpack_record(packed)
  if record then
    leat.stop_holding(q, token, record)
  end
end
leat.drop_record = drop_record

-- The last part: what the task becomes next has been written before.
local function remove(q, token)
  local stream, id = stream_of(q, token)
  drop_record(q, token)
  redis.call('XDEL', stream, id)
  redis.pcall('XACK', stream, q.group, id)
end
leat.remove = remove

-- Whether somebody asked for the task's end.
function leat.is_cancelled(q, tid)
  return not leat.is_plain(q) and redis.call('SISMEMBER', q[CANCEL], tid) == 1
end

-- Part of a whole step: the task ends, in whatever way.
function leat.forget_cancel(q, tid)
  if leat.is_cancelled(q, tid) then
    redis.call('SREM', q[CANCEL], tid)
    undo_with(q, 'SADD', q[CANCEL], tid)
  end
end

local function end_step(q, task, letter)
  if letter then
    write_dead_letter(q, task, letter)
  end
  if task.from then
    drop_record(q, task.from)
  end
  leat.release_names(q, task)
  leat.forget_cancel(q, task.tid)
  remove(q, task.token)
end

-- What claim tells of: nobody else would, where no worker ran the task.
local function note_end(q, tid, cause)
  q.ended[#q.ended + 1], q.ended[#q.ended + 2] = tid, cause
end

-- Buries a task that stands in an entry, and lets go of all it held.
function leat.dead_letter(q, task, letter)
  whole_step(end_step, q, task, letter)
  note_end(q, task.tid, letter.cause)
  leat.letter_written(q)
  leat.tell_end(q, task, 'dead', letter)
end

-- Ends a task that was asked to be cancelled and stands in an entry. Nothing is left of it but its result.
function leat.cancel_entry(q, task, record)
  whole_step(end_step, q, task)
  note_end(q, task.tid, 'cancelled')
  count(q, 'cancelled')
  leat.tell_end(q, task, 'cancelled', { cause = 'cancelled', record = record })
end

function leat.refuse(q, task, reason)
  leat.dead_letter(q, task, { cause = 'refused', reason = reason, worker = q.consumer })
end

-- Why an entry may neither begin nor be passed on, or nil. An id of new_tid's form that a producer chose would make it
-- pass for a task of leat's own.
function leat.misfit(task)
  local token = task.token
  if task.count > MAX_FIELDS * 2 then
    return TOO_MANY_FIELDS
  elseif #token >= OWN_SHORTEST and #token <= OWN_LONGEST and token:match('^s%d%d%d%d%d%d%d%d%d%d%d%d%d%-') then
    return FORGED_ID
  end
end

local function requeue_step(q, task, record)
  local old_from = task.from
  task.fence = task.fence + 1
  if record then
    task.from = task.token
  end
  local moved = 'g' .. add_entry(q, q[GO], encode(task))
  if not record then
    leat.move_record(q, old_from, task.token, moved)
    return remove(q, task.token)
  end
  local stream, id = stream_of(q, task.token)
  drop_record(q, task.token)
  put_moved(q, task.token, record, moved)
  redis.call('XDEL', stream, id)
  redis.pcall('XACK', stream, q.group, id)
end

-- The one routine by which a task becomes a new entry. record is given where a begun attempt lost its lease:
-- it stays and points to the new entry, so that its late success still counts until that one has begun.
function leat.requeue(q, task, record)
  local misfit = leat.misfit(task)
  if misfit then
    return leat.refuse(q, task, misfit)
  end
  whole_step(requeue_step, q, task, record)
end

local function settle_vanished_step(q, token, record)
  if record and not record.moved then
    local task = {
      tid = record.tid, fields = {}, count = 0, attempts = record.attempt, crashes = 0,
      fence = record.fence, enqueued = '0', history = '',
    }
    write_dead_letter(q, task, {
      cause = 'vanished', reason = 'the entry was deleted or trimmed while the task ran', record = record,
    })
    leat.release_names(q, record)
    leat.forget_cancel(q, record.tid)
  end
  remove(q, token)
end

-- An entry that was trimmed or deleted by hand: all that is left of the task is its record, if it had begun.
function leat.settle_vanished(q, token)
  local record = record_of(q, token)
  whole_step(settle_vanished_step, q, token, record)
  count(q, 'vanished')
  if record and not record.moved then
    leat.letter_written(q)
    note_end(q, record.tid, 'vanished')
    leat.tell_end(q, record, 'dead', { cause = 'vanished', record = record })
  end
end

-- An entry that its worker let expire, or that a proved dead worker left: a crash if the attempt had begun.
function leat.take_over(q, task, max_crashes)
  local record = record_of(q, task.token)
  if leat.is_cancelled(q, task.tid) then
    return leat.cancel_entry(q, task, record)
  elseif not record or leat.misfit(task) then
    return leat.requeue(q, task)
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
  count(q, 'crashes')
end

end
