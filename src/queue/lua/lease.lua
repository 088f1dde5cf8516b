do -- Renew and register.

local FENCE_AHEAD_US = 3e14 -- ten years
local REGISTRATION = '"registration": *(%d+)'

-- The tokens that a heartbeat lists as not claimed, or nil: older workers do not list them. Then what the worker tells
-- of the time before it registers, each 0 if it does not: the greatest fencing token that it was ever given, the
-- greatest number of a new worker that it has heard of, and the longest lease (ms) that tasks may still have.
function leat.read_unclaimed(text)
  local fine, heartbeat = pcall(cjson.decode, text)
  local list, unclaimed = fine and type(heartbeat) == 'table' and heartbeat.unclaimed, {}
  if type(list) ~= 'table' then
    return nil
  end
  for _, token in ipairs(list) do
    if type(token) == 'string' then
      unclaimed[token] = true
    end
  end
  local function told(name)
    local number = tonumber(heartbeat[name]) or 0
    return number > 0 and number < EXACT and number or 0
  end
  return unclaimed, told('fence'), told('joined'), leat.setting(heartbeat.lease_ms, MIN_LEASE_MS, 0)
end

-- Writes the record of a claimed task again, after somebody deleted it or Redis forgot the claim. Returns it packed, or
-- nil. If Redis forgot the claim, this does what the claim did, also if it still knows that the entry was delivered.
-- Otherwise the lane's counter still counts the task. The
-- id of an entry that was ahead of the clock at the worker's last claim (such as a producer can choose) may by now be
-- that of another task.
local function restore_record(q, token, fence)
  local task = not (fence > 0 and token:match('%d+') * 1000 > fence) and fetch(q, token)
  if not task or leat.misfit(task) then
    return nil
  end
  task.fence = math.max(task.fence, fence)
  local packed = pack_record(q.consumer, q.now_text, task.attempts + 1, task)
  redis.call('HSET', q[RUNNING], token, packed)
  if q.has_forgotten or not is_pending(q, token) then
    leat.stop_waiting(q, task)
  end
  return packed
end

-- Returns the tokens that belong to this consumer, as lists of ids by kind; n is the length of each, since # searches for
-- the end. Appends the others to lost, and those whose tasks are to be cancelled to cancelled. An entry without a record
-- belongs to the consumer while it is pending for it, or if the heartbeat does not list it as unclaimed. In the second case
-- the consumer had claimed it, nobody has claimed it since, and this restores the record and the names. q.unfinished: the
-- tasks were very large, so some records are left to the next call. Each call restores one or looks at all, so that calls
-- come to an end.
local function sort_tokens(q, tokens, text, lost, cancelled)
  local unclaimed, fence = leat.read_unclaimed(text)
  local mine, sub = { s = { n = 0 }, g = { n = 0 } }, string.sub
  local plain, bound = PLAIN .. q.consumer .. '\0', BOUND .. q.consumer .. '\0'
  local size, cancels = #plain, redis.call('EXISTS', q[CANCEL]) == 1
  for from = 1, #tokens, CHUNK do
    local to = math.min(from + CHUNK - 1, #tokens)
    local records = redis.call('HMGET', q[RUNNING], unpack(tokens, from, to))
    for i = from, to do
      local token, record = tokens[i], records[i - from + 1]
      local is_mine, is_bound
      if record then
        local head = sub(record, 1, size)
        is_bound = head == bound
        is_mine = is_bound or head == plain
      elseif unclaimed and not unclaimed[token] and not (is_full(q) and q.restored) then
        local fine, restored = pcall(restore_record, q, token, fence)
        record = fine and restored
        q.restored = q.restored or record
        is_mine, is_bound = record or is_pending(q, token), record
      else
        q.unfinished = q.unfinished or unclaimed and not unclaimed[token]
        is_mine = is_pending(q, token)
      end
      if is_mine then
        local list = mine[sub(token, 1, 1)]
        local n = list.n + 1
        list.n, list[n] = n, sub(token, 2)
        if is_bound then
          pcall(leat.restore_names, q, token, unpack_record(record))
        end
        if record and cancels and leat.is_cancelled(q, unpack_record(record).tid) then
          cancelled[#cancelled + 1] = token
        end
      else
        lost[#lost + 1] = token
      end
    end
  end
  return mine
end

-- For an entry that XCLAIM did not renew. A claimed one that has not been delivered since the group was recreated, or
-- since Redis forgot the claim, has no lease to renew: the worker that reads it gives it back. XCLAIM drops a deleted
-- entry from the pending list, and then nothing else would find it: so it is settled here, or, after very large tasks,
-- by the sweep. A failure must not stop the renewal of the other leases.
local function check_unrenewed(q, token, lost)
  local record = record_of(q, token)
  if record and is_full(q) then
    return
  end
  local exists = fetch(q, token)
  if exists and record then
    return
  end
  lost[#lost + 1] = token
  if not exists then
    pcall(leat.settle_vanished, q, token)
  end
end

local function renew_ids(q, kind, ids, lost)
  local stream = stream_of(q, kind)
  for from = 1, ids.n, CHUNK do
    local command, n = { 'XCLAIM', stream, q.group, q.consumer, '0' }, 5
    local to = math.min(from + CHUNK - 1, ids.n)
    for i = from, to do
      n = n + 1
      command[n] = ids[i]
    end
    command[n + 1] = 'JUSTID'
    local claimed = redis.call(unpack(command))
    if #claimed < to - from + 1 then
      local renewed = {}
      for _, id in ipairs(claimed) do
        renewed[id] = true
      end
      for i = from, to do
        if not renewed[ids[i]] then
          check_unrenewed(q, kind .. ids[i], lost)
        end
      end
    end
  end
end

-- Renews the tokens that still belong to this consumer; the others are lost. Returns the lost ones, and those that
-- are to be cancelled.
local function renew_tokens(q, tokens, text)
  local lost, cancelled = {}, {}
  local mine = sort_tokens(q, tokens, text, lost, cancelled)
  renew_ids(q, 'g', mine.g, lost)
  renew_ids(q, 's', mine.s, lost)
  return lost, cancelled
end

-- If the clock of Redis was set back, and Redis has forgotten claims, tokens made from the time would repeat. Whoever
-- may write waiting tasks can give one any fence. One that is as great as numbers can be would leave no greater ones,
-- so that the tokens of all tasks would repeat: no clock was set back that far.
local function note_fence(q, fence)
  local is_ahead = fence > q.now_us and fence < q.now_us + FENCE_AHEAD_US
  if is_ahead and fence > number_or(redis.call('HGET', q[CONF], 'fence'), 0) then
    redis.call('HSET', q[CONF], 'fence', str(fence))
  end
end

-- Keeps what the worker says of itself, and adds its figures to those of the queue. at: when its last heartbeat came.
-- Returns 1 if the worker is a new one.
local function keep_record(q, at, text)
  local fine, kept = pcall(leat.add_figures, q, text)
  return redis.call('HSET', q[WORKERS], q.consumer, at .. ' ' .. (fine and kept or text))
end

-- Renews the tokens, with the worker's heartbeat. Returns as renew_tokens. After an outage, the worker has returned
-- once this has lost nothing: whatever it still names then, Redis knows. told, told_lease: see leat.note_outage.
local function beat(q, lease, tokens, text, told, told_lease)
  local awaited = leat.note_outage(q, lease, told, told_lease)
  local lost, cancelled = renew_tokens(q, tokens, text)
  if keep_record(q, q.now_text, text) == 1 then
    leat.has_joined(q)
  end
  leat.note_beat(q)
  pcall(leat.mark_totals, q)
  return lost, cancelled, awaited and #lost == 0 and not q.unfinished
end

-- leat_renew: renews leases, with the worker's heartbeat.
-- KEYS: all.
-- ARGV: group, consumer, the heartbeat (JSON), then the tokens of its tasks: running, deferred, or ended with a
-- leat_finish that is not answered yet.
-- Reply: PROTOCOL, now ms, lease ms, lost tokens, tokens of tasks that are to be cancelled, how many dead letters
-- to warn of (0: none now); and, if this call has dead-lettered tasks whose entries are gone or which expired,
-- {tid, cause …} and the reasons, as leat_claim has them.
-- Safe to stop: it only extends leases. If somebody has deleted records or names of tasks that run, it restores them.
function leat.renew(keys, args)
  local q = open(keys, ALL_KEYS, args[1], args[2])
  local lease = leat.known_lease(redis.call('HGET', q[CONF], 'lease_ms'))
  q.ended = {}
  local lost, cancelled, returned = beat(q, lease, rest(args, 4), args[3])
  if #lost > 0 then
    count(q, 'fenced', #lost)
  end
  if returned then
    leat.has_returned(q, q.consumer)
  end
  leat.expire_due(q)
  leat.offer_if_freed(q)
  local fine, growth = pcall(leat.dead_growth, q)
  return { PROTOCOL, q.now_text, lease, lost, cancelled, fine and growth or 0, q.ended[1] and q.ended, q.reasons }
end

-- leat_report: what a worker has counted, between two heartbeats.
-- KEYS: all.
-- ARGV: group, consumer, the heartbeat (JSON).
-- Reply: PROTOCOL, 1, or 0 if Redis does not know the worker, so that nothing is counted.
-- The record keeps the time of the last heartbeat: this renews no lease, and is no sign that a worker has returned.
-- Safe to stop: it only counts, and figures that are sent again count once.
function leat.report(keys, args)
  local q = open(keys, ALL_KEYS, args[1], args[2])
  local at = (redis.call('HGET', q[WORKERS], q.consumer) or ''):match('^%d+')
  if at then
    keep_record(q, at, args[3])
    pcall(leat.mark_totals, q)
  end
  return { PROTOCOL, at and 1 or 0 }
end

function leat.check_types(q)
  for key, wanted in pairs({
    [STREAM] = 'stream', [GO] = 'stream', [BELL] = 'stream', [DEAD] = 'stream', [WAITING] = 'hash',
    [NAMES] = 'hash', [CONF] = 'hash', [STATS] = 'hash', [RUNNING] = 'hash', [WORKERS] = 'hash',
    [DELAYED] = 'zset', [LANES] = 'zset', [LANED] = 'zset', [CANCEL] = 'set', [AWAITED] = 'hash',
  }) do
    local is = q[key] and redis.call('TYPE', q[key]).ok or 'none'
    if is ~= 'none' and is ~= wanted then
      fail('WRONGTYPE ' .. q[key] .. ' is a ' .. is .. ', but leat needs a ' .. wanted
        .. ': another program uses this key')
    end
  end
end

function leat.groups_of(key)
  local names = {}
  if redis.call('EXISTS', key) == 1 then
    for _, info in ipairs(redis.call('XINFO', 'GROUPS', key)) do
      names[info[2]] = true
    end
  end
  return names
end

-- Waiting tasks of older versions have ids that an entry could get, too: a producer could choose one of them,
-- and its entry would pass for that task. None of them is from the next ms, and an entry cannot have an older id than
-- one before it: so an entry of the next ms, which is deleted at once, prevents it.
local function outdate_old_ids(q)
  local v = redis.call('HMGET', q[STATS], 'tids', 'own_ids')
  if v[1] and not v[2] then
    local id = redis.pcall('XADD', q[STREAM], str(q.now + 1) .. '-0', 'leat', 'ids')
    if type(id) == 'string' then
      redis.call('XDEL', q[STREAM], id)
    elseif not id.err:find('equal or smaller', 1, true) then
      return -- without the right to add entries: the next worker does it
    end
    redis.call('HSET', q[STATS], 'own_ids', '1')
  end
end

-- The only routine that creates the group, from 0. If it was lost, claimed tasks may still run elsewhere. So
-- nothing may start for one lease; that is written before the group exists.
function leat.ensure_groups(q, lease)
  local groups = leat.groups_of(q[STREAM])
  for name in pairs(groups) do
    if name ~= q.group then
      local is_known = redis.call('HGET', q[CONF], 'group') == name
      fail('FOREIGN the stream ' .. q[STREAM] .. ' is read by another group, ' .. name
        .. (is_known and ', to which this queue belongs: correct [queue] group'
          or ': leat deletes finished entries, so it needs a stream of its own'))
    end
  end
  local missing = {}
  if not leat.groups_of(q[GO])[q.group] then
    missing[#missing + 1] = q[GO]
  end
  if not groups[q.group] then
    missing[#missing + 1] = q[STREAM]
  end
  if #missing > 0 and redis.call('HGET', q[CONF], 'group') == q.group then
    redis.call('HSET', q[CONF], 'hold_until', str(q.now + lease))
    count(q, 'groups_recreated')
  end
  leat.begin_index(q)
  for _, stream in ipairs(missing) do
    redis.call('XGROUP', 'CREATE', stream, q.group, '0', 'MKSTREAM')
  end
  redis.call('HSET', q[CONF], 'group', q.group)
  outdate_old_ids(q)
  return #missing
end

-- leat_init: creates the group for workers that may not do so.
-- KEYS: all.
-- ARGV: group.
-- Reply: PROTOCOL, 1 if the group was created or 0 if it existed.
-- Safe to stop: a repeated call does what is missing.
function leat.init(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  leat.check_types(q)
  local made = leat.ensure_groups(q, leat.read_reclaim(q))
  redis.call('HSETNX', q[CONF], 'protocol', PROTOCOL)
  return { PROTOCOL, made > 0 and 1 or 0 }
end

-- Calls hand(q, task, …) for up to PAGE pending entries of the consumer, except those in keep, or fewer very large ones,
-- but at least for one. Returns how many,
-- whether there may be more, and the first problem: an entry that fails does not hold up the others.
function leat.hand_back(q, keep, hand, ...)
  local moved, left, out = 0, 0, {}
  for _, kind in ipairs({ 'g', 's' }) do
    local stream, start = stream_of(q, kind), '-'
    while start do
      local page = redis.call('XPENDING', stream, q.group, start, '+', CHUNK, q.consumer)
      for _, info in ipairs(page) do
        local token = kind .. info[1]
        if not keep[token] then
          if moved + left >= PAGE or moved + left > 0 and is_full(q) then
            return moved, true, out.problem
          end
          local task = fetch(q, token)
          if try(out, task and hand or leat.settle_vanished, q, task or token, ...) then
            moved = moved + 1
          else
            left = left + 1
          end
        end
      end
      local last = #page == CHUNK and page[#page][1] or GREATEST_ID
      start = last ~= GREATEST_ID and '(' .. last or nil
    end
  end
  return moved, false, out.problem
end

-- Defaults for conf: name and value from args[from] to args[last]. A value that conf has already stays.
local function check_defaults(args, from, last)
  if last > #args then
    fail('BADARG give a value for each of ' .. args[from - 1] .. ' settings')
  end
  for i = from, last, 2 do
    leat.check_conf(args[i], args[i + 1])
  end
end

local function set_defaults(q, args, from, last)
  for i = from, last, 2 do
    local lane = args[i]:match('^lane:(.+)$')
    if redis.call('HSETNX', q[CONF], args[i], args[i + 1]) == 1 and lane then
      whole_step(leat.lane_changed, q, lane)
      q.freed = true
    end
  end
end

local function settings_in_force(q, args, from, to)
  local list = {}
  for i = from, to, 2 do
    list[#list + 1] = args[i]
    list[#list + 1] = redis.call('HGET', q[CONF], args[i]) or ''
  end
  return list
end

-- A session that has ended may have left a registration on its way. If that comes after the one of the next session, it
-- does not name what the worker has claimed since.
local function check_order(q, text)
  local number, last = text:match(REGISTRATION), (redis.call('HGET', q[WORKERS], q.consumer) or ''):match(REGISTRATION)
  if number and last and tonumber(number) < tonumber(last) then
    fail('LATE a later registration of this worker came before this one')
  end
end

-- leat_register: the first call on new connections, and after NOGROUP. Pending entries that the consumer does not
-- name never reached it: they are requeued, and nothing is counted.
-- KEYS: all.
-- ARGV: group, consumer, heartbeat, number of defaults, then name and value of each (see leat_conf), then tokens
-- as for leat_renew.
-- Reply: PROTOCOL, now ms, lease ms, lost tokens, cancelled tokens, more (1: call again), the id of the last
-- wakeup, {name, value …} of these settings as they are in force, the number of the newest worker, which the worker
-- then tells as "joined" in its heartbeat, as it does with the number of a wakeup 'joined NUMBER', and {ms, tid …}
-- of tasks that somebody follows for so long from now on (see leat_follow).
-- Safe to stop: each step finds what an earlier call has done.
function leat.register(keys, args)
  local q = open(keys, ALL_KEYS, args[1], args[2])
  leat.check_types(q)
  check_order(q, args[3])
  local last_default = 4 + number_arg(args[4], 'the number of settings') * 2
  check_defaults(args, 5, last_default)
  leat.ensure_groups(q, leat.read_reclaim(q))
  set_defaults(q, args, 5, last_default)
  redis.call('HSETNX', q[CONF], 'protocol', PROTOCOL)

  local _, fence, told, told_lease = leat.read_unclaimed(args[3])
  note_fence(q, fence or 0)
  local tokens, keep = rest(args, last_default + 1), {}
  for _, token in ipairs(tokens) do
    keep[token] = true
  end
  local lost, cancelled, returned = beat(q, leat.read_lease(q), tokens, args[3], told or 0, told_lease or 0)
  local _, more, problem = leat.hand_back(q, keep, leat.return_entry)
  if problem then
    error(problem, 0)
  end
  more = more or q.unfinished
  if returned and not more then
    leat.has_returned(q, q.consumer)
  end
  leat.offer_if_freed(q)
  local last = redis.call('XREVRANGE', q[BELL], '+', '-', 'COUNT', WAKEUPS_KEPT)
  return {
    PROTOCOL, q.now_text, leat.read_lease(q), lost, cancelled, more and 1 or 0, last[1] and last[1][1] or '0-0',
    settings_in_force(q, args, 5, last_default), leat.newest(q), leat.followed(q, last),
  }
end

end
