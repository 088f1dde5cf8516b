do -- Signed tasks: each signature runs once.
--
-- seen: hash, mark of a signature → tid of the task that has it; seen_until: zset, mark → until when (ms) it is
-- good. The workers have verified it: what is in here is only what a producer with a key has signed.

local KEPT_MS = 600000 -- for so long after its end: Redis's clock may be set back
local LONGEST_MS = 366 * 86400e3 -- what is good for longer is refused: it would be remembered for as long
local TRIM = 2 -- for each that is added, so many that are over are dropped
local OWN_SEQUENCE = 1e9 -- new_tid counts from there; Redis gives no such ids (leat.misfit knows those of its form)

-- Marks that are over go, some at a time.
local function trim(q, most)
  local over = redis.call('ZRANGE', q[2], '-inf', str(q.now - KEPT_MS), 'BYSCORE', 'LIMIT', '0', str(most))
  if #over > 0 then
    redis.call('HDEL', q[1], unpack(over))
    redis.call('ZREM', q[2], unpack(over))
  end
end

local function remember_mark(q, mark, tid, until_ms)
  hash_set(q, 1, mark, tid)
  zset_put(q, 2, str(until_ms), mark)
end

local function judge_mark(q, token, tid, mark, until_ms)
  if until_ms <= q.now then
    return 'late'
  elseif until_ms - q.now > LONGEST_MS then
    return 'far'
  end
  local sequence = token:sub(1, 1) == 's' and tonumber(token:match('%-(%d+)$'))
  if sequence and sequence >= OWN_SEQUENCE then
    -- a producer chose that id, so that it would be taken for a task which waits
    return 'forged'
  end
  local holder = redis.call('HGET', q[1], mark)
  if holder then
    return holder == tid and 'ok' or 'seen ' .. holder
  end
  whole_step(remember_mark, q, mark, tid, until_ms)
  return 'ok'
end

-- KEYS: {queue}:seen, {queue}:seen_until. ARGV: for each of at most PAGE tasks that have begun: token, tid, mark of
-- its signature, until when that is good (ms). Reply: PROTOCOL, then for each: ok (the task may run: no other has
-- this signature), 'seen TID' (that one has), late, far (by Redis's clock), forged (its entry's id is of a producer's
-- choice). Repeatable: a task may be asked for at each of its attempts.
function leat.once(keys, args)
  local q = open(keys, 2)
  if #args % 4 ~= 0 or #args > 4 * PAGE then
    fail('BADARG four arguments for each of at most ' .. PAGE .. ' tasks')
  end
  local reply = { PROTOCOL }
  for i = 1, #args, 4 do
    local until_ms = number_arg(args[i + 3], 'the time')
    reply[#reply + 1] = judge_mark(q, args[i], args[i + 1], args[i + 2], until_ms)
  end
  trim(q, TRIM * #args / 4)
  return reply
end

end
