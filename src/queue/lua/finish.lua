do -- Finish.

local FINISH_ARGS = 10

local function parse_result(args, at)
  return {
    token = args[at], outcome = args[at + 1], cause = args[at + 2], status = args[at + 3],
    reason = args[at + 4], delay_ms = tonumber(args[at + 5]), stdout = args[at + 7], stderr = args[at + 8],
    again = args[at + 9] == '1',
  }
end

-- All successes of one stream: one HDEL, one XDEL, one XACK.
local function succeed_step(q, batch)
  for _, packed in ipairs(batch.named) do
    local record = unpack_record(packed)
    release_name(q, record.id, record.tid)
  end
  redis.call('HDEL', q[RUNNING], unpack(batch.tokens))
  undo_with(q, 'HSET', q[RUNNING], unpack(batch.records))
  redis.call('XDEL', batch.stream, unpack(batch.ids))
  redis.pcall('XACK', batch.stream, q.group, unpack(batch.ids))
end

-- A success that comes after its lease ran out counts while the entry that took over has not begun.
local function late_success_step(q, token, record)
  release_name(q, record.id, record.tid)
  drop_record(q, token)
  remove(q, record.moved)
end

local function retry_step(q, task, due)
  task.fence = task.fence + 1
  task.from = nil
  leat.delay(q, task, due)
  remove(q, task.token)
end

local function finish_failed(q, record, result)
  local task = fetch(q, result.token)
  if not task then
    leat.settle_vanished(q, result.token)
    return 'vanished'
  end
  if result.outcome == 'release' then
    leat.requeue(q, task)
    count(q, 'released')
    return 'ok'
  end
  task.attempts = record.attempt
  remember(q, task, record, result.cause, result.status)
  if result.outcome == 'dead' then
    leat.bury(q, task, {
      cause = result.cause, status = result.status, reason = result.reason, record = record,
      stdout = result.stdout, stderr = result.stderr,
    })
    return 'ok'
  end
  whole_step(retry_step, q, task, q.now + result.delay_ms)
  count(q, 'retried')
  count(q, 'retrying')
  return 'ok'
end

-- An entry that was read but never begun may only be handed back.
local function finish_unbegun(q, result)
  local task = result.outcome == 'release' and is_pending(q, result.token) and fetch(q, result.token)
  if not task then
    return 'gone'
  end
  leat.requeue(q, task)
  return 'ok'
end

-- All that is no plain success.
local function finish_one(q, packed, result)
  local record = packed and unpack_record(packed)
  if not record then
    return finish_unbegun(q, result)
  elseif record.consumer ~= q.consumer then
    return 'fenced'
  elseif not record.moved then
    return finish_failed(q, record, result)
  elseif result.outcome ~= 'success' then
    return 'fenced'
  end
  whole_step(late_success_step, q, result.token, record)
  count(q, 'succeeded')
  return 'ok'
end

local function check_results(args)
  local many = (#args - 2) / FINISH_ARGS
  if many ~= math.floor(many) or many > PAGE then
    fail('BADARG ' .. FINISH_ARGS .. ' arguments for each of at most ' .. PAGE .. ' attempts')
  end
  for at = 3, #args, FINISH_ARGS do
    local outcome = args[at + 1]
    if outcome == 'retry' then
      number_arg(args[at + 5], 'the delay')
    elseif outcome ~= 'success' and outcome ~= 'dead' and outcome ~= 'release' then
      fail('BADARG unknown outcome ' .. tostring(outcome):sub(1, 40))
    end
    stream_of({}, args[at])
  end
end

-- The batch of the stream in which token stands.
local function batch_of(q, batches, token)
  local kind = token:sub(1, 1)
  local batch = batches[kind]
  if not batch then
    batch = { stream = stream_of(q, kind), ids = {}, tokens = {}, records = {}, named = {}, places = {} }
    batches[kind] = batch
    batches[#batches + 1] = batch
  end
  return batch
end

local function add_success(batch, token, packed, place)
  local n = #batch.ids + 1
  batch.ids[n], batch.tokens[n], batch.places[n] = token:sub(2), token, place
  batch.records[2 * n - 1], batch.records[2 * n] = token, packed
  if packed:sub(1, 1) == NAMED then
    batch.named[#batch.named + 1] = packed
  end
end

local function settle_batch(q, batch, reply)
  local fine, problem = pcall(whole_step, succeed_step, q, batch)
  for _, place in ipairs(batch.places) do
    reply[place] = fine and 'ok' or message_of(problem)
  end
  if fine then
    count(q, 'succeeded', #batch.ids)
  end
end

-- KEYS: all. ARGV: group, consumer, then for each of at most PAGE attempts: token, outcome (success, retry,
-- dead, release), cause, status, reason, delay ms (retry), duration us, stdout tail, stderr tail, 1 if it was
-- sent before. Reply: PROTOCOL, then for each: ok, fenced (begun by another, or passed on), gone (settled
-- before, or by another), vanished (deleted by hand), or the error that kept this one where it is.
-- What a task becomes is written before its entry is deleted; sent again, it finds the entry gone.
function leat.finish(keys, args)
  local q = open(keys, ALL_KEYS, args[1], args[2])
  check_results(args)
  local reply, tokens, batches = { PROTOCOL }, {}, {}
  for at = 3, #args, FINISH_ARGS do
    tokens[#tokens + 1] = args[at]
  end
  if #tokens == 0 then
    return reply
  end
  local records = redis.call('HMGET', q[RUNNING], unpack(tokens))
  local mine, fenced = q.consumer .. '\0', 0
  for i, token in ipairs(tokens) do
    local at, packed = 3 + (i - 1) * FINISH_ARGS, records[i]
    local own = packed and packed:sub(2, #mine + 1) == mine and packed:sub(1, 1) ~= MOVED
    if own and args[at + 1] == 'success' then
      add_success(batch_of(q, batches, token), token, packed, i + 1)
    else
      local result = parse_result(args, at)
      local fine, state = pcall(finish_one, q, packed, result)
      reply[i + 1] = fine and state or message_of(state)
      if state == 'fenced' or state == 'gone' and not result.again then
        fenced = fenced + 1
      end
    end
  end
  for _, batch in ipairs(batches) do
    settle_batch(q, batch, reply)
  end
  if fenced > 0 then
    count(q, 'fenced', fenced)
  end
  return reply
end

end
