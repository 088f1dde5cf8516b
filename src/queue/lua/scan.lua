do -- The scan for expired leases and other leftovers.

-- This call has moved enough. The leases of these entries expire again at once, so the next call finds them.
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

-- Takes over one page of expired leases of go or the stream, from XAUTOCLAIM's cursor. Returns where to go on, and
-- how many there were.
local function scan_pending(q, kind, start, out)
  local stream, reclaim = stream_of(q, kind), leat.read_reclaim(q)
  local found = redis.call('XAUTOCLAIM', stream, q.group, q.consumer, str(reclaim), start, 'COUNT', str(PAGE),
    'JUSTID')
  for _, id in ipairs(found[3] or {}) do
    try(out, leat.settle_vanished, q, kind .. id)
  end
  local ids = found[2]
  local max_crashes = #ids > 0 and leat.read_max_crashes(q)
  for i, id in ipairs(ids) do
    if is_full(q) then
      leave_expired(q, stream, ids, i, reclaim)
      return id
    end
    local task = fetch(q, kind .. id)
    if task then
      try(out, leat.take_over, q, task, max_crashes)
    end
  end
  return found[1], #ids
end

local DEFERRED_MS = 100 -- an entry that was read a shorter time ago is on its way to leat_claim

-- Poison candidates that busy workers have deferred until they are empty: tasks, each with its worker in
-- `deferred_by`. They are in go only; this examines the first CHUNK entries that are leased there, or fewer large
-- ones.
function leat.deferred(q)
  local tokens, holders, found = {}, {}, {}
  for _, row in ipairs(redis.call('XPENDING', q[GO], q.group, '-', '+', CHUNK)) do
    if row[3] >= DEFERRED_MS then
      tokens[#tokens + 1], holders[#holders + 1] = 'g' .. row[1], row[2]
    end
  end
  local records = #tokens > 0 and redis.call('HMGET', q[RUNNING], unpack(tokens)) or {}
  for i, token in ipairs(tokens) do
    local task = not records[i] and not is_full(q) and fetch(q, token)
    if task and task.crashes > 0 then
      task.deferred_by = holders[i]
      found[#found + 1] = task
    end
  end
  return found
end

-- For a worker that has nothing to do: the deferred tasks go back into go, and the next blocked worker reads them.
function leat.free_deferred(q)
  for _, task in ipairs(leat.deferred(q)) do
    if task.deferred_by ~= q.consumer then
      leat.requeue(q, task)
    end
  end
end

-- Deletes a consumer for which nothing is pending. Returns whether it had a record.
function leat.drop_consumer(q, name)
  redis.call('XGROUP', 'DELCONSUMER', q[GO], q.group, name)
  redis.call('XGROUP', 'DELCONSUMER', q[STREAM], q.group, name)
  redis.call('HDEL', q[STATS], 'c:' .. name)
  return redis.call('HDEL', q[WORKERS], name) == 1
end

-- The last heartbeat of the consumer is from the future: Redis's clock was set back after it. Its leases would run until
-- the clock is there again. If the worker is there, it has a lease from now on, as after a renewal; otherwise they end
-- after one.
local function restart_leases(q, consumer, heartbeat)
  for _, kind in ipairs({ 'g', 's' }) do
    local stream, start = stream_of(q, kind), '-'
    while start do
      local page = redis.call('XPENDING', stream, q.group, start, '+', CHUNK, consumer)
      local command = { 'XCLAIM', stream, q.group, consumer, '0' }
      for _, info in ipairs(page) do
        command[#command + 1] = info[1]
      end
      command[#command + 1] = 'JUSTID'
      if #page > 0 then
        redis.call(unpack(command))
      end
      start = #page == CHUNK and page[CHUNK][1] ~= GREATEST_ID and '(' .. page[CHUNK][1] or nil
    end
  end
  redis.call('HSET', q[WORKERS], consumer, q.now_text .. heartbeat:match('^%d+(.*)$'))
end

-- Deletes consumers that have been silent for long and hold nothing.
local function drop_silent(q, span)
  local all = redis.call('HGETALL', q[WORKERS])
  for i = 1, #all, 2 do
    local consumer, last = all[i], tonumber(all[i + 1]:match('^%d+')) or 0
    if last > q.now then
      restart_leases(q, consumer, all[i + 1])
    elseif q.now - last > span and #redis.call('XPENDING', q[STREAM], q.group, '-', '+', '1', consumer) == 0
      and #redis.call('XPENDING', q[GO], q.group, '-', '+', '1', consumer) == 0 then
      leat.drop_consumer(q, consumer)
    end
  end
end

-- Records whose entry is gone with everything that pointed to it, as after DEL of a stream: the task is settled as
-- vanished. A moved record is dropped with the entry that it points to.
local function has_lease(q, token)
  local stream, id = stream_of(q, token)
  return #redis.call('XPENDING', stream, q.group, id, id, '1') > 0
end

-- After very large tasks, the rest of a page is left to the next sweep.
local function sweep_record(q, token, record)
  if is_full(q) then
    return
  elseif record.moved then
    if not leat.is_at(q, record.moved) then
      redis.call('HDEL', q[RUNNING], token)
    end
  elseif not has_lease(q, token) and not fetch(q, token) then
    leat.settle_vanished(q, token)
  end
end

local function sweep(q, cursor, out)
  local page = redis.call('HSCAN', q[RUNNING], cursor, 'COUNT', str(PAGE))
  for i = 1, #page[2], 2 do
    local record = unpack_record(page[2][i + 1])
    if record and is_token(page[2][i]) then
      try(out, sweep_record, q, page[2][i], record)
    end
  end
  return page[1]
end

-- One worker sweeps, once in SWEEP_LEASES leases.
local function sweep_is_due(q, span)
  local since = q.now - number_or(redis.call('HGET', q[STATS], 'swept'), 0)
  if since >= 0 and since < span then
    return false
  end
  redis.call('HSET', q[STATS], 'swept', q.now_text)
  return true
end

-- Drops waits that are over: a client that still waits repeats its call. A value that cannot be read is over, too.
local function sweep_awaited(q, cursor)
  local page = redis.call('HSCAN', q[AWAITED], cursor, 'COUNT', str(PAGE))
  for i = 1, #page[2], 2 do
    if number_or(page[2][i + 1], 0) < q.now then
      redis.call('HDEL', q[AWAITED], page[2][i])
    end
  end
  return page[1]
end

-- One page of the scan, or nothing while workers have to return after an outage. The cursor leads through go ('g…') and
-- the stream ('s…'), and from time to time through the records ('r…'), the awaited tasks ('a…'), the rates of lanes
-- ('t…') and the dead letters ('d'). Returns '' at the end.
function leat.scan(q, cursor, lease, out)
  local kind, start = cursor:sub(1, 1), cursor:sub(2)
  if leat.note_outage(q, lease) then
    return ''
  elseif leat.index_older(q) or leat.continue_rejoin(q) then
    return cursor
  end
  if kind == 'r' then
    local following = sweep(q, start, out)
    return following ~= '0' and 'r' .. following or 'a0'
  elseif kind == 'a' then
    local following = sweep_awaited(q, start)
    return following ~= '0' and 'a' .. following or 't0'
  elseif kind == 't' then
    local following = leat.sweep_rates(q, start, out)
    return following ~= '0' and 't' .. following or 'd'
  elseif kind == 'd' then
    return leat.sweep_dead_letters(q) and 'd' or ''
  end
  if kind == 'g' and start == '0-0' then
    leat.mend_scores(q, out)
    leat.mend_tags(q, out)
  end
  local following, moved = scan_pending(q, kind, start, out)
  if kind == 'g' and following == '0-0' then
    if moved > 0 then
      return 's0-0'
    end
    -- go had nothing expired: so the scan of an idle worker takes one call.
    kind, following = 's', scan_pending(q, 's', '0-0', out)
  end
  if following ~= '0-0' then
    return kind .. following
  end
  local span = SWEEP_LEASES * lease
  if not sweep_is_due(q, span) then
    return ''
  end
  drop_silent(q, span)
  return 'r0'
end

end
