do -- Expiry: tasks that did not start in time.
--
-- delayed has 'x:TID' for each unclaimed task with `expires` that a function has seen. Its score is that time (ms)
-- minus EARLIER: below 0, where nothing looks for due tasks. leat_claim removes it. Every function of workers and
-- operators that writes, and leat_await, ends tasks that have expired: nobody may be there to claim them.

local EARLIER = 1e15
local LETTER = { cause = 'expired', reason = 'it expired before it could start' }

-- When the task expires (ms), or nil.
local function expiry_of(task)
  local ms = (tonumber(task.expires) or -1) * 1000
  return ms >= 0 and ms < EARLIER / 10 and math.ceil(ms) or nil
end
leat.expiry_of = expiry_of

function leat.is_expired(q, task)
  local ms = expiry_of(task)
  return ms and ms <= q.now
end

-- Part of a whole step: the task waits, unclaimed.
function leat.watch_expiry(q, task, tid)
  local ms = task.expires and expiry_of(task)
  if ms then
    zset_put(q, DELAYED, str(ms - EARLIER), 'x:' .. tid)
  end
end

-- Part of a whole step: the task was claimed, or has ended.
function leat.forget_expiry(q, task)
  if task.expires then
    zset_drop(q, DELAYED, 'x:' .. task.tid)
  end
end

local function expire(q, tid)
  local list, packed = leat.read_waiting(q, tid)
  if list then
    leat.dead_letter_waiting(q, tid, packed, LETTER)
    return count(q, 'expired')
  end
  local place, task = leat.place_of(q, tid)
  if task and place:sub(1, 1) ~= 'd' and not record_of(q, place) then
    leat.dead_letter(q, task, LETTER)
    -- A worker may have been about to be woken by this entry.
    q.freed = true
    return count(q, 'expired')
  elseif not place and not leat.is_indexed(q) then
    fail('the task may be in go, which is not indexed yet')
  end
  redis.call('ZREM', q[DELAYED], 'x:' .. tid)
end

-- Makes up to PAGE expired tasks dead letters. A failure never stops the caller; that task is looked at again later.
function leat.expire_due(q)
  if not q.lowest or q.lowest > q.now - EARLIER then
    return
  end
  local due = redis.call('ZRANGE', q[DELAYED], '-inf', str(q.now - EARLIER), 'BYSCORE', 'LIMIT', '0', str(PAGE))
  for _, member in ipairs(due) do
    if is_full(q) then
      return
    end
    q.group = q.group or redis.call('HGET', q[CONF], 'group') or ''
    if not pcall(expire, q, member:sub(3)) then
      redis.pcall('ZADD', q[DELAYED], str(q.now + DAMAGED_MS - EARLIER), member)
    end
  end
end

-- How long until a task, or with '*' the first of all unclaimed ones, expires (ms), or nil. A task that runs may have to
-- start again. A plain XADD does not register the time, so the entry is read.
function leat.expires_in(q, tid)
  local score
  if tid == '*' then
    local first = redis.call('ZRANGE', q[DELAYED], '0', '0', 'WITHSCORES')[2]
    score = first and tonumber(first) < 0 and first
  else
    score = redis.call('ZSCORE', q[DELAYED], 'x:' .. tid)
  end
  if not score and not is_full(q) and tid ~= '*' then
    local place, task = leat.place_of(q, tid)
    local ms = task and task.expires and place:sub(1, 1) ~= 'd' and expiry_of(task)
    if ms and record_of(q, place) then
      return ms > q.now and ms - q.now or nil
    elseif ms then
      leat.watch_expiry(q, task, tid)
      score = redis.call('ZSCORE', q[DELAYED], 'x:' .. tid)
    end
  end
  return score and math.max(score + EARLIER - q.now, 0) or nil
end

end
