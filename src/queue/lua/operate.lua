do -- Requeue: a consumer that is gone.

-- KEYS: all. ARGV: group, the consumer that is proved dead or leaves, 1 if it died (begun attempts are then
-- crashes). Reply: PROTOCOL, entries moved, more (1: call again). The consumer is deleted only when nothing
-- is pending for it, in the same step that saw so.
function leat.requeue_consumer(keys, args)
  local q = open(keys, ALL_KEYS, args[1], args[2])
  local moved, more
  if args[3] == '1' then
    moved, more = leat.hand_back(q, {}, leat.take_over, leat.read_max_crashes(q))
  else
    moved, more = leat.hand_back(q, {}, leat.requeue)
  end
  if not more then
    redis.call('XGROUP', 'DELCONSUMER', q[GO], q.group, q.consumer)
    redis.call('XGROUP', 'DELCONSUMER', q[STREAM], q.group, q.consumer)
    redis.call('HDEL', q[WORKERS], q.consumer)
  end
  return { PROTOCOL, moved, more and 1 or 0 }
end

-- ---------------------------------------------------------------- operators

local CHANGEABLE = {
  lease_ms = function(value)
    return value >= MIN_LEASE_MS
  end,
  max_crashes = function(value)
    return value >= 1
  end,
  max_length = function()
    return true
  end,
  dead_keep_ms = function()
    return true
  end,
  dead_keep_number = function()
    return true
  end,
}

-- KEYS: all. ARGV: nothing, or a name and a value. Reply: PROTOCOL, then all names and values.
-- A shorter lease is obeyed by workers at once and by the scan one old lease later.
function leat.conf(keys, args)
  local q = open(keys, ALL_KEYS)
  if #args > 0 then
    local check, value = CHANGEABLE[args[1]], number_arg(args[2], args[1]:sub(1, 40))
    if not check or not check(value) then
      fail('BADARG ' .. args[1]:sub(1, 40) .. ' cannot be set to ' .. str(value))
    end
    if args[1] == 'lease_ms' then
      local old = leat.read_reclaim(q)
      redis.call('HSET', q[CONF], 'floor_ms', str(old), 'floor_until', str(q.now + old))
    end
    redis.call('HSET', q[CONF], args[1], str(value))
  end
  local reply = { PROTOCOL }
  for _, text in ipairs(redis.call('HGETALL', q[CONF])) do
    reply[#reply + 1] = text
  end
  return reply
end

local function check_letter_ids(args)
  if #args > PAGE then
    fail('BADARG more than ' .. PAGE .. ' dead letters at once')
  end
  for _, id in ipairs(args) do
    if not id:match('^%d+%-%d+$') then
      fail('BADARG not the id of a dead letter: ' .. id:sub(1, 40))
    end
  end
end

local function dead_retry_step(q, id, task)
  task.fence, task.attempts, task.crashes, task.from = task.fence + 1, 0, 0, nil
  add_entry(q, q[GO], encode(task))
  if task.id and redis.call('HSETNX', q[NAMES], 'i:' .. task.id, task.tid) == 1 then
    undo_with(q, 'HDEL', q[NAMES], 'i:' .. task.id)
  end
  redis.call('XDEL', q[DEAD], id)
end

-- KEYS: all. ARGV: dead letters' entry ids, at most PAGE. Reply: PROTOCOL, then for each 'ok', 'gone', or the
-- error that kept the letter where it is. The task goes up with its id and history and a fresh budget of
-- attempts.
function leat.dead_retry(keys, args)
  local q = open(keys, ALL_KEYS)
  check_letter_ids(args)
  local reply = { PROTOCOL }
  for i, id in ipairs(args) do
    local found = redis.call('XRANGE', q[DEAD], id, id)
    local known = found[1] and (trailer(found[1][2]) or {})
    if not known then
      reply[i + 1] = 'gone'
    elseif known['leat.packed'] then
      reply[i + 1] = 'REFUSED ' .. id .. ' has ' .. TOO_MANY_FIELDS
    elseif known['leat.cause'] == 'vanished' then
      reply[i + 1] = 'REFUSED ' .. id .. ' vanished: nothing is left of it to run'
    else
      local fine, problem = pcall(whole_step, dead_retry_step, q, id, decode('d' .. id, found[1][2]))
      reply[i + 1] = fine and 'ok' or message_of(problem)
      if fine then
        count(q, 'dead_retried')
      end
    end
  end
  return reply
end

-- KEYS, ARGV and reply as dead_retry's.
function leat.dead_drop(keys, args)
  local q = open(keys, ALL_KEYS)
  check_letter_ids(args)
  local reply, dropped = { PROTOCOL }, 0
  for i, id in ipairs(args) do
    local gone = redis.call('XDEL', q[DEAD], id) == 0
    reply[i + 1] = gone and 'gone' or 'ok'
    dropped = dropped + (gone and 0 or 1)
  end
  if dropped > 0 then
    count(q, 'dead_dropped', dropped)
  end
  return reply
end

end
