do -- Finish.

-- The arguments of an attempt: TOKEN, OUTCOME, the number of pairs, and the pairs. Unknown names are ignored.
local HEAD = 3
local MOST_WAITS = 60 -- steps by which the wait of a released task grows
local NOWHERE = {}

local function parse_result(args, at)
  local result = { token = args[at], outcome = args[at + 1] }
  for i = at + HEAD, at + HEAD + 2 * args[at + 2] - 1, 2 do
    result[args[i]] = args[i + 1]
  end
  local ttl = tonumber(result.result_ttl_ms) or 0
  result.delay_ms, result.again = tonumber(result.delay_ms), result.again == '1'
  result.ttl_ms = ttl > 0 and ttl or nil
  result.cause, result.status = result.cause or '', result.status or ''
  return result
end

-- Part of a whole step: all successes of one stream, with one HDEL, one XDEL and one XACK. A record that cannot be
-- read says nothing of what its task holds; doctor finds that.
local function succeed_step(q, batch)
  local anyone_waits = not q.plain
  for i = 1, (anyone_waits or batch.is_bound) and #batch.ids or 0 do
    local packed = batch.records[2 * i]
    local is_bound = packed:sub(1, 1) == BOUND
    local record = (anyone_waits or is_bound) and unpack_record(packed) or nil
    batch.unpacked[i] = record
    if record and is_bound then
      leat.stop_holding(q, batch.tokens[i], record)
      leat.release_names(q, record, true)
    end
    if record then
      leat.forget_cancel(q, record.tid)
    end
  end
  if batch.stream == q[GO] then
    leat.drop_indexes(q, batch.records)
  end
  redis.call('HDEL', q[RUNNING], unpack(batch.tokens))
  undo_with(q, 'HSET', q[RUNNING], unpack(batch.records))
  redis.call('XDEL', batch.stream, unpack(batch.ids))
  redis.pcall('XACK', batch.stream, q.group, unpack(batch.ids))
end

-- Part of a whole step: a success after the lease has expired counts as long as the entry that took the task over
-- is unclaimed.
local function late_success_step(q, token, record)
  leat.release_names(q, record, true)
  leat.forget_cancel(q, record.tid)
  zset_drop(q, DELAYED, 'x:' .. record.tid)
  leat.drop_record(q, token)
  if record.moved:sub(1, 1) == 'w' then
    return leat.drop_waiting(q, record.moved:sub(2))
  end
  -- A worker may have been about to be woken by this entry.
  q.freed = true
  leat.remove(q, record.moved, record.tid)
end

-- Publishes a success to whoever asked. The worker's own cause is ignored.
local function tell_success(q, record, result)
  result.cause, result.record = 'success', record
  leat.tell_end(q, record, 'success', result)
end

local function retry_step(q, task, due)
  task.from, task.due = nil, str(math.min(due, leat.LATEST))
  leat.wait_until(q, task, math.min(due, leat.LATEST))
  leat.remove(q, task.token, task.tid)
end

-- Counts what has ended, once for all attempts of a call.
local function add_to(tally, name, by)
  tally[name] = (tally[name] or 0) + (by or 1)
end

-- No attempt is counted. If the task is to wait, it waits as it was before this attempt, longer each time until it fails.
local function release(q, task, delay_ms, tally)
  if delay_ms > 0 then
    task.waits = math.min((task.waits or 0) + 1, MOST_WAITS)
    whole_step(retry_step, q, task, q.now + delay_ms * task.waits)
    add_to(tally, 'retrying', task.attempts > 0 and 1 or 0)
  else
    leat.requeue(q, task)
  end
  add_to(tally, 'released')
end

local function finish_failed(q, record, result, tally)
  local task = fetch(q, result.token)
  if not task then
    leat.settle_vanished(q, result.token)
    return 'vanished'
  end
  task.fence = record.fence
  if result.outcome == 'cancelled' or leat.is_cancelled(q, task.tid) then
    leat.cancel_entry(q, task, record)
    return result.outcome == 'cancelled' and 'ok' or 'cancelled'
  elseif result.outcome == 'release' then
    release(q, task, result.delay_ms or 0, tally)
    add_to(tally, leat.end_name('release', result.cause))
    return 'ok'
  end
  task.waits, result.record = nil, record
  -- a task that a worker refuses was never started
  if result.cause ~= 'refused' then
    task.attempts = record.attempt
    add_history(q, task, record, result.cause, result.status)
  end
  if result.outcome == 'dead' then
    leat.dead_letter(q, task, result)
    return 'ok'
  end
  whole_step(retry_step, q, task, q.now + result.delay_ms)
  add_to(tally, 'retried')
  add_to(tally, 'retrying')
  add_to(tally, leat.end_name('retry', result.cause))
  return 'ok'
end

-- An entry that was read but never claimed can only be returned.
local function finish_unbegun(q, result)
  local task = result.outcome == 'release' and is_pending(q, result.token) and fetch(q, result.token)
  if not task then
    return 'gone'
  end
  leat.requeue(q, task)
  return 'ok'
end

-- Everything except a plain success.
local function finish_one(q, packed, result, tally)
  local record = packed and unpack_record(packed)
  if not record then
    return finish_unbegun(q, result)
  elseif result.unclaimed == '1' and not record.moved then
    -- It was delivered again after it was claimed. Whoever has claimed it may run it, also if it is the caller.
    leat.give_back(q, result.token, record)
    return 'ok'
  elseif record.consumer ~= q.consumer then
    return 'fenced'
  elseif not record.moved then
    return finish_failed(q, record, result, tally)
  elseif result.outcome ~= 'success' then
    return 'fenced'
  end
  whole_step(late_success_step, q, result.token, record)
  count(q, 'succeeded')
  tell_success(q, record, result)
  return 'ok'
end

-- Where each attempt begins in the arguments, the records for the history, or nil, and how many attempts are successes.
-- All are checked before anything is written.
local function places_of(args)
  local places, successes, at, last = { nil }, 0, 3, #args
  local records = args[last - 1] == 'successes' and args[last] or nil
  if records then
    last = last - 2
  end
  while at <= last do
    local token, outcome, named = args[at], args[at + 1], tonumber(args[at + 2])
    local following = named and named >= 0 and at + HEAD + 2 * named
    if not following or named % 1 ~= 0 or following > last + 1 or #places == PAGE then
      fail('BADARG give token, outcome, number of pairs, and the pairs, for each of at most ' .. PAGE .. ' attempts')
    end
    if outcome == 'success' then
      successes = successes + 1
    elseif outcome == 'retry' or outcome == 'release' then
      number_arg(parse_result(args, at).delay_ms or outcome == 'release' and 0, 'delay_ms')
    elseif outcome ~= 'dead' and outcome ~= 'cancelled' then
      fail('BADARG unknown outcome ' .. shown(outcome))
    end
    stream_of(NOWHERE, token)
    places[#places + 1], at = at, following
  end
  return places, records, successes
end

-- Adds a success to the batch of its stream, and returns that (batch: nil if this is the first one). number: the
-- position of the attempt in this call.
local function add_success(q, batch, token, packed, is_bound, number)
  if not batch then
    local stream, id = stream_of(q, token)
    -- All that most batches will ever have, because Lua copies a table that grows.
    return {
      stream = stream, ids = { id }, tokens = { token }, numbers = { number }, records = { token, packed },
      is_bound = is_bound, unpacked = {},
    }
  end
  local n = #batch.ids + 1
  batch.ids[n], batch.tokens[n], batch.numbers[n] = token:sub(2), token, number
  batch.records[2 * n - 1], batch.records[2 * n] = token, packed
  batch.is_bound = batch.is_bound or is_bound
  return batch
end

local function wants_result(args, at)
  for i = at + HEAD, at + HEAD + 2 * args[at + 2] - 1, 2 do
    if args[i] == 'result_ttl_ms' then
      return true
    end
  end
  return false
end

-- Publishes the successes of a batch that someone asked for.
local function tell_batch(q, batch, args, places)
  for i = 1, #batch.numbers do
    local at, record = places[batch.numbers[i]], batch.unpacked[i]
    record = record or wants_result(args, at) and unpack_record(batch.records[2 * i])
    if record then
      tell_success(q, record, parse_result(args, at))
    end
  end
end

-- Notes in the history those of the call's successes that are some: all, or those with the reply ok. total: how many tasks
-- of the queue have succeeded.
local function note_successes(q, args, places, records, reply, all, total)
  if all then
    return leat.remember_successes(q, records, all, total)
  end
  local counts = { nil }
  for i = 1, #places do
    if args[places[i] + 1] == 'success' then
      counts[#counts + 1] = reply[i + 1] == 'ok'
    end
  end
  leat.remember_some(q, records, counts, number_or(total or redis.call('HGET', q[STATS], 'succeeded'), 0))
end

-- Returns how many successes there were, and how many of the queue there are then.
local function settle_batch(q, batch, args, places, reply)
  local fine, problem = pcall(whole_step, succeed_step, q, batch)
  local state = fine and 'ok' or message_of(problem)
  for i = 1, #batch.numbers do
    reply[batch.numbers[i] + 1] = state
  end
  if fine then
    local total = count(q, 'succeeded', #batch.ids)
    tell_batch(q, batch, args, places)
    return #batch.ids, total
  end
  return 0
end

-- leat_finish: ends attempts.
-- KEYS: all.
-- ARGV: group, consumer, then for each of at most PAGE attempts: token, outcome (success, retry, dead, release,
-- cancelled), the number of pairs, and these pairs if they say something: cause, status, reason, delay_ms
-- (required for a retry; a release waits for so long, and longer if it is released again), duration_us, stdout and
-- stderr (tails), usage, again (1: it was sent before), unclaimed (1, of a release: the caller has read the entry, and
-- not claimed it since), result_ttl_ms (how long to keep the result; missing: as the task says), history (of a dead letter:
-- its record, packed as in history.lua). At the end it may give 'successes' and the records of all of them, in their order.
-- Reply: PROTOCOL, then for each: ok; cancelled (it did not succeed and was to be cancelled, so it is cancelled);
-- fenced (claimed by another consumer, or requeued); gone (settled before, or by another consumer); vanished
-- (deleted by hand); later (nothing was done, since the tasks before it were very large: send it again); or the error
-- that kept it where it is.
-- Safe to stop: what a task becomes is written before its entry is deleted. An attempt that is sent again finds
-- its entry gone.
function leat.finish(keys, args)
  local q = open(keys, ALL_KEYS, args[1], args[2])
  local places, history, successes = places_of(args)
  local reply, tokens = { PROTOCOL, nil }, { nil }
  for i = 1, #places do
    tokens[i] = args[places[i]]
  end
  if #tokens == 0 then
    return reply
  end
  local records = packed_records(q, tokens)
  local mine, fenced = q.consumer .. '\0', 0
  local of_stream, of_go, tally
  for i = 1, #tokens do
    local packed = records[i]
    local record_state = packed and packed:sub(1, 1)
    local own = packed and record_state ~= MOVED and packed:sub(2, #mine + 1) == mine
    if own and args[places[i] + 1] == 'success' then
      if tokens[i]:sub(1, 1) == 's' then
        of_stream = add_success(q, of_stream, tokens[i], packed, record_state == BOUND, i)
      else
        of_go = add_success(q, of_go, tokens[i], packed, record_state == BOUND, i)
      end
    elseif is_full(q) then
      reply[i + 1] = 'later'
    else
      local result = parse_result(args, places[i])
      tally = tally or {}
      local fine, state = pcall(finish_one, q, packed, result, tally)
      reply[i + 1] = fine and state or message_of(state)
      if state == 'fenced' or state == 'gone' and not result.again then
        fenced = fenced + 1
      end
    end
  end
  local of_go_ended, ended, total = 0, 0, nil
  if of_go then
    of_go_ended, total = settle_batch(q, of_go, args, places, reply)
  end
  if of_stream then
    ended, total = settle_batch(q, of_stream, args, places, reply)
  end
  for name, by in pairs(tally or NOWHERE) do
    count(q, name, by)
  end
  if fenced > 0 then
    count(q, 'fenced', fenced)
  end
  if history then
    note_successes(q, args, places, history, reply, of_go_ended + ended == successes and successes, total)
  end
  leat.offer_if_freed(q)
  return reply
end

end
