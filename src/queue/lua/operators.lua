do -- Requeue: a consumer that is gone.

local function take_over_dead(q, task, max_crashes)
  if not leat.give_back(q, task.token, record_of(q, task.token)) then
    leat.take_over(q, task, max_crashes)
  end
end

-- leat_requeue: requeues everything of a consumer that is gone.
-- KEYS: all.
-- ARGV: group, the consumer, which is proved dead or is leaving, 1 if it died (claimed attempts then count as
-- crashes, as if their leases had expired).
-- Reply: PROTOCOL, entries moved, more (1: call again), 1 if the consumer was known (it had entries or a record),
-- {tid, cause …} of tasks that this call ended.
-- Safe to stop: the consumer is deleted only in the step that has seen that nothing is pending for it. A second
-- call, by whomever, finds nothing.
function leat.requeue_consumer(keys, args)
  local q = open(keys, ALL_KEYS, args[1], args[2])
  local moved, more, problem
  q.ended = {}
  if args[3] == '1' then
    moved, more, problem = leat.hand_back(q, {}, take_over_dead, leat.read_max_crashes(q))
  else
    moved, more, problem = leat.hand_back(q, {}, leat.return_entry)
  end
  if problem and moved == 0 then
    error(problem, 0)
  end
  local was_known = moved > 0
  more = more or problem ~= nil
  if not more then
    was_known = leat.drop_consumer(q, q.consumer) or was_known
    leat.has_returned(q, q.consumer)
  end
  leat.offer_if_freed(q)
  return { PROTOCOL, moved, more and 1 or 0, was_known and 1 or 0, q.ended }
end

-- ---------------------------------------------------------------- operators

local BY_BYTES = 100

-- Part of a whole step. Tasks and lanes that waited for the old rate no longer wait.
local function set_conf(q, name, value)
  hash_set(q, CONF, name, value)
  if name:sub(1, 5) == 'lane:' then
    leat.lane_changed(q, name:sub(6))
  elseif name == 'rate' or name == 'burst' then
    leat.forget_rate(q, 'tat')
  end
end

-- leat_conf: sets one setting, or shows all.
-- KEYS: all.
-- ARGV: nothing, or a name and a value ('' removes a rate or the settings of a lane).
-- Reply: PROTOCOL, then all names and values.
-- Workers use a shorter lease at once, the scan one old lease later.
-- Safe to stop: the setting is one whole step. Without the wakeup after it, workers read it when they next call.
function leat.conf(keys, args)
  local q = open(keys, ALL_KEYS)
  if #args == 1 then
    fail('BADARG give a value for ' .. shown(args[1]))
  elseif #args > 0 then
    local name, value = args[1], args[2]
    leat.check_conf(name, value)
    if name == 'lease_ms' then
      leat.set_floor(q, leat.read_reclaim(q))
    end
    whole_step(set_conf, q, name, value)
    leat.offer_lane_task(q)
    -- Workers that wait check again.
    leat.wake_workers(q, 'conf')
  end
  local reply = { PROTOCOL }
  for _, text in ipairs(redis.call('HGETALL', q[CONF])) do
    reply[#reply + 1] = text
  end
  return reply
end

-- leat_gate: pauses or drains, or ends that. Nothing more starts; running tasks go on.
-- KEYS: all.
-- ARGV: paused or drain:HOST or drain:*, then 1 or 0, then who does it (at most BY_BYTES; optional).
-- Reply: PROTOCOL, 1 if it was so already.
-- conf has since when, and by whom: 'MS' or 'MS BY'. A second call does not change that.
-- Safe to stop: one write. Without the wakeup after it, workers read it when they next claim.
function leat.set_pause(keys, args)
  local q = open(keys, ALL_KEYS)
  local name, on, by = args[1], args[2] == '1', args[3]
  if name ~= 'paused' and not name:match('^drain:.') then
    fail('BADARG neither paused nor drain:HOST: ' .. shown(name))
  elseif #by > BY_BYTES then
    fail('BADARG the name of the operator is longer than ' .. BY_BYTES .. ' bytes')
  end
  leat.expire_due(q)
  local before = redis.call('HEXISTS', q[CONF], name)
  if on then
    redis.call('HSETNX', q[CONF], name, by ~= '' and q.now_text .. ' ' .. by or q.now_text)
  else
    redis.call('HDEL', q[CONF], name)
  end
  leat.offer_if_freed(q)
  leat.wake_workers(q, 'gate')
  return { PROTOCOL, (before == 1) == on and 1 or 0 }
end

local function cancel_waiting(q, tid)
  local packed = redis.call('HGET', q[WAITING], tid)
  q.bytes = q.bytes + #packed
  local task = leat.end_waiting(q, tid, packed)
  count(q, 'cancelled')
  leat.tell_end(q, task, 'cancelled', { cause = 'cancelled' })
  return 'cancelled'
end

-- token: where the caller has seen the task, or ''. It finds a task that is not indexed yet.
local function cancel_one(q, id, token)
  local tid = leat.tid_of(q, id)
  local place, task = leat.place_of(q, tid)
  if place == 'w' then
    return cancel_waiting(q, tid)
  end
  task = task or leat.task_at(q, token)
  if not task or task.tid ~= tid or task.token:sub(1, 1) == 'd' then
    return 'gone'
  end
  local record = record_of(q, task.token)
  if record then
    redis.call('SADD', q[CANCEL], tid)
    return 'asked ' .. record.consumer
  end
  -- If a worker has already read the entry, leat_claim will find it gone.
  leat.cancel_entry(q, task)
  return 'cancelled'
end

-- leat_cancel: cancels tasks.
-- KEYS: all.
-- ARGV: group, 1 to tell the workers at once (0: with their next heartbeat), then for each of at most PAGE tasks
-- its tid or label, and '' or, if it is not indexed yet, the token under which it was seen in go.
-- Reply: PROTOCOL, then for each: cancelled; 'asked CONSUMER' (it is claimed: its worker, or whoever takes it
-- over, ends it, and it becomes cancelled unless it succeeds before); gone (no longer there: look again); later (not
-- looked at, since the tasks before it were very large: ask again; never the first one); or the error.
-- Safe to stop: each task is a step of its own that can be repeated.
function leat.cancel(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  if #args > 2 + PAGE * 2 or #args % 2 ~= 0 then
    fail('BADARG give tid and token of at most ' .. PAGE .. ' tasks')
  end
  leat.expire_due(q)
  local reply, asked = { PROTOCOL }, false
  for i = 3, #args, 2 do
    local fine, state = true, 'later'
    if i == 3 or not is_full(q) then
      fine, state = pcall(cancel_one, q, args[i], args[i + 1])
    end
    reply[#reply + 1] = fine and state or message_of(state)
    asked = asked or fine and state:sub(1, 5) == 'asked'
  end
  if asked and args[2] == '1' then
    leat.wake_workers(q, 'cancel')
  end
  pcall(leat.offer_lane_task, q)
  return reply
end

local function check_letter_ids(args)
  if #args > PAGE then
    fail('BADARG more than ' .. PAGE .. ' dead letters; give fewer')
  end
  for _, id in ipairs(args) do
    if not id:match('^%d+%-%d+$') then
      fail('BADARG not the id of a dead letter: ' .. shown(id))
    end
  end
end

local function dead_retry_step(q, id, task)
  local problem = leat.unique_problem(q, task)
  if problem then
    fail('REFUSED ' .. problem)
  end
  if task.lane and not leat.may_be_lane(task.lane) then
    fail('REFUSED ' .. leat.LANE_PROBLEM)
  end
  problem = leat.name_problem(task)
  if problem then
    fail('REFUSED ' .. problem)
  end
  if leat.is_expired(q, task) then
    fail('REFUSED it has expired, so it could not start; drop it')
  end
  task.attempts, task.crashes, task.from, task.waits, task.due = 0, 0, nil, nil, q.now_text
  leat.put_waiting(q, task, 0)
  leat.drop_index(q, task.tid, task.token)
  redis.call('XDEL', q[DEAD], id)
end

-- Why a dead letter cannot be enqueued again, or nil.
local function retry_problem(id, known)
  if known['leat.packed'] then
    return id .. ' has ' .. TOO_MANY_FIELDS
  elseif known['leat.cause'] == 'vanished' then
    return id .. ' vanished, and its fields with it; drop it'
  elseif known['leat.size'] then
    return id .. ' was larger than max_task; only the beginning of its fields was kept'
  elseif known['leat.damaged'] then
    return id .. ' was damaged; leat.damaged has what is left of it'
  end
end

local function dead_retry_one(q, id)
  local task = leat.task_at(q, 'd' .. id)
  if not task then
    return 'gone'
  end
  local problem = retry_problem(id, trailer(task.fields) or {})
  if problem then
    return 'REFUSED ' .. problem
  end
  whole_step(dead_retry_step, q, id, task)
  leat.forget_result(q, task.tid)
  leat.forget_hook(q, id)
  count(q, 'dead_retried')
  return 'ok'
end

-- leat_dead_retry: enqueues dead letters again. A task keeps its id and history, and gets all its attempts back.
-- KEYS: all.
-- ARGV: the entry ids of dead letters, at most PAGE.
-- Reply: PROTOCOL, then for each 'ok', 'gone', 'later' (not looked at, since those before it were very large: ask
-- again; never the first one), or the error that kept it a dead letter.
-- Safe to stop: each dead letter is a whole step; a repeated call finds it gone.
function leat.dead_retry(keys, args)
  local q = open(keys, ALL_KEYS)
  check_letter_ids(args)
  local reply = { PROTOCOL }
  for i, id in ipairs(args) do
    local fine, state = true, 'later'
    if not is_full(q) then
      fine, state = pcall(dead_retry_one, q, id)
    end
    reply[i + 1] = fine and state or message_of(state)
  end
  leat.offer_lane_task(q)
  return reply
end

local function dead_drop_step(q, letter)
  leat.drop_index(q, letter.tid, letter.token)
  redis.call('XDEL', q[DEAD], letter.token:sub(2))
end

local function dead_drop_one(q, id)
  local letter = leat.task_at(q, 'd' .. id)
  if letter then
    whole_step(dead_drop_step, q, letter)
    count(q, 'dead_dropped')
  end
  leat.forget_hook(q, id)
  return letter and 'ok' or 'gone'
end

-- leat_dead_drop: deletes dead letters.
-- KEYS, ARGV and reply: as of leat_dead_retry.
-- Safe to stop: each dead letter is a whole step.
function leat.dead_drop(keys, args)
  local q = open(keys, ALL_KEYS)
  check_letter_ids(args)
  local reply = { PROTOCOL }
  for i, id in ipairs(args) do
    reply[i + 1] = is_full(q) and 'later' or dead_drop_one(q, id)
  end
  return reply
end

end
