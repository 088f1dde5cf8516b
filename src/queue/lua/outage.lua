do -- Outages: until the workers have returned, nothing is taken over.
--
-- After an outage of Redis, or a pause of all workers, the leases of tasks have run out although their workers live.
-- These return one after another, and the first must not take over what the others still have. Redis may also have
-- forgotten which tasks were claimed, because it started from a snapshot, or another server became the master. Then
-- nothing starts either (outage_until in conf): a task that looks ready may run. It may even have forgotten a worker,
-- which it then cannot await. So each new worker gets a number, which all workers learn at once and tell when they
-- register. If one of them tells a number that Redis does not know, nothing starts for one lease, unless Redis has lost
-- the whole queue. Redis may also have forgotten that the lease was raised. Workers tell that, too, and the wait is as
-- long as theirs.
--
-- stats has four fields for this:
-- beat: when any worker last renewed or registered (ms).
-- server: the server and its data, as the last registration has seen them.
-- joined: the number of the newest worker. It is a time in µs, so that no number is given again.
-- outage: 'UNTIL STARTS JOINED consumer …': the workers that have not returned. At UNTIL (ms), one lease after the end
-- of the outage, a worker that has not returned is gone. JOINED is what joined was when the outage ended. STARTS says
-- when tasks may start:

local NOW = 0
local NOT_YET = 1 -- at UNTIL, or as ALL_BACK if a worker returns that tells no greater number than JOINED
local ALL_BACK = 2 -- when all workers have returned: none of them knows of one that Redis has forgotten
local AT_END = 3 -- at UNTIL: Redis has forgotten a worker

local SILENCE = 0.4 -- of a lease without any heartbeat is an outage; a worker sends one in a third of a lease
local LATE_SHARE = 0.1 -- of a lease passes, for what an outage awaits, with each short silence that follows it

local BEAT, SERVER, OUTAGE, JOINED = 'beat', 'server', 'outage', 'joined'

-- Names are separated by blanks.
local function listed(consumer)
  return (consumer:gsub('%s', '_'))
end

local function parse(packed)
  local until_ms, starts, joined, names = (packed or ''):match('^(%d+) ([0-3]) (%d+)(.*)$')
  local outage = {
    until_ms = number_or(until_ms, 0), starts = number_or(starts, NOW), joined = number_or(joined, 0), awaited = {},
  }
  for name in (names or ''):gmatch('%S+') do
    outage.awaited[name] = true
  end
  return outage
end

local function write(q, outage)
  local parts = { str(outage.until_ms), str(outage.starts), str(outage.joined) }
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
-- an earlier outage still awaited at that time; if Redis has forgotten something, also those that were silent, since
-- they may have returned and claimed tasks since. Returns whether there is anything to wait for.
local function begin(q, former, beat, starts, joined, until_ms)
  local span = leat.read_reclaim(q)
  local outage = former.until_ms > beat and former or parse()
  outage.until_ms = until_ms
  if starts ~= NOW then
    outage.starts, outage.joined = outage.starts == AT_END and AT_END or starts, joined
  end
  local all = redis.call('HGETALL', q[WORKERS])
  for i = 1, #all, 2 do
    if starts ~= NOW or number_or(all[i + 1]:match('^%d+'), 0) > beat - span then
      outage.awaited[listed(all[i])] = true
    end
  end
  if not next(outage.awaited) and outage.starts ~= AT_END then
    return false
  end
  write(q, outage)
  if outage.starts ~= NOW then
    redis.call('HSET', q[CONF], 'outage_until', str(outage.until_ms))
  end
  return true
end

-- Whether Redis has lost the whole queue: then it has no task that may run already. server: of the last registration.
local function has_lost_all(q, server)
  return not server and redis.call('XLEN', q[STREAM]) + redis.call('XLEN', q[GO]) + redis.call('HLEN', q[WAITING]) == 0
end

-- Redis may have forgotten that the lease was raised: then tasks have deadlines of the longer one, which this worker
-- tells. Returns whether that is so.
local function note_longer_lease(q, lease)
  if lease <= leat.read_reclaim(q) then
    return false
  end
  leat.set_floor(q, lease)
  return true
end

-- After a silence that was shorter than a lease: the earlier outage that goes on, and when it ends; or a new one. What
-- an earlier outage awaits is awaited for nearly as much longer as the silence was, since Redis may fail again and
-- again before a worker could return. But the silence may as well be a late heartbeat of the only worker that is left.
-- So a part of it counts: a dead worker is not awaited for ever if all heartbeats are late.
local function after_silence(q, outage, beat, span)
  local longer = outage.until_ms + math.floor(q.now - beat - LATE_SHARE * span)
  if beat < outage.until_ms and outage.until_ms <= beat + span and q.now < longer then
    return outage, longer
  end
  return parse(), q.now + span
end

-- Notes an outage if one has ended: nobody could renew for a while, or a worker registers, and the server is not that
-- of the last registration, or has forgotten a worker. told, told_lease: the number and the lease (ms) that the worker
-- tells, if it registers. Returns whether something is waited for, so that nothing may be taken over. q.has_forgotten:
-- Redis may have forgotten claims.
function leat.note_outage(q, lease, told, told_lease)
  local v = redis.call('HMGET', q[STATS], BEAT, SERVER, OUTAGE, JOINED)
  local beat, outage = number_or(v[1], q.now), parse(v[3])
  -- An outage that ends later than that is from before the clock was set back.
  local lasts = q.now < outage.until_ms and outage.until_ms <= q.now + leat.read_reclaim(q)
  local server = told and read_server()
  local other = server and v[2] and v[2] ~= server
  if server and v[2] ~= server then
    redis.call('HSET', q[STATS], SERVER, server)
  end
  local stopped = lasts and outage.starts ~= NOW and not other
  local newest = natural(v[4]) or 0
  local joined = stopped and outage.joined or newest
  local starts = told and (told > 0 and ALL_BACK or NOT_YET) or NOW
  if told and told > joined then
    redis.call('HSET', q[STATS], JOINED, str(math.max(told, newest)))
    starts = has_lost_all(q, v[2]) and ALL_BACK or AT_END
  end
  q.has_forgotten = other or stopped or starts == AT_END or nil
  local is_longer = told and q.has_forgotten and note_longer_lease(q, told_lease)
  local span = leat.read_reclaim(q)
  local silence = (q.now - beat) / math.max(lease, span)
  local has_lost = other or starts == AT_END and not stopped
  if has_lost or silence > 1 then
    leat.note_beat(q)
    return begin(q, outage, beat, has_lost and starts or NOW, joined, q.now + span)
  elseif silence > SILENCE and not stopped then
    leat.note_beat(q)
    local former, until_ms = after_silence(q, outage, beat, span)
    return begin(q, former, beat, NOW, joined, until_ms)
  elseif stopped and (starts > outage.starts or is_longer) then
    outage.starts = math.max(starts, outage.starts)
    if is_longer then
      outage.until_ms = q.now + told_lease
      redis.call('HSET', q[CONF], 'outage_until', str(outage.until_ms))
    end
    write(q, outage)
  end
  return lasts
end

-- Whether a silent worker may return after an outage. For a call that is no worker's, and so no heartbeat: an outage
-- that it has noted is over after one lease, although no heartbeat has come since.
function leat.may_return(q)
  local v, span = redis.call('HMGET', q[STATS], BEAT, OUTAGE), leat.read_reclaim(q)
  local ends = number_or(v[1], 0) + span
  local is_over = ends <= q.now and parse(v[2]).until_ms == ends
  return not is_over and leat.note_outage(q, span)
end

-- Until when (ms) nothing is taken over. A call of a worker may find later that an outage has ended now: nobody has
-- sent a heartbeat for so long.
function leat.takeover_waits(q)
  local v, span = redis.call('HMGET', q[STATS], BEAT, OUTAGE), leat.read_reclaim(q)
  if q.now - number_or(v[1], q.now) > SILENCE * span then
    return q.now + span
  end
  return math.min(parse(v[2]).until_ms, q.now + span)
end

-- The number of the newest worker; 0 if it is unknown.
local function newest(q)
  return natural(redis.call('HGET', q[STATS], JOINED)) or 0
end

-- The same as text.
function leat.newest(q)
  return str(newest(q))
end

-- A worker has come that Redis does not know. All workers learn its number.
function leat.has_joined(q)
  local joined = math.max(q.now_us, newest(q) + 1)
  redis.call('HSET', q[STATS], JOINED, str(joined))
  leat.wake_workers(q, 'joined ' .. str(joined))
end

-- A worker has renewed or registered.
function leat.note_beat(q)
  redis.call('HSET', q[STATS], BEAT, q.now_text)
end

-- The names of the workers that the outage in force still awaits.
function leat.awaited_workers(q)
  local names = {}
  for name in pairs(parse(redis.call('HGET', q[STATS], OUTAGE)).awaited) do
    names[#names + 1] = name
  end
  return names
end

-- The worker has returned: Redis knows all tasks that it has named. Or it is gone, and has no task. The last one ends
-- the outage.
function leat.has_returned(q, consumer)
  local outage = parse(redis.call('HGET', q[STATS], OUTAGE))
  outage.awaited[listed(consumer)] = nil
  if next(outage.awaited) or outage.starts == NOT_YET or outage.starts == AT_END then
    return write(q, outage)
  end
  redis.call('HDEL', q[STATS], OUTAGE)
  if outage.starts == ALL_BACK then
    redis.call('HDEL', q[CONF], 'outage_until')
    leat.wake_workers(q, 'conf')
  end
end

end
