#!lua name=leat
-- leat: the queue itself, as a Redis function library.
--
-- An attempt is an entry: a stream entry is read by one consumer and never changes hands. Whenever a task
-- passes on (retry, release, expired lease, dead worker, host fault) it is written as a new entry and the old
-- one is acked and deleted in the same step, so whatever a stale worker still wants is fenced by the id alone.
--
-- Scripts do not roll back. A step that moves a task therefore notes how each of its writes is taken back,
-- and where one is refused takes back the others (see whole_step): the task stands where it stood, and the
-- call can be repeated. The write that cannot be taken back, XDEL, comes last; XACK and counters, which
-- nobody waits for, never fail a step (pcall).
--
-- Entries are named by a token: 's' or 'g' (the producers' stream or go) before the entry id. In go and in
-- waiting, leat's own fields stand behind the task's, and the last one, leat.fields, says how many pairs are
-- the task's: a producer cannot forge them.
--
-- Every reply is an array that begins with PROTOCOL. Errors begin with a word: REFUSED (the caller's task),
-- FULL (length limit), FOREIGN (the stream is somebody else's), NOGROUP (call leat_register), BADARG.

local VERSION = 1 -- grows with every change of this file: workers replace an older library, never a newer one
local PROTOCOL = 1 -- grows when arguments or replies change their meaning

-- Keys, always in this order. Producers' functions get the first PRODUCER_KEYS, all others every one.
local STREAM, BELL, WAITING, DELAYED, NAMES, CONF, STATS = 1, 2, 3, 4, 5, 6, 7
local GO, RUNNING, DEAD, WORKERS = 8, 9, 10, 11
local PRODUCER_KEYS, ALL_KEYS = 7, 11

local MAX_FIELDS = 1000 -- pairs in a task; more is refused (a Lua call takes about 8,000 values)
local CHUNK = 1000 -- arguments in one unpack
local PAGE = 100 -- entries that one call moves or shows at the most on rare paths
local READ_STEP = 8 -- entries that are read at once: only then are their sizes known
local MOVE_BYTES = 16 * 1024 * 1024 -- a call that has read or moved so much stops there and says so
local HISTORY = 2000 -- bytes of history that a task carries along
local PREVIEW = 200 -- bytes of a command in a list
local SWEEP_LEASES = 10 -- how often leftovers are looked for; silent consumers are struck off after as long
local MIN_LEASE_MS = 1000
local DAMAGED_MS = 10000 -- a waiting task that cannot be read is looked at again after so long

local function str(number)
  return string.format('%.0f', number)
end

local function fail(message)
  error({ err = message })
end

local function number_arg(text, what)
  local value = tonumber(text)
  if not value or value ~= value or value < 0 or value > 9e15 then
    fail('BADARG ' .. what .. ' is not a number: ' .. tostring(text):sub(1, 40))
  end
  return math.floor(value)
end

-- The queue of this call, handed to every routine as q: the keys by number, and what all routines need.
local function open(keys, wanted, group, consumer)
  if #keys ~= wanted then
    fail('BADARG expected ' .. wanted .. ' keys, got ' .. #keys)
  end
  local time = redis.call('TIME')
  keys.group, keys.consumer, keys.buried = group, consumer, {}
  keys.now = time[1] * 1000 + math.floor(time[2] / 1000)
  keys.now_text = str(keys.now)
  return keys
end

-- Statistics never stop a step.
local function count(q, name, by)
  redis.pcall('HINCRBY', q[STATS], name, by and str(by) or '1')
end

-- ---------------------------------------------------------------- steps that happen whole or not at all

-- Notes the command that takes back the write just done.
local function undo_with(q, ...)
  q.undo[#q.undo + 1] = { ... }
end

-- Runs step(q, …). Where one of its writes is refused, the earlier ones are taken back, last first.
local function whole_step(step, q, ...)
  q.undo = {}
  local fine, result = pcall(step, q, ...)
  if fine then
    return result
  end
  for i = #q.undo, 1, -1 do
    redis.pcall(unpack(q.undo[i]))
  end
  error(result, 0)
end

local function message_of(problem)
  return type(problem) == 'table' and problem.err or tostring(problem)
end

-- ---------------------------------------------------------------- tokens, tasks and records

local function stream_of(q, token)
  local kind = token:sub(1, 1)
  if kind == 's' then
    return q[STREAM], token:sub(2)
  elseif kind == 'g' then
    return q[GO], token:sub(2)
  end
  fail('BADARG not an entry token: ' .. token:sub(1, 40))
end

-- What leat knows of a task beside its fields, or nil where the trailing fields are not leat's.
local function trailer(fields)
  local n = #fields
  if n < 2 or fields[n - 1] ~= 'leat.fields' then
    return nil
  end
  local pairs_count = tonumber(fields[n])
  if not pairs_count or pairs_count < 0 or pairs_count * 2 > n - 2 then
    return nil
  end
  local known = {}
  for i = pairs_count * 2 + 1, n - 3, 2 do
    known[fields[i]] = fields[i + 1]
  end
  return known, pairs_count * 2
end

-- A task as all functions handle it. count is the number of values in fields that are the task's own;
-- enqueued (ms) stays text. id and expires are picked out here, since every task is asked for them.
local function decode(token, fields)
  local task = {
    token = token, tid = token:sub(2), fields = fields, count = #fields, attempts = 0, crashes = 0, fence = 1,
    history = '', enqueued = '0', bytes = 0, id = nil, expires = nil,
  }
  local known, values
  if token:sub(1, 1) ~= 's' then
    known, values = trailer(fields)
  end
  if known then
    task.tid, task.count = known['leat.tid'] or task.tid, values
    task.attempts = tonumber(known['leat.attempts']) or 0
    task.crashes = tonumber(known['leat.crashes']) or 0
    task.fence = tonumber(known['leat.fence']) or 1
    task.from, task.history = known['leat.from'], known['leat.history'] or ''
    task.enqueued = known['leat.enqueued'] or '0'
  else
    task.enqueued = task.tid:match('^%d+') or '0'
  end
  local bytes = 0
  for i = 1, task.count, 2 do
    local name, value = fields[i], fields[i + 1]
    bytes = bytes + #name + #value
    if name == 'id' and value ~= '' then
      task.id = task.id or value
    elseif name == 'expires' then
      task.expires = task.expires or value
    end
  end
  task.bytes = bytes
  return task
end

-- The inverse: a flat list for XADD to go or for waiting.
local function encode(task)
  local list, n = {}, task.count
  for i = 1, n do
    list[i] = task.fields[i]
  end
  local function add(name, value)
    list[n + 1], list[n + 2] = name, value
    n = n + 2
  end
  add('leat.tid', task.tid)
  add('leat.attempts', str(task.attempts))
  add('leat.crashes', str(task.crashes))
  add('leat.fence', str(task.fence))
  add('leat.enqueued', task.enqueued)
  if task.from then
    add('leat.from', task.from)
  end
  if task.history ~= '' then
    add('leat.history', task.history)
  end
  add('leat.fields', str(task.count / 2))
  return list
end

local function field(task, name)
  for i = 1, task.count, 2 do
    if task.fields[i] == name then
      return task.fields[i + 1]
    end
  end
  return nil
end

local function fetch(q, token)
  local stream, id = stream_of(q, token)
  local found = redis.call('XRANGE', stream, id, id)
  return found[1] and decode(token, found[1][2]) or nil
end

local function is_pending(q, token)
  local stream, id = stream_of(q, token)
  return #redis.call('XPENDING', stream, q.group, id, id, '1', q.consumer) > 0
end

-- One line for each ended attempt: number, worker, begun, ended (ms), cause, status. The oldest go first.
local function remember(q, task, record, cause, status)
  local line = string.format('%d %s %s %s %s %s\n', record.attempt, record.consumer, record.begun,
    q.now_text, cause, status ~= '' and status or '-')
  local history = task.history .. line
  if #history > HISTORY then
    history = history:sub(-HISTORY):gsub('^[^\n]*\n', '', 1)
  end
  task.history = history
end

-- running: token → STATE consumer NUL begun ms, attempt, fence, tid, moved, id (between spaces; '-' for no
-- moved). STATE is PLAIN, or NAMED where a name must be released when the task ends, or MOVED: the lease ran
-- out, the entry `moved` took the task over, and the record only lets a late success count.
local PLAIN, NAMED, MOVED = 'r', 'i', 'm'

local function pack_record(consumer, begun, attempt, fence, tid, moved, id)
  local state = moved and MOVED or id and NAMED or PLAIN
  return state .. consumer .. '\0' .. begun .. ' ' .. attempt .. ' ' .. fence .. ' ' .. tid .. ' '
    .. (moved or '-') .. ' ' .. (id or '')
end

-- nil for what leat did not write: the entry then counts as not begun.
local function unpack_record(packed)
  local consumer, begun, attempt, fence, tid, moved, id =
    packed:match('^.(.-)%z(%d+) (%d+) (%d+) (%S+) (%S+) (.*)$')
  if not consumer then
    return nil
  end
  return {
    consumer = consumer, begun = begun, attempt = tonumber(attempt), fence = tonumber(fence),
    tid = tid, moved = moved ~= '-' and moved or nil, id = id ~= '' and id or nil,
  }
end

local function record_of(q, token)
  local packed = redis.call('HGET', q[RUNNING], token)
  return packed and unpack_record(packed) or nil
end

-- Parts of a whole step.

-- The record of an attempt whose lease ran out, pointing to the entry that took the task over.
local function put_moved(q, token, record, moved)
  local packed = pack_record(record.consumer, record.begun, record.attempt, record.fence, record.tid, moved,
    record.id)
  redis.call('HSET', q[RUNNING], token, packed)
  undo_with(q, 'HDEL', q[RUNNING], token)
end

local function drop_record(q, token)
  local packed = redis.call('HGET', q[RUNNING], token)
  if packed then
    redis.call('HDEL', q[RUNNING], token)
    undo_with(q, 'HSET', q[RUNNING], token, packed)
  end
end

-- Compare and delete: a name that another task holds by now stays.
local function release_name(q, id, tid)
  local name = id and 'i:' .. id
  if name and redis.call('HGET', q[NAMES], name) == tid then
    redis.call('HDEL', q[NAMES], name)
    undo_with(q, 'HSET', q[NAMES], name, tid)
  end
end

-- Writes an entry of leat's and answers its id.
local function add_entry(q, key, list)
  local id = redis.call('XADD', key, '*', unpack(list))
  undo_with(q, 'XDEL', key, id)
  return id
end

-- The last part: what the task becomes next has been written before.
local function remove(q, token)
  local stream, id = stream_of(q, token)
  drop_record(q, token)
  redis.call('XDEL', stream, id)
  redis.pcall('XACK', stream, q.group, id)
end

-- ---------------------------------------------------------------- waiting

-- Wakes every worker: something became startable earlier than they know.
local function ring(q, why)
  redis.call('XADD', q[BELL], 'MAXLEN', '1', '*', 'why', why)
end

-- Part of a whole step: the task waits until due.
local function delay(q, task, due)
  redis.call('HSET', q[WAITING], task.tid, cmsgpack.pack(encode(task)))
  undo_with(q, 'HDEL', q[WAITING], task.tid)
  redis.call('ZADD', q[DELAYED], str(due), task.tid)
  undo_with(q, 'ZREM', q[DELAYED], task.tid)
  if redis.call('ZRANGE', q[DELAYED], '0', '0')[1] == task.tid then
    ring(q, 'due')
  end
end

local function promote_one(q, tid, due)
  local packed = redis.call('HGET', q[WAITING], tid)
  local fine, list = pcall(cmsgpack.unpack, packed or '')
  if packed and not (fine and type(list) == 'table') then
    -- damaged by hand: it stays for whoever mends it, and the others do not wait for it
    redis.call('ZADD', q[DELAYED], str(q.now + DAMAGED_MS), tid)
    return nil
  end
  if packed then
    add_entry(q, q[GO], list)
    redis.call('HDEL', q[WAITING], tid)
    undo_with(q, 'HSET', q[WAITING], tid, packed)
  end
  redis.call('ZREM', q[DELAYED], tid)
  undo_with(q, 'ZADD', q[DELAYED], due, tid)
  return packed and list
end

-- Up to limit due tasks go up.
local function promote(q, limit)
  local due = redis.call('ZRANGE', q[DELAYED], '-inf', q.now_text, 'BYSCORE', 'LIMIT', '0', str(limit),
    'WITHSCORES')
  local bytes = 0
  for i = 1, #due, 2 do
    local list = whole_step(promote_one, q, due[i], due[i + 1])
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

-- The earliest due time as text, or nil.
local function next_due(q)
  return redis.call('ZRANGE', q[DELAYED], '0', '0', 'WITHSCORES')[2]
end

-- ---------------------------------------------------------------- passing on and burying

-- Writes the dead letter. letter: cause, status, reason, record, stdout, stderr. A task with more fields than
-- one call can write keeps them packed in leat.packed.
local function write_letter(q, task, letter)
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
  add('leat.fields', str(own_pairs))
  return add_entry(q, q[DEAD], list)
end

local function bury_step(q, task, letter)
  write_letter(q, task, letter)
  if task.from then
    drop_record(q, task.from)
  end
  release_name(q, task.id, task.tid)
  remove(q, task.token)
end

-- What claim tells of: nobody else would, where no worker ran the task.
local function note_letter(q, tid, cause)
  q.buried[#q.buried + 1], q.buried[#q.buried + 2] = tid, cause
end

-- Buries a task that stands in an entry, and lets go of all it held.
local function bury(q, task, letter)
  whole_step(bury_step, q, task, letter)
  note_letter(q, task.tid, letter.cause)
  count(q, 'dead')
end

local function refuse(q, task, reason)
  bury(q, task, { cause = 'refused', reason = reason, worker = q.consumer })
end

local function too_many_fields(task)
  return task.count > MAX_FIELDS * 2
end

local TOO_MANY_FIELDS = 'more than ' .. MAX_FIELDS .. ' fields'

local function requeue_step(q, task, record)
  local old_from = task.from
  task.fence = task.fence + 1
  if record then
    task.from = task.token
  end
  local moved = 'g' .. add_entry(q, q[GO], encode(task))
  local old = not record and old_from and record_of(q, old_from)
  if old and old.moved == task.token then
    drop_record(q, old_from)
    put_moved(q, old_from, old, moved)
  end
  if not record then
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
local function requeue(q, task, record)
  if too_many_fields(task) then
    return refuse(q, task, TOO_MANY_FIELDS)
  end
  whole_step(requeue_step, q, task, record)
end

local function settle_vanished_step(q, token, record)
  if record and not record.moved then
    local task = {
      tid = record.tid, fields = {}, count = 0, attempts = record.attempt, crashes = 0,
      fence = record.fence, enqueued = '0', history = '',
    }
    write_letter(q, task, {
      cause = 'vanished', reason = 'the entry was deleted or trimmed while the task ran', record = record,
    })
    release_name(q, record.id, record.tid)
  end
  remove(q, token)
end

-- An entry that was trimmed or deleted by hand: all that is left of the task is its record, if it had begun.
local function settle_vanished(q, token)
  local record = record_of(q, token)
  whole_step(settle_vanished_step, q, token, record)
  count(q, 'vanished')
  if record and not record.moved then
    count(q, 'dead')
    note_letter(q, record.tid, 'vanished')
  end
end

-- An entry that its worker let expire, or that a proved dead worker left: a crash if the attempt had begun.
local function take_over(q, task, max_crashes)
  local record = record_of(q, task.token)
  if not record or too_many_fields(task) then
    return requeue(q, task)
  end
  task.crashes = task.crashes + 1
  remember(q, task, record, 'crash', '')
  if task.crashes >= max_crashes then
    bury(q, task, {
      cause = 'crash', reason = 'its worker was lost ' .. task.crashes .. ' times while it ran',
      record = record,
    })
  else
    requeue(q, task, record)
  end
  count(q, 'crashes')
end

-- ---------------------------------------------------------------- what all workers agree on

local DEFAULT_LEASE_MS, DEFAULT_MAX_CRASHES = 60000, 3 -- where conf was damaged by hand

local function number_or(text, default)
  return text and tonumber(text) or default
end

-- The lease (ms) and until when the gate is closed (ms; 0: open).
local function read_lease(q)
  local v = redis.call('HMGET', q[CONF], 'lease_ms', 'hold_until')
  local hold_until = number_or(v[2], 0)
  return number_or(v[1], DEFAULT_LEASE_MS), hold_until > q.now and hold_until or 0
end

local function read_max_crashes(q)
  return number_or(redis.call('HGET', q[CONF], 'max_crashes'), DEFAULT_MAX_CRASHES)
end

-- Idle time after which an entry is taken over. A shortened lease counts one old lease later.
local function read_reclaim(q)
  local v = redis.call('HMGET', q[CONF], 'lease_ms', 'floor_ms', 'floor_until')
  local lease = number_or(v[1], DEFAULT_LEASE_MS)
  return q.now < number_or(v[3], 0) and math.max(lease, number_or(v[2], 0)) or lease
end

-- ---------------------------------------------------------------- enqueue

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
    delay(q, {
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
local function enqueue(keys, args)
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

-- ---------------------------------------------------------------- the scan for what was left behind

-- Tries each and goes on; the first problem is kept for the caller.
local function try(out, step, ...)
  local fine, problem = pcall(step, ...)
  if not fine then
    out.problem = out.problem or problem
  end
end

-- The lease of these runs out again at once: this call has moved enough.
local function leave_expired(q, stream, ids, from, reclaim)
  local command = { 'XCLAIM', stream, q.group, q.consumer, '0' }
  for i = from, #ids do
    command[#command + 1] = ids[i]
  end
  command[#command + 1] = 'IDLE'
  command[#command + 1] = str(reclaim)
  command[#command + 1] = 'JUSTID'
  redis.call(unpack(command))
end

-- One page of expired leases of go or the stream; follows XAUTOCLAIM's cursor. Answers where to go on.
local function scan_pending(q, kind, start, out)
  local stream, reclaim = stream_of(q, kind), read_reclaim(q)
  local found = redis.call('XAUTOCLAIM', stream, q.group, q.consumer, str(reclaim), start, 'COUNT', str(PAGE),
    'JUSTID')
  for _, id in ipairs(found[3] or {}) do
    try(out, settle_vanished, q, kind .. id)
  end
  local ids, bytes = found[2], 0
  local max_crashes = #ids > 0 and read_max_crashes(q)
  for i, id in ipairs(ids) do
    if bytes > MOVE_BYTES then
      leave_expired(q, stream, ids, i, reclaim)
      return id
    end
    local task = fetch(q, kind .. id)
    if task then
      bytes = bytes + task.bytes
      try(out, take_over, q, task, max_crashes)
    end
  end
  return found[1]
end

-- Consumers that fell silent long ago and hold nothing.
local function strike_off(q, span)
  local all = redis.call('HGETALL', q[WORKERS])
  for i = 1, #all, 2 do
    local consumer, last = all[i], tonumber(all[i + 1]:match('^%d+')) or 0
    if q.now - last > span and #redis.call('XPENDING', q[STREAM], q.group, '-', '+', '1', consumer) == 0
      and #redis.call('XPENDING', q[GO], q.group, '-', '+', '1', consumer) == 0 then
      redis.call('XGROUP', 'DELCONSUMER', q[STREAM], q.group, consumer)
      redis.call('XGROUP', 'DELCONSUMER', q[GO], q.group, consumer)
      redis.call('HDEL', q[WORKERS], consumer)
    end
  end
end

-- Records whose entry is gone with everything that pointed to it, as after DEL of a stream: the task is
-- settled as vanished. A moved record goes with the entry that it points to.
local function has_lease(q, token)
  local stream, id = stream_of(q, token)
  return #redis.call('XPENDING', stream, q.group, id, id, '1') > 0
end

local function sweep_record(q, token, record)
  if record.moved then
    if not fetch(q, record.moved) then
      redis.call('HDEL', q[RUNNING], token)
    end
  elseif not has_lease(q, token) and not fetch(q, token) then
    settle_vanished(q, token)
  end
end

local function sweep(q, cursor, out)
  local page = redis.call('HSCAN', q[RUNNING], cursor, 'COUNT', str(PAGE))
  for i = 1, #page[2], 2 do
    local record = unpack_record(page[2][i + 1])
    if record then
      try(out, sweep_record, q, page[2][i], record)
    end
  end
  return page[1]
end

-- One worker sweeps, once in SWEEP_LEASES leases.
local function sweep_is_due(q, span)
  if q.now - number_or(redis.call('HGET', q[STATS], 'swept'), 0) < span then
    return false
  end
  redis.call('HSET', q[STATS], 'swept', q.now_text)
  return true
end

-- One page: cursor leads through go ('g…'), the stream ('s…') and now and then the records ('r…'); '' when it
-- has come round.
local function scan(q, cursor, lease, out)
  local kind, start = cursor:sub(1, 1), cursor:sub(2)
  if kind == 'r' then
    local following = sweep(q, start, out)
    return following ~= '0' and 'r' .. following or ''
  end
  local following = scan_pending(q, kind, start, out)
  if following ~= '0-0' then
    return kind .. following
  elseif kind == 'g' then
    return 's0-0'
  end
  local span = SWEEP_LEASES * lease
  if not sweep_is_due(q, span) then
    return ''
  end
  strike_off(q, span)
  return 'r0'
end

-- ---------------------------------------------------------------- claim: the one gate

local function answer(task, attempt)
  local fields = task.fields
  if #fields ~= task.count then
    fields = {}
    for i = 1, task.count do
      fields[i] = task.fields[i]
    end
  end
  return { task.token, task.tid, attempt, task.crashes, task.fence, task.enqueued, fields }
end

-- What becomes of one entry that was read: 'begin', 'again' (this consumer has begun it already), 'hold', or
-- nothing where it went back or was buried.
local function judge(q, task, record, out)
  if record and (record.consumer ~= q.consumer or record.moved) then
    -- the group was recreated and delivers again what somebody had begun
    return requeue(q, task, not record.moved and record or nil)
  end
  if too_many_fields(task) then
    return refuse(q, task, TOO_MANY_FIELDS)
  end
  local expires = task.expires and not record and tonumber(task.expires)
  if expires and expires * 1000 <= q.now then
    bury(q, task, { cause = 'expired', reason = 'not started in time' })
    return count(q, 'expired')
  end
  if out.alone then
    return requeue(q, task)
  end
  return record and 'again' or task.crashes > 0 and out.busy > 0 and 'hold' or 'begin'
end

-- The gate for what one read brought. A task with crashes behind it runs alone on its worker: it is held,
-- un-begun, until the worker is empty, and what was read after it goes back.
local function admit(q, tasks, out)
  local tokens = {}
  for i = 1, #tasks do
    tokens[i] = tasks[i].token
  end
  local records = redis.call('HMGET', q[RUNNING], unpack(tokens))
  local begun, puts, overtaken = {}, {}, {}
  for i = 1, #tasks do
    local task, record = tasks[i], records[i] and unpack_record(records[i]) or nil
    local fine, verdict = pcall(judge, q, task, record, out)
    if not fine then
      out.problem = out.problem or verdict
    elseif verdict == 'hold' then
      out.alone = true
      out.held[#out.held + 1] = task.token
    elseif verdict then
      local attempt = task.attempts + 1
      if verdict == 'begin' then
        puts[#puts + 1] = task.token
        puts[#puts + 1] = pack_record(q.consumer, q.now_text, attempt, task.fence, task.tid, nil, task.id)
        overtaken[#overtaken + 1] = task.from
      end
      out.alone, out.busy, out.bytes = task.crashes > 0, out.busy + 1, out.bytes + task.bytes
      begun[#begun + 1] = answer(task, attempt)
    end
  end
  if #puts > 0 then
    redis.call('HSET', q[RUNNING], unpack(puts))
  end
  for _, task in ipairs(begun) do
    out.begun[#out.begun + 1] = task
  end
  if #overtaken > 0 then
    redis.call('HDEL', q[RUNNING], unpack(overtaken))
  end
end

-- What the blocking read brought: still there and still this consumer's? Its lease begins now, not when it
-- was delivered.
local function admit_named(q, named, out)
  local tasks, seen = {}, {}
  for _, token in ipairs(named) do
    if not seen[token] and is_pending(q, token) then
      seen[token] = true
      local stream, id = stream_of(q, token)
      local found = redis.call('XCLAIM', stream, q.group, q.consumer, '0', id)
      if found[1] then
        tasks[#tasks + 1] = decode(token, found[1][2])
      else
        try(out, settle_vanished, q, token)
      end
    end
  end
  if #tasks > 0 then
    admit(q, tasks, out)
  end
end

-- Begins up to `wanted` new tasks; answers how many are still wanted. What is dropped on the way does not
-- count as begun, but bounds the work.
local function read(q, kind, wanted, out)
  local stream, dropped = stream_of(q, kind), 0
  while wanted > 0 and not out.alone and dropped < PAGE and out.bytes < MOVE_BYTES do
    local step = math.min(wanted, READ_STEP)
    local got = redis.call('XREADGROUP', 'GROUP', q.group, q.consumer, 'COUNT', step, 'STREAMS', stream, '>')
    local tasks = {}
    for i, entry in ipairs(got and got[1][2] or {}) do
      tasks[i] = decode(kind .. entry[1], entry[2])
    end
    if #tasks > 0 then
      local before = #out.begun
      admit(q, tasks, out)
      local begun = #out.begun - before
      wanted, dropped = wanted - begun, dropped + #tasks - begun
    end
    if #tasks < step then
      break
    end
  end
  return wanted
end

-- In the order of DESIGN: go, due tasks by way of go, the stream. Go is read first of all: where the group is
-- missing, that fails before anything has been written.
local function read_all(q, wanted, out)
  wanted = read(q, 'g', wanted, out)
  if out.due and tonumber(out.due) <= q.now and wanted > 0 then
    promote(q, math.min(wanted, PAGE))
    out.due = next_due(q)
    wanted = read(q, 'g', wanted, out)
  end
  read(q, 's', wanted, out)
end

-- Closed: what is named goes back untouched.
local function put_back(q, tokens)
  for _, token in ipairs(tokens) do
    local task = is_pending(q, token) and fetch(q, token)
    if task then
      requeue(q, task)
    end
  end
end

local function rest(args, from)
  local list = {}
  for i = from, #args do
    list[#list + 1] = args[i]
  end
  return list
end

-- KEYS: all. ARGV: group, consumer, how many new tasks at the most, how many run already, where to go on with
-- the scan for expired leases ('' not now, 'g0-0' from the start), then at most CHUNK tokens that a blocking
-- read brought. A worker on which a task with crashes runs asks for nothing.
-- Reply: PROTOCOL, now ms, lease ms, closed until ms (0: open), next due ms (0: none), scan cursor ('': done),
-- begun tasks {token, tid, attempt, crashes, fence, enqueued ms, {name, value …}}, held tokens (un-begun:
-- name them again when nothing runs), {tid, cause …} of dead letters that this call made. A named token that
-- comes back in neither list is not this worker's.
-- What has begun is always answered: an error is kept for a call that begins nothing. Stopped half-way, what
-- was read is pending and un-begun: the caller's next leat_register puts it back, or its lease runs out.
local function claim(keys, args)
  local q = open(keys, ALL_KEYS, args[1], args[2])
  local wanted, busy = number_arg(args[3], 'the number of tasks'), number_arg(args[4], 'running')
  local cursor, named = args[5], rest(args, 6)
  if #named > CHUNK then
    fail('BADARG more than ' .. CHUNK .. ' tokens')
  end
  local lease, closed_until = read_lease(q)
  -- refused here where it is no hash, before anything is written
  redis.call('HLEN', q[RUNNING])
  if closed_until > 0 then
    put_back(q, named)
    return { PROTOCOL, q.now_text, lease, str(closed_until), 0, '', {}, {}, q.buried }
  end

  local out = { begun = {}, held = {}, alone = false, busy = busy, bytes = 0, due = next_due(q) }
  try(out, admit_named, q, named, out)
  if cursor ~= '' then
    local fine, following = pcall(scan, q, cursor, lease, out)
    cursor = fine and following or ''
    out.problem = out.problem or not fine and following or nil
  end
  if wanted > 0 then
    try(out, read_all, q, math.min(wanted, CHUNK), out)
  end
  if out.problem and #out.begun == 0 and #out.held == 0 then
    error(out.problem, 0)
  end
  return { PROTOCOL, q.now_text, lease, 0, out.due or '0', cursor, out.begun, out.held, q.buried }
end

-- ---------------------------------------------------------------- renew and register

-- Sorts tokens into those that look like this consumer's (lists of ids by kind) and lost ones. Un-begun (held)
-- entries have no record: they are its own while they are pending for it.
local function sort_tokens(q, tokens, lost)
  local mine = { s = {}, g = {} }
  local plain, named = PLAIN .. q.consumer .. '\0', NAMED .. q.consumer .. '\0'
  local size = #plain
  for from = 1, #tokens, CHUNK do
    local to = math.min(from + CHUNK - 1, #tokens)
    local records = redis.call('HMGET', q[RUNNING], unpack(tokens, from, to))
    for i = from, to do
      local token, record = tokens[i], records[i - from + 1]
      local head = record and record:sub(1, size)
      if head == plain or head == named or not record and is_pending(q, token) then
        local list = mine[token:sub(1, 1)]
        list[#list + 1] = token:sub(2)
      else
        lost[#lost + 1] = token
      end
    end
  end
  return mine
end

-- XCLAIM drops an entry that was deleted from the pending list, so that nothing else will find it any more:
-- it is settled here. That must not keep the other leases from being renewed.
local function lose(q, token, lost)
  lost[#lost + 1] = token
  if not fetch(q, token) then
    pcall(settle_vanished, q, token)
  end
end

local function renew_ids(q, kind, ids, lost)
  local stream = stream_of(q, kind)
  for from = 1, #ids, CHUNK do
    local command = { 'XCLAIM', stream, q.group, q.consumer, '0' }
    local to = math.min(from + CHUNK - 1, #ids)
    for i = from, to do
      command[#command + 1] = ids[i]
    end
    command[#command + 1] = 'JUSTID'
    local claimed = redis.call(unpack(command))
    if #claimed < to - from + 1 then
      local renewed = {}
      for _, id in ipairs(claimed) do
        renewed[id] = true
      end
      for i = from, to do
        if not renewed[ids[i]] then
          lose(q, kind .. ids[i], lost)
        end
      end
    end
  end
end

-- Of the tokens, those that are still this consumer's get a fresh lease; the rest are the answer.
local function renew_tokens(q, tokens)
  local lost = {}
  local mine = sort_tokens(q, tokens, lost)
  renew_ids(q, 'g', mine.g, lost)
  renew_ids(q, 's', mine.s, lost)
  return lost
end

local function beat(q, text)
  redis.call('HSET', q[WORKERS], q.consumer, q.now_text .. ' ' .. text)
end

-- KEYS: all. ARGV: group, consumer, the worker's beat (JSON), then the tokens of its tasks: running, held, or
-- ended with the finish not answered yet. Reply: PROTOCOL, now ms, lease ms, lost tokens. Safe anywhere: it
-- only lengthens leases.
local function renew(keys, args)
  local q = open(keys, ALL_KEYS, args[1], args[2])
  local lease = read_lease(q)
  local lost = renew_tokens(q, rest(args, 4))
  if #lost > 0 then
    count(q, 'fenced', #lost)
  end
  beat(q, args[3])
  return { PROTOCOL, q.now_text, lease, lost }
end

local function check_types(q)
  for key, wanted in pairs({
    [STREAM] = 'stream', [GO] = 'stream', [BELL] = 'stream', [DEAD] = 'stream', [WAITING] = 'hash',
    [NAMES] = 'hash', [CONF] = 'hash', [STATS] = 'hash', [RUNNING] = 'hash', [WORKERS] = 'hash',
    [DELAYED] = 'zset',
  }) do
    local is = redis.call('TYPE', q[key]).ok
    if is ~= 'none' and is ~= wanted then
      fail('WRONGTYPE ' .. q[key] .. ' is a ' .. is .. ', leat needs a ' .. wanted)
    end
  end
end

local function groups_of(key)
  local names = {}
  if redis.call('EXISTS', key) == 1 then
    for _, info in ipairs(redis.call('XINFO', 'GROUPS', key)) do
      names[info[2]] = true
    end
  end
  return names
end

-- The one place that makes the group, from 0. Where it was lost, begun tasks may still run elsewhere, so the
-- gate stays shut for one lease: that is written before the group exists.
local function ensure_groups(q, lease)
  local groups = groups_of(q[STREAM])
  for name in pairs(groups) do
    if name ~= q.group then
      fail('FOREIGN the stream ' .. q[STREAM] .. ' is read by another group, ' .. name
        .. ': leat deletes what it has finished, so it must have the stream for itself')
    end
  end
  local missing = {}
  if not groups_of(q[GO])[q.group] then
    missing[#missing + 1] = q[GO]
  end
  if not groups[q.group] then
    missing[#missing + 1] = q[STREAM]
  end
  if #missing > 0 and redis.call('HGET', q[CONF], 'group') == q.group then
    redis.call('HSET', q[CONF], 'hold_until', str(q.now + lease))
    count(q, 'groups_recreated')
  end
  for _, stream in ipairs(missing) do
    redis.call('XGROUP', 'CREATE', stream, q.group, '0', 'MKSTREAM')
  end
  redis.call('HSET', q[CONF], 'group', q.group)
end

-- Up to PAGE pending entries of the consumer go through hand(q, task, …), but for those in keep. Answers how
-- many, and whether more may be left.
local function hand_back(q, keep, hand, ...)
  local moved, bytes = 0, 0
  for _, kind in ipairs({ 'g', 's' }) do
    local stream, start = stream_of(q, kind), '-'
    while start do
      local page = redis.call('XPENDING', stream, q.group, start, '+', CHUNK, q.consumer)
      for _, info in ipairs(page) do
        local token = kind .. info[1]
        if not keep[token] then
          if moved >= PAGE or bytes > MOVE_BYTES then
            return moved, true
          end
          local task = fetch(q, token)
          if task then
            bytes = bytes + task.bytes
            hand(q, task, ...)
          else
            settle_vanished(q, token)
          end
          moved = moved + 1
        end
      end
      start = #page == CHUNK and '(' .. page[#page][1] or nil
    end
  end
  return moved, false
end

-- KEYS: all. ARGV: group, consumer, beat, lease ms, max_crashes, max_length (seeds for conf, which rules once
-- it is there), then tokens as for leat_renew. The first call on new connections, and after NOGROUP. What is
-- pending for the consumer and not named never reached it: it goes back, nothing counted.
-- Reply: PROTOCOL, now ms, lease ms, lost tokens, max_crashes, max_length, more (1: call again), the bell's
-- last id. Safe anywhere: every step finds what an earlier call did.
local function register(keys, args)
  local q = open(keys, ALL_KEYS, args[1], args[2])
  check_types(q)
  local lease = math.max(number_arg(args[4], 'lease'), MIN_LEASE_MS)
  local max_crashes = math.max(number_arg(args[5], 'max_crashes'), 1)
  local max_length = number_arg(args[6], 'max_length')
  local known = redis.call('HEXISTS', q[CONF], 'lease_ms') == 1
  ensure_groups(q, known and read_reclaim(q) or lease)
  redis.call('HSETNX', q[CONF], 'protocol', PROTOCOL)
  redis.call('HSETNX', q[CONF], 'lease_ms', lease)
  redis.call('HSETNX', q[CONF], 'max_crashes', max_crashes)
  redis.call('HSETNX', q[CONF], 'max_length', max_length)

  local tokens, keep = rest(args, 7), {}
  for _, token in ipairs(tokens) do
    keep[token] = true
  end
  local lost = renew_tokens(q, tokens)
  local _, more = hand_back(q, keep, requeue)
  beat(q, args[3])
  local ruling = redis.call('HMGET', q[CONF], 'lease_ms', 'max_crashes', 'max_length')
  local last = redis.call('XREVRANGE', q[BELL], '+', '-', 'COUNT', '1')
  return {
    PROTOCOL, q.now_text, number_or(ruling[1], DEFAULT_LEASE_MS), lost,
    number_or(ruling[2], DEFAULT_MAX_CRASHES), number_or(ruling[3], 0), more and 1 or 0,
    last[1] and last[1][1] or '0-0',
  }
end

-- ---------------------------------------------------------------- finish

local FINISH_ARGS = 10

local function parse_result(args, at)
  return {
    token = args[at], outcome = args[at + 1], cause = args[at + 2], status = args[at + 3],
    reason = args[at + 4], delay_ms = tonumber(args[at + 5]), stdout = args[at + 7], stderr = args[at + 8],
    again = args[at + 9] == '1',
  }
end

-- All successes of one stream: one HDEL, one XDEL, one XACK.
local function succeed_step(q, batch)
  for _, packed in ipairs(batch.named) do
    local record = unpack_record(packed)
    release_name(q, record.id, record.tid)
  end
  redis.call('HDEL', q[RUNNING], unpack(batch.tokens))
  undo_with(q, 'HSET', q[RUNNING], unpack(batch.records))
  redis.call('XDEL', batch.stream, unpack(batch.ids))
  redis.pcall('XACK', batch.stream, q.group, unpack(batch.ids))
end

-- A success that comes after its lease ran out counts while the entry that took over has not begun.
local function late_success_step(q, token, record)
  release_name(q, record.id, record.tid)
  drop_record(q, token)
  remove(q, record.moved)
end

local function retry_step(q, task, due)
  task.fence = task.fence + 1
  task.from = nil
  delay(q, task, due)
  remove(q, task.token)
end

local function finish_failed(q, record, result)
  local task = fetch(q, result.token)
  if not task then
    settle_vanished(q, result.token)
    return 'vanished'
  end
  if result.outcome == 'release' then
    requeue(q, task)
    count(q, 'released')
    return 'ok'
  end
  task.attempts = record.attempt
  remember(q, task, record, result.cause, result.status)
  if result.outcome == 'dead' then
    bury(q, task, {
      cause = result.cause, status = result.status, reason = result.reason, record = record,
      stdout = result.stdout, stderr = result.stderr,
    })
    return 'ok'
  end
  whole_step(retry_step, q, task, q.now + result.delay_ms)
  count(q, 'retried')
  count(q, 'retrying')
  return 'ok'
end

-- An entry that was read but never begun may only be handed back.
local function finish_unbegun(q, result)
  local task = result.outcome == 'release' and is_pending(q, result.token) and fetch(q, result.token)
  if not task then
    return 'gone'
  end
  requeue(q, task)
  return 'ok'
end

-- All that is no plain success.
local function finish_one(q, packed, result)
  local record = packed and unpack_record(packed)
  if not record then
    return finish_unbegun(q, result)
  elseif record.consumer ~= q.consumer then
    return 'fenced'
  elseif not record.moved then
    return finish_failed(q, record, result)
  elseif result.outcome ~= 'success' then
    return 'fenced'
  end
  whole_step(late_success_step, q, result.token, record)
  count(q, 'succeeded')
  return 'ok'
end

local function check_results(args)
  local many = (#args - 2) / FINISH_ARGS
  if many ~= math.floor(many) or many > PAGE then
    fail('BADARG ' .. FINISH_ARGS .. ' arguments for each of at most ' .. PAGE .. ' attempts')
  end
  for at = 3, #args, FINISH_ARGS do
    local outcome = args[at + 1]
    if outcome == 'retry' then
      number_arg(args[at + 5], 'the delay')
    elseif outcome ~= 'success' and outcome ~= 'dead' and outcome ~= 'release' then
      fail('BADARG unknown outcome ' .. tostring(outcome):sub(1, 40))
    end
    stream_of({}, args[at])
  end
end

-- The batch of the stream in which token stands.
local function batch_of(q, batches, token)
  local kind = token:sub(1, 1)
  local batch = batches[kind]
  if not batch then
    batch = { stream = stream_of(q, kind), ids = {}, tokens = {}, records = {}, named = {}, places = {} }
    batches[kind] = batch
    batches[#batches + 1] = batch
  end
  return batch
end

local function add_success(batch, token, packed, place)
  local n = #batch.ids + 1
  batch.ids[n], batch.tokens[n], batch.places[n] = token:sub(2), token, place
  batch.records[2 * n - 1], batch.records[2 * n] = token, packed
  if packed:sub(1, 1) == NAMED then
    batch.named[#batch.named + 1] = packed
  end
end

local function settle_batch(q, batch, reply)
  local fine, problem = pcall(whole_step, succeed_step, q, batch)
  for _, place in ipairs(batch.places) do
    reply[place] = fine and 'ok' or message_of(problem)
  end
  if fine then
    count(q, 'succeeded', #batch.ids)
  end
end

-- KEYS: all. ARGV: group, consumer, then for each of at most PAGE attempts: token, outcome (success, retry,
-- dead, release), cause, status, reason, delay ms (retry), duration us, stdout tail, stderr tail, 1 if it was
-- sent before. Reply: PROTOCOL, then for each: ok, fenced (begun by another, or passed on), gone (settled
-- before, or by another), vanished (deleted by hand), or the error that kept this one where it is.
-- What a task becomes is written before its entry is deleted; sent again, it finds the entry gone.
local function finish(keys, args)
  local q = open(keys, ALL_KEYS, args[1], args[2])
  check_results(args)
  local reply, tokens, batches = { PROTOCOL }, {}, {}
  for at = 3, #args, FINISH_ARGS do
    tokens[#tokens + 1] = args[at]
  end
  if #tokens == 0 then
    return reply
  end
  local records = redis.call('HMGET', q[RUNNING], unpack(tokens))
  local mine, fenced = q.consumer .. '\0', 0
  for i, token in ipairs(tokens) do
    local at, packed = 3 + (i - 1) * FINISH_ARGS, records[i]
    local own = packed and packed:sub(2, #mine + 1) == mine and packed:sub(1, 1) ~= MOVED
    if own and args[at + 1] == 'success' then
      add_success(batch_of(q, batches, token), token, packed, i + 1)
    else
      local result = parse_result(args, at)
      local fine, state = pcall(finish_one, q, packed, result)
      reply[i + 1] = fine and state or message_of(state)
      if state == 'fenced' or state == 'gone' and not result.again then
        fenced = fenced + 1
      end
    end
  end
  for _, batch in ipairs(batches) do
    settle_batch(q, batch, reply)
  end
  if fenced > 0 then
    count(q, 'fenced', fenced)
  end
  return reply
end

-- ---------------------------------------------------------------- requeue: a consumer that is gone

-- KEYS: all. ARGV: group, the consumer that is proved dead or leaves, 1 if it died (begun attempts are then
-- crashes). Reply: PROTOCOL, entries moved, more (1: call again). The consumer is deleted only when nothing
-- is pending for it, in the same step that saw so.
local function requeue_consumer(keys, args)
  local q = open(keys, ALL_KEYS, args[1], args[2])
  local moved, more
  if args[3] == '1' then
    moved, more = hand_back(q, {}, take_over, read_max_crashes(q))
  else
    moved, more = hand_back(q, {}, requeue)
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
}

-- KEYS: all. ARGV: nothing, or a name and a value. Reply: PROTOCOL, then all names and values.
-- A shorter lease is obeyed by workers at once and by the scan one old lease later.
local function conf_function(keys, args)
  local q = open(keys, ALL_KEYS)
  if #args > 0 then
    local check, value = CHANGEABLE[args[1]], number_arg(args[2], args[1]:sub(1, 40))
    if not check or not check(value) then
      fail('BADARG ' .. args[1]:sub(1, 40) .. ' cannot be set to ' .. str(value))
    end
    if args[1] == 'lease_ms' then
      local old = read_reclaim(q)
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
local function dead_retry(keys, args)
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
local function dead_drop(keys, args)
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

-- ---------------------------------------------------------------- looking (no writes)

local function group_info(q, key)
  if redis.call('EXISTS', key) == 1 then
    for _, info in ipairs(redis.call('XINFO', 'GROUPS', key)) do
      if info[2] == q.group then
        return info[6], info[8] -- pending, last delivered id
      end
    end
  end
  return 0, '0-0'
end

-- All that ever came: entries that producers added, by whatever command, and tasks that were delayed first.
local function total_enqueued(q)
  local total = number_or(redis.call('HGET', q[STATS], 'tids'), 0)
  if redis.call('EXISTS', q[STREAM]) == 0 then
    return total
  end
  local info = redis.call('XINFO', 'STREAM', q[STREAM])
  for i = 1, #info, 2 do
    if info[i] == 'entries-added' then
      return total + info[i + 1]
    end
  end
  return total
end

local TOTALS = {
  'succeeded', 'retried', 'released', 'crashes', 'expired', 'vanished', 'fenced', 'dead_retried',
  'dead_dropped', 'dead',
}

-- KEYS: all. ARGV: group. Reply: PROTOCOL, now ms, {name, value …} of figures, {consumer, record …}, {name,
-- value …} of conf. XINFO's lag is not used: it is wrong after XDEL.
local function status(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local figures = {}
  local function add(name, value)
    figures[#figures + 1], figures[#figures + 2] = name, value
  end
  local ready, pending, oldest = 0, 0, 0
  for _, kind in ipairs({ 's', 'g' }) do
    local key = stream_of(q, kind)
    local mine, last = group_info(q, key)
    pending = pending + mine
    ready = ready + math.max(redis.call('XLEN', key) - mine, 0)
    local first = redis.call('XRANGE', key, '(' .. last, '+', 'COUNT', '1')
    if first[1] then
      oldest = math.max(oldest, q.now - number_or(decode(kind .. first[1][1], first[1][2]).enqueued, q.now))
    end
  end
  local waiting = redis.call('HLEN', q[WAITING])
  local retrying = number_or(redis.call('HGET', q[STATS], 'retrying'), 0)
  retrying = math.min(math.max(retrying, 0), waiting)
  add('ready', ready)
  add('running', pending)
  add('delayed', waiting - retrying)
  add('retrying', retrying)
  add('dead', redis.call('XLEN', q[DEAD]))
  add('oldest_ready_ms', str(oldest))
  add('next_due_ms', next_due(q) or '0')
  add('total_enqueued', total_enqueued(q))
  for i, value in ipairs(redis.call('HMGET', q[STATS], unpack(TOTALS))) do
    add('total_' .. TOTALS[i], number_or(value, 0))
  end
  return { PROTOCOL, q.now_text, figures, redis.call('HGETALL', q[WORKERS]), redis.call('HGETALL', q[CONF]) }
end

local function row(task, state, extra)
  local command = field(task, 'command') or ''
  local payload = field(task, 'payload')
  local list = {
    'tid', task.tid, 'state', state, 'enqueued_ms', task.enqueued, 'attempts', task.attempts,
    'crashes', task.crashes, 'command', command:sub(1, PREVIEW), 'payload_bytes', payload and #payload or 0,
    'id', task.id or '',
  }
  for _, value in ipairs(extra) do
    list[#list + 1] = value
  end
  return list
end

-- Letters carry their own account.
local function dead_extra(id, fields)
  local known = trailer(fields) or {}
  return {
    'dead_id', id, 'cause', known['leat.cause'] or '', 'status', known['leat.status'] or '',
    'reason', (known['leat.reason'] or ''):sub(1, PREVIEW), 'died_ms', known['leat.died'] or '0',
    'worker', known['leat.worker'] or '',
  }
end

local function waiting_state(task)
  return task.attempts > 0 and 'retrying' or 'delayed'
end

-- Decoded entries after `start`, up to limit or MOVE_BYTES of them, and the id to go on from ('': these were
-- all).
local function page_of(key, kind, start, limit)
  local tasks, bytes = {}, 0
  while #tasks < limit and bytes < MOVE_BYTES do
    local step = math.min(READ_STEP, limit - #tasks)
    local found = redis.call('XRANGE', key, '(' .. start, '+', 'COUNT', step)
    for _, entry in ipairs(found) do
      start = entry[1]
      local task = decode(kind .. start, entry[2])
      tasks[#tasks + 1], bytes = task, bytes + task.bytes
    end
    if #found < step then
      return tasks, ''
    end
  end
  return tasks, start
end

local function list_ready(q, cursor, limit, rows)
  local kind = cursor:sub(1, 1)
  local key, after = stream_of(q, cursor)
  local _, last = group_info(q, key)
  local tasks, following = page_of(key, kind, after == '0-0' and last or after, limit)
  for i, task in ipairs(tasks) do
    rows[i] = row(task, 'ready', {})
  end
  if following ~= '' then
    return kind .. following
  end
  return kind == 'g' and 's0-0' or ''
end

local function running_extra(record)
  return { 'worker', record.consumer, 'attempt', record.attempt, 'begun_ms', record.begun }
end

local function list_running(q, cursor, limit, rows)
  local page = redis.call('HSCAN', q[RUNNING], cursor, 'COUNT', math.min(limit, PAGE))
  for i = 1, #page[2], 2 do
    local token, record = page[2][i], unpack_record(page[2][i + 1])
    local task = record and not record.moved and fetch(q, token)
    if task then
      rows[#rows + 1] = row(task, 'running', running_extra(record))
    end
  end
  return page[1] == '0' and '' or page[1]
end

local function list_waiting(q, cursor, limit, rows)
  local start = number_arg(cursor, 'the cursor')
  limit = math.min(limit, PAGE)
  local page = redis.call('ZRANGE', q[DELAYED], str(start), str(start + limit - 1), 'WITHSCORES')
  for i = 1, #page, 2 do
    local packed = redis.call('HGET', q[WAITING], page[i])
    if packed then
      local task = decode('w', cmsgpack.unpack(packed))
      rows[#rows + 1] = row(task, waiting_state(task), { 'due_ms', page[i + 1] })
    end
  end
  return #page == limit * 2 and str(start + limit) or ''
end

local function list_dead(q, cursor, limit, rows)
  local tasks, following = page_of(q[DEAD], 'd', cursor, limit)
  for i, task in ipairs(tasks) do
    rows[i] = row(task, 'dead', dead_extra(task.token:sub(2), task.fields))
  end
  return following
end

local LISTS = { ready = list_ready, running = list_running, waiting = list_waiting, dead = list_dead }

-- KEYS: all. ARGV: group, what (ready, running, waiting, dead), cursor (first call: ready g0-0, running 0,
-- waiting 0, dead 0-0), how many rows at the most (1000). Reply: PROTOCOL, next cursor ('': that was all),
-- rows of {name, value …}; never a payload. A page may be shorter than asked, or longer for running.
local function list(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local list_some = LISTS[args[2]]
  if not list_some then
    fail('BADARG unknown list ' .. tostring(args[2]):sub(1, 40))
  end
  local limit, rows = math.max(1, math.min(number_arg(args[4], 'the number of rows'), CHUNK)), {}
  local following = list_some(q, args[3], limit, rows)
  return { PROTOCOL, following, rows }
end

local function whole(task, state, extra)
  local fields = {}
  for i = 1, task.count do
    fields[i] = task.fields[i]
  end
  local packed = task.count == 0 and (trailer(task.fields) or {})['leat.packed']
  return { PROTOCOL, '', row(task, state, extra), packed and cmsgpack.unpack(packed) or fields, task.history }
end

-- An entry of a stream: begun, claimed or ready.
local function show_entry(q, token)
  local task = fetch(q, token)
  local record = task and record_of(q, token)
  if record then
    return whole(task, 'running', running_extra(record))
  end
  local stream, id = stream_of(q, token)
  local _, last = group_info(q, stream)
  local ready = redis.call('XRANGE', stream, '(' .. last, id, 'COUNT', '1')
  return whole(task, ready[1] and 'ready' or 'claimed', {})
end

local function show_letter(task)
  local known = trailer(task.fields) or {}
  local extra = dead_extra(task.token:sub(2), task.fields)
  for _, name in ipairs({ 'stdout', 'stderr', 'begun', 'fence' }) do
    extra[#extra + 1] = name
    extra[#extra + 1] = known['leat.' .. name] or ''
  end
  return whole(task, 'dead', extra)
end

-- Looks through one page of go or dead for the task.
local function show_scan(q, tid, cursor)
  local kind, start = cursor:sub(1, 1), cursor:sub(2)
  local tasks, following = page_of(kind == 'g' and q[GO] or q[DEAD], kind, start, PAGE)
  for _, task in ipairs(tasks) do
    if task.tid == tid then
      return kind == 'g' and show_entry(q, task.token) or show_letter(task)
    end
  end
  if following ~= '' then
    return { PROTOCOL, kind .. following }
  end
  return { PROTOCOL, kind == 'g' and 'd0-0' or '' }
end

-- KEYS: all. ARGV: group, a task's id or its own label, cursor ('' on the first call). Reply: PROTOCOL, cursor
-- (not '': call again with it), and when found: row, {name, value …} of the task, history.
-- Go and dead are searched page by page, since neither is indexed by task.
local function show(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local tid, cursor = args[2], args[3]
  tid = redis.call('HGET', q[NAMES], 'i:' .. tid) or tid
  if cursor ~= '' then
    return show_scan(q, tid, cursor)
  end
  local packed = redis.call('HGET', q[WAITING], tid)
  if packed then
    local task = decode('w', cmsgpack.unpack(packed))
    local due = redis.call('ZSCORE', q[DELAYED], tid) or '0'
    return whole(task, waiting_state(task), { 'due_ms', due })
  end
  if tid:match('^%d+%-%d+$') then
    if fetch(q, 's' .. tid) then
      return show_entry(q, 's' .. tid)
    end
    local letter = redis.call('XRANGE', q[DEAD], tid, tid)
    if letter[1] then
      return show_letter(decode('d' .. tid, letter[1][2]))
    end
  end
  return { PROTOCOL, 'g0-0' }
end

-- No keys. Reply: PROTOCOL, VERSION.
local function version()
  return { PROTOCOL, VERSION }
end

-- pairs and ipairs do not exist while a library is loaded.
local function register_all(functions, flags)
  for i = 1, #functions, 2 do
    redis.register_function({ function_name = functions[i], callback = functions[i + 1], flags = flags })
  end
end

register_all({ 'leat_enqueue', enqueue }, {})
register_all({
  'leat_claim', claim, 'leat_renew', renew, 'leat_register', register, 'leat_finish', finish,
  'leat_requeue', requeue_consumer, 'leat_conf', conf_function, 'leat_dead_retry', dead_retry,
  'leat_dead_drop', dead_drop,
}, { 'allow-oom' })
register_all({
  'leat_status', status, 'leat_list', list, 'leat_show', show, 'leat_version', version,
}, { 'no-writes' })
