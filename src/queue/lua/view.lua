do -- Status, list, show and find (no writes).

local FIELD_PREVIEW = 64 -- bytes of a field's value in a list

-- How many entries are pending for our group, the id that it has delivered last, and how many other groups there
-- are.
local function group_info(q, key)
  local pending, last, others = 0, '0-0', 0
  for _, info in ipairs(redis.call('EXISTS', key) == 1 and redis.call('XINFO', 'GROUPS', key) or {}) do
    if info[2] == q.group then
      pending, last = info[6], info[8]
    else
      others = others + 1
    end
  end
  return pending, last, others
end

-- Adds to `busy` how many entries are pending for each consumer; nothing if the caller may not read that.
local function add_busy(q, key, busy)
  for _, info in ipairs(redis.pcall('XINFO', 'CONSUMERS', key, q.group)) do
    busy[info[2]] = (busy[info[2]] or 0) + info[4]
  end
end

-- Of both streams: how many entries no worker has read, how many are pending, how many other groups there are, and how
-- many are pending for each consumer. Calls visit(kind, key, id that was delivered last) for each stream.
function leat.stream_figures(q, visit)
  local unread, pending, others, by_consumer = 0, 0, 0, {}
  for _, kind in ipairs({ 's', 'g' }) do
    local key = stream_of(q, kind)
    local mine, last, more = group_info(q, key)
    pending, others = pending + mine, others + more
    unread = unread + math.max(redis.call('XLEN', key) - mine, 0)
    if mine > 0 then
      add_busy(q, key, by_consumer)
    end
    if visit then
      visit(kind, key, last)
    end
  end
  return unread, pending, others, by_consumer
end

-- {name, value …} of those members of a hash that it has.
function leat.members_of(key, names)
  local list, values = {}, redis.call('HMGET', key, unpack(names))
  for i = 1, #names do
    if values[i] then
      list[#list + 1], list[#list + 2] = names[i], values[i]
    end
  end
  return list
end

-- {consumer, number …}
function leat.flat_busy(by_consumer)
  local busy = {}
  for consumer, number in pairs(by_consumer) do
    busy[#busy + 1], busy[#busy + 2] = consumer, number
  end
  return busy
end

-- All tasks that ever came: entries that producers added, by whatever command, and tasks that first waited. XINFO
-- answers at least one entry as a whole.
local function total_enqueued(q)
  local total = number_or(redis.call('HGET', q[STATS], 'tids'), 0)
  if redis.call('EXISTS', q[STREAM]) == 0 then
    return total
  end
  local info = redis.call('XINFO', 'STREAM', q[STREAM], 'FULL', 'COUNT', '1')
  for i = 1, #info, 2 do
    if info[i] == 'entries-added' then
      return total + info[i + 1]
    end
  end
  return total
end

local LANES_LOOKED_AT = 40 -- for the oldest task

-- For how long (ms) the oldest task of the first lanes has waited.
local function oldest_in_lanes(q)
  local oldest = 0
  leat.walk_lanes(q, nil, LANES_LOOKED_AT, function(_, tid)
    oldest = math.max(oldest, q.now - number_or(tid:match('^%d+'), q.now))
  end)
  return oldest
end

local DUE_LOOKED_AT = 30 -- entries of delayed, for the next delayed task and the next retry

-- 'due' or 'retry', or nil for a member that is no task. A task has to be read only if there are both.
local function kind_of(q, tid, delayed, retrying)
  if delayed == 0 or retrying == 0 then
    return redis.call('HEXISTS', q[WAITING], tid) == 1 and (retrying == 0 and 'due' or 'retry') or nil
  end
  local list = not is_full(q) and leat.read_waiting(q, tid)
  return list and ((trailing(list, 'leat.attempts') or '0') == '0' and 'due' or 'retry') or nil
end

-- The tasks among the first entries of delayed that become ready at a time (ms): {tid, ms, …}.
function leat.next_tasks(q)
  local page, found = redis.call('ZRANGE', q[DELAYED], '0', str(DUE_LOOKED_AT - 1), 'WITHSCORES'), {}
  for i = 1, #page, 2 do
    if not leat.is_postponed(page[i + 1]) and page[i]:find('^%d+%-%d+$') then
      found[#found + 1], found[#found + 2] = page[i], page[i + 1]
    end
  end
  return found
end

-- When (ms) the next delayed task is due, and the next retry; '0' if it is not among the first entries.
local function next_times(q, delayed, retrying)
  local next_ms = { due = delayed == 0 and '0' or nil, retry = retrying == 0 and '0' or nil }
  local tasks = leat.next_tasks(q)
  for i = 1, #tasks, 2 do
    if next_ms.due and next_ms.retry then
      break
    end
    local kind = kind_of(q, tasks[i], delayed, retrying)
    if kind then
      next_ms[kind] = next_ms[kind] or tasks[i + 1]
    end
  end
  return next_ms.due or '0', next_ms.retry or '0'
end

-- The counters of stats, and the names by which users know them if others.
local TOTALS = {
  'succeeded', 'retried', 'released', 'crashes', 'expired', 'vanished', 'fenced', 'dead_retried',
  'dead_dropped', 'dead_trimmed', 'told', 'told_in_vain', 'dead', 'cancelled',
  'waited', 'unreplicated',
}
local SHOWN_AS = { told = 'notified', told_in_vain = 'notify_failed', waited = 'replicas_asked' }

function leat.is_total(name)
  for _, total in ipairs(TOTALS) do
    if name == total then
      return true
    end
  end
  return false
end

-- leat_status.
-- KEYS: all.
-- ARGV: group.
-- Reply: PROTOCOL, now ms, {name, value …} of figures, {consumer, record …}, {name, value …} of conf, {consumer,
-- number …} of running tasks, {name, value …} of the figures of figures.lua. XINFO's lag is not used, because it is wrong
-- after XDEL.
-- Safe to stop: no writes.
function leat.status(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local figures = {}
  local function add(name, value)
    figures[#figures + 1], figures[#figures + 2] = name, value
  end
  local oldest = 0
  local ready, pending, others, by_consumer = leat.stream_figures(q, function(kind, key, last)
    local first = not is_full(q) and entries_after(key, last, '+', '1')[1]
    if first then
      local task = decode(kind .. first[1], first[2])
      oldest, q.bytes = math.max(oldest, q.now - number_or(task.enqueued, q.now)), q.bytes + task.weight
    end
  end)
  local waiting = redis.call('HLEN', q[WAITING])
  local laned, lanes = leat.lane_figures(q)
  if laned > 0 then
    oldest = math.max(oldest, oldest_in_lanes(q))
  end
  local retrying = number_or(redis.call('HGET', q[STATS], 'retrying'), 0)
  retrying = math.min(math.max(retrying, 0), waiting)
  add('ready', ready + laned)
  add('running', pending)
  local delayed = math.max(waiting - laned - retrying, 0)
  add('delayed', delayed)
  add('retrying', retrying)
  add('dead', redis.call('XLEN', q[DEAD]))
  add('in_lanes', laned)
  add('lanes', lanes)
  add('oldest_ready_ms', str(oldest))
  local due, retry = next_times(q, delayed, retrying)
  add('next_due_ms', due)
  add('next_retry_ms', retry)
  add('other_groups', others)
  add('total_enqueued', total_enqueued(q))
  for i, value in ipairs(redis.call('HMGET', q[STATS], unpack(TOTALS))) do
    add('total_' .. (SHOWN_AS[TOTALS[i]] or TOTALS[i]), number_or(value, 0))
  end
  return {
    PROTOCOL, q.now_text, figures, redis.call('HGETALL', q[WORKERS]), redis.call('HGETALL', q[CONF]),
    leat.flat_busy(by_consumer), leat.read_figures(q),
  }
end

-- Decoded entries after `start`, up to limit or MOVE_BYTES of them, and the id to go on from ('': no more).
local function page_of(key, kind, start, limit)
  local tasks, bytes = {}, 0
  while #tasks < limit and bytes < MOVE_BYTES do
    local step = math.min(next_step(#tasks, bytes), limit - #tasks)
    local found = entries_after(key, start, '+', step)
    for _, entry in ipairs(found) do
      start = entry[1]
      local task = decode(kind .. start, entry[2])
      tasks[#tasks + 1], bytes = task, bytes + task.weight
    end
    if #found < step then
      return tasks, ''
    end
  end
  return tasks, start
end
leat.page_of = page_of

local HANDED_OUT = 8 -- unread entries of each stream that are looked at

-- Tasks of lanes that have had their turn and that no worker has read yet: {waiting, oldest (ms)} by lane. There are few:
-- one is put into a stream at a time. Entries of producers that use XADD may be behind many others.
function leat.handed_out(q)
  local found = {}
  q.group = q.group or redis.call('HGET', q[CONF], 'group')
  for _, kind in ipairs({ 'g', 's' }) do
    local key = stream_of(q, kind)
    local _, last = group_info(q, key)
    for _, task in ipairs((page_of(key, kind, last, HANDED_OUT))) do
      local lane = task.lane and leat.may_be_lane(task.lane) and leat.lane_of(q, task.lane)
      if lane and not record_of(q, task.token) then
        local one = found[lane] or { waiting = 0, oldest = math.huge }
        found[lane] = { waiting = one.waiting + 1, oldest = math.min(one.oldest, number_or(task.enqueued, q.now)) }
      end
    end
  end
  return found
end

-- since: when the first task in the lane was enqueued, or nil.
local function lane_row(q, lane, waiting, since, handed)
  local also = handed[lane] or { waiting = 0, oldest = math.huge }
  local oldest = math.min(number_or(since, math.huge), also.oldest)
  return {
    'lane', lane, 'waiting', waiting + also.waiting, 'running', leat.lane_running(q, lane),
    'oldest_ms', oldest < math.huge and str(oldest) or '0', 'settings', (leat.lane_settings(q, lane)),
  }
end

-- Lanes that have running tasks and no waiting ones. Their counters are among the statistics. The first page also has
-- those of which tasks are only handed out.
local function list_running_lanes(q, cursor, limit, rows, handed)
  local page = redis.call('HSCAN', q[STATS], cursor, 'MATCH', 'r:*', 'COUNT', str(limit))
  for lane in pairs(cursor == '0' and handed or {}) do
    if leat.lane_running(q, lane) == 0 and #leat.lane_members(q, lane, 1) == 0 then
      rows[#rows + 1] = lane_row(q, lane, 0, nil, handed)
    end
  end
  for i = 1, #page[2], 2 do
    local lane = page[2][i]:sub(3)
    if number_or(page[2][i + 1], 0) > 0 and #leat.lane_members(q, lane, 1) == 0 then
      rows[#rows + 1] = lane_row(q, lane, 0, nil, handed)
    end
  end
  return page[1] == '0' and '' or 'r' .. page[1]
end

-- leat_lanes: the lanes that have waiting tasks, sorted by name, and then those that only have running ones.
-- KEYS: all.
-- ARGV: cursor ('' at first), how many lanes at most (CHUNK).
-- Reply: PROTOCOL, next cursor ('': no more), for each lane {name, value …} of lane, waiting, running, oldest_ms
-- (since when its first task is there, unix; 0: none waits), settings (as in conf). A lane without waiting tasks
-- may come twice, and a page of those may have more rows than asked for. Tasks in handed_out count as waiting.
-- Safe to stop: no writes.
function leat.lanes(keys, args)
  local q = open(keys, ALL_KEYS)
  local limit, rows = math.max(1, math.min(number_arg(args[2], 'the number of lanes'), CHUNK)), {}
  local handed = leat.handed_out(q)
  local scan = args[1]:match('^r(%d+)$')
  if scan then
    return { PROTOCOL, list_running_lanes(q, scan, limit, rows, handed), rows }
  end
  local after = args[1]:match('^l(.*)$')
  local last = leat.walk_lanes(q, after, limit, function(lane, tid)
    rows[#rows + 1] = lane_row(q, lane, leat.lane_length(q, lane), tid:match('^%d+'), handed)
  end)
  return { PROTOCOL, last and 'l' .. last or list_running_lanes(q, '0', limit, rows, handed), rows }
end

local SHOWN_APART = { command = true, payload = true, id = true, lane = true, unique = true }

-- The beginnings of the other fields: {name, value …}, about PREVIEW bytes in all.
local function field_starts(task)
  local starts, bytes = {}, 0
  for i = 1, task.count, 2 do
    local name, value = task.fields[i], task.fields[i + 1]:sub(1, FIELD_PREVIEW)
    if bytes < PREVIEW and not SHOWN_APART[name] then
      starts[#starts + 1], starts[#starts + 2] = name, value
      bytes = bytes + #name + #value
    end
  end
  return starts
end

local function row(task, state, extra)
  local command = field(task, 'command') or ''
  local payload = field(task, 'payload')
  local list = {
    'tid', task.tid, 'state', state, 'enqueued_ms', task.enqueued, 'attempts', task.attempts,
    'crashes', task.crashes, 'command', command:sub(1, PREVIEW), 'payload_bytes', payload and #payload or 0,
    'id', task.id or '', 'lane', task.lane or '', 'unique', task.unique or '',
  }
  for _, value in ipairs(extra) do
    list[#list + 1] = value
  end
  return list
end

-- A row of a list: it also has the beginnings of the payload and the fields, and whole_command if that is wanted and
-- longer than in the row.
local function listed(q, task, state, extra)
  local list, payload = row(task, state, extra), field(task, 'payload') or ''
  local command = q.wants_whole and field(task, 'command') or ''
  if #command > PREVIEW then
    list[#list + 1], list[#list + 2] = 'whole_command', command
  end
  list[#list + 1], list[#list + 2] = 'payload_start', payload:sub(1, PREVIEW)
  list[#list + 1], list[#list + 2] = 'fields_start', field_starts(task)
  return list
end

-- A dead letter has this in its own fields.
local function dead_extra(id, fields)
  local known = trailer(fields) or {}
  return {
    'dead_id', id, 'cause', known['leat.cause'] or '', 'status', known['leat.status'] or '',
    'reason', (known['leat.reason'] or ''):sub(1, PREVIEW), 'died_ms', known['leat.died'] or '0',
    'worker', known['leat.worker'] or '',
  }
end

local function waiting_state(q, task)
  if leat.is_laned(q, task.tid, task.lane) then
    return 'ready'
  end
  local score = redis.call('ZSCORE', q[DELAYED], task.tid)
  if task.attempts > 0 and not leat.is_postponed(score) then
    return 'retrying'
  end
  -- A follow-up has no time: it waits for the task that holds its unique key.
  return score and 'delayed' or 'following'
end

-- A postponed task is not due at a time.
local function due_of(score)
  return score and not leat.is_postponed(score) and score or '0'
end

-- Tasks in lanes, lane by lane.
local function list_lanes(q, start, limit, rows)
  local page = redis.call('ZRANGE', q[LANED], str(start), str(start + limit - 1))
  for i, member in ipairs(page) do
    if is_full(q) then
      return 'l' .. str(start + i - 1)
    end
    local list = leat.read_waiting(q, leat.lane_tid(member))
    if list then
      rows[#rows + 1] = listed(q, decode('w', list), 'ready', {})
    end
  end
  return #page == limit and 'l' .. str(start + limit) or ''
end

local function list_ready(q, cursor, limit, rows)
  local kind = cursor:sub(1, 1)
  if kind == 'L' then
    local start = redis.call('ZLEXCOUNT', q[LANED], '-', '(' .. cursor:sub(2) .. '\0')
    return list_lanes(q, start, math.min(limit, PAGE), rows)
  elseif kind == 'l' then
    return list_lanes(q, number_arg(cursor:sub(2), 'the cursor'), math.min(limit, PAGE), rows)
  end
  local key, after = stream_of(q, cursor)
  local _, last = group_info(q, key)
  local tasks, following = page_of(key, kind, after == '0-0' and last or after, limit)
  for i, task in ipairs(tasks) do
    rows[i] = listed(q, task, 'ready', {})
  end
  if following ~= '' then
    return kind .. following
  end
  return kind == 'g' and 's0-0' or redis.call('EXISTS', q[LANED]) == 1 and 'l0' or ''
end

-- A running task's attempts include the one that runs.
local function running_extra(task, record)
  task.attempts = record.attempt
  return { 'worker', record.consumer, 'attempt', record.attempt, 'begun_ms', record.begun }
end

local ZEROS = {}
for i = 0, ID_WIDTH do
  ZEROS[i] = ('0'):rep(ID_WIDTH - i)
end

-- Text by which ids sort as their numbers do. Both halves of an id have up to 64 bits, more than a number holds.
local function age_of(tid)
  local time, sequence = tid:match('^0*(%d*)%-0*(%d*)$')
  return ZEROS[#time] .. time .. ZEROS[#sequence] .. sequence .. tid
end

local function is_older(a, b)
  return a.age < b.age
end

-- Up to `limit` entries that workers have read, from those behind `after` on, in the order in which they became ready:
-- {age, token}. An entry of the requeue stream comes after one of the producers' stream with the same id.
local function pending_after(q, after, limit)
  local stream, id = after:match('^([sg])(%d+%-%d+)$')
  local found = {}
  for _, kind in ipairs({ 's', 'g' }) do
    local key = stream_of(q, kind)
    -- The cursor is an entry of one stream. In the other one, the entry with the same id comes before or after it.
    local start = not id and '-' or stream == 's' and kind == 'g' and id or id ~= GREATEST_ID and '(' .. id
    local is_some = start and group_info(q, key) > 0
    for _, entry in ipairs(is_some and redis.call('XPENDING', key, q.group, start, '+', str(limit)) or {}) do
      found[#found + 1] = { age = age_of(entry[1]) .. (kind == 's' and '0' or '1'), token = kind .. entry[1] }
    end
  end
  table.sort(found, is_older)
  return { unpack(found, 1, math.min(#found, limit)) }
end

local function add_running(q, rows, token, record)
  local task = record and not record.moved and fetch(q, token)
  if task then
    rows[#rows + 1] = listed(q, task, 'running', running_extra(task, record))
  end
end

local RUNNING_PAGE = 500 -- entries of a page

-- Tasks that a worker runs although Redis has forgotten that it read them (outage.lua). Their entries count as unread.
-- Returns the next cursor, which is like that of list_following, or nil.
local function list_forgotten(q, start, last, rows)
  local page = redis.call('HSCAN', q[RUNNING], start, 'COUNT', str(RUNNING_PAGE))
  local delivered, records, tokens = {}, {}, {}
  for _, kind in ipairs({ 's', 'g' }) do
    delivered[kind] = age_of(select(2, group_info(q, stream_of(q, kind))))
  end
  for i = 1, #page[2], 2 do
    local token = page[2][i]
    if token > last and is_token(token) and age_of(token:sub(2)) > delivered[token:sub(1, 1)] then
      tokens[#tokens + 1], records[token] = token, page[2][i + 1]
    end
  end
  table.sort(tokens)
  for i, token in ipairs(tokens) do
    if is_full(q) then
      return 'h' .. start .. ' ' .. tokens[i - 1]
    end
    add_running(q, rows, token, unpack_record(records[token]))
  end
  return page[1] ~= '0' and 'h' .. page[1] or nil
end

-- After the pending entries, the forgotten ones come, and then the deferred ones.
local function list_running(q, cursor, limit, rows)
  local start, last = short(cursor):match('^h(%d+) ?(%S*)$')
  if start then
    local following = list_forgotten(q, start, last, rows)
    if following or is_full(q) then
      return following or 'd'
    end
  elseif cursor ~= 'd' then
    local found = pending_after(q, cursor, math.min(limit, RUNNING_PAGE))
    for i = 1, #found do
      if is_full(q) then
        return found[i - 1].token
      end
      add_running(q, rows, found[i].token, record_of(q, found[i].token))
    end
    return #found > 0 and found[#found].token or 'h0'
  end
  for _, task in ipairs(group_info(q, q[GO]) > 0 and leat.deferred(q) or {}) do
    rows[#rows + 1] = listed(q, task, 'held', { 'worker', task.deferred_by })
  end
  return ''
end

local function list_waiting(q, cursor, limit, rows)
  local start = number_arg(cursor, 'the cursor')
  limit = math.min(limit, PAGE)
  local page = redis.call('ZRANGE', q[DELAYED], str(start), str(start + limit - 1), 'WITHSCORES')
  for i = 1, #page, 2 do
    if is_full(q) then
      return str(start + (i - 1) / 2)
    end
    local list = is_tid(page[i]) and leat.read_waiting(q, page[i])
    if list then
      local task = decode('w', list)
      task.tid = page[i]
      rows[#rows + 1] = listed(q, task, waiting_state(q, task), { 'due_ms', due_of(page[i + 1]) })
    end
  end
  return #page == limit * 2 and str(start + limit) or ''
end

-- Follow-ups wait for the holder of their unique key. They are found by its name only. The cursor is that of HSCAN and,
-- if a page was too large for one call, the last tid that was listed of it.
local function list_following(q, cursor, _, rows)
  if redis.call('HLEN', q[WAITING]) == redis.call('ZCARD', q[LANED]) then
    return ''
  end
  local start, last = short(cursor):match('^(%d+) ?(%S*)$')
  local page = redis.call('HSCAN', q[NAMES], str(number_arg(start, 'the cursor')), 'MATCH', 'n:*', 'COUNT', str(CHUNK))
  local tids = {}
  for i = 2, #page[2], 2 do
    tids[#tids + 1] = page[2][i]:match('^%S*')
  end
  table.sort(tids)
  for i, tid in ipairs(tids) do
    if is_full(q) then
      return start .. ' ' .. tids[i - 1]
    end
    local list = tid > last and leat.read_waiting(q, tid)
    if list then
      rows[#rows + 1] = listed(q, decode('w', list), 'following', {})
    end
  end
  return page[1] == '0' and '' or page[1]
end

-- Decoded dead letters from the newest one on, up to limit or MOVE_BYTES of them.
local function newest_dead(q, limit)
  local tasks, bytes, last = {}, 0, '+'
  while #tasks < limit and bytes < MOVE_BYTES do
    local step = math.min(next_step(#tasks, bytes), limit - #tasks)
    local found = redis.call('XREVRANGE', q[DEAD], last, '-', 'COUNT', str(step))
    for _, entry in ipairs(found) do
      local task = decode('d' .. entry[1], entry[2])
      tasks[#tasks + 1], bytes, last = task, bytes + task.weight, '(' .. entry[1]
    end
    if #found < step then
      break
    end
  end
  return tasks, ''
end

-- The cursor '+' lists the newest first, as far as one page goes.
local function list_dead(q, cursor, limit, rows)
  local tasks, following
  if cursor == '+' then
    tasks, following = newest_dead(q, limit)
  else
    tasks, following = page_of(q[DEAD], 'd', cursor, limit)
  end
  for i, task in ipairs(tasks) do
    rows[i] = listed(q, task, 'dead', dead_extra(task.token:sub(2), task.fields))
  end
  return following
end

local LISTS = {
  ready = list_ready, running = list_running, waiting = list_waiting, following = list_following, dead = list_dead,
  done = leat.list_done,
}

-- leat_list.
-- KEYS: all.
-- ARGV: group, what (ready, running, waiting, following, dead, done), cursor (at first: ready g0-0, dead 0-0, done d+,
-- others 0),
-- how many rows at most (1000), 1 for whole_command of tasks whose command a row cuts short. For ready, the cursor 'L' and
-- the name of a lane begins with the waiting tasks of that lane. For dead, the cursor '+' answers the newest ones.
-- done lists ends, the newest first; with the cursor 'a' and a time (ms), the oldest since then first.
-- Reply: PROTOCOL, next cursor ('': no more), rows of {name, value …}, never with a whole payload. A page may have
-- fewer rows than asked for, or more for running and following.
-- Safe to stop: no writes.
function leat.list(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local list_some = LISTS[args[2]]
  if not list_some then
    fail('BADARG unknown list ' .. shown(args[2]))
  end
  local limit, rows = math.max(1, math.min(number_arg(args[4], 'the number of rows'), CHUNK)), {}
  q.wants_whole = args[5] == '1'
  local following = list_some(q, args[3], limit, rows)
  return { PROTOCOL, following, rows }
end

local function whole_task(task, state, extra)
  local fields = {}
  for i = 1, task.count do
    fields[i] = task.fields[i]
  end
  local packed = task.count == 0 and (trailer(task.fields) or {})['leat.packed']
  return { PROTOCOL, '', row(task, state, extra), packed and cmsgpack.unpack(packed) or fields, task.history }
end

-- Fields that a living task has besides: an export keeps it, so that its next fencing token is greater than the last one.
local function add_kept(task, extra, fence)
  local function add(name, value)
    extra[#extra + 1], extra[#extra + 2] = name, str(value)
  end
  add('fence', fence)
  if task.waits then
    add('waits', task.waits)
  end
  if task.spared then
    add('spared', task.spared)
  end
  return extra
end

local function show_waiting(q, tid)
  local list = leat.read_waiting(q, tid)
  local task = decode('w', list or {})
  task.tid = tid
  local state = list and waiting_state(q, task) or 'damaged'
  local due = state == 'following' and task.due or due_of(redis.call('ZSCORE', q[DELAYED], tid))
  return whole_task(task, state, add_kept(task, { 'due_ms', due }, task.fence))
end

-- The task of an entry: running, claimed (read by a worker) or ready.
local function show_entry(q, task)
  local token = task.token
  local record = record_of(q, token)
  if record then
    local extra = running_extra(task, record)
    extra[#extra + 1], extra[#extra + 2] = 'token', token
    return whole_task(task, 'running', add_kept(task, extra, record.fence))
  end
  local stream, id = stream_of(q, token)
  local _, last = group_info(q, stream)
  local ready = entries_after(stream, last, id, '1')
  return whole_task(task, ready[1] and 'ready' or 'claimed', add_kept(task, { 'token', token }, task.fence))
end

local function letter_extra(task)
  local known = trailer(task.fields) or {}
  local extra = dead_extra(task.token:sub(2), task.fields)
  for _, name in ipairs({ 'stdout', 'stderr', 'usage', 'begun', 'fence' }) do
    extra[#extra + 1] = name
    extra[#extra + 1] = known['leat.' .. name] or ''
  end
  return extra
end

function leat.letter_row(task)
  return row(task, 'dead', letter_extra(task))
end

-- kind: 'g' if the task is wanted only while it lives, 'd' if only its dead letter is.
local function show_place(q, kind, tid, place, task)
  local is_dead = place and place:sub(1, 1) == 'd'
  if not place or kind == 'g' and is_dead or kind == 'd' and not is_dead then
    return nil
  elseif place == 'w' then
    return show_waiting(q, tid)
  elseif is_dead then
    return whole_task(task, 'dead', letter_extra(task))
  end
  return show_entry(q, task)
end
leat.show_place = show_place

-- The dead letter right after that one, if it is the task's. A task may have two, after edits by hand.
local function letter_after(q, tid, start)
  local found = entries_after(q[DEAD], start, '+', '1')[1]
  local letter = found and decode('d' .. found[1], found[2])
  return letter and letter.tid == tid and letter or nil
end

-- leat_show: one task.
-- KEYS: all.
-- ARGV: group; a tid, a label, or 'd' and the id of a dead letter's entry, which without 'd' may be the tid of another
-- task; cursor ('' at first; 'g0-0': only if it lives; 'd0-0': only if it is a dead letter, or 'd' and an id: the dead
-- letter right after that one).
-- Reply: PROTOCOL, cursor (not '': call again with it), and if the task was found: its row, {name, value …} of the
-- task, its history. Only as long as older entries are not indexed, one that is not found has to be searched for.
-- Safe to stop: no writes.
function leat.show(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local tid, kind, start = leat.tid_of(q, args[2]), args[3]:sub(1, 1), args[3]:sub(2)
  local letter = kind == 'd' and start ~= '0-0' and letter_after(q, tid, start)
  local answer = letter and show_place(q, kind, tid, letter.token, letter)
    or show_place(q, kind, tid, leat.place_of(q, tid))
  local found, following = {}, ''
  if not answer and not leat.is_indexed(q) then
    found, following = leat.search(q, kind == '' and 'g0-0' or args[3], function(other)
      return other == tid
    end)
  end
  if not answer and following == '' and kind ~= 'g' then
    found[1] = found[1] or args[2]:find('^d') and leat.task_at(q, args[2])
  end
  if found[1] then
    answer = show_place(q, kind, tid, found[1].token, found[1])
  end
  return answer or { PROTOCOL, following }
end

-- ---------------------------------------------------------------- finding many tasks at once

local TIME_DIGITS = 13 -- of the part of an id before the hyphen, until the year 2286

-- leat_find: which of some tasks are alive, or dead letters.
-- KEYS: all.
-- ARGV: group, cursor ('g0-0' at first; 'd0-0': among dead letters), then at most CHUNK tids.
-- Reply: PROTOCOL, cursor, 1 if the search is complete (0: go on with the cursor), rows {name, value …} of those
-- found, with state alive or dead, tids to ask for again with the cursor.
-- Only as long as older entries are not indexed, tasks that are not found have to be searched for. They may move
-- meanwhile, but then they are indexed.
-- Safe to stop: no writes.
function leat.find(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local cursor, kind = args[2], args[2]:sub(1, 1)
  if #args > 2 + CHUNK or kind ~= 'g' and kind ~= 'd' then
    fail('BADARG give a cursor and at most ' .. CHUNK .. ' tasks')
  end
  local rows, later, missing = {}, {}, {}
  local function add(tid, place, task)
    if (place:sub(1, 1) == 'd') == (kind == 'd') then
      rows[#rows + 1] = kind == 'd' and leat.letter_row(task) or { 'tid', tid, 'state', 'alive' }
    end
  end
  for i = 3, #args do
    local tid, place, task = args[i], nil, nil
    if not is_full(q) then
      place, task = leat.place_of(q, tid)
    else
      later[#later + 1] = tid
    end
    if place then
      add(tid, place, task)
    else
      missing[tid] = true
    end
  end
  local is_complete = next(missing) == nil or leat.is_indexed(q)
  if not is_complete then
    local found, following = leat.search(q, cursor, function(tid)
      return missing[tid]
    end)
    for _, task in ipairs(found) do
      add(task.tid, task.token, task)
    end
    is_complete = following:sub(1, 1) ~= kind
    cursor = is_complete and cursor or following
  end
  return { PROTOCOL, cursor, is_complete and 1 or 0, rows, later }
end

-- leat_match: the tasks whose ids begin with some digits.
-- KEYS: all.
-- ARGV: group, cursor ('' at first), the digits.
-- Reply: PROTOCOL, next cursor ('': no more), tids, some of them perhaps twice. If a task has these digits as its
-- label, its tid alone.
-- Safe to stop: no writes.
function leat.match(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local kind, at, digits, tids = args[2]:sub(1, 1), args[2]:sub(2), args[3], {}
  if not digits:match('^%d+$') or not args[2]:match('^[nwgd]?[%d-]*$') then
    fail('BADARG give a cursor and digits')
  end
  local function scan(key, prefix, following)
    local page = redis.call('HSCAN', q[key], at, 'MATCH', prefix .. digits .. '*', 'COUNT', str(CHUNK))
    for i = 1, #page[2], 2 do
      tids[#tids + 1] = page[2][i]:sub(#prefix + 1)
    end
    return page[1] ~= '0' and kind .. page[1] or following
  end
  if kind == '' then
    local tid = leat.tid_of(q, digits)
    local rest_of_time = TIME_DIGITS - #digits
    if tid ~= digits or rest_of_time < 0 then
      return { PROTOCOL, '', tid ~= digits and { tid } or {} }
    end
    local found = redis.call('XRANGE', q[STREAM], digits .. ('0'):rep(rest_of_time), digits .. ('9'):rep(rest_of_time),
      'COUNT', '2')
    for i, entry in ipairs(found) do
      tids[i] = entry[1]
    end
    return { PROTOCOL, 'n0', tids }
  elseif kind == 'n' then
    return { PROTOCOL, scan(NAMES, 't:', 'w0'), tids }
  elseif kind == 'w' then
    return { PROTOCOL, scan(WAITING, '', leat.is_indexed(q) and '' or 'g0-0'), tids }
  end
  local found, following = leat.search(q, args[2], function(tid)
    return tid:sub(1, #digits) == digits
  end)
  for i, task in ipairs(found) do
    tids[i] = task.tid
  end
  return { PROTOCOL, following, tids }
end

end
