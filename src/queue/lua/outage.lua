do -- Outages: until the workers have returned, nothing is taken over.
--
-- After an outage of Redis, or a pause of all workers, the leases of all tasks have run out although their workers
-- live. These return one after another, and the first must not take over what the others still have. Redis may also
-- have forgotten which tasks were claimed, because it started from a snapshot, or another server became the master.
-- Then nothing starts either (outage_until in conf): a task that looks ready may run.
--
-- stats has three fields for this:
-- beat: when any worker last renewed or registered (ms).
-- server: the server and its data, as the last registration has seen them.
-- outage: 'UNTIL STARTS consumer …': the workers that have not returned. STARTS is 1 if nothing may start. At UNTIL
-- (ms), one lease after the end of the outage, a worker that has not returned is gone.

local BEAT, SERVER, OUTAGE = 'beat', 'server', 'outage'

-- Names are separated by blanks.
local function listed(consumer)
  return (consumer:gsub('%s', '_'))
end

local function parse(packed)
  local until_ms, starts, names = (packed or ''):match('^(%d+) ([01])(.*)$')
  if not until_ms then
    return { until_ms = 0, starts = false, awaited = {} }
  end
  local outage = { until_ms = tonumber(until_ms), starts = starts == '1', awaited = {} }
  for name in names:gmatch('%S+') do
    outage.awaited[name] = true
  end
  return outage
end

local function write(q, outage)
  local parts = { str(outage.until_ms), outage.starts and '1' or '0' }
  for name in pairs(outage.awaited) do
    parts[#parts + 1] = name
  end
  redis.call('HSET', q[STATS], OUTAGE, table.concat(parts, ' '))
end

-- Which server this is, and whose data it has, by the beginnings of their ids: Redis keeps a hash with short values in
-- less memory. nil: unknown.
local function read_server()
  local info = redis.pcall('INFO', 'server', 'replication')
  if type(info) ~= 'string' then
    return nil
  end
  local run_id, replid = info:match('run_id:(%w+)'), info:match('master_replid:(%w+)')
  return run_id and replid and run_id:sub(1, 20) .. ' ' .. replid:sub(1, 20)
end

-- An outage has ended now. Awaits the workers that were there when the last of all heartbeats came, and those that
-- an earlier outage still awaited at that time. Returns whether there are any.
local function begin(q, former, beat, starts)
  local span = leat.read_reclaim(q)
  local outage = former.until_ms > beat and former or parse()
  outage.until_ms, outage.starts = q.now + span, outage.starts or starts
  local all = redis.call('HGETALL', q[WORKERS])
  for i = 1, #all, 2 do
    if number_or(all[i + 1]:match('^%d+'), 0) > beat - span then
      outage.awaited[listed(all[i])] = true
    end
  end
  if not next(outage.awaited) then
    return false
  end
  write(q, outage)
  if outage.starts then
    redis.call('HSET', q[CONF], 'outage_until', str(outage.until_ms))
  end
  return true
end

-- Notes an outage if one has ended: nobody could renew for a lease, or, if the call is a registration, the server is
-- not that of the last registration. Returns whether workers are awaited, so that nothing may be taken over.
function leat.note_outage(q, lease, registers)
  local v = redis.call('HMGET', q[STATS], BEAT, SERVER, OUTAGE)
  local beat = number_or(v[1], q.now)
  local server = registers and read_server()
  local other = server and v[2] and v[2] ~= server
  if server and v[2] ~= server then
    redis.call('HSET', q[STATS], SERVER, server)
  end
  if other or q.now - beat > lease and q.now - beat > leat.read_reclaim(q) then
    leat.note_beat(q)
    return begin(q, parse(v[3]), beat, other)
  end
  local until_ms = v[3] and parse(v[3]).until_ms or 0
  -- An outage that ends later than that is from before the clock was set back.
  return q.now < until_ms and until_ms <= q.now + leat.read_reclaim(q)
end

-- A worker has renewed or registered.
function leat.note_beat(q)
  redis.call('HSET', q[STATS], BEAT, q.now_text)
end

-- The worker has returned: Redis knows all tasks that it has named. Or it is gone, and has no task. The last one ends
-- the outage.
function leat.has_returned(q, consumer)
  local outage = parse(redis.call('HGET', q[STATS], OUTAGE))
  outage.awaited[listed(consumer)] = nil
  if next(outage.awaited) then
    return write(q, outage)
  end
  redis.call('HDEL', q[STATS], OUTAGE)
  if outage.starts then
    redis.call('HDEL', q[CONF], 'outage_until')
    leat.wake_workers(q, 'conf')
  end
end

end
