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
local DEFAULT_LEASE_MS, DEFAULT_MAX_CRASHES = 60000, 3 -- where conf was damaged by hand
local TOO_MANY_FIELDS = 'more than ' .. MAX_FIELDS .. ' fields'
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

local function number_or(text, default)
  return text and tonumber(text) or default
end

local function rest(args, from)
  local list = {}
  for i = from, #args do
    list[#list + 1] = args[i]
  end
  return list
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

-- Tries each and goes on; the first problem is kept for the caller.
local function try(out, step, ...)
  local fine, problem = pcall(step, ...)
  if not fine then
    out.problem = out.problem or problem
  end
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

-- What the parts below have for each other.
local leat = {}
