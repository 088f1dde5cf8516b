do -- Explain: why a task, a lane or the queue does not run (no writes).
--
-- Everything is looked up by its name, and lists are cut, so the cost does not grow with the number of tasks.

local MOST_HOLDERS = 5 -- running tasks, and workers with poison candidates, that are named
local RECORDS_SEEN = 256 -- lease records that one call examines for the tasks of a lane
local LANES_SEEN = 16 -- lanes that one call counts before another one
local SETTINGS = {
  'lease_ms', 'max_crashes', 'paused', 'hold_until', 'outage_until', 'rate', 'burst', 'group', 'drain:*',
}

-- The settings that stop starts: {name, value …}, with the drains of the workers' hosts.
local function settings_of(q, workers)
  local names = {}
  for i = 1, #SETTINGS do
    names[i] = SETTINGS[i]
  end
  for i = 1, math.min(#workers, 2 * CHUNK), 2 do
    names[#names + 1] = 'drain:' .. leat.host_of(workers[i])
  end
  return leat.members_of(q[CONF], names)
end

local function add_queue(q, add)
  local unread, pending, others, by_consumer = leat.stream_figures(q)
  local laned, lanes = leat.lane_figures(q)
  add('ready', unread + laned)
  add('running', pending)
  add('waiting', math.max(redis.call('HLEN', q[WAITING]) - laned, 0))
  add('in_lanes', laned)
  add('lanes', lanes)
  add('dead', redis.call('XLEN', q[DEAD]))
  add('other_groups', others)
  add('next_due_ms', leat.next_tasks(q)[2] or '0')
  local every_us = leat.interval_us(redis.call('HGET', q[CONF], 'rate'))
  if every_us then
    local burst = leat.setting(redis.call('HGET', q[CONF], 'burst'), 1, DEFAULT_BURST)
    local left, next_ms = leat.peek_tokens(q, 'tat', every_us, burst)
    add('rate_next_ms', left < 1 and str(next_ms) or '0')
  end
  add('awaited', leat.awaited_workers(q))
  return leat.flat_busy(by_consumer)
end

-- Running tasks of the lane, among the first records: {tid, worker, …}.
local function lane_holders(q, lane)
  local page = redis.call('HSCAN', q[RUNNING], '0', 'COUNT', str(RECORDS_SEEN))[2]
  local found = {}
  for i = 2, #page, 2 do
    local record = page[i]:find(lane, 1, true) and unpack_record(page[i])
    if record and record.lane == lane and not record.moved and #found < 2 * MOST_HOLDERS then
      found[#found + 1], found[#found + 2] = record.tid, record.consumer
    end
  end
  return found
end

-- How many lanes have their turn before that one, or nil: it has no task that can start, or is beyond LANES_SEEN. A lane
-- whose tasks were moved away keeps its turn until it comes, and does not count.
local function lanes_before(q, lane)
  local turns, before = redis.call('ZRANGE', q[LANES], '0', str(LANES_SEEN - 1)), 0
  for i, name in ipairs(turns) do
    if name == lane then
      for n = 1, i - 1 do
        before = before + (leat.lane_length(q, turns[n]) > 0 and 1 or 0)
      end
      return before
    end
  end
end

-- lane: '' for tasks without one that wait like those of a lane. handed: how many of its tasks have had their turn; nil
-- for a task that has had its own, which waits for no other.
local function add_lane(q, lane, handed, add)
  local spec, settings = leat.lane_spec(q, lane), leat.lane_settings(q, lane)
  local running = leat.lane_running(q, lane)
  add('lane', lane)
  add('lane_settings', settings)
  add('lane_waiting', handed and leat.lane_length(q, lane) + handed or 0)
  add('lane_running', running)
  add('lane_most', spec.most or 0)
  if spec.most and running >= spec.most then
    add('lane_holders', lane_holders(q, lane))
  end
  if spec.every_us then
    local left, next_ms = leat.peek_tokens(q, 't:' .. lane, spec.every_us, spec.burst)
    add('lane_next_ms', left < 1 and str(next_ms) or '0')
  end
  local before = handed and lanes_before(q, lane)
  if before then
    add('lanes_before', before)
  end
end

local function add_unique(q, task, add)
  local holder, token, until_ms = leat.holder_of(q, task.unique)
  if not holder or holder == task.tid then
    return
  end
  local record = token ~= '' and record_of(q, token)
  add('holder', holder)
  add('holder_worker', record and record.consumer or '')
  add('holder_until_ms', until_ms and str(until_ms) or '0')
end

-- For a task that was lost with a worker: whether it starts on an empty worker only, and who runs such tasks.
local function add_candidate(q, task, workers, add)
  local found = {}
  add('is_alone', task.crashes + 1 >= leat.read_max_crashes(q) and 1 or 0)
  add('passed', task.passed or 0)
  for i = 1, #workers, 2 do
    local is_busy, token = leat.candidate_of(q, workers[i])
    local record = is_busy and #found < 2 * MOST_HOLDERS and record_of(q, token)
    if record then
      found[#found + 1], found[#found + 2] = record.tid, workers[i]
    end
  end
  add('candidates', found)
end

-- The worker that has read the entry, and when (ms) another one may take it over if this one is silent.
local function add_pending(q, token, add)
  local stream, id = stream_of(q, token)
  local found = redis.pcall('XPENDING', stream, q.group, id, id, '1')
  if type(found[1]) == 'table' then
    add('pending_for', found[1][2])
    add('takeover_ms', str(math.max(leat.lease_end(q, q.now - found[1][3]), leat.takeover_waits(q))))
  end
end

-- Why leat_claim would refuse the task, or nil.
local function refusal(q, task)
  local misfit = leat.misfit(task) or leat.size_problem(q, task)
  if misfit or not task.bound then
    return misfit
  end
  return task.lane and not leat.may_be_lane(task.lane) and leat.LANE_PROBLEM or leat.name_problem(task)
end

local function add_waiting(q, task, workers, add)
  local tid, refused = task.tid, refusal(q, task)
  local score = redis.call('ZSCORE', q[DELAYED], tid)
  if refused then
    add('refusal', refused)
  end
  if leat.is_postponed(score) then
    add('postponed_ms', str(score - leat.LATEST))
  end
  local expires = task.expires and leat.expiry_of(task)
  if expires then
    add('expires_ms', str(expires))
  end
  if task.waits then
    add('waits', task.waits)
  end
  if task.unique then
    add_unique(q, task, add)
  end
  if task.crashes > 0 then
    add_candidate(q, task, workers, add)
  end
  local lane = task.lane and leat.may_be_lane(task.lane) and leat.lane_of(q, task.lane)
  local place = is_tid(tid) and (lane and leat.place_in_lane(q, lane, tid) or leat.place_in_lane(q, '', tid))
  if place then
    add('lane_place', place)
  end
  if lane or place then
    add_lane(q, lane or '', task.token:sub(1, 1) ~= 'g' and 0 or nil, add)
  end
end

-- How a task ended that is in the queue no more, if its result was kept.
local function add_result(q, tid, add)
  local key = leat.result_key(q, tid)
  local found = redis.call('XREAD', 'COUNT', '1', 'STREAMS', key, '0-0')
  if found then
    add('result', found[1][2][1][2])
  end
end

-- The row and the history of leat_show, or nil.
local function explain_task(q, id, workers, add)
  local tid = leat.tid_of(q, id)
  local place, task = leat.place_of(q, tid)
  if place == 'w' then
    task = decode('w', leat.read_waiting(q, tid) or {})
    task.tid = tid
  elseif not place then
    task = id:find('^d') and leat.task_at(q, id)
    place = task and task.token
  end
  if not place then
    add('is_indexed', leat.is_indexed(q) and 1 or 0)
    return add_result(q, tid, add)
  end
  local reply = leat.show_place(q, '', task.tid, place, task)
  if place:sub(1, 1) ~= 'd' then
    if place ~= 'w' then
      add_pending(q, place, add)
    end
    if place == 'w' or not record_of(q, place) then
      add_waiting(q, task, workers, add)
    end
    add('is_cancelled', leat.is_cancelled(q, tid) and 1 or 0)
  end
  return reply[3], reply[5]
end

-- leat_explain: what stops a task, a lane or the queue, or what became of the task.
-- KEYS: all.
-- ARGV: group; task, lane or queue; the tid or label of the task, or 'd' and the id of a dead letter's entry; or the name of
-- the lane; or ''.
-- Reply: PROTOCOL, now ms, {name, value …} of what was found, then as in leat_status: {consumer, record …}, {name,
-- value …} of conf, {consumer, number …} of running tasks; then, for a task that was found, the row and the history of
-- leat_show. Of conf, only what can stop starts is there.
-- Safe to stop: no writes.
function leat.explain(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local figures, row, history = {}, {}, ''
  local function add(name, value)
    figures[#figures + 1], figures[#figures + 2] = name, value
  end
  local workers = redis.call('HGETALL', q[WORKERS])
  local busy = add_queue(q, add)
  if args[2] == 'task' then
    row, history = explain_task(q, args[3], workers, add)
  elseif args[2] == 'lane' then
    add('is_named', select(2, leat.lane_settings(q, args[3])) and 1 or 0)
    add_lane(q, args[3], (leat.handed_out(q)[args[3]] or {}).waiting or 0, add)
  elseif args[2] ~= 'queue' then
    fail('BADARG neither task nor lane nor queue: ' .. shown(args[2]))
  end
  return { PROTOCOL, q.now_text, figures, workers, settings_of(q, workers), busy, row or {}, history or '' }
end

end
