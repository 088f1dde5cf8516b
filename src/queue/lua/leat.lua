-- leat: the queue, as a Redis function library. make puts before it what src/queue/shared says.
--
-- An attempt is an entry of a stream. A claimed entry never changes its owner. When a task is requeued (retry,
-- release, expired lease, dead worker, host fault), it is written as a new entry, and the old entry is acked and
-- deleted in the same step. The id alone therefore fences a stale worker: it names an entry that no longer exists.
--
-- tests/model/leat.pml models the part of this that decides who may run a task, and is checked in every order of
-- its steps. The blocking read is do_read there, leat_claim is do_claim, leat_renew is do_renew, leat_finish is
-- do_finish, leat_register is do_register. What the scan and leat_requeue do with entries of lost workers is
-- take_over. poison.pml there models whose crash it is. Change the model before you change one of them.
--
-- Redis does not roll back a script. A step that moves a task therefore logs the inverse of each write. If a write
-- is refused, whole_step undoes the earlier ones: the task is where it was, and the call can be repeated. XDEL
-- cannot be undone, so it comes last. XACK and counters never fail a step (pcall), because nothing depends on
-- them.
--
-- A token names an entry: 's' or 'g' (for the producers' stream or the requeue stream, go) and the id of the
-- entry. In go and in waiting, leat's own fields follow the task's fields. The last one, leat.fields, is the
-- number of pairs that are the task's, so a producer cannot forge the others.
--
-- Every reply is an array that begins with PROTOCOL, except those of leat_add and leat_add_many. Errors begin with
-- a word: REFUSED (the caller's task is wrong), FULL (length limit), FOREIGN (the stream belongs to another
-- program), NOGROUP (call leat_register), LATE (a later registration came first), BADARG, TRYAGAIN.
--
-- A step is safe to stop at any line, unless its description says otherwise: Redis runs a call as a whole, and a
-- refused write is undone. If Redis dies in the middle of a call, neither its file nor its replicas have a part of
-- the call.

local VERSION = 17 -- increase it with each change of the library: workers replace an older one, never a newer one

-- The keys, in the order of every call. Producers' functions take the first PRODUCER_KEYS, the others all of them.
local STREAM, BELL, WAITING, DELAYED, NAMES, CONF, STATS, LANES, LANED = 1, 2, 3, 4, 5, 6, 7, 8, 9
local GO, RUNNING, DEAD, WORKERS, CANCEL, AWAITED = 10, 11, 12, 13, 14, 15

local READ_STEP = 8 -- entries to read at once after a small one, as their sizes are not known before
local SMALL_ENTRY = 8192 -- bytes; after a larger one, only one more is read at once
local READ_MOST, SMALL_BYTES = 32, 65536 -- read up to so many at once as long as all together are so small
local HISTORY = 2000 -- bytes of history that a task keeps
-- leases between two sweeps for leftovers; also the silence after which a consumer is deleted
local SWEEP_LEASES = 10
local DEFAULT_LEASE_MS = DEFAULT_LEASE_S * 1000 -- if conf was damaged by hand
local TOO_MANY_FIELDS = 'more than ' .. MAX_FIELDS .. ' fields'
local MAX_DIGITS = 15 -- of a time in ms
local LONG_VALUE = 200 -- bytes; leat writes no number, setting or holder of a name that is longer
local FEW_VALUES, VALUE_WEIGHT = 64, 32 -- each value beyond the first few costs Redis as much as so many bytes
local LARGE_BYTES, LARGE_MS = 1024 * 1024, 3600000 -- after a task so large, a queue is read entry by entry for so long
local LEAST_MAX_TASK = 65536 -- smaller tasks are not compared with max_task
local EXACT = 2 ^ 53 -- from here on, a number does not represent every whole number exactly
local ID_WIDTH = 20 -- most digits of each half of an id
local GREATEST_HALF = '18446744073709551615' -- of the id of an entry
local GREATEST_ID = GREATEST_HALF .. '-' .. GREATEST_HALF
local DURATION_HINT = '; give seconds, or a sum such as 1h30m or 500ms, at most 36525d'
local DAMAGED_MS = 10000 -- until a waiting task that cannot be read is tried again

local TEXTS, PARSED = {}, {} -- small numbers as text and the other way round: formatting and parsing are slow
for number = 0, 99 do
  TEXTS[number] = number .. ''
  PARSED[TEXTS[number]] = number
end

-- '%d' is the faster one, but a C long: a time in ms does not fit into that of a 32-bit Redis.
local WHOLE = ('%d'):format(2 ^ 53) == '9007199254740992' and '%d' or '%.0f'

-- The clock in µs as it was read last, and its text: a fencing token is nearly always this number.
local clock_us, clock_text

-- A whole number as text.
local function str(number)
  return TEXTS[number] or number == clock_us and clock_text or string.format(WHOLE, number)
end

local function fail(message)
  error({ err = message })
end

-- The beginning of a caller's bytes, for an error message. A NUL would end the message.
local function shown(text)
  return (text:sub(1, 40):gsub('%c', '?'))
end

local function number_arg(text, what)
  local value = tonumber(text)
  if not value or value ~= value or value < 0 or value > 9e15 then
    fail('BADARG ' .. what .. ' is not a number: ' .. shown(tostring(text)))
  end
  return value - value % 1
end

local PADDING = { '00000', '0000', '000', '00', '0', '' } -- before a number of so many digits, to make them six

-- The clock of Redis in µs, and in ms as text. Redis has seconds, and microseconds without leading zeros. They are
-- joined as text, since formatting is slow, and so is tonumber.
local function read_time()
  local time = redis.call('TIME')
  clock_text = time[1] .. PADDING[#time[2]] .. time[2]
  clock_us = clock_text + 0
  return clock_us, clock_text:sub(1, -4)
end

local function read_clock(q, name)
  q.now_us, q.now_text = read_time()
  q.now = (q.now_us - q.now_us % 1000) / 1000
  return q[name]
end

-- Values of a queue that are read when a call first needs them; all of the call then uses the same ones. A function
-- sets its value and returns it.
local LAZY = { now_us = read_clock, now = read_clock, now_text = read_clock }
local QUEUE = {}

function QUEUE.__index(q, name)
  local read = LAZY[name]
  return read and read(q, name)
end

-- Whether no lane, no cancel and no waiting client is there: one EXISTS for all three. It may be false although it
-- is true.
function LAZY.plain(q)
  q.plain = redis.call('EXISTS', q[LANES], q[CANCEL], q[AWAITED]) == 0
  return q.plain
end

-- How many entries to read next, after `number` of them with so many bytes together.
local function next_step(number, bytes)
  return number > 0 and bytes < number * SMALL_ENTRY and READ_STEP or 1
end

local function check_count(keys, wanted)
  if #keys ~= wanted then
    fail('BADARG expected ' .. wanted .. ' keys, got ' .. #keys)
  end
end

-- The queue of this call. Each routine gets it as q: the keys by number, and the values that all routines share.
local function open(keys, wanted, group, consumer)
  check_count(keys, wanted)
  if group == '' or consumer == '' then
    fail('BADARG give the names of the consumer group and of the consumer')
  end
  -- These fields are set here, because Lua copies a table that grows. They are 16: one more would double its size. For
  -- the same reason, { nil } elsewhere is an empty list with room for one value: most calls have one task.
  return setmetatable({
    group = group, consumer = consumer, undo = false, freed = false, bytes = 0, now_us = nil, now = nil,
    now_text = nil, plain = nil, due = nil, lowest = nil, sizes = nil, ended = nil, unfit = nil, lane_conf = nil,
    fence_floor = 0, unpack(keys),
  }, QUEUE)
end

-- A failed counter never fails a step. Returns what it counts now, or an error.
local function count(q, name, by)
  return redis.pcall('HINCRBY', q[STATS], name, by and str(by) or '1')
end

-- A number that someone may have written by hand. tonumber accepts nan and inf, too.
local function number_or(text, default)
  local number = text and tonumber(text)
  return number and number > -math.huge and number < math.huge and number or default
end

-- A whole number of at least 0, as leat writes it, or nil.
local function natural(text)
  local number = text and (PARSED[text] or text:match('^%d+$') and text + 0)
  return number and number < EXACT and number or nil
end

-- The text, or '' if it is longer than what leat writes. Some patterns take the square of a text's length to search it.
local function short(text)
  return text and #text <= LONG_VALUE and text or ''
end

-- Whether the text has the form of a tid. Ids of Redis and of leat have halves of at most 20 digits, without zeros
-- before them, which members of laned do not keep.
local function is_tid(text)
  local ms, sequence = text:match('^(%d+)%-(%d+)$')
  return ms ~= nil and #ms <= ID_WIDTH and #sequence <= ID_WIDTH and not text:find('^0%d') and not sequence:find('^0%d')
end

-- Whether an entry of a stream can have that id. Tids that new_tid made are too large for that.
local function is_entry_id(text)
  local ms, sequence = text:match('^(%d+)%-(%d+)$')
  return ms ~= nil and (#ms < ID_WIDTH or #ms == ID_WIDTH and ms <= GREATEST_HALF)
    and (#sequence < ID_WIDTH or #sequence == ID_WIDTH and sequence <= GREATEST_HALF)
end

local function is_token(text)
  return text:match('^[sg]') ~= nil and is_entry_id(text:sub(2))
end

-- Up to `limit` entries after that id. XRANGE refuses a start after the greatest id.
local function entries_after(key, id, last, limit)
  return id ~= GREATEST_ID and redis.call('XRANGE', key, '(' .. id, last, 'COUNT', limit) or {}
end

-- Adds to a counter that steps rely on. Returns its new value, or nil if it is no whole number: someone has written
-- it by hand.
local function add_to_counter(q, name, by)
  local value = redis.pcall('HINCRBY', q[STATS], name, str(by))
  if type(value) == 'number' then
    return value
  elseif value.err:find('not an integer', 1, true) or value.err:find('overflow', 1, true) then
    return nil
  end
  error(value, 0)
end

local UNITS_MS = { w = 604800e3, d = 86400e3, h = 3600e3, m = 60e3, s = 1000, ms = 1 }
local CENTURY_MS = 36525 * 86400e3

-- The sum of all parts, each in a smaller unit than the part before it.
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

-- A duration (90, 90s, 500ms, 5m, 1h30m, 30d) in ms, or nil. Workers and commands parse it in the same way.
local function duration_ms(text)
  text = text or ''
  if #text > LONG_VALUE then
    return nil
  end
  local ms = text:match('^%d+$') and text * 1000 or sum_ms(text)
  return ms and ms <= CENTURY_MS and ms or nil
end

local function rest(args, from)
  if #args - from < CHUNK then
    return { unpack(args, from) }
  end
  local list = {}
  for i = from, #args do
    list[i - from + 1] = args[i]
  end
  return list
end

-- ---------------------------------------------------------------- steps that happen as a whole or not at all

-- Logs the command that undoes the write just done.
local function undo_with(q, ...)
  if q.undo then
    q.undo[#q.undo + 1] = { ... }
  else
    q.undo = { { ... } }
  end
end

-- Runs step(q, …). If one of its writes is refused, undoes the earlier ones, the last first.
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

-- Calls step(…). If it fails, keeps the problem in out.problem, unless an earlier call has left one there. Returns
-- whether the step succeeded.
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
  fail('BADARG not an entry token: ' .. shown(token))
end

-- How many values are the task's. Returns nil if the trailing fields are not leat's.
local function own_count(fields)
  local n = #fields
  local pairs_count = n >= 2 and fields[n - 1] == 'leat.fields' and natural(fields[n])
  return pairs_count and pairs_count * 2 <= n - 2 and pairs_count * 2 or nil
end

-- The fields of leat that follow those of a task, and how many values are the task's; or nil.
local function trailer(fields)
  local own = own_count(fields)
  if not own then
    return nil
  end
  local known = {}
  for i = own + 1, #fields - 3, 2 do
    known[fields[i]] = fields[i + 1]
  end
  return known, own
end

-- The last value of that name which trailer would return, or nil.
local function trailing(fields, name)
  for i = #fields - 3, (own_count(fields) or #fields) + 1, -2 do
    if fields[i] == name then
      return fields[i + 1]
    end
  end
  return nil
end

-- The fields that mean something here. BINDING fields reserve something (a name, a lane's slot, a result) that
-- must be released when the task ends. crashed is leat's own: the task is a poison candidate, and the end of one lets
-- the next one start.
local BINDS = 1
local BINDING = { 'id', 'unique', 'unique_for', 'lane', 'result_ttl', 'crashed' }
local DURATIONS = { unique_for = true, result_ttl = true } -- a longer text than LONG_VALUE is none
local PICKED = { id = BINDS, unique = BINDS, unique_for = BINDS, lane = BINDS, result_ttl = BINDS, expires = 0 }

local function known_number(task, known, name, default)
  local text = known[name]
  local value = natural(text)
  if text and not value then
    task.damaged = name .. ' ' .. text
  end
  return value or default
end

-- Takes what leat has noted of a task, of which others may have changed everything by hand. What cannot be read
-- keeps its default, and its name and value are in task.damaged.
local function take_known(task, known)
  task.attempts = known_number(task, known, 'leat.attempts', 0)
  task.crashes = known_number(task, known, 'leat.crashes', 0)
  task.fence, task.passed = known_number(task, known, 'leat.fence', 0), known_number(task, known, 'leat.passed', 0)
  task.waits, task.spared = known_number(task, known, 'leat.waits'), known_number(task, known, 'leat.spared')
  if task.crashes > 0 then
    task.crashed, task.bound = '1', true
  end
  task.from, task.history = known['leat.from'], known['leat.history'] or ''
  if #task.history > HISTORY then
    task.damaged, task.history = 'leat.history ' .. task.history, ''
  end
  if known_number(task, known, 'leat.enqueued') and #known['leat.enqueued'] <= MAX_DIGITS then
    task.enqueued = known['leat.enqueued']
  end
  task.due = known_number(task, known, 'leat.due') and known['leat.due']
  local tid = known['leat.tid']
  if tid and is_tid(tid) then
    task.tid = tid
  elseif tid then
    task.damaged = 'leat.tid ' .. tid
  end
end

-- A task as all routines use it. count is the number of values in fields that are the task's own, and bytes is their
-- size. weight is what reading it costs Redis, in bytes. enqueued (ms) stays text, and so do entry_ms, the time in the
-- id of its entry, and due: since when (ms) it could start, if that is not when it was enqueued. The PICKED fields are in
-- it by their names. bound: at least one of them is BINDING.
local function decode(token, fields)
  local hyphen = token:find('-', 3, true)
  local ms = hyphen and token:sub(2, hyphen - 1)
  local task = {
    token = token, tid = token:sub(2), fields = fields, count = #fields, attempts = 0, crashes = 0, fence = 0,
    history = '', enqueued = '0', bytes = 0, weight = 0, entry_ms = ms,
  }
  local known, values
  if token:sub(1, 1) ~= 's' then
    known, values = trailer(fields)
    if not known and fields[#fields - 1] == 'leat.fields' then
      task.damaged = 'leat.fields ' .. fields[#fields]
    end
  end
  if known then
    task.count = values
    take_known(task, known)
  elseif ms and #ms <= MAX_DIGITS then
    -- An id can be anything that a producer chose; a time has to be a number that everyone can read.
    task.enqueued = ms
  end
  local bytes = 0
  for i = 1, task.count, 2 do
    local name, value = fields[i], fields[i + 1]
    bytes = bytes + #name + #value
    local picked = PICKED[name]
    if picked and value ~= '' and (not DURATIONS[name] or #value <= LONG_VALUE) then
      task[name] = task[name] or value
      task.bound = task.bound or picked == BINDS
    end
  end
  task.bytes, task.weight = bytes, bytes
  if #fields > FEW_VALUES then
    task.weight = bytes + (#fields - FEW_VALUES) * VALUE_WEIGHT
  end
  if known then
    -- Only a dead letter has these, instead of fields.
    task.weight = task.weight + #(known['leat.packed'] or '') + #(known['leat.damaged'] or '')
  end
  return task
end

-- The inverse of decode: a flat list for XADD to go, or for waiting.
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
  if task.due then
    add('leat.due', task.due)
  end
  if task.from then
    add('leat.from', task.from)
  end
  if task.history ~= '' then
    add('leat.history', task.history)
  end
  if task.waits then
    add('leat.waits', str(task.waits))
  end
  if task.passing then
    add('leat.passed', str(task.passing))
  end
  if task.spared then
    add('leat.spared', str(task.spared))
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

-- The task of an entry of that stream, or nil. q.bytes is the weight of what this call has read.
local function read_entry(q, key, token)
  local id = token:sub(2)
  local found = redis.call('XRANGE', key, id, id)
  local task = found[1] and decode(token, found[1][2]) or nil
  q.bytes = q.bytes + (task and task.weight or 0)
  return task
end

local function fetch(q, token)
  return read_entry(q, stream_of(q, token), token)
end

-- Whether this call has read so much that it leaves further tasks to the next one. Redis stands still meanwhile.
local function is_full(q)
  return q.bytes >= MOVE_BYTES
end

local function is_pending(q, token)
  local stream, id = stream_of(q, token)
  return #redis.call('XPENDING', stream, q.group, id, id, '1', q.consumer) > 0
end

-- Adds a line for an ended attempt to the task's history: number, worker, start, end (ms), cause, status. The
-- oldest lines are dropped first.
local function add_history(q, task, record, cause, status)
  local line = string.format('%d %s %s %s %s %s\n', record.attempt, record.consumer, record.begun,
    q.now_text, cause, status ~= '' and status or '-')
  local history = task.history .. line
  if #history > HISTORY then
    history = history:sub(-HISTORY):gsub('^[^\n]*\n', '', 1)
  end
  task.history = history
end

-- running holds a lease record for each token: STATE consumer NUL begun ms, attempt, fence, tid, moved, bound,
-- with spaces between them and '-' for no moved. STATE is one of these:
--
-- PLAIN: nothing to release when the task ends.
--
-- BOUND: something to release; bound is a packed map of the task's BINDING fields.
--
-- MOVED: the lease has expired and the entry `moved` has taken the task over ('w' and a tid: it waits in its
-- lane). The record remains so that a late success still counts.
local PLAIN, BOUND, MOVED = 'r', 'b', 'm'

local function pack_bound(holder)
  local bound
  for i = 1, #BINDING do
    local name = BINDING[i]
    if holder[name] then
      bound = bound or {}
      bound[name] = holder[name]
    end
  end
  return bound and cmsgpack.pack(bound) or ''
end

-- holder: the task, or an earlier record of it.
local function pack_record(consumer, begun, attempt, holder, moved)
  local bound = holder.bound and pack_bound(holder) or ''
  local state = moved and MOVED or bound ~= '' and BOUND or PLAIN
  return state .. consumer .. '\0' .. begun .. ' ' .. str(attempt) .. ' ' .. str(holder.fence) .. ' ' .. holder.tid .. ' '
    .. (moved or '-') .. ' ' .. bound
end

-- Returns nil if leat did not write the record: then the entry counts as not claimed. The record has the BINDING
-- fields by their names.
local function unpack_record(packed)
  local consumer, begun, attempt, fence, tid, moved, bound =
    packed:match('^.(.-)%z(%d+) (%d+) (%d+) (%S+) (%S+) (.*)$')
  if not consumer or begun + 0 >= EXACT or attempt + 0 >= EXACT or fence + 0 >= EXACT or not is_tid(tid) then
    return nil
  elseif moved ~= '-' and not is_token(moved) and not (moved:match('^w') and is_tid(moved:sub(2))) then
    return nil
  end
  local record = {
    consumer = consumer, begun = begun, attempt = attempt + 0, fence = fence + 0, tid = tid,
    moved = moved ~= '-' and moved or nil, bound = bound ~= '',
  }
  if not record.bound then
    return record
  end
  local fine, binding = pcall(cmsgpack.unpack, bound)
  for i = 1, fine and type(binding) == 'table' and #BINDING or 0 do
    local value = binding[BINDING[i]]
    record[BINDING[i]] = value and type(value) == 'string' and value or nil
  end
  return record
end

-- The packed records of up to CHUNK tokens. One HGET costs less than an HMGET.
local function packed_records(q, tokens)
  if #tokens == 1 then
    return { redis.call('HGET', q[RUNNING], tokens[1]) }
  end
  return redis.call('HMGET', q[RUNNING], unpack(tokens))
end

local function record_of(q, token)
  local packed = redis.call('HGET', q[RUNNING], token)
  return packed and unpack_record(packed) or nil
end

-- Parts of a whole step: each does a write and logs its inverse.

local function hash_set(q, key, name, value)
  local old = redis.call('HGET', q[key], name)
  redis.call('HSET', q[key], name, value)
  if old then
    undo_with(q, 'HSET', q[key], name, old)
  else
    undo_with(q, 'HDEL', q[key], name)
  end
end

-- Returns the old value.
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

-- As the ZREM of a whole step, for a member with this score. A user that may not undo it may not do it.
local function zset_remove(q, key, score, member)
  if not redis.acl_check_cmd('ZADD', q[key], score, member) then
    fail('NOPERM this user may not run zadd')
  end
  if redis.call('ZREM', q[key], member) == 1 then
    undo_with(q, 'ZADD', q[key], score, member)
  end
end

local function zset_drop(q, key, member)
  local old = redis.call('ZSCORE', q[key], member)
  if old then
    zset_remove(q, key, old, member)
  end
end

-- Adds an entry of leat's own. Returns its id.
local function add_entry(q, key, list)
  local id = redis.call('XADD', key, '*', unpack(list))
  undo_with(q, 'XDEL', key, id)
  return id
end

-- Routines that the parts below share.
local leat = {}
