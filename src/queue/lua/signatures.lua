do -- Signed tasks: each signature runs once.
--
-- seen is a hash: mark of a signature → tid of the task that has it. seen_until is a zset: mark → until when (ms)
-- the signature is valid. Workers have verified each signature before, so only tasks that a producer with a key
-- has signed are here.

local KEPT_MS = 600000 -- how long a mark is kept after its end: the clock of Redis may be set back
local LONGEST_MS = 366 * 86400e3 -- a longer validity is refused, because the mark would be kept for as long
local TRIM = 2 -- old marks that are dropped for each that is added

-- Drops some marks that are over.
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

local function judge_mark(q, tid, mark, until_ms)
  if until_ms <= q.now then
    return 'late'
  elseif until_ms - q.now > LONGEST_MS then
    return 'far'
  end
  local holder = redis.call('HGET', q[1], mark)
  if holder then
    return holder == tid and 'ok' or 'seen ' .. holder
  end
  whole_step(remember_mark, q, mark, tid, until_ms)
  return 'ok'
end

-- leat_once: records signatures as used.
-- KEYS: {queue}:seen, {queue}:seen_until.
-- ARGV: for each of at most PAGE claimed tasks: token, tid, mark of its signature, until when the signature is
-- valid (ms).
-- Reply: PROTOCOL, then for each: ok (the task may run: no other task has this signature), 'seen TID' (that task
-- has it), late or far (by the clock of Redis).
-- Safe to stop: each task is a whole step, and can be asked for again at each of its attempts.
function leat.once(keys, args)
  local q = open(keys, 2)
  if #args % 4 ~= 0 or #args > 4 * PAGE then
    fail('BADARG give four arguments for each of at most ' .. PAGE .. ' tasks')
  end
  local reply = { PROTOCOL }
  for i = 1, #args, 4 do
    local until_ms = number_arg(args[i + 3], 'the time')
    reply[#reply + 1] = judge_mark(q, args[i + 1], args[i + 2], until_ms)
  end
  trim(q, TRIM * #args / 4)
  return reply
end

end
