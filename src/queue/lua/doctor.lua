do -- Doctor: damage in the keys of a queue.
--
-- For each kind of finding, one routine checks whether it holds at this moment. The pages and the repair both use it,
-- so a repair never acts on something that was seen earlier. As long as older entries are not indexed, nothing is said
-- about names and cancels whose task is not found.

local HEAVY = 512 * 1024 -- after a page that read so many bytes, the next one is shorter
local FIRST_LIMIT = 1
local RECORDS_AT_ONCE = 5000 -- running tasks that one call counts
local SILENT_LEASES = 2 -- a consumer that is silent for longer has lost its tasks to others, if there are others
local LEFT_OVER_LEASES = 3 * SWEEP_LEASES -- and a consumer that holds nothing has been deleted
local UNCLAIMED_MS = 100 -- an entry that was read less long ago may be on its way to leat_claim
local AWAITED_MS = 60000 -- the sweep needs some time
local FIGURES = { -- numbers in stats, besides those of view.lua and 't:LANE'
  tids = true, retrying = true, clock = true, clock_strict = true, stream_tag = true, swept = true, tat = true,
  turn = true, dead_warned = true, lists_sought = true,
}
-- Numbers in conf, besides its settings: leat's own, which nobody can set.
local NUMBERS = { hold_until = true, outage_until = true, floor_ms = true, floor_until = true, fence = true }
leat.conf_numbers = NUMBERS

local checks = {} -- kind → function(q, subject) → what is wrong, or nil
leat.checks = checks

local function seconds(ms)
  return str(ms / 1000) .. ' s'
end

local function peek(q, token)
  return is_token(token) and fetch(q, token) or nil
end

-- The id that the group has delivered last of go or the stream, or nil if there is no group.
local function last_delivered(q, kind)
  q.delivered = q.delivered or {}
  if q.delivered[kind] == nil then
    local key, last = stream_of(q, kind), false
    for _, info in ipairs(redis.call('EXISTS', key) == 1 and redis.call('XINFO', 'GROUPS', key) or {}) do
      if info[2] == q.group then
        last = info[8]
      end
    end
    q.delivered[kind] = last
  end
  return q.delivered[kind] or nil
end

-- {id, consumer, idle ms, deliveries}, or nil if the entry is not pending.
local function lease_of(q, token)
  if not is_token(token) or not last_delivered(q, token:sub(1, 1)) then
    return nil
  end
  local stream, id = stream_of(q, token)
  return redis.call('XPENDING', stream, q.group, id, id, '1')[1]
end

local function is_later(id, other)
  local function padded(text)
    local ms, sequence = text:match('^(%d+)%-(%d+)$')
    return ('0'):rep(20 - #ms) .. ms .. ('0'):rep(20 - #sequence) .. sequence
  end
  return padded(id) > padded(other)
end

-- Whether the task has ended: it is nowhere, or only its dead letter is left.
local function has_ended(q, tid)
  local place = leat.place_of(q, tid)
  return place and place:sub(1, 1) == 'd' or not place and leat.is_indexed(q)
end

-- ---------------------------------------------------------------- entries, consumers and records

function checks.dangling(q, token)
  local lease = lease_of(q, token)
  return lease and not peek(q, token) and 'pending for ' .. lease[2] or nil
end

-- An entry that was read and is not pending: someone else has acked it.
function checks.acked(q, token)
  local last = is_token(token) and last_delivered(q, token:sub(1, 1))
  if not last or is_later(token:sub(2), last) or lease_of(q, token) or not peek(q, token) then
    return nil
  end
  local record = record_of(q, token)
  if record and record.moved then
    return nil
  end
  return record and 'claimed by ' .. record.consumer or 'not claimed'
end

-- All consumers of both groups and all that send heartbeats: name → { pending, silent (ms) }. A heartbeat says
-- more than the group.
local function consumers(q)
  if not q.consumers then
    local all = {}
    local function add(name, pending, silent)
      local one = all[name] or { pending = 0, silent = silent }
      one.pending, one.silent = one.pending + pending, math.min(one.silent, silent)
      all[name] = one
    end
    for _, kind in ipairs({ 'g', 's' }) do
      for _, info in ipairs(last_delivered(q, kind) and redis.call('XINFO', 'CONSUMERS', stream_of(q, kind),
        q.group) or {}) do
        add(info[2], info[4], info[6])
      end
    end
    local beats = redis.call('HGETALL', q[WORKERS])
    for i = 1, #beats, 2 do
      add(beats[i], 0, math.huge)
      all[beats[i]].silent = q.now - number_or(beats[i + 1]:match('^%d+'), 0)
    end
    q.consumers = all
  end
  return q.consumers
end

function checks.consumer(q, name)
  local one, reclaim = consumers(q)[name], leat.read_reclaim(q)
  local leases = one and (one.pending > 0 and SILENT_LEASES or LEFT_OVER_LEASES)
  if not one or one.silent <= leases * reclaim then
    return nil
  end
  local silence = 'silent for ' .. (one.silent > 1e11 and 'ever' or seconds(one.silent))
  return silence .. ', ' .. one.pending .. ' of its entries pending'
end

-- A claimed task without a record. Its worker's next renewal restores it; a heartbeat tells what was never claimed.
function checks.unrecorded(q, token)
  local lease = lease_of(q, token)
  if not lease or lease[3] < UNCLAIMED_MS or redis.call('HEXISTS', q[RUNNING], token) == 1 then
    return nil
  end
  local heartbeat = redis.call('HGET', q[WORKERS], lease[2]) or ''
  local unclaimed = leat.read_unclaimed(heartbeat:match('^%d+ (.*)$') or '')
  local is_here = consumers(q)[lease[2]].silent <= leat.read_reclaim(q)
  local task = is_here and unclaimed and not unclaimed[token] and peek(q, token)
  return task and 'task ' .. task.tid .. ', claimed by ' .. lease[2] or nil
end

-- A running task whose label or unique key nobody holds: another task with the same one would run beside it.
function checks.unnamed(q, token)
  local record = record_of(q, token)
  if not record or record.moved or not lease_of(q, token) or not peek(q, token) then
    return nil
  end
  for prefix, name in pairs({ ['i:'] = record.id, ['u:'] = record.unique }) do
    if redis.call('HEXISTS', q[NAMES], prefix .. name) == 0 then
      return 'task ' .. record.tid .. ' does not hold ' .. shown(name)
    end
  end
end

function checks.vanished(q, token)
  local record = record_of(q, token)
  if not record or record.moved or not is_token(token) or lease_of(q, token) or peek(q, token) then
    return nil
  end
  return 'task ' .. record.tid .. ', claimed by ' .. record.consumer
end

function checks.moved(q, token)
  local record = record_of(q, token)
  return record and record.moved and not leat.is_at(q, record.moved) and 'passed on to ' .. record.moved or nil
end

-- A record that cannot be read counts as unclaimed; without an entry it counts as nothing.
function checks.record(q, token)
  local packed = redis.call('HGET', q[RUNNING], token)
  if not packed or unpack_record(packed) and is_token(token) or peek(q, token) then
    return nil
  end
  return #packed .. ' bytes that leat did not write'
end

-- A task that waits in go for a worker, which will make it a dead letter.
function checks.unreadable(q, token)
  local task = peek(q, token)
  return task and task.damaged and not record_of(q, token) and shown(task.damaged) or nil
end

-- ---------------------------------------------------------------- lanes

-- How many tasks of each lane run, or nil if one call cannot count that many.
local function count_lanes(q)
  if not q.lane_counts then
    if redis.call('HLEN', q[RUNNING]) > RECORDS_AT_ONCE then
      return nil
    end
    q.lane_counts = {}
    for _, packed in ipairs(redis.call('HVALS', q[RUNNING])) do
      local record = packed:sub(1, 1) == BOUND and unpack_record(packed)
      if record and record.lane then
        q.lane_counts[record.lane] = (q.lane_counts[record.lane] or 0) + 1
      end
    end
  end
  return q.lane_counts
end
leat.count_lanes = count_lanes

checks['lane-count'] = function(q, lane)
  local counts = count_lanes(q)
  local counter = redis.call('HGET', q[STATS], 'r:' .. lane)
  local runs = counts and counts[lane] or 0
  if not counts or number_or(counter, not counter and 0) == runs then
    return nil
  end
  return 'the counter says ' .. shown(counter or '0') .. ', ' .. runs .. ' run'
end

checks['empty-lane'] = function(q, lane)
  if not redis.call('ZSCORE', q[LANES], lane) or #leat.lane_members(q, lane, 1) > 0 then
    return nil
  end
  -- The next worker that reads an entry drops such lanes.
  if leat.undelivered(q, GO, q.group) > 0 or leat.undelivered(q, STREAM, q.group) > 0 then
    return nil
  end
  return 'has a turn but no task'
end

-- A lane whose tasks could start, but whose turn never comes.
checks['lost-lane'] = function(q, lane)
  if redis.call('ZSCORE', q[LANES], lane) or #leat.lane_members(q, lane, 1) == 0 then
    return nil
  end
  local spec = leat.lane_spec(q, lane)
  if leat.waits_for_token(q, lane, spec) then
    return nil
  elseif spec.most and leat.lane_running(q, lane) >= spec.most then
    return nil
  end
  return 'has tasks but never a turn'
end

function checks.laned(q, member)
  local score = redis.call('ZSCORE', q[LANED], member)
  if not score then
    return nil
  elseif tonumber(score) ~= 0 then
    return 'its score is ' .. score
  end
  local lane, tid = leat.lane_parts(member)
  if not lane then
    return 'not written by leat'
  end
  return redis.call('HEXISTS', q[WAITING], tid) == 0 and 'lane ' .. lane or nil
end

-- ---------------------------------------------------------------- waiting tasks

function checks.damaged(q, tid)
  local list, packed = leat.read_waiting(q, tid)
  if not packed or list and is_tid(tid) then
    return nil
  end
  return #packed .. ' bytes that cannot be read'
end

-- A follow-up is in names; all other waiting tasks are in delayed or in a lane.
function checks.waiting(q, tid)
  local list = is_tid(tid) and leat.read_waiting(q, tid)
  if not list or redis.call('ZSCORE', q[DELAYED], tid) then
    return nil
  end
  local task = decode('w', list)
  if leat.is_laned(q, tid, task.lane) then
    return nil
  end
  local following = task.unique and redis.call('HGET', q[NAMES], 'n:' .. task.unique)
  if following and following:match('^%S+') == tid then
    return nil
  end
  return 'neither due nor in a lane' .. (task.lane and ', its lane is ' .. task.lane or '')
end

function checks.delayed(q, member)
  local due = redis.call('ZSCORE', q[DELAYED], member)
  if not due or member:match('^%a:') then
    return nil
  elseif redis.call('HEXISTS', q[WAITING], member) == 1 then
    return tonumber(due) > leat.LATEST and not leat.is_postponed(due) and 'never due' or nil
  end
  return 'no such task waits'
end

-- ---------------------------------------------------------------- what tasks hold

local function check_unique(q, name, value)
  local until_ms = value:match('^@(%d+) %S+$')
  if until_ms then
    return not redis.call('ZSCORE', q[DELAYED], name) and 'refused after a success, but never freed' or nil
  end
  local tid, token = short(value):match('^(%S+) ?(%S*)$')
  if not tid or not is_tid(tid) then
    return 'its holder does not exist'
  end
  local record = token ~= '' and record_of(q, token)
  if record and record.tid == tid then
    return nil
  end
  return has_ended(q, tid) and 'held by ' .. tid or nil
end

-- The holder of the key starts its follow-up. The finding for the key itself tells of a holder that is gone.
local function check_following(q, key, value)
  local tid = value:match('^(%S+) %d+$')
  if not tid or redis.call('HEXISTS', q[WAITING], tid) == 0 then
    return 'no such task waits'
  end
  local holder = redis.call('HGET', q[NAMES], 'u:' .. key)
  return (not holder or holder:sub(1, 1) == '@') and 'task ' .. tid .. ' follows nobody' or nil
end

function checks.name(q, name)
  local value = redis.call('HGET', q[NAMES], name)
  local kind, key = name:sub(1, 2), name:sub(3)
  if not value then
    return nil
  elseif kind == 'u:' then
    return check_unique(q, name, value)
  elseif kind == 'n:' then
    return check_following(q, key, value)
  elseif kind ~= 'i:' then
    return nil
  elseif not is_tid(value) then
    return 'its holder does not exist'
  end
  return has_ended(q, value) and 'held by ' .. value or nil
end

-- A key whose holder is said to run: a task with unique_next would be kept behind it.
function checks.holder(q, name)
  local value = name:sub(1, 2) == 'u:' and redis.call('HGET', q[NAMES], name) or ''
  local tid, token = value:match('^(%d%S*) (%S+)$')
  local record = tid and record_of(q, token)
  if not tid or record and record.tid == tid and not record.moved then
    return nil
  end
  return 'task ' .. tid .. ' does not run as ' .. token
end

function checks.cancel(q, tid)
  if redis.call('SISMEMBER', q[CANCEL], tid) == 0 then
    return nil
  elseif not is_tid(tid) then
    return 'no task'
  end
  return has_ended(q, tid) and 'asked to be cancelled' or nil
end

function checks.awaited(q, tid)
  local until_ms = redis.call('HGET', q[AWAITED], tid)
  if not until_ms or number_or(until_ms, 0) + AWAITED_MS > q.now then
    return nil
  end
  return 'nobody has waited since ' .. until_ms
end

-- Whether the index leads to the task's entry, or to another one of the same task.
local function is_indexed(q, tid)
  local place = redis.call('HGET', q[NAMES], 't:' .. tid)
  local task = place and leat.task_at(q, place)
  return task and task.tid == tid
end

-- subject: 't:' for the index as a whole, 't:TID' for an index entry, or the place of a task.
function checks.index(q, subject)
  if subject == 't:' then
    return not leat.is_indexed(q) and 'older entries are not in it yet' or nil
  elseif not leat.is_indexed(q) then
    return nil
  elseif subject:sub(1, 2) == 't:' then
    local place = redis.call('HGET', q[NAMES], subject)
    return place and not is_indexed(q, subject:sub(3)) and 'leads to ' .. shown(place) or nil
  end
  local task = leat.task_at(q, subject)
  return task and not is_indexed(q, task.tid) and 'task ' .. task.tid .. ' is not in it' or nil
end

-- ---------------------------------------------------------------- the queue as a whole

-- Redis adds nothing after an entry with the greatest possible id, even if it is deleted.
function checks.exhausted(q, key)
  if key ~= q[STREAM] and key ~= q[GO] or redis.call('EXISTS', key) == 0 then
    return nil
  end
  local info = redis.call('XINFO', 'STREAM', key)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' and info[i + 1] == GREATEST_ID then
      return 'a producer chose the greatest possible id, so nothing more can be added'
    end
  end
end

-- A figure of stats that is no number. The counters of lanes are looked at with the tasks that run.
function checks.counter(q, name)
  local value = redis.call('HGET', q[STATS], name)
  local is_figure = FIGURES[name] or leat.is_total(name) or leat.is_figure(name) or name:sub(1, 2) == 't:'
  return value and is_figure and not number_or(value) and 'is ' .. shown(value) or nil
end

-- A group that existed before, and is missing.
function checks.group(q, key)
  local known = redis.call('HGET', q[CONF], 'group') == q.group
  return known and (key == q[STREAM] or key == q[GO]) and not leat.groups_of(key)[q.group]
    and 'group ' .. q.group or nil
end

function checks.conf(q, name)
  local value = redis.call('HGET', q[CONF], name)
  if name == 'protocol' then
    return value and tonumber(value) ~= PROTOCOL and 'is ' .. value .. ', this library speaks ' .. PROTOCOL or nil
  end
  if NUMBERS[name] then
    return value and not natural(value) and 'is ' .. shown(value) or nil
  elseif not value or not leat.is_changeable(name) or pcall(leat.check_conf, name, value) then
    return nil
  end
  return 'is ' .. value:sub(1, 40)
end

-- ---------------------------------------------------------------- pages

local function note_plainly(q, kind, subject, detail)
  q.rows[#q.rows + 1] = { kind, subject, detail, '' } -- older commands read a fourth element
end

local function note(q, kind, subject)
  local detail = checks[kind](q, subject)
  if detail then
    note_plainly(q, kind, subject, detail)
  end
  return detail
end

-- Parts: function(q, limit, at) → where to go on, or nil at the end. at is '' at first. A page ends after very large
-- tasks.
local parts = {}

-- With the group of another program, or without a group, nothing after this part can be judged.
function parts.start(q)
  leat.check_types(q)
  local known = redis.call('HGET', q[CONF], 'group')
  for name in pairs(leat.groups_of(q[STREAM])) do
    if name ~= q.group and name ~= known then
      note_plainly(q, 'foreign', name, 'reads ' .. q[STREAM])
      q.stops = true
    end
  end
  if not known then
    note_plainly(q, 'unbegun', q[STREAM], 'no worker has ever started')
  elseif known ~= q.group then
    note_plainly(q, 'other-group', known, 'but the configuration says ' .. q.group)
    q.stops = true
  end
  for _, key in ipairs({ q[GO], q[STREAM] }) do
    note(q, 'group', key)
    note(q, 'exhausted', key)
  end
  note(q, 'index', 't:')
end

-- The members of a page of a scan in order, each with its value if it has one (width 2).
local function in_order(q, page, width)
  local members = {}
  for i = 1, #page, width do
    members[#members + 1] = { page[i], page[i + 1] }
    q.bytes = q.bytes + (width == 2 and #page[i + 1] or 0)
  end
  table.sort(members, function(a, b)
    return a[1] < b[1]
  end)
  return members
end

-- `at` is the cursor of the scan and, if a page is looked at in several calls, the last member that was. Each of these
-- calls scans the same page.
local function scanning(command, key, width, look, ...)
  local options = { ... }
  return function(q, limit, at)
    local cursor, last = at:match('^(%d+) (.*)$')
    cursor = cursor or at ~= '' and at or '0'
    local page = redis.call(command, q[key], cursor, 'COUNT', limit, unpack(options))
    local members, looked = in_order(q, page[2], width), false
    for _, member in ipairs(members) do
      if looked and is_full(q) then
        q.is_same_page = true
        return cursor .. ' ' .. looked
      elseif not last or member[1] > last then
        look(q, member[1], member[2])
        looked = member[1]
      end
    end
    return page[1] ~= '0' and page[1] or nil
  end
end

local function noting(...)
  local kinds = { ... }
  return function(q, subject)
    for _, kind in ipairs(kinds) do
      note(q, kind, subject)
    end
  end
end

parts.conf = scanning('HSCAN', CONF, 2, noting('conf'))

function parts.consumers(q, _, at)
  local names = {}
  for name in pairs(consumers(q)) do
    if name > at then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  for i = 1, math.min(#names, PAGE) do
    note(q, 'consumer', names[i])
  end
  return names[PAGE]
end

local function pending_of(kind)
  return function(q, limit, at)
    local start = at == '' and '-' or '(' .. at
    local page = last_delivered(q, kind)
      and redis.call('XPENDING', stream_of(q, kind), q.group, start, '+', limit) or {}
    for i, info in ipairs(page) do
      note(q, 'dangling', kind .. info[1])
      note(q, 'unrecorded', kind .. info[1])
      if is_full(q) and i < #page then
        return info[1]
      end
    end
    return #page == limit and page[limit][1] ~= GREATEST_ID and page[limit][1] or nil
  end
end
parts.pendingg, parts.pendings = pending_of('g'), pending_of('s')

-- Looks at up to `limit` entries of a key after `at`, up to the entry `last`.
local function look_at_entries(q, key, kind, at, last, limit, look)
  local number = 0
  at = at == '' and '0-0' or at
  while number < limit and not is_full(q) do
    local step = math.min(next_step(number, q.bytes), limit - number)
    local page = entries_after(key, at, last, step)
    for _, entry in ipairs(page) do
      at, q.bytes = entry[1], q.bytes + decode(kind .. entry[1], entry[2]).weight
      look(q, kind .. at)
    end
    number = number + #page
    if #page < step then
      return nil
    end
  end
  return at
end

-- In go, the tasks that nobody has read yet, too.
local function entries_of(kind)
  local look = kind == 'g' and noting('acked', 'unreadable') or noting('acked')
  return function(q, limit, at)
    local last = last_delivered(q, kind)
    return last and look_at_entries(q, stream_of(q, kind), kind, at, kind == 'g' and '+' or last, limit, look) or nil
  end
end
parts.entriesg, parts.entriess = entries_of('g'), entries_of('s')

parts.running = scanning('HSCAN', RUNNING, 2, function(q, token, packed)
  noting('vanished', 'moved', 'record', 'unnamed')(q, token)
  local record = packed:sub(1, 1) == BOUND and unpack_record(packed)
  if record and record.lane and not redis.call('HGET', q[STATS], 'r:' .. record.lane) then
    note(q, 'lane-count', record.lane)
  end
end)

local scan_counters = scanning('HSCAN', STATS, 2, function(q, name)
  note(q, 'lane-count', name:sub(3))
end, 'MATCH', 'r:*')

function parts.counters(q, limit, at)
  if not count_lanes(q) then
    note_plainly(q, 'uncounted', q[STATS], 'more than ' .. RECORDS_AT_ONCE .. ' tasks run')
    return nil
  end
  return scan_counters(q, limit, at)
end

parts.figures = scanning('HSCAN', STATS, 2, noting('counter'))
parts.waiting = scanning('HSCAN', WAITING, 2, noting('damaged', 'waiting'))
parts.delayed = scanning('ZSCAN', DELAYED, 2, noting('delayed'))
parts.lanes = scanning('ZSCAN', LANES, 2, noting('empty-lane'))
parts.names = scanning('HSCAN', NAMES, 2, function(q, name)
  if name:find('^t:.') then
    note(q, 'index', name)
  else
    noting('name', 'holder')(q, name)
  end
end)
parts.cancel = scanning('SSCAN', CANCEL, 1, noting('cancel'))
parts.awaited = scanning('HSCAN', AWAITED, 2, noting('awaited'))

-- In lexical order, so all tasks of a lane are together. Those with another score, which disturb that order, come first.
function parts.laned(q, limit, at)
  for _, member in ipairs(at == '' and leat.misplaced(q, limit) or {}) do
    note(q, 'laned', member)
  end
  local page = redis.call('ZRANGE', q[LANED], at == '' and '-' or '(' .. at, '+', 'BYLEX', 'LIMIT', '0', limit)
  local before = at ~= '' and leat.lane_parts(at)
  for _, member in ipairs(page) do
    local lane = leat.lane_parts(member)
    local is_noted = tonumber(redis.call('ZSCORE', q[LANED], member)) ~= 0
    if not is_noted and not note(q, 'laned', member) and lane ~= before then
      note(q, 'lost-lane', lane)
      before = lane
    end
  end
  return #page == limit and page[limit] or nil
end

local function places_of(kind)
  return function(q, limit, at)
    return look_at_entries(q, kind == 'd' and q[DEAD] or q[GO], kind, at, '+', limit, noting('index'))
  end
end
parts.placesg, parts.placesd = places_of('g'), places_of('d')

-- Commands of older versions read the tasks of go first. They need none of them.
function parts.tids()
  return '0-0'
end

local ORDER = {
  'start', 'conf', 'consumers', 'pendingg', 'pendings', 'entriesg', 'entriess', 'running', 'counters', 'figures',
  'waiting', 'delayed', 'laned', 'lanes', 'names', 'cancel', 'awaited', 'placesg', 'placesd',
}

local function part_after(name)
  for i, other in ipairs(ORDER) do
    if other == name then
      return ORDER[i + 1]
    end
  end
end

-- Keeps what a page reads about the same, however large the tasks are.
local function next_limit(limit, bytes)
  if bytes > HEAVY then
    return math.max(math.floor(limit / 4), 1)
  end
  return bytes < HEAVY / 8 and math.min(limit * 2, PAGE) or limit
end

local function cursor_text(name, limit, at)
  return name .. ' ' .. str(limit) .. ' ' .. at
end

-- leat_doctor: one page of damage.
-- KEYS: all.
-- ARGV: group, cursor ('start' at first).
-- Reply: PROTOCOL, next cursor ('': no more), findings {kind, subject, detail, ''}.
-- repair.lua says which kinds leat_repair repairs; the others are for people.
-- Safe to stop: no writes.
function leat.doctor(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local name, limit, at = args[2]:match('^(%l+) (%d+) (.*)$')
  name, limit, at = name or args[2], number_or(limit, FIRST_LIMIT), at or ''
  if not parts[name] or limit < 1 or limit > PAGE then
    fail('BADARG not a cursor: ' .. shown(args[2]))
  end
  q.rows = {}
  at = parts[name](q, limit, at)
  local cursor = ''
  if at then
    cursor = cursor_text(name, q.is_same_page and limit or next_limit(limit, q.bytes), at)
  elseif not q.stops and part_after(name) then
    cursor = cursor_text(part_after(name), FIRST_LIMIT, '')
  end
  return { PROTOCOL, cursor, q.rows }
end

end
