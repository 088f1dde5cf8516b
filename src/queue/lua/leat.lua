#!lua name=leat
-- leat: the queue itself, as a Redis function library.
--
-- An attempt is an entry: a stream entry that was begun never changes hands. Whenever a task
-- passes on (retry, release, expired lease, dead worker, host fault) it is written as a new entry and the old
-- one is acked and deleted in the same step, so whatever a stale worker still wants is fenced by the id alone.
--
-- tests/model/leat.pml has what of this decides who may run a task, and is checked in every order of its steps: the
-- blocking read is do_read there, leat_claim do_claim, leat_renew do_renew, leat_finish do_finish, leat_register
-- do_register, and what the scan and leat_requeue do with what was left behind is take_over. Who changes one of
-- them changes the model first.
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

local VERSION = 2 -- grows with every change of this file: workers replace an older library, never a newer one
local PROTOCOL = 1 -- grows when arguments or replies change their meaning

-- Keys, always in this order. Producers' functions get the first PRODUCER_KEYS, all others every one.
local STREAM, BELL, WAITING, DELAYED, NAMES, CONF, STATS, LANES, LANED = 1, 2, 3, 4, 5, 6, 7, 8, 9
local GO, RUNNING, DEAD, WORKERS, CANCEL, AWAITED = 10, 11, 12, 13, 14, 15
local PRODUCER_KEYS, ALL_KEYS = 9, 15

local MAX_FIELDS = 1000 -- pairs in a task; more is refused (a Lua call takes about 8,000 values)
local CHUNK = 1000 -- arguments in one unpack
local PAGE = 100 -- entries that one call moves or shows at the most on rare paths
local READ_STEP = 8 -- entries that are read at once: only then are their sizes known
local READ_MOST, SMALL_BYTES = 32, 65536 -- and more and more of them while all together are so small
local MOVE_BYTES = 16 * 1024 * 1024 -- a call that has read or moved so much stops there and says so
local HISTORY = 2000 -- bytes of history that a task carries along
local PREVIEW = 200 -- bytes of a command in a list
local SWEEP_LEASES = 10 -- how often leftovers are looked for; silent consumers are struck off after as long
local MIN_LEASE_MS = 1000
local DEFAULT_LEASE_MS, DEFAULT_MAX_CRASHES = 60000, 3 -- where conf was damaged by hand
local TOO_MANY_FIELDS = 'more than ' .. MAX_FIELDS .. ' fields'
local FORGED_ID = 'its entry has an id that Redis did not give'
local OWN_SHORTEST, OWN_LONGEST = 25, 28 -- of a token with an id of new_tid's: 13 digits of time, 10 and more behind
local MAX_DIGITS = 15 -- of a time in ms
local BELL_KEPT = '16' -- rings: queue.h knows it, too
local DAMAGED_MS = 10000 -- a waiting task that cannot be read is looked at again after so long

local TEXTS = {} -- of small numbers: formatting is dear
for number = 0, 99 do
  TEXTS[number] = number .. ''
end

-- A whole number as text.
local function str(number)
  return TEXTS[number] or string.format('%d', number)
end

local function fail(message)
  error({ err = message })
end

-- The beginning of a caller's bytes, as an error can show them: a NUL would end it.
local function shown(text)
  return (text:sub(1, 40):gsub('%c', '?'))
end

local function number_arg(text, what)
  local value = tonumber(text)
  if not value or value ~= value or value < 0 or value > 9e15 then
    fail('BADARG ' .. what .. ' is not a number: ' .. tostring(text):sub(1, 40))
  end
  return math.floor(value)
end

-- Redis's clock, asked for where a call first needs it. One reading is good for all of the call.
local CLOCK = {}
local CLOCK_NAMES = { now_us = true, now = true, now_text = true }

function CLOCK.__index(q, name)
  if not CLOCK_NAMES[name] then
    return nil
  end
  local time = redis.call('TIME')
  local us = time[1] * 1e6 + time[2]
  q.now_us, q.now = us, (us - us % 1000) / 1000
  q.now_text = str(q.now)
  return rawget(q, name)
end

-- The queue of this call, handed to every routine as q: the keys by number, and what all routines need.
local function open(keys, wanted, group, consumer)
  if #keys ~= wanted then
    fail('BADARG expected ' .. wanted .. ' keys, got ' .. #keys)
  end
  -- with room for what comes later: a table that grows is built anew
  local q = {
    group = group, consumer = consumer, ended = {}, undo = false, freed = false, now_us = nil, now = nil,
    now_text = nil, plain = nil, due = nil, unpack(keys),
  }
  return setmetatable(q, CLOCK)
end

-- Statistics never stop a step.
local function count(q, name, by)
  redis.pcall('HINCRBY', q[STATS], name, by and str(by) or '1')
end

local function number_or(text, default)
  return text and tonumber(text) or default
end

local UNITS_MS = { w = 604800e3, d = 86400e3, h = 3600e3, m = 60e3, s = 1000, ms = 1 }
local CENTURY_MS = 36525 * 86400e3

-- A sum: each part in a smaller unit than the one before it.
local function sum_ms(text)
  local total, at, last = 0, 1, math.huge
  repeat
    local number, unit, following = text:match('^(%d+)(%l+) *()', at)
    local factor = number and UNITS_MS[unit]
    if not factor or factor >= last then
      return nil
    end
    total, at, last = total + number * factor, following, factor
  until at > #text
  return total
end

-- A duration as people write it (90, 90s, 500ms, 5m, 1h30m, 30d) in ms, or nil: as the programs read it.
local function duration_ms(text)
  text = text or ''
  local ms = text:match('^%d+$') and text * 1000 or sum_ms(text)
  return ms and ms <= CENTURY_MS and ms or nil
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
  q.undo = q.undo or {}
  q.undo[#q.undo + 1] = { ... }
end

-- Runs step(q, …). Where one of its writes is refused, the earlier ones are taken back, last first.
local function whole_step(step, q, ...)
  q.undo = false
  local fine, result = pcall(step, q, ...)
  if fine then
    return result
  end
  for i = q.undo and #q.undo or 0, 1, -1 do
    redis.pcall(unpack(q.undo[i]))
  end
  error(result, 0)
end

-- Tries each and goes on; the first problem is kept for the caller. Answers whether it went well.
local function try(out, step, ...)
  local fine, problem = pcall(step, ...)
  if not fine then
    out.problem = out.problem or problem
  end
  return fine
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

-- The fields that mean something here. Those that bind: what they took must be let go when the task ends.
local BINDS = 1
local BINDING = { 'id', 'unique', 'unique_for', 'lane', 'result_ttl' }
local PICKED = { id = BINDS, unique = BINDS, unique_for = BINDS, lane = BINDS, result_ttl = BINDS, expires = 0 }

-- A task as all functions handle it. count is the number of values in fields that are the task's own;
-- enqueued (ms) stays text. The PICKED fields stand in it by their names; bound: some of them bind.
local function decode(token, fields)
  local task = {
    token = token, tid = token:sub(2), fields = fields, count = #fields, attempts = 0, crashes = 0, fence = 1,
    history = '', enqueued = '0', bytes = 0,
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
    task.passed = tonumber(known['leat.passed']) or 0
    task.enqueued = known['leat.enqueued'] or '0'
  else
    -- ids may be anything that a producer gives; a time is a number that all can read
    task.enqueued = task.tid:match('^%d+') or '0'
    task.enqueued = #task.enqueued <= MAX_DIGITS and task.enqueued or '0'
  end
  local bytes = 0
  for i = 1, task.count, 2 do
    local name, value = fields[i], fields[i + 1]
    bytes = bytes + #name + #value
    local picked = PICKED[name]
    if picked and value ~= '' then
      task[name] = task[name] or value
      task.bound = task.bound or picked == BINDS
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
  if task.passing then
    add('leat.passed', str(task.passing))
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
local function add_history(q, task, record, cause, status)
  local line = string.format('%d %s %s %s %s %s\n', record.attempt, record.consumer, record.begun,
    q.now_text, cause, status ~= '' and status or '-')
  local history = task.history .. line
  if #history > HISTORY then
    history = history:sub(-HISTORY):gsub('^[^\n]*\n', '', 1)
  end
  task.history = history
end

-- running: token → STATE consumer NUL begun ms, attempt, fence, tid, moved, bound (between spaces; '-' for no
-- moved). STATE is PLAIN; or BOUND where something must be let go when the task ends: bound is then a packed map
-- of its BINDING fields; or MOVED: the lease ran out, the entry `moved` took the task over ('w' and a tid: it waits
-- in its lane), and the record only lets a late success count.
local PLAIN, BOUND, MOVED = 'r', 'b', 'm'

local function pack_bound(holder)
  if not holder.bound then
    return ''
  end
  local bound
  for _, name in ipairs(BINDING) do
    if holder[name] then
      bound = bound or {}
      bound[name] = holder[name]
    end
  end
  return bound and cmsgpack.pack(bound) or ''
end

-- holder: the task, or an earlier record of it.
local function pack_record(consumer, begun, attempt, holder, moved)
  local bound = pack_bound(holder)
  local state = moved and MOVED or bound ~= '' and BOUND or PLAIN
  return state .. consumer .. '\0' .. begun .. ' ' .. str(attempt) .. ' ' .. str(holder.fence) .. ' ' .. holder.tid .. ' '
    .. (moved or '-') .. ' ' .. bound
end

-- nil for what leat did not write: the entry then counts as not begun. BINDING fields stand in the record by
-- their names.
local function unpack_record(packed)
  local consumer, begun, attempt, fence, tid, moved, bound =
    packed:match('^.(.-)%z(%d+) (%d+) (%d+) (%S+) (%S+) (.*)$')
  if not consumer then
    return nil
  end
  local fine, record = pcall(cmsgpack.unpack, bound)
  record = fine and type(record) == 'table' and record or {}
  record.consumer, record.begun, record.attempt = consumer, begun, tonumber(attempt)
  record.fence, record.tid, record.moved = tonumber(fence), tid, moved ~= '-' and moved or nil
  record.bound = bound ~= ''
  return record
end

local function record_of(q, token)
  local packed = redis.call('HGET', q[RUNNING], token)
  return packed and unpack_record(packed) or nil
end

-- Parts of a whole step: a write, and how it is taken back.

local function hash_set(q, key, name, value)
  local old = redis.call('HGET', q[key], name)
  redis.call('HSET', q[key], name, value)
  if old then
    undo_with(q, 'HSET', q[key], name, old)
  else
    undo_with(q, 'HDEL', q[key], name)
  end
end

-- Answers what was there.
local function hash_drop(q, key, name)
  local old = redis.call('HGET', q[key], name)
  if old then
    redis.call('HDEL', q[key], name)
    undo_with(q, 'HSET', q[key], name, old)
  end
  return old
end

local function zset_put(q, key, score, member)
  local old = redis.call('ZSCORE', q[key], member)
  redis.call('ZADD', q[key], score, member)
  if old then
    undo_with(q, 'ZADD', q[key], old, member)
  else
    undo_with(q, 'ZREM', q[key], member)
  end
end

local function zset_drop(q, key, member)
  local old = redis.call('ZSCORE', q[key], member)
  if old then
    redis.call('ZREM', q[key], member)
    undo_with(q, 'ZADD', q[key], old, member)
  end
end

-- Writes an entry of leat's and answers its id.
local function add_entry(q, key, list)
  local id = redis.call('XADD', key, '*', unpack(list))
  undo_with(q, 'XDEL', key, id)
  return id
end

-- What the parts below have for each other.
local leat = {}

-- Whether nobody uses lanes, cancels or waits now: one look for all three. False may be cautious.
function leat.is_plain(q)
  if q.plain == nil then
    q.plain = redis.call('EXISTS', q[LANES], q[CANCEL], q[AWAITED]) == 0
  end
  return q.plain
end
