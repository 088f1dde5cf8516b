do -- Enqueue.

local DURATION_NAMES = { 'unique_for', 'result_ttl' }

-- An empty value is none.
local function filled(value)
  return value ~= '' and value or nil
end

local function refuse_problem(index, problem)
  if problem then
    fail('REFUSED task ' .. index .. ': ' .. problem)
  end
end

-- Refuses what leat_claim would refuse, except for its size, before anything is written. Returns the task as add_task
-- takes it.
local function check_fields(q, fields, index)
  local seen, bytes = {}, 0
  for i = 1, #fields, 2 do
    local name = fields[i]
    bytes = bytes + #name + #fields[i + 1]
    if name:sub(1, 5) == 'leat.' then
      fail('REFUSED task ' .. index .. ': field ' .. shown(name) .. ': names that begin with leat. are reserved; rename it')
    elseif seen[name] then
      fail('REFUSED task ' .. index .. ': field given twice: ' .. shown(name) .. '; leave one out')
    end
    seen[name] = fields[i + 1]
  end
  for i = 1, #DURATION_NAMES do
    local name = DURATION_NAMES[i]
    if filled(seen[name]) and not duration_ms(seen[name]) then
      fail('REFUSED task ' .. index .. ': ' .. name .. ': not a duration: ' .. shown(seen[name]) .. DURATION_HINT)
    end
  end
  local lane = filled(seen.lane)
  if lane and not leat.may_be_lane(lane) then
    fail('REFUSED task ' .. index .. ': ' .. leat.LANE_PROBLEM)
  end
  local item = {
    fields = fields, id = filled(seen.id), lane = leat.lane_of(q, lane), unique = filled(seen.unique), bytes = bytes,
    follow = seen.unique_next == '1', expires = seen.expires, due = nil,
  }
  refuse_problem(index, leat.name_problem(item))
  return item
end
leat.check_fields = check_fields

local function refuse_count(index)
  fail('REFUSED task ' .. index .. ': wrong number of fields; give 1 to ' .. MAX_FIELDS .. ' names, each with a value')
end
leat.refuse_count = refuse_count

-- Fails if the task expires before it is due. leat_claim dead-letters a task that is merely late, such as that of a
-- repeated call.
local function refuse_expired(q, expires, index, due)
  expires = due > q.now and expires and tonumber(expires)
  if expires and expires * 1000 <= due then
    fail('REFUSED task ' .. index .. ': it expires before it is due, so it could never start')
  end
end
leat.refuse_expired = refuse_expired

-- Checks a task that is due at that time (ms; 0: now), before anything is written. Returns it as add_task takes
-- it.
local function make_item(q, fields, index, due)
  local item = check_fields(q, fields, index)
  refuse_problem(index, leat.size_problem(q, item))
  leat.note_size(q, item.bytes)
  item.due = due
  refuse_expired(q, item.expires, index, due)
  return item
end
leat.make_item = make_item

-- When a task is due (ms): 0 (now), +MS (from now on the clock of Redis) or a unix time in ms.
function leat.parse_due(q, text, what)
  local delay = text:match('^%+(.*)$')
  local due = delay and q.now + number_arg(delay, 'the delay') or number_arg(text, 'the due time')
  if due > q.now + CENTURY_MS then
    fail('REFUSED ' .. what .. 'due in more than 100 years; give an earlier time')
  end
  return due
end

-- The tasks of leat_enqueue's arguments. For each task: DUE (see parse_due), COUNT, and COUNT pairs of NAME and VALUE.
local function parse_tasks(q, args)
  local tasks, at = {}, 1
  while at <= #args do
    local due, pairs_count = args[at], number_arg(args[at + 1], 'the number of fields')
    local last = at + 1 + pairs_count * 2
    if pairs_count < 1 or pairs_count > MAX_FIELDS or last > #args then
      refuse_count(#tasks + 1)
    end
    local fields, number = { unpack(args, at + 2, last) }, #tasks + 1
    -- nearly all are due now, and making a text for each is slow
    due = due == '0' and 0 or leat.parse_due(q, due, 'task ' .. number .. ': ')
    tasks[number] = make_item(q, fields, number, due)
    at = last + 1
  end
  return tasks
end

-- The task that already holds the item's id or unique key, or nil; and whether the item may become its follow-up.
local function holder_of(q, item)
  local holder = item.id and redis.call('HGET', q[NAMES], 'i:' .. item.id)
  if holder or not item.unique then
    return holder or nil, false
  end
  local tid, token, until_ms = leat.holder_of(q, item.unique)
  if tid and item.follow and token ~= '' and not until_ms then
    local following = redis.call('HGET', q[NAMES], 'n:' .. item.unique)
    if following then
      return following:match('^%S+'), false
    end
    return tid, true
  end
  return tid, false
end
leat.holder_of_item = holder_of

-- How many of the tasks are new, for the length limit.
local function count_new(q, tasks)
  local added, seen = 0, {}
  for _, item in ipairs(tasks) do
    local holder, follows = holder_of(q, item)
    local twice = item.id and seen['i' .. item.id] or item.unique and seen['u' .. item.unique]
    if not twice and (not holder or follows) then
      added = added + 1
      seen[item.id and 'i' .. item.id or ''] = true
      seen[item.unique and 'u' .. item.unique or ''] = true
    end
  end
  return added
end

-- An id for a task that has no entry. It has the form of an entry's id, but its second half begins with 9 and has
-- 20 digits, which is more than 64 bits. So no entry can get it, whatever id its producer chooses.
local function new_tid(q)
  local number = add_to_counter(q, 'tids', 1)
  if not number or number < 1 or number >= EXACT then
    number = 1
    redis.call('HSET', q[STATS], 'tids', '1')
  end
  if number == 1 then
    redis.call('HSET', q[STATS], 'own_ids', '1')
  end
  local digits = str(number)
  return q.now_text .. '-9' .. ('0'):rep(ID_WIDTH - 1 - #digits) .. digits
end
leat.new_tid = new_tid

local function wait_for(q, item)
  local task = {
    tid = new_tid(q), fields = item.fields, count = #item.fields, attempts = 0, crashes = 0, fence = 0,
    enqueued = q.now_text, history = '', due = item.due > q.now and str(item.due) or nil,
  }
  hash_set(q, WAITING, task.tid, cmsgpack.pack(encode(task)))
  return task.tid
end

-- Part of a whole step: makes the item a task and returns its tid. item: fields {name, value …}, due ms (0: now),
-- and copies of some fields: id, lane, unique, follow (unique_next). follows: the second result of holder_of.
function leat.add_task(q, item, follows)
  local tid
  if follows then
    tid = wait_for(q, item)
    hash_set(q, NAMES, 'n:' .. item.unique, tid .. ' ' .. str(item.due))
  elseif item.due > q.now then
    tid = wait_for(q, item)
    leat.schedule(q, item.due, tid)
  elseif item.lane and not item.is_direct and not leat.is_idle(q, item.lane) then
    tid = wait_for(q, item)
    leat.to_lane(q, tid, item.lane)
  else
    tid = add_entry(q, q[STREAM], item.fields)
    q.idle = false
  end
  leat.watch_expiry(q, item, tid)
  if item.id then
    hash_set(q, NAMES, 'i:' .. item.id, tid)
  end
  if item.unique and not follows then
    leat.hold_unique(q, item.unique, tid)
  end
  return tid
end

local function add_tasks(q, tasks, reply)
  for _, item in ipairs(tasks) do
    local holder, follows = holder_of(q, item)
    local new = not holder or follows
    reply[#reply + 1] = new and 'new' or 'exists'
    reply[#reply + 1] = new and leat.add_task(q, item, follows) or holder
  end
  return reply
end

-- How many tasks the length limit still allows, and the limit; or nil if there is none.
function leat.room(q)
  local limit = leat.setting(redis.call('HGET', q[CONF], 'max_length'), 0, 0)
  if limit > 0 then
    return limit - redis.call('XLEN', q[STREAM]) - redis.call('HLEN', q[WAITING]), limit
  end
end

-- Fails if a key that the tasks may need has another type, before anything is written. Users who only add tasks may
-- not delete (leat.acl), so whole_step cannot undo their writes. For any other reason, Redis refuses the first write
-- of a call or none. A task without these fields is a single write, and so is a single one that need not wait in its
-- lane.
local function check_keys(q, tasks)
  for _, item in ipairs(tasks) do
    local holds = item.due > q.now or item.id or item.unique or item.expires
    item.is_direct = not holds and item.lane and not tasks[2] and leat.is_idle(q, item.lane)
    if holds or item.lane and not item.is_direct then
      redis.call('XLEN', q[STREAM])
      redis.call('XLEN', q[BELL])
      redis.call('HLEN', q[WAITING])
      redis.call('HGET', q[NAMES], '')
      redis.call('HGET', q[STATS], '')
      for _, key in ipairs({ DELAYED, LANES, LANED }) do
        redis.call('ZSCORE', q[key], '')
      end
      return
    end
  end
end

-- Adds checked tasks, all or none, and appends 'new' or 'exists' and the id of each to the reply. At the limit, an
-- existing task is still answered: a producer that repeats its call must learn of it.
function leat.enqueue_items(q, tasks, reply)
  local room, limit = leat.room(q)
  local added = room and count_new(q, tasks) or 0
  if added > 0 and added > room then
    fail('FULL the queue holds ' .. str(limit - room) .. ' tasks, its limit is ' .. str(limit) .. '; try again later')
  end
  check_keys(q, tasks)
  return whole_step(add_tasks, q, tasks, reply)
end

-- leat_enqueue: adds tasks, all or none.
-- KEYS: the producers'.
-- ARGV: see parse_tasks.
-- Reply: PROTOCOL, then for each task 'new' or 'exists' and the task's id.
-- Safe to stop: all tasks are checked before the first write, and all writes are one whole step, so a wrong task,
-- a full queue or a refused write leaves no trace of the call.
function leat.enqueue(keys, args)
  local q = open(keys, PRODUCER_KEYS)
  return leat.enqueue_items(q, parse_tasks(q, args), { PROTOCOL })
end

end
