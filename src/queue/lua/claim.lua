do -- Claim: no task starts without it.

local SCAN_START = 'g0-0'
local DEFERRED = 'held' -- name in stats: since when poison candidates may be deferred

local function answer(task)
  local fields = task.fields
  if #fields ~= task.count then
    fields = {}
    for i = 1, task.count do
      fields[i] = task.fields[i]
    end
  end
  local crashes = task.crashes + (task.spared or 0)
  return { task.token, task.tid, task.attempts + 1, crashes, task.fence, task.enqueued, fields }
end

-- Answers a claimed task. Workers ask their done-check by how its earlier attempts ended.
local function add_claimed(task, out)
  out.claimed[#out.claimed + 1] = answer(task)
  if task.is_unlaned then
    out.unlaned = out.unlaned or {}
    out.unlaned[#out.unlaned + 1] = task.token
  end
  if task.due then
    out.dues = out.dues or {}
    out.dues[#out.dues + 1], out.dues[#out.dues + 2] = task.token, task.due
  end
  if task.history == '' then
    return
  end
  local causes = {}
  for cause in task.history:gmatch('%S+ %S+ %S+ %S+ (%S+) [^\n]*\n') do
    causes[#causes + 1] = cause
  end
  if #causes > 0 then
    out.causes = out.causes or {}
    out.causes[#out.causes + 1] = { task.token, table.concat(causes, ' '), task.alone and '0' or '1' }
  end
end

-- Why a task may never start, or nil. These are the reasons of leat_enqueue; a plain XADD has not checked them.
local function refusal(q, task)
  if task.lane and not leat.may_be_lane(task.lane) then
    return leat.LANE_PROBLEM
  end
  return (task.id or task.unique) and leat.name_problem(task) or task.unique and leat.unique_problem(q, task) or nil
end

-- Part of a whole step: a task that was claimed no longer waits.
function leat.stop_waiting(q, task)
  if task.from then
    hash_drop(q, RUNNING, task.from)
  end
  leat.forget_expiry(q, task)
  if task.lane then
    leat.lane_started(q, task.lane)
  end
  if task.crashed then
    hash_set(q, STATS, 'c:' .. q.consumer, task.token)
  end
end

-- Part of a whole step: claims a task that holds something.
local function claim_step(q, task)
  redis.call('HSET', q[RUNNING], task.token, pack_record(q.consumer, q.now_text, task.attempts + 1, task))
  undo_with(q, 'HDEL', q[RUNNING], task.token)
  leat.stop_waiting(q, task)
  if task.id then
    leat.hold_id(q, task.id, task.tid)
  end
  if task.unique then
    leat.hold_unique(q, task.unique, task.tid, task.token)
  end
end

local function fence_after(earlier, now_us)
  return earlier < now_us and now_us or earlier + 1
end

-- The fencing token of a claim: greater than that of the task's last claim, and also, by the time, than that of a claim
-- that Redis has forgotten. It is not smaller than the time in the id of an entry that this call has added, perhaps a
-- ms after it has read the clock (see restore_record).
local function next_fence(q, task)
  local now_us = q.now_us
  if task.entry_ms * 1000 > now_us then
    local time = redis.call('TIME')
    now_us = time[1] * 1e6 + time[2]
  end
  return fence_after(math.max(task.fence, q.fence_floor), now_us)
end

-- Whether a poison candidate may start here. Before its last crash that is allowed, it runs alone; before that,
-- beside other tasks, but not beside another candidate.
local function may_start(q, task, out)
  task.alone = task.crashes + 1 >= leat.read_max_crashes(q)
  if task.alone then
    return out.busy == 0
  elseif out.candidate == nil then
    out.candidate = leat.candidate_of(q, q.consumer) or false
  end
  return not out.candidate
end

-- Requeues a poison candidate that may not start here. The worker that has waited longest reads it next; an idle one
-- is among those. Once all workers have passed it on, it waits: one that runs alone, with this worker.
local function hold_back(q, task, out)
  local passed = task.passed or 0
  if passed + 1 < redis.call('HLEN', q[WORKERS]) then
    task.passing, out.passed = passed + 1, true
    leat.requeue(q, task)
  elseif task.alone then
    return 'defer'
  else
    whole_step(leat.postpone, q, task)
  end
end

-- Decides what happens to an entry that was read. 'claim': claim it; nothing is written yet. 'claimed': it was
-- claimed here. 'defer': keep it until the worker is empty. nil: it was requeued or ended, or the worker that has
-- claimed it keeps it.
local function judge(q, task, record, out)
  if record then
    if not leat.give_back(q, task.token, record) and record.moved then
      return leat.requeue(q, task)
    end
    -- This worker has claimed it, and may run it: the group was recreated, or Redis had forgotten the claim.
    return nil
  end
  local misfit = leat.size_problem(q, task) or leat.misfit(task)
  if misfit then
    return leat.refuse(q, task, misfit)
  elseif leat.is_cancelled(q, task.tid) then
    return leat.cancel_entry(q, task)
  end
  if task.expires and leat.is_expired(q, task) then
    leat.dead_letter(q, task, { cause = 'expired', reason = 'it expired before it could start' })
    return count(q, 'expired')
  end
  local reason = task.bound and refusal(q, task)
  if reason then
    return leat.refuse(q, task, reason)
  end
  if task.lane and not leat.lane_of(q, task.lane) then
    task.lane, task.is_unlaned = nil, true
  end
  if out.alone or out.left < 1 then
    return leat.requeue(q, task)
  elseif task.crashes > 0 and not may_start(q, task, out) then
    return hold_back(q, task, out)
  elseif task.lane and not leat.lane_is_open(q, task.lane) then
    return whole_step(leat.back_to_lane, q, task)
  end
  task.fence = next_fence(q, task)
  if task.lane or task.unique or task.id or task.crashed then
    whole_step(claim_step, q, task)
    return 'claimed'
  end
  return 'claim'
end

-- A first attempt that does not expire, and is small.
local function is_fresh(task)
  return not task.expires and task.bytes < LEAST_MAX_TASK and task.count <= FEW_VALUES and task.token:sub(1, 1) == 's'
end

-- Whether judge would claim the task of an entry without a record if nothing has stopped more from starting, no lane, no
-- cancel and no waiting client is there, and the queue has no rate: a fresh one that holds nothing.
local function is_simple(task)
  return not task.bound and is_fresh(task)
end

-- The same for the fields of an entry from the producers' stream, before they are decoded.
local function are_simple(fields)
  local bytes = 0
  for i = 1, #fields, 2 do
    bytes = bytes + #fields[i] + #fields[i + 1]
    if PICKED[fields[i]] then
      return false
    end
  end
  return #fields <= FEW_VALUES and bytes < LEAST_MAX_TASK
end

-- Claims together those of the tasks that hold nothing. Returns the tokens whose records they replace, or nil.
local function claim_plain(q, tasks)
  local command, n, overtaken = { 'HSET', q[RUNNING], nil, nil }, 2, nil
  for i = 1, #tasks do
    local task = tasks[i]
    if task.verdict == 'claim' then
      command[n + 1], command[n + 2] = task.token, pack_record(q.consumer, q.now_text, task.attempts + 1, task)
      n = n + 2
      if task.from then
        overtaken = overtaken or {}
        overtaken[#overtaken + 1] = task.from
      end
    end
  end
  if n > 2 then
    redis.call(unpack(command))
  end
  return overtaken
end

-- On an empty worker the first poison candidate goes before everything that was read with it: otherwise the worker
-- would become busy and have to run empty again.
local function put_candidate_first(tasks)
  for i = 2, #tasks do
    if tasks[i].crashes > 0 then
      table.insert(tasks, 1, table.remove(tasks, i))
      return
    end
  end
end

-- Claims what one read returned: tasks with their packed records. A busy worker passes a task that runs alone on, or
-- defers it, unclaimed, until it is empty, and requeues what was read after it. The reply keeps the order of the tasks.
local function admit(q, tasks, out)
  if out.busy == 0 and tasks[1].crashes == 0 then
    put_candidate_first(tasks)
  end
  for i = 1, #tasks do
    local task = tasks[i]
    local fine, verdict = true, 'claim'
    if not task.packed and not out.alone and out.left >= 1 and q.plain and is_simple(task) then
      task.fence = next_fence(q, task)
    else
      fine, verdict = pcall(judge, q, task, task.packed and unpack_record(task.packed), out)
    end
    if not fine then
      out.problem = out.problem or verdict
    elseif verdict == 'defer' then
      out.alone = true
      out.deferred[#out.deferred + 1] = task.token
      redis.call('HSET', q[STATS], DEFERRED, q.now_text)
    elseif verdict == 'claim' or verdict == 'claimed' then
      task.verdict = verdict
      out.left, out.started, out.busy = out.left - 1, out.started + 1, out.busy + 1
      if task.crashes > 0 then
        out.alone, out.candidate = task.alone, true
      end
    end
  end
  local fine, overtaken = pcall(claim_plain, q, tasks)
  for i = 1, #tasks do
    local task = tasks[i]
    if fine and task.expires and task.verdict == 'claim' then
      try(out, leat.forget_expiry, q, task)
    end
    if task.verdict and (fine or task.verdict ~= 'claim') then
      add_claimed(task, out)
    end
  end
  if not fine then
    error(overtaken, 0)
  elseif overtaken then
    redis.call('HDEL', q[RUNNING], unpack(overtaken))
  end
end

local function without_repeats(list)
  local seen, rest_of = {}, {}
  for i = 1, #list do
    if not seen[list[i]] then
      seen[list[i]] = true
      rest_of[#rest_of + 1] = list[i]
    end
  end
  return rest_of
end

-- Notes the size of a task that this call has read.
local function weigh(q, task)
  q.bytes = q.bytes + task.weight
  leat.note_size(q, task.weight)
end

-- Takes a named entry from the consumer that has it. Returns its task, or nil if the entry is gone. packed: its record.
local function take_named(q, token, packed)
  local stream, id = stream_of(q, token)
  local found = redis.call('XCLAIM', stream, q.group, q.consumer, '0', id)[1]
  if not found then
    return nil
  end
  local task = decode(token, found[2])
  task.packed = packed
  weigh(q, task)
  return task
end

-- Claims what the blocking read returned, if it is still there and no other consumer has claimed it. The lease
-- starts now, not with the delivery. XCLAIM takes a pending entry from whoever has it; without a record, nobody
-- has claimed it. After very large ones, the rest is left to the next call.
local function admit_named(q, named, out)
  if #named > 1 then
    named = without_repeats(named)
  end
  local records, tasks = packed_records(q, named), { nil }
  for i = 1, #named do
    local token = named[i]
    if is_full(q) then
      out.unread = out.unread or {}
      out.unread[#out.unread + 1] = token
    elseif not records[i] or is_pending(q, token) then
      local task = take_named(q, token, records[i] or nil)
      if task then
        tasks[#tasks + 1] = task
      elseif records[i] then
        try(out, leat.settle_vanished, q, token)
      end
    end
  end
  if #tasks > 0 then
    admit(q, tasks, out)
  end
end

-- As admit, of a fresh task that holds its lane alone. Returns its answer, or nil if admit has to look at it.
local function claim_laned(q, task)
  if task.lane and not task.id and not task.unique and is_fresh(task) and leat.may_be_lane(task.lane)
    and leat.lane_of(q, task.lane) and leat.lane_is_open(q, task.lane) then
    task.fence = next_fence(q, task)
    whole_step(claim_step, q, task)
    return answer(task)
  end
  return nil
end

-- Nearly all calls of a worker that is not busy name one entry, whose task is simple, where nothing limits starts, and
-- nothing waits. They end here, with few tables and calls. Returns the reply; or nil and what was read so far: the
-- values of conf, what count_waiting has returned, and the task, if the entry was taken.
local function claim_simple(keys, group, consumer, token)
  local conf = leat.read_claim_conf(keys[CONF], consumer)
  local now_us, now_text = read_time()
  local lease, floor = leat.unlimited(conf, now_us)
  if not lease then
    return nil, conf
  end
  local waiting = leat.count_waiting(keys)
  if waiting > 0 or redis.call('HGET', keys[RUNNING], token) then
    return nil, conf, waiting
  end
  local stream, id = stream_of(keys, token)
  local found = redis.call('XCLAIM', stream, group, consumer, '0', id)[1]
  if not found then
    return { PROTOCOL, now_text, lease, '0', '', '0', '', {}, {}, {} }
  end
  local fields, ms = found[2], id:match('^%d+')
  -- Either a producer has chosen the id of a later entry, or the clock was set back.
  if stream ~= keys[STREAM] or not are_simple(fields) or #ms ~= #now_text or ms > now_text then
    return nil, conf, waiting, decode(token, fields)
  end
  local fence = fence_after(floor, now_us)
  redis.call('HSET', keys[RUNNING], token, pack_record(consumer, now_text, 1, { fence = fence, tid = id }))
  return { PROTOCOL, now_text, lease, '0', '', '0', '', { { token, id, 1, 0, fence, ms, fields } }, {}, {} }
end

-- A poison candidate that a busy worker has deferred belongs to the first empty worker: its lease moves, and the
-- other worker learns at its next renewal that it has lost it. So one worker that has run empty runs all poison
-- candidates, and the others go on with other tasks.
local function take_deferred(q, out)
  for _, task in ipairs(leat.deferred(q)) do
    if task.deferred_by ~= q.consumer then
      redis.call('XCLAIM', q[GO], q.group, q.consumer, '0', task.token:sub(2), 'JUSTID')
      return admit(q, { task }, out)
    end
  end
  redis.call('HDEL', q[STATS], DEFERRED)
end

local function read_records(q, tasks)
  local tokens = { nil }
  for i = 1, #tasks do
    tokens[i] = tasks[i].token
  end
  local records = packed_records(q, tokens)
  for i = 1, #tasks do
    tasks[i].packed = records[i]
  end
end

-- Whether this call may claim more. If it has passed a task on, it may not, since another worker must read that task.
local function may_go_on(q, out)
  return not out.alone and not out.passed and not is_full(q)
end

-- Reads up to `step` entries and appends their tasks. Returns whether there were fewer, and the weight of the largest.
local function read_some(q, kind, step, tasks)
  local stream, largest, n = stream_of(q, kind), 0, #tasks
  local got = redis.call('XREADGROUP', 'GROUP', q.group, q.consumer, 'COUNT', step, 'STREAMS', stream, '>')
  for i, entry in ipairs(got and got[1][2] or {}) do
    local task = decode(kind .. entry[1], entry[2])
    tasks[n + i], largest = task, math.max(largest, task.weight)
    q.bytes = q.bytes + task.weight
  end
  leat.note_size(q, largest)
  return #tasks - n < step, largest
end

-- Claims up to `wanted` new tasks. Returns how many are still wanted. Dropped tasks do not count as claimed, but
-- they limit the work. The size of an entry is not known before it is read, and Redis stands still while it is: so
-- entries are read one by one unless they are known to be small. `most`: more, if their sizes are known.
local function read(q, kind, wanted, out, most)
  local dropped = 0
  most = most or leat.has_small_tasks(q, kind) and READ_STEP or 1
  while wanted > 0 and dropped < PAGE and may_go_on(q, out) do
    local step, tasks = math.min(wanted, most), {}
    local is_end, largest = read_some(q, kind, step, tasks)
    if #tasks > 0 then
      read_records(q, tasks)
      local before = #out.claimed
      admit(q, tasks, out)
      local claimed = #out.claimed - before
      wanted, dropped = wanted - claimed, dropped + #tasks - claimed
    end
    if is_end then
      break
    elseif largest >= SMALL_BYTES then
      most = 1
    elseif most > 1 and q.bytes < SMALL_BYTES then
      most = math.min(2 * most, READ_MOST)
    end
  end
  return wanted
end

-- First go; then due tasks, through go or their lanes; then lanes and the stream in fair order. go is read first
-- of all: if the group is missing, this fails before anything was written.
local function read_all(q, wanted, out)
  wanted = read(q, 'g', wanted, out)
  if q.due and tonumber(q.due) <= q.now then
    -- Due tasks enter their lanes even if go had enough. go may always have enough, and tasks become due faster
    -- than they start; those that are due later must not wait for all of them.
    leat.promote(q, leat.has_lanes(q) and PAGE or math.min(wanted, PAGE), out)
    wanted = read(q, 'g', wanted, out)
  end
  if wanted == 0 then
    return
  elseif leat.has_lanes(q) then
    leat.read_fair(q, wanted, function(kind, some, most)
      return read(q, kind, some, out, most)
    end, function()
      return may_go_on(q, out)
    end)
  else
    read(q, 's', wanted, out)
  end
end

-- Nothing may start: the named entries are requeued unchanged, but for those that are claimed. These were delivered
-- again: the group was recreated, or Redis had forgotten the claim. The worker that has claimed one may run it, also if
-- it is the caller. After very large ones, the rest is returned.
local function put_back(q, tokens)
  for i, token in ipairs(tokens) do
    if is_full(q) then
      return rest(tokens, i)
    end
    local task = is_pending(q, token) and fetch(q, token)
    local record = task and record_of(q, token)
    if task and (not record or record.moved) then
      leat.requeue(q, task)
    elseif task then
      leat.give_back(q, token, record)
    end
  end
end

-- How many more tasks the queue's rate allows, and when it allows the next (ms).
local function read_rate(q, out)
  local rate = out.rate
  out.left, rate.next_ms = leat.tokens(q, 'tat', rate.every_us, rate.burst)
end

-- Takes the rate tokens of the tasks that start. If none is left, nothing may start until the next one, or, for a
-- worker that could have started more, until its turn.
local function settle_rate(q, out, room)
  local rate = out.rate
  if out.started > 0 then
    leat.take_tokens(q, 'tat', rate.every_us, out.started)
    read_rate(q, out)
  end
  if out.left >= 1 then
    return 0, ''
  end
  local waits = room > #out.claimed + #out.deferred
  return waits and leat.turn_ms(q, rate.next_ms, rate.every_us) or rate.next_ms, 'rate'
end

-- The last parts of the reply, which are left out if they are empty: nearly always.
local function more_of(causes, reasons, unread, unlaned, dues)
  if dues then
    return causes or {}, reasons or {}, unread or {}, unlaned or {}, dues
  elseif unlaned then
    return causes or {}, reasons or {}, unread or {}, unlaned
  elseif unread then
    return causes or {}, reasons or {}, unread
  elseif reasons then
    return causes or {}, reasons
  end
  return causes
end

-- This worker may start nothing. It gets no task, but scans on. A hold or an outage stops all workers, and ends the
-- scan: with a cursor to go on from, they would all call again at once.
local function claim_closed(q, closed_until, why, cursor, lease, named)
  local unread = put_back(q, named)
  leat.expire_due(q)
  local following = ''
  if cursor ~= '' and why ~= 'hold' and why ~= 'outage' then
    local fine, found = pcall(leat.scan, q, cursor, lease, {})
    following = fine and found or ''
  end
  return { PROTOCOL, q.now_text, lease, str(closed_until), why, 0, following, {}, {}, q.ended,
    more_of(nil, q.reasons, unread) }
end

-- leat_claim: claims tasks for a worker.
-- KEYS: all.
-- ARGV: group, consumer, how many new tasks at most, how many already run, where to go on with the scan for
-- expired leases ('': not now; 'g0-0': from the start), then at most CHUNK tokens that a blocking read returned. A
-- worker that runs a task alone asks for nothing.
-- Reply: PROTOCOL, now ms, lease ms, until when nothing may start (ms; 0: tasks may start), why ('', hold, outage,
-- paused, drained, rate), next due ms (0: none), scan cursor ('': done), claimed tasks {token, tid, attempt, crashes,
-- fence, enqueued ms, {name, value …}}, deferred tokens, {tid, cause …} of tasks that this call ended without
-- running them: dead letters, or cancelled; {token, causes, beside} of claimed tasks that were tried before, one cause
-- for each earlier attempt, and 1 if it may run beside others (a task with crashes and without that runs alone); the
-- reason of each task that was ended, in the same order; named tokens that this call has
-- not looked at, as the tasks before them were very large: name them again; tokens of claimed tasks whose lane is not
-- named in conf, and so counts as none; token and time (ms) of each claimed task that could start at another time than
-- when it was enqueued. With why 'rate', some tasks may have been
-- claimed.
-- Deferred tokens are unclaimed: name them again when nothing runs. Until then, a worker without tasks that claims
-- takes one of them, and one that starts a scan requeues them. A named token that is in none of these lists no
-- longer belongs to this worker, or it has claimed it before.
-- Claimed tasks are always returned: an error is reported only by a call that has claimed none.
-- Safe to stop: entries that were read are pending and unclaimed. The consumer's next leat_register requeues them,
-- or their leases expire.
function leat.claim(keys, args)
  local reply, conf, waiting, task
  if #keys == ALL_KEYS and #args == 6 and args[3] == '0' and PARSED[args[4]] and args[5] == '' then
    reply, conf, waiting, task = claim_simple(keys, args[1], args[2], args[6])
    if reply then
      return reply
    end
  end
  local q = open(keys, ALL_KEYS, args[1], args[2])
  local wanted, busy = number_arg(args[3], 'the number of tasks'), number_arg(args[4], 'running')
  if #args > 5 + CHUNK then
    fail('BADARG more than ' .. CHUNK .. ' tokens; give fewer')
  end
  local cursor, named = args[5], rest(args, 6)
  q.ended = {}
  conf = conf or leat.read_claim_conf(q[CONF], q.consumer)
  local lease, closed_until, why, every_us, burst = leat.pause_state(q, conf)
  if wanted > 0 or cursor ~= '' then
    -- If running is no hash, this fails before anything was written.
    redis.call('HLEN', q[RUNNING])
  end
  if closed_until > 0 then
    return claim_closed(q, closed_until, why, cursor, lease, named)
  end

  local nothing_waits = leat.read_plain_and_due(q, waiting)
  if task then
    weigh(q, task)
    local claimed = claim_laned(q, task)
    if claimed then
      return { PROTOCOL, q.now_text, lease, '0', '', '0', '', { claimed }, {}, {} }
    end
  end

  local out = {
    claimed = { nil }, deferred = {}, alone = false, busy = busy, started = 0,
    left = math.huge, rate = every_us and { every_us = every_us, burst = burst },
  }
  if out.rate then
    read_rate(q, out)
  end
  if task then
    try(out, admit, q, { task }, out)
  elseif #named > 0 then
    try(out, admit_named, q, named, out)
  end
  if not nothing_waits then
    try(out, leat.expire_due, q)
  end
  if cursor ~= '' then
    if busy == 0 and cursor == SCAN_START then
      try(out, leat.free_deferred, q)
    end
    if cursor == SCAN_START and not leat.candidate_of(q, q.consumer) then
      try(out, whole_step, leat.bring_postponed, q)
    end
    local fine, following = pcall(leat.scan, q, cursor, lease, out)
    cursor = fine and following or ''
    out.problem = out.problem or not fine and following or nil
  end
  if wanted > 0 and out.left > 0 and out.busy == 0 and redis.call('HEXISTS', q[STATS], DEFERRED) == 1 then
    try(out, take_deferred, q, out)
  end
  if wanted > 0 and out.left > 0 then
    try(out, read_all, q, math.min(wanted, out.left, CHUNK), out)
  end
  leat.note_small_tasks(q, #out.claimed, q.bytes)
  if out.rate then
    closed_until, why = settle_rate(q, out, wanted + #named)
  end
  if not q.plain then
    try(out, leat.offer_lane_task, q, cursor ~= '')
  end
  if out.problem and #out.claimed == 0 and #out.deferred == 0 then
    error(out.problem, 0)
  end
  return {
    PROTOCOL, q.now_text, lease, str(closed_until), why, q.due or '0', cursor, out.claimed, out.deferred, q.ended,
    more_of(out.causes, q.ended[1] and q.reasons, out.unread, out.unlaned, out.dues)
  }
end

end
