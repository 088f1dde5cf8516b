do -- Results: how tasks ended, for clients that asked or wait.
--
-- {queue}:result:TID is a stream of one entry that is kept for result_ttl; readers block on it with XREAD. awaited
-- maps the tid of each task that someone waits for (leat_await) to until when (ms). It has '*' if someone waits
-- for the whole queue: then each end adds an entry to {queue}:result:*. Not every caller can declare these keys.
-- They are therefore written last, by pcall, and nothing else depends on them.

local AWAITED_TTL_MS = 60000 -- for waiting clients of tasks without result_ttl
local STALE_STEP = '10' -- entries of awaited that each call of leat_await checks
local OUTPUT_MOST = '1000' -- entries of live output that are kept, about; slow readers lose the others

local function result_key(q, tid)
  return q[STATS]:sub(1, -6) .. 'result:' .. tid
end
leat.result_key = result_key

-- Whether someone waits for the end of this task.
local function is_awaited(q, tid)
  if q.plain then
    return false
  end
  local v = redis.call('HMGET', q[AWAITED], tid, '*')
  if v[1] then
    redis.call('HDEL', q[AWAITED], tid)
  end
  if v[2] and number_or(v[2], 0) < q.now then
    redis.call('HDEL', q[AWAITED], '*')
  elseif v[2] then
    redis.call('XADD', result_key(q, '*'), 'MAXLEN', '1', '*', 'tid', tid)
    redis.call('PEXPIRE', result_key(q, '*'), str(AWAITED_TTL_MS))
  end
  return v[1] and number_or(v[1], 0) >= q.now
end

local function post(q, holder, state, ending)
  local ttl = ending.ttl_ms or duration_ms(holder.result_ttl)
  if is_awaited(q, holder.tid) then
    ttl = math.max(ttl or 0, AWAITED_TTL_MS)
  end
  if not ttl or ttl <= 0 then
    return
  end
  local record, list = ending.record or {}, { 'state', state }
  -- a task that a worker refuses was never started
  local attempt = ending.cause == 'refused' and str(holder.attempts) or record.attempt
  for name, value in pairs({
    cause = ending.cause, status = ending.status, reason = ending.reason, worker = record.consumer,
    attempt = attempt, begun = record.begun, ended = q.now_text, stdout = ending.stdout,
    stderr = ending.stderr, duration_us = ending.duration_us, usage = ending.usage,
  }) do
    list[#list + 1] = name
    list[#list + 1] = value
  end
  local key = result_key(q, holder.tid)
  redis.call('XADD', key, 'MAXLEN', '1', '*', unpack(list))
  redis.call('PEXPIRE', key, str(ttl))
end

-- Publishes the end of a task for whoever asked, and notes it in the history unless it is a success. holder: the task
-- or its record. state: success, dead, cancelled. ending: cause, status, reason, record, stdout, stderr, duration_us,
-- usage, ttl_ms, history, all of them optional.
function leat.tell_end(q, holder, state, ending)
  if state ~= 'success' then
    pcall(leat.remember_end, q, holder, state, ending)
  end
  pcall(post, q, holder, state, ending)
end

-- A task that lives again has no result.
function leat.forget_result(q, tid)
  redis.pcall('DEL', result_key(q, tid))
end

-- A client that was killed while it waited has withdrawn nothing.
local function forget_stale(q)
  local some = redis.call('HRANDFIELD', q[AWAITED], STALE_STEP, 'WITHVALUES')
  for i = 1, #some, 2 do
    if number_or(some[i + 1], 0) < q.now then
      redis.call('HDEL', q[AWAITED], some[i])
    end
  end
end

local function await_one(q, tid, until_ms)
  if until_ms == q.now then
    redis.call('HDEL', q[AWAITED], tid)
  elseif tid == '*' or redis.call('EXISTS', result_key(q, tid)) == 0 then
    redis.call('HSET', q[AWAITED], tid, str(until_ms))
  end
end

-- leat_await: asks for results of tasks.
-- KEYS: all.
-- ARGV: for how long (ms; 0: no longer), then at most CHUNK tids or labels, or '*'.
-- Reply: PROTOCOL, now ms, the tid of each; and if any of them can expire, how long until the first does (ms): then
-- the caller calls again, since nobody else may be there to end it.
-- From now on, the end of each task is published once in its result stream, and with '*' each end adds an entry to
-- {queue}:result:*. A task may have ended before, so the caller then looks for each (leat_find).
-- Safe to stop: each task is a write of its own that can be repeated. The caller repeats it before the time is
-- over.
function leat.await(keys, args)
  local q = open(keys, ALL_KEYS)
  local until_ms, reply = q.now + number_arg(args[1], 'the time'), { PROTOCOL, q.now_text }
  local first
  if #args > 1 + CHUNK then
    fail('BADARG more than ' .. CHUNK .. ' tasks; give fewer')
  end
  forget_stale(q)
  for i = 2, #args do
    local tid = args[i] == '*' and '*' or leat.tid_of(q, args[i])
    await_one(q, tid, until_ms)
    reply[i + 1] = tid
    local ms = until_ms > q.now and leat.expires_in(q, tid)
    if ms and ms > 0 then
      first = math.min(first or ms, ms)
    end
  end
  leat.expire_due(q)
  leat.offer_if_freed(q)
  reply[#reply + 1] = first
  return reply
end

-- leat_follow: asks for the live output of a task, as if it had the field live. Whichever worker runs it sends what
-- the task writes from now on, and before it the end of what it has written.
-- KEYS: all.
-- ARGV: for how long (ms, at most FOLLOW_MOST_MS), the tid or label of the task.
-- Reply: PROTOCOL, now ms, the tid.
-- All workers learn it, by a wakeup 'follow MS TID', since any of them may start the task meanwhile; and so does a
-- worker that registers soon after it. Nothing else is kept, so the caller repeats the call before the time is over,
-- and a caller that dies is forgotten.
-- Safe to stop: one write.
function leat.follow(keys, args)
  local q = open(keys, ALL_KEYS)
  local ms, tid = number_arg(args[1], 'the time'), leat.tid_of(q, args[2])
  if ms > FOLLOW_MOST_MS then
    fail('BADARG the time is longer than ' .. str(FOLLOW_MOST_MS) .. ' ms')
  end
  if ms > 0 and is_tid(tid) then
    leat.wake_workers(q, 'follow ' .. str(ms) .. ' ' .. tid)
  end
  return { PROTOCOL, q.now_text, tid }
end

-- {ms, tid …} of the tasks that somebody follows, and for how long still, as far as the wakeups that are kept tell. Who
-- may add tasks can write any wakeup.
function leat.followed(q, wakeups)
  local list = {}
  for _, wakeup in ipairs(wakeups) do
    local ms, tid = tostring(wakeup[2][2]):match('^follow (%d+) (%S+)$')
    local left = ms and #ms <= MAX_DIGITS and is_tid(tid) and wakeup[1]:match('^%d+') + ms - q.now or 0
    if left > 0 then
      list[#list + 1] = str(left)
      list[#list + 1] = tid
    end
  end
  return list
end

-- leat_output: adds one entry to a task's live output.
-- KEYS: {queue}:output:TID.
-- ARGV: for how long to keep the stream from now on (ms), then name and value of each field.
-- Reply: PROTOCOL.
-- Stale workers are not fenced: entries say which attempt they are from.
-- Safe to stop: each call sets the time to live, so a stream never stays for ever, even if its worker dies next.
function leat.output(keys, args)
  open(keys, 1)
  local keep_ms, fields = number_arg(args[1], 'the time'), rest(args, 2)
  if #fields < 2 or #fields > CHUNK or #fields % 2 == 1 then
    fail('BADARG give a time, names and values')
  end
  redis.call('XADD', keys[1], 'MAXLEN', '~', OUTPUT_MOST, '*', unpack(fields))
  redis.call('PEXPIRE', keys[1], str(keep_ms))
  return { PROTOCOL }
end

end
