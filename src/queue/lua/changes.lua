do -- Changes of tasks that wait, by operators: another lane, queue or due time, other fields.

-- Part of a whole step: the task waits in this queue, in its lane or until due (ms), and holds its names.
function leat.put_waiting(q, task, due)
  task.due = due > q.now and str(due) or task.due
  hash_set(q, WAITING, task.tid, cmsgpack.pack(encode(task)))
  leat.watch_expiry(q, task, task.tid)
  leat.note_size(q, task.weight)
  if due > q.now then
    leat.schedule(q, due, task.tid)
  else
    -- It waits in a lane even without one of its own: there may be very many, and go is read before everything else.
    leat.to_lane(q, task.tid, leat.lane_of(q, task.lane) or '')
  end
  if task.id then
    leat.hold_id(q, task.id, task.tid)
  end
  if task.unique then
    leat.hold_unique(q, task.unique, task.tid)
  end
end

-- The task's fields after the changes, and whether they differ. changes: {'+NAME', value, '-NAME', '' …}.
local function changed_fields(task, changes)
  local fields, values, differs = {}, {}, false
  for i = 1, #changes, 2 do
    values[changes[i]:sub(2)] = changes[i]:sub(1, 1) == '+' and changes[i + 1]
  end
  local function add(name, value)
    if value then
      fields[#fields + 1], fields[#fields + 2] = name, value
    end
    values[name] = nil
  end
  for i = 1, task.count, 2 do
    local name, value = task.fields[i], task.fields[i + 1]
    local new = values[name]
    if new == nil then
      new = value
    end
    differs = differs or new ~= value
    add(name, new)
  end
  for i = 1, #changes, 2 do
    local name = changes[i]:sub(2)
    differs = differs or values[name]
    add(name, values[name])
  end
  return fields, differs
end

local function change_step(q, to, old, new, place, due)
  q.undo = {}
  to.undo = q.undo
  if place == 'w' then
    leat.drop_waiting(q, old.tid)
  end
  if old.from then
    leat.drop_record(q, old.from)
  end
  leat.forget_expiry(q, old)
  leat.release_names(q, {
    tid = old.tid, id = (to ~= q or old.id ~= new.id) and old.id,
    unique = (to ~= q or old.unique ~= new.unique) and old.unique,
  })
  leat.put_waiting(to, new, due)
  if place ~= 'w' then
    leat.remove(q, place, old.tid)
  end
end

-- A task that waits, its place, and its score in delayed (false: none); or an answer of leat_change alone.
local function waiting_task(q, id, token)
  local tid = leat.tid_of(q, id)
  local place, task = leat.place_of(q, tid)
  if place == 'w' then
    local score = redis.call('ZSCORE', q[DELAYED], tid)
    task = decode('w', leat.read_waiting(q, tid) or fail('REFUSED it is damaged; see leat doctor'))
    if not score and not leat.is_laned(q, tid, task.lane) then
      fail('REFUSED it waits until the task that holds its unique key has ended; cancel it and enqueue another one')
    end
    return task, place, score and tonumber(score)
  end
  task = task or leat.task_at(q, token)
  if not task or task.tid ~= tid then
    return 'gone'
  elseif task.token:sub(1, 1) == 'd' then
    return 'dead'
  end
  local record = record_of(q, task.token)
  if record then
    return 'running ' .. record.consumer
  end
  return task, task.token, false
end

-- Fails if the changed task may not be in that queue.
local function check_change(q, to, task, fields, due)
  if (field(task, 'signature') or '') ~= '' then
    fail('REFUSED it is signed, so workers would refuse it; cancel it, and enqueue and sign another one')
  elseif #fields == 0 or #fields > MAX_FIELDS * 2 then
    fail('REFUSED a task has 1 to ' .. MAX_FIELDS .. ' fields')
  end
  leat.make_item(to, fields, task.tid, due)
  local room, limit = leat.room(to)
  if to ~= q and redis.call('HEXISTS', to[CONF], 'group') == 0 then
    fail('REFUSED there is no queue ' .. to[STREAM] .. ' yet; start a worker of it, or run leat init')
  elseif to ~= q and room and room < 1 then
    fail('FULL the queue ' .. to[STREAM] .. ' has reached its limit of ' .. str(limit) .. ' tasks; try again later')
  end
end

-- Why a task may not have its names, because another one has, or nil.
local function name_conflict(q, task, follows)
  local holder = task.id and redis.call('HGET', q[NAMES], 'i:' .. task.id)
  return holder and holder ~= task.tid and 'label ' .. task.id:sub(1, 100) .. ' is held by ' .. holder
    or not follows and leat.unique_problem(q, task) or nil
end

-- The task with other fields, unless another task has its names. In the other queue it gets another id: its own may be
-- that of a task that has ended there.
local function changed_task(q, to, task, fields)
  local new = {}
  for name, value in pairs(task) do
    new[name] = value
  end
  new.fields, new.count, new.from, new.tid = fields, #fields, nil, to ~= q and leat.new_tid(to) or task.tid
  new = decode('w', encode(new))
  local problem = name_conflict(to, new)
  if problem then
    fail('REFUSED ' .. problem)
  end
  return new
end

local function change_one(q, to, id, token, due, changes)
  local task, place, score = waiting_task(q, id, token)
  if not place then
    return task
  end
  local is_postponed, misfit = score and leat.is_postponed(score), leat.misfit(task)
  if misfit or leat.is_cancelled(q, task.tid) then
    fail('REFUSED ' .. (misfit or 'it is about to be cancelled'))
  elseif due and is_postponed then
    fail('REFUSED it waits until another task has ended that was lost with its worker; see leat explain')
  end
  local fields, differs = changed_fields(task, changes)
  local before = score or 0
  due = due or is_postponed and to ~= q and 0 or before
  if to == q and not differs and (due == before or math.max(due, before) <= q.now) then
    return 'same ' .. task.tid
  elseif to ~= q or differs then
    check_change(q, to, task, fields, is_postponed and 0 or due)
  elseif not is_postponed then
    leat.refuse_expired(q, task.expires, task.tid, due)
  end
  local new = changed_task(q, to, task, fields)
  whole_step(change_step, q, to, task, new, place, due)
  if task.attempts > 0 and not is_postponed then
    count(q, 'retrying', score and -1 or 0)
    count(to, 'retrying', due > to.now and 1 or 0)
  end
  if to ~= q then
    leat.tell_end(q, task, 'cancelled', { cause = 'cancelled', reason = 'moved to ' .. to[STREAM] .. ' as ' .. new.tid })
  end
  return 'ok ' .. new.tid
end

-- leat_change: changes tasks that wait.
-- KEYS: all; and again all, of the queue that they go to, if it is another one.
-- ARGV: group, when the tasks are due ('': as before; else see parse_due), how many fields change, for each of these
-- '+NAME' and the new value, or '-NAME' and '', then for each of at most PAGE tasks its tid or label, and a token as in
-- leat_cancel.
-- Reply: PROTOCOL, then for each: 'ok TID' (its id, which is a new one in another queue), 'same TID' (it was so
-- already), 'running CONSUMER', dead, gone, later (as in leat_cancel), or the error that kept it as it was.
-- Safe to stop: each task is a whole step, over both queues. A repeated call finds it changed, or gone.
function leat.change(keys, args)
  local others = #keys == 2 * ALL_KEYS and { unpack(keys, ALL_KEYS + 1) }
  keys = others and { unpack(keys, 1, ALL_KEYS) } or keys
  local q = open(keys, ALL_KEYS, args[1])
  local to = others and open(others, ALL_KEYS) or q
  local due = args[2] ~= '' and leat.parse_due(q, args[2], '') or nil
  local first = 4 + 2 * number_arg(args[3], 'the number of fields')
  if #args < first + 1 or #args >= first + 2 * PAGE or (#args - first) % 2 ~= 1 then
    fail('BADARG give the changes, and tid and token of at most ' .. PAGE .. ' tasks')
  end
  leat.expire_due(q)
  local changes, reply = { unpack(args, 4, first - 1) }, { PROTOCOL }
  for i = first, #args, 2 do
    local fine, state = true, 'later'
    if i == first or not is_full(q) then
      fine, state = pcall(change_one, q, to, args[i], args[i + 1], due, changes)
    end
    reply[#reply + 1] = fine and state or message_of(state)
  end
  pcall(leat.offer_lane_task, q)
  pcall(leat.offer_lane_task, to)
  return reply
end

-- ---------------------------------------------------------------- import

-- Part of a whole step. place: 'w', 'f' (the task waits for the holder of its unique key), or 'd' and an id.
local function import_step(q, place, task, due)
  if place == 'w' then
    return leat.put_waiting(q, task, due)
  elseif place == 'f' then
    task.due = due > q.now and str(due) or task.due
    hash_set(q, WAITING, task.tid, cmsgpack.pack(encode(task)))
    leat.watch_expiry(q, task, task.tid)
    return hash_set(q, NAMES, 'n:' .. task.unique, task.tid .. ' ' .. str(due))
  end
  -- The id of a dead letter says when its task died. Redis refuses it if there is a later one.
  local id = redis.pcall('XADD', q[DEAD], place:sub(2), unpack(task.fields))
  if type(id) == 'table' then
    id = add_entry(q, q[DEAD], task.fields)
  else
    undo_with(q, 'XDEL', q[DEAD], id)
  end
  leat.put_index(q, task.tid, 'd' .. id)
end

-- Whether the task is in the queue already.
local function has_task(q, task)
  local place, other = leat.place_of(q, task.tid)
  if not place then
    return false
  end
  other = other or decode('w', leat.read_waiting(q, task.tid) or {})
  for i = 1, math.max(task.count, other.count) do
    if task.count ~= other.count or task.fields[i] ~= other.fields[i] then
      fail('REFUSED another task of the queue has the id ' .. task.tid)
    end
  end
  return true
end

-- Why a task may not wait in the queue, or nil.
local function wait_problem(q, task, place)
  local room, limit = leat.room(q)
  if room and room < 1 then
    fail('FULL the queue has reached its limit of ' .. str(limit) .. ' tasks; try again later')
  end
  return leat.name_problem(task) or task.lane and not leat.may_be_lane(task.lane) and leat.LANE_PROBLEM
    or name_conflict(q, task, place == 'f')
end

-- Whether a task with that key may wait for the holder.
local function may_follow(q, key)
  local holder, _, until_ms = leat.holder_of(q, key)
  return holder and not until_ms and redis.call('HEXISTS', q[NAMES], 'n:' .. key) == 0
end

local function import_one(q, place, due, list)
  local task = decode('w', list)
  if #list > 2 * (MAX_FIELDS + 20) or not trailer(list) or not is_tid(task.tid) or leat.misfit(task) then
    fail('REFUSED it is not a task as leat export writes it')
  elseif has_task(q, task) then
    return 'exists'
  end
  if place == 'f' and not may_follow(q, task.unique or '') then
    place = 'w'
  end
  local problem = place:sub(1, 1) ~= 'd' and wait_problem(q, task, place)
  if problem then
    fail('REFUSED ' .. problem)
  end
  whole_step(import_step, q, place, task, due)
  leat.forget_result(q, task.tid)
  if place == 'w' and task.attempts > 0 and due > q.now then
    count(q, 'retrying')
  end
  return 'new'
end

-- leat_import: adds tasks as leat export has written them.
-- KEYS: all.
-- ARGV: for each task: its place ('w', 'f': it waits for the holder of its unique key, or 'd' and the id of the dead
-- letter), when it is due (ms; 0: now), how many values follow, and its fields and those of leat, as an entry of go has
-- them.
-- Reply: PROTOCOL, then for each: new, exists (the queue has it), or the error that kept it out.
-- Safe to stop: each task is a whole step; a repeated call finds it there.
function leat.import(keys, args)
  local q, at, reply = open(keys, ALL_KEYS), 1, { PROTOCOL }
  while at <= #args do
    local due, last = number_arg(args[at + 1], 'the due time'), at + 2 + number_arg(args[at + 2], 'the number of values')
    if not args[at]:match('^[wf]$') and not is_entry_id(args[at]:match('^d(.*)$') or '') or last > #args then
      fail('BADARG give place, due time and values of each task')
    end
    local fine, state = pcall(import_one, q, args[at], due, { unpack(args, at + 3, last) })
    reply[#reply + 1] = fine and state or message_of(state)
    at = last + 1
  end
  pcall(leat.offer_lane_task, q)
  return reply
end

end
