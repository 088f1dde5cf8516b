do -- The index: where each task is, by its id.
--
-- A task in the producers' stream is the entry with its id, and a task in waiting is stored under its id. For every
-- other task, names has 't:TID' → the token of its entry in go, or 'd' and the id of its dead letter. A first attempt
-- from the stream that succeeds never touches the index. Entries carry the ids of their tasks, so a lookup proves
-- what it found, and a wrong index never leads to another task.
--
-- Entries of libraries before VERSION 4 are not indexed. The scan indexes them step by step; the field 't:' says how
-- far it is: a token, or DONE. Until then, a task that a lookup misses may still be in go or dead, and a search has to
-- page through them.

local OLDER, DONE, START = 't:', 'done', 'g0-0'

local function key_of(q, place)
  return place:sub(1, 1) == 'd' and q[DEAD] or (stream_of(q, place))
end

-- The task of an entry of the stream, of go or of dead, or nil. place: any text.
local function task_at(q, place)
  local id = place:sub(2)
  if not place:match('^[sgd]') or not is_entry_id(id) then
    return nil
  end
  return read_entry(q, key_of(q, place), place)
end
leat.task_at = task_at

-- Where a task is: 'w' if it waits, the token of its entry, or 'd' and the id of its dead letter; nil: the stream,
-- waiting and the index do not have it. The second result is the task, unless it waits.
function leat.place_of(q, tid)
  if redis.call('HEXISTS', q[WAITING], tid) == 1 then
    return 'w'
  end
  local task = task_at(q, 's' .. tid)
  if not task then
    task = task_at(q, redis.call('HGET', q[NAMES], OLDER .. tid) or '')
    task = task and task.tid == tid and task or nil
  end
  return task and task.token, task
end

-- Part of a whole step: the task is at that place from now on.
function leat.put_index(q, tid, place)
  hash_set(q, NAMES, OLDER .. tid, place)
end

-- As put_index, of a task that waited: the index does not have it.
function leat.put_new_index(q, tid, place)
  redis.call('HSET', q[NAMES], OLDER .. tid, place)
  undo_with(q, 'HDEL', q[NAMES], OLDER .. tid)
end

-- Whether the index says that the task is at that place. What the functions move or delete is no longer there.
function leat.is_indexed_at(q, tid, place)
  return redis.call('HGET', q[NAMES], OLDER .. tid) == place
end

-- Part of a whole step: the task is no longer at that place. If it has another one, this stays in the index.
function leat.drop_index(q, tid, place)
  if leat.is_indexed_at(q, tid, place) then
    redis.call('HDEL', q[NAMES], OLDER .. tid)
    undo_with(q, 'HSET', q[NAMES], OLDER .. tid, place)
  end
end

-- Part of a whole step: drops tasks of go. records: token, packed lease record, token, …
function leat.drop_indexes(q, records)
  local names, old = {}, {}
  for i = 1, #records, 2 do
    local n, tid = #names + 1, records[i + 1]:match('^.-%z%d+ %d+ %d+ (%S+)')
    if tid then
      names[n] = OLDER .. tid
      old[2 * n - 1], old[2 * n] = names[n], records[i]
    end
  end
  if #names > 0 then
    redis.call('HDEL', q[NAMES], unpack(names))
    undo_with(q, 'HSET', q[NAMES], unpack(old))
  end
end

-- ---------------------------------------------------------------- entries of older libraries

-- Whether every task is indexed that has to be.
function leat.is_indexed(q)
  return redis.call('HGET', q[NAMES], OLDER) == DONE
    or redis.call('XLEN', q[GO]) == 0 and redis.call('XLEN', q[DEAD]) == 0
end

-- A queue without go and dead has no older entries.
function leat.begin_index(q)
  if redis.call('EXISTS', q[GO], q[DEAD]) == 0 then
    redis.call('HSETNX', q[NAMES], OLDER, DONE)
  end
end

-- One page of go, and then of dead, from a cursor ('g0-0' or 'd0-0' at first): its tasks, and where to go on ('': no
-- more).
local function page_at(q, cursor, limit)
  local kind = cursor:sub(1, 1)
  local tasks, following = leat.page_of(key_of(q, cursor), kind, cursor:sub(2), limit)
  if following ~= '' then
    return tasks, kind .. following
  end
  return tasks, kind == 'g' and 'd0-0' or ''
end

-- The search for tasks that may not be indexed yet, one page of it: those for which is_wanted(tid), and where to go
-- on ('': no more).
function leat.search(q, cursor, is_wanted)
  local found = {}
  local tasks, following = page_at(q, cursor, PAGE)
  for _, task in ipairs(tasks) do
    if is_wanted(task.tid) then
      found[#found + 1] = task
    end
  end
  return found, following
end

-- Indexes one page of older entries. Returns false if there is nothing left to do.
function leat.index_older(q)
  local at = redis.call('HGET', q[NAMES], OLDER) or START
  if at == DONE then
    return false
  elseif not at:match('^[gd]') or not is_entry_id(at:sub(2)) then
    at = START
  end
  local tasks, following = page_at(q, at, CHUNK)
  for _, task in ipairs(tasks) do
    redis.call('HSETNX', q[NAMES], OLDER .. task.tid, task.token)
  end
  redis.call('HSET', q[NAMES], OLDER, following ~= '' and following or DONE)
  return true
end

end
