do -- Enqueue.

-- Refuses what the gate would refuse, before anything is written; answers the task's own id.
local function check_fields(fields, index)
  local seen = {}
  for i = 1, #fields, 2 do
    local name = fields[i]
    if name:sub(1, 5) == 'leat.' then
      fail('REFUSED task ' .. index .. ': field names that begin with leat. are reserved')
    elseif seen[name] then
      fail('REFUSED task ' .. index .. ': field given twice: ' .. name:sub(1, 40))
    end
    seen[name] = fields[i + 1]
  end
  return seen.id ~= '' and seen.id or nil
end

-- ARGV: for each task DUE COUNT NAME VALUE …; COUNT is the number of pairs; DUE is 0 (now), +MS (from now on
-- the server's clock) or a unix time in ms.
local function parse_tasks(q, args)
  local tasks, at = {}, 1
  while at <= #args do
    local due, pairs_count = args[at], number_arg(args[at + 1], 'the number of fields')
    local last = at + 1 + pairs_count * 2
    if pairs_count < 1 or pairs_count > MAX_FIELDS or last > #args then
      fail('REFUSED task ' .. (#tasks + 1) .. ': it needs 1 to ' .. MAX_FIELDS .. ' whole fields')
    end
    local fields = {}
    for i = at + 2, last do
      fields[#fields + 1] = args[i]
    end
    if due:sub(1, 1) == '+' then
      due = q.now + number_arg(due:sub(2), 'the delay')
    else
      due = number_arg(due, 'the due time')
    end
    tasks[#tasks + 1] = { fields = fields, due = due, id = check_fields(fields, #tasks + 1) }
    at = last + 1
  end
  return tasks
end

-- Who holds each id already: id → tid. Answers also how many tasks are new.
local function look_up_holders(q, tasks)
  local holders, new = {}, {}
  local added = 0
  for _, item in ipairs(tasks) do
    local id = item.id
    local holder = id and redis.call('HGET', q[NAMES], 'i:' .. id)
    if holder then
      holders[id] = holder
    elseif not id or not new[id] then
      added = added + 1
      new[id or ''] = true
    end
  end
  return holders, added
end

-- An id of the same form as an entry's, for a task that has none yet. Streams count from 0 in each
-- millisecond, so the two never meet.
local function new_tid(q)
  return q.now_text .. '-' .. str(1e9 + redis.call('HINCRBY', q[STATS], 'tids', '1'))
end

local function add_task(q, item)
  local fields, tid = item.fields, nil
  if item.due > q.now then
    tid = new_tid(q)
    leat.delay(q, {
      tid = tid, fields = fields, count = #fields, attempts = 0, crashes = 0, fence = 1,
      enqueued = q.now_text, history = '',
    }, item.due)
  else
    tid = add_entry(q, q[STREAM], fields)
  end
  if item.id then
    redis.call('HSET', q[NAMES], 'i:' .. item.id, tid)
    undo_with(q, 'HDEL', q[NAMES], 'i:' .. item.id)
  end
  return tid
end

local function add_tasks(q, tasks, holders)
  local reply = { PROTOCOL }
  for _, item in ipairs(tasks) do
    local tid = item.id and holders[item.id]
    reply[#reply + 1] = tid and 'exists' or 'new'
    if not tid then
      tid = add_task(q, item)
      if item.id then
        holders[item.id] = tid
      end
    end
    reply[#reply + 1] = tid
  end
  return reply
end

-- KEYS: the producer's. ARGV: see parse_tasks. Reply: PROTOCOL, then for each task 'new' or 'exists' and the
-- task's id. All or nothing: a bad task, a full queue or a refused write leaves no trace of the whole call.
-- At the limit, what exists already is still answered so: a producer that repeats its call must hear of it.
function leat.enqueue(keys, args)
  local q = open(keys, PRODUCER_KEYS)
  local tasks = parse_tasks(q, args)
  local holders, added = look_up_holders(q, tasks)
  local limit = number_or(redis.call('HGET', q[CONF], 'max_length'), 0)
  if limit > 0 and added > 0 then
    local length = redis.call('XLEN', q[STREAM]) + redis.call('HLEN', q[WAITING])
    if length + added > limit then
      fail('FULL the queue holds ' .. length .. ' tasks, its limit is ' .. limit)
    end
  end
  return whole_step(add_tasks, q, tasks, holders)
end

end
