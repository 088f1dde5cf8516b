do -- Dead letters: how long they are kept, and the dead-letter hook.

local function trim_step(q, letters)
  for _, letter in ipairs(letters) do
    leat.drop_index(q, letter.tid, letter.token)
  end
  redis.call('XTRIM', q[DEAD], 'MAXLEN', '=', str(redis.call('XLEN', q[DEAD]) - #letters))
end

-- Removes the oldest dead letters: up to `most` of those that died before `before` (ms), as far as one call reads
-- them. Returns whether there may be more. The id of an entry is when its task died.
local function trim(q, most, before)
  local letters, following = leat.page_of(q[DEAD], 'd', '0-0', math.min(most, CHUNK))
  for i, letter in ipairs(letters) do
    q.bytes = q.bytes + letter.weight
    if tonumber(letter.token:match('%d+')) >= before then
      letters, following = { unpack(letters, 1, i - 1) }, ''
      break
    end
  end
  if #letters > 0 then
    whole_step(trim_step, q, letters)
    count(q, 'dead_trimmed', #letters)
  end
  return following ~= '' and #letters < most
end

-- keep_number counts the dead letters of tasks that ran. Anyone who may add tasks can make any number of the others, so
-- these push out each other: they have the room that is left, and beyond keep_number at most a share of it.
--
-- names has 'r:N' → the id and the tid of the Nth of these, for N from stats 'unfit_first' up to, but not including,
-- 'unfit_next'. One that was deleted in another way is forgotten when it is the first.
local SHARE = 10

local function unfit_range(q)
  local v = redis.call('HMGET', q[STATS], 'unfit_first', 'unfit_next')
  local first, following = natural(v[1]) or 0, natural(v[2]) or 0
  if first ~= following
    and (first > following or following - first > redis.call('HLEN', q[NAMES])
      or redis.call('HEXISTS', q[NAMES], 'r:' .. str(following - 1)) == 0) then
    -- Someone has changed these numbers by hand.
    first, following = 0, 0
    redis.call('HSET', q[STATS], 'unfit_first', '0', 'unfit_next', '0')
  end
  return first, following
end

local function note_unfit(q)
  local _, following = unfit_range(q)
  redis.call('HSET', q[NAMES], 'r:' .. str(following), q.unfit)
  redis.call('HSET', q[STATS], 'unfit_next', str(following + 1))
  q.unfit = nil
end

local function drop_unfit_step(q, id, tid)
  leat.drop_index(q, tid, 'd' .. id)
  redis.call('XDEL', q[DEAD], id)
end

-- Removes the oldest dead letters of tasks that never ran, one page at most, while they are more than their share and
-- all dead letters are more than `most`. Returns by how many the dead letters of tasks that ran are above `most`, and
-- how many of the others are still to be removed.
local function trim_unfit(q, most)
  local letters, first, following = redis.call('XLEN', q[DEAD]), unfit_range(q)
  local share, n, dropped = math.max(math.floor(most / SHARE), 1), first, 0
  while n < following and n - first < PAGE do
    local id, tid = (redis.call('HGET', q[NAMES], 'r:' .. str(n)) or ''):match('^(%d+%-%d+) (%S+)$')
    if id and leat.is_indexed_at(q, tid, 'd' .. id) then
      if letters - dropped > most and following - n > share then
        whole_step(drop_unfit_step, q, id, tid)
        dropped = dropped + 1
      elseif following - n <= most then
        break
      end
    end
    redis.call('HDEL', q[NAMES], 'r:' .. str(n))
    n = n + 1
  end
  if n > first then
    redis.call('HSET', q[STATS], 'unfit_first', str(n))
  end
  if dropped > 0 then
    count(q, 'dead_trimmed', dropped)
  end
  letters = letters - dropped
  return letters - math.min(following - n, letters) - most, math.min(following - n - share, letters - most)
end

-- One step of the retention rules. Returns whether there is more to do.
local function apply_retention(q)
  local keep_ms, most = leat.read_retention(q)
  if keep_ms > 0 and trim(q, math.huge, q.now - keep_ms) then
    return true
  elseif most == 0 then
    return false
  end
  local over, unfit_over = trim_unfit(q, most)
  return over > 0 and trim(q, over, math.huge) or unfit_over > 0
end

-- One step of the sweep. Returns whether there is another one.
function leat.sweep_dead_letters(q)
  if apply_retention(q) then
    return true
  end
  leat.forget_gone_hooks(q)
  leat.trim_history(q)
  return false
end

-- Called after a dead letter was written. A large excess, as after a lower limit was set, is left to the scan, and so is
-- what large letters leave.
local function trim_to_most(q)
  local _, most = leat.read_retention(q)
  if most > 0 and q.unfit then
    note_unfit(q)
  end
  if most > 0 and redis.call('XLEN', q[DEAD]) > most then
    local over = trim_unfit(q, most)
    if over > 0 and over <= CHUNK and not is_full(q) then
      trim(q, over, math.huge)
    end
  end
end

-- Counts a new dead letter and makes room for it. Never fails a step.
function leat.letter_written(q, cause)
  count(q, 'dead')
  count(q, leat.end_name('dead', cause))
  pcall(trim_to_most, q)
end

-- The number of dead letters if it is time to warn of them: once each time they reach 100, 1,000, 10,000 …;
-- otherwise 0. The warning is repeated after their number has fallen below half of the last warning's.
function leat.dead_growth(q)
  local letters = redis.call('XLEN', q[DEAD])
  local warned, level = number_or(redis.call('HGET', q[STATS], 'dead_warned'), 0), 0
  if letters >= 100 then
    level = 10 ^ (#str(letters) - 1)
  end
  if level == warned or level < warned and letters * 2 >= warned then
    return 0
  end
  redis.call('HSET', q[STATS], 'dead_warned', str(level))
  return level > warned and letters or 0
end

-- ---------------------------------------------------------------- the dead-letter hook

-- The consumer group that hands each dead letter to one worker, which runs the hook for it. Its consumers are not
-- workers: a consumer's name says how long (ms) a dead letter may stay unsettled before its worker counts as dead.
local TELLERS, WAIT = 'tellers', 'wait:'
local TELL_BYTES = 1024 * 1024 -- of a task's fields: an environment holds no more
local NOT_YET_MS = 1000 -- no worker gets less time

-- A deleted dead letter must not stay pending, no matter how it was deleted.
function leat.forget_hook(q, id)
  redis.pcall('XACK', q[DEAD], TELLERS, id)
end

function leat.forget_gone_hooks(q)
  -- That idle time is never reached, so only entries that no longer exist are dropped from the pending list.
  redis.pcall('XAUTOCLAIM', q[DEAD], TELLERS, WAIT .. '0', '9000000000000000', '0-0', 'COUNT', str(PAGE), 'JUSTID')
end

-- Dead letters from before the first hook are not handed out. If the group was lost with its stream, it goes on
-- after the dead letter that was handed out last.
local function create_hook_group(q)
  local last = redis.call('HGET', q[STATS], 'told_id')
  redis.call('XGROUP', 'CREATE', q[DEAD], TELLERS, last and is_entry_id(last) and last or '$', 'MKSTREAM')
  for _, info in ipairs(redis.call('XINFO', 'GROUPS', q[DEAD])) do
    if info[2] == TELLERS then
      redis.call('HSET', q[STATS], 'told_id', info[8])
    end
  end
end

-- {id, consumer, idle ms, deliveries} of dead letters that were handed out some time ago.
local function pending_letters(q)
  local found = redis.pcall('XPENDING', q[DEAD], TELLERS, 'IDLE', NOT_YET_MS, '-', '+', str(PAGE))
  if not found.err then
    return found
  elseif found.err:sub(1, 7) ~= 'NOGROUP' then
    error(found, 0)
  end
  create_hook_group(q)
  return {}
end

-- The task's fields as far as an environment can hold them, without the payload: {name, value …}.
local function own_fields(task)
  local list, bytes = {}, 0
  for i = 1, task.count, 2 do
    local name, value = task.fields[i], task.fields[i + 1]
    if name ~= 'payload' and bytes + #name + #value <= TELL_BYTES then
      bytes = bytes + #name + #value
      list[#list + 1], list[#list + 2] = name, value
    end
  end
  return list
end

local function hand_out(out, entry)
  local id, fields = entry[1], entry[2]
  local task, known = decode('d' .. id, fields), trailer(fields) or {}
  local list = own_fields(task)
  local tail = known['leat.stderr'] or ''
  if tail == '' then
    tail = known['leat.stdout'] or '' -- stderr was joined to it, or had nothing
  end
  out.bytes = out.bytes + task.weight
  out.letters[#out.letters + 1] = {
    id, task.tid, task.fence, task.enqueued,
    { known['leat.cause'] or '', known['leat.status'] or '', known['leat.reason'] or '',
      known['leat.attempts'] or '0', known['leat.worker'] or '', tail },
    list,
  }
end

local function give_up(q, id, out)
  local task = leat.task_at(q, 'd' .. id)
  out.given_up[#out.given_up + 1] = task and task.tid or id
  out.bytes = out.bytes + (task and task.weight or 0)
  leat.forget_hook(q, id)
  count(q, 'told_in_vain')
end

-- Hands out dead letters whose worker counts as dead. A dead letter that was handed out too often is given up: the
-- hook may be what kills its workers.
local function hand_out_again(q, pending, consumer, wanted, out)
  local tries = #pending > 0 and leat.read_max_crashes(q)
  for _, info in ipairs(pending) do
    local wait = tonumber(info[2]:match('^' .. WAIT .. '(%d+)$')) or 0
    if #out.letters >= wanted or out.bytes >= MOVE_BYTES then
      return
    elseif info[3] > wait and info[4] >= tries then
      give_up(q, info[1], out)
    elseif info[3] > wait then
      local found = redis.call('XCLAIM', q[DEAD], TELLERS, consumer, '0', info[1])
      if found[1] then
        hand_out(out, found[1])
      end
    end
  end
end

local function hand_out_new(q, consumer, wanted, out)
  while #out.letters < wanted and out.bytes < MOVE_BYTES do
    local step = math.min(wanted - #out.letters, next_step(#out.letters, out.bytes))
    local got = redis.call('XREADGROUP', 'GROUP', TELLERS, consumer, 'COUNT', step, 'STREAMS', q[DEAD], '>')
    local entries = got and got[1][2] or {}
    for _, entry in ipairs(entries) do
      hand_out(out, entry)
    end
    if #entries > 0 then
      redis.call('HSET', q[STATS], 'told_id', entries[#entries][1])
    end
    if #entries < step then
      return
    end
  end
end

-- '+' and an id: the hook has run. '-': another worker shall run it, now.
local function settle_hooks(q, consumer, wait, settled)
  for _, what in ipairs(settled) do
    local id = what:sub(2)
    if what:sub(1, 1) == '-' then
      redis.call('XCLAIM', q[DEAD], TELLERS, consumer, '0', id, 'IDLE', str(wait + NOT_YET_MS), 'JUSTID')
    elseif redis.call('XACK', q[DEAD], TELLERS, id) == 1 then
      count(q, 'told')
    end
  end
end

-- leat_tell: hands dead letters to a worker that runs the hook for them.
-- KEYS: all.
-- ARGV: how many dead letters to hand out at most; how long (ms) the caller may take for each before another
-- worker gets it; then for each dead letter that the caller has settled '+' (the hook has run) or '-' (another
-- worker shall run it) and its entry id.
-- Reply: PROTOCOL; dead letters {entry id, tid, fence, enqueued ms, {cause, status, reason, attempts, worker, end
-- of stderr}, {name, value …} of the task without its payload}; tids of dead letters that were given up. After very
-- large ones, it hands out fewer than are there, but at least one.
-- Safe to stop: a dead letter that was handed out stays pending and is handed out again later, so the hook runs at
-- least once for each.
function leat.tell(keys, args)
  local q = open(keys, ALL_KEYS)
  local wanted, wait = number_arg(args[1], 'the number of letters'), number_arg(args[2], 'the time')
  local settled = rest(args, 3)
  if wanted > CHUNK or #settled > CHUNK then
    fail('BADARG more than ' .. CHUNK .. ' dead letters; give fewer')
  end
  for _, what in ipairs(settled) do
    if not what:match('^[-+]%d+%-%d+$') then
      fail('BADARG neither + nor - and the id of a dead letter: ' .. shown(what))
    end
  end
  local consumer, pending = WAIT .. str(wait), pending_letters(q)
  settle_hooks(q, consumer, wait, settled)
  local out = { letters = {}, given_up = {}, bytes = 0 }
  if wanted > 0 then
    hand_out_again(q, pending, consumer, wanted, out)
    hand_out_new(q, consumer, wanted, out)
  end
  return { PROTOCOL, out.letters, out.given_up }
end

end
