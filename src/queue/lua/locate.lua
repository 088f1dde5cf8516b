do -- Where tasks are, for clients that wait for them (no writes).

-- Whether the task is in waiting or in the producers' stream. Counts the bytes that this reads.
local function is_elsewhere(q, tid, out)
  if redis.call('HEXISTS', q[WAITING], tid) == 1 then
    return true
  end
  local entry = redis.pcall('XRANGE', q[STREAM], tid, tid)
  local fields = not entry.err and entry[1] and entry[1][2]
  for _, value in ipairs(fields or {}) do
    out.bytes = out.bytes + #value
  end
  return fields and true
end

-- Looks in waiting and the stream for tasks that were not found in go. The caller has reached the end of go in the
-- same call, so none can have moved in between.
local function find_elsewhere(q, wanted, out)
  for _, tid in ipairs(wanted) do
    if out.bytes > MOVE_BYTES then
      out.later[#out.later + 1] = tid
    elseif not out.seen[tid] and is_elsewhere(q, tid, out) then
      out.rows[#out.rows + 1] = { 'tid', tid, 'state', 'alive' }
    end
  end
end

-- leat_find: which of some tasks are alive, or dead letters.
-- KEYS: all.
-- ARGV: group, cursor ('g0-0' at first; 'd0-0': among dead letters), then at most CHUNK tids.
-- Reply: PROTOCOL, cursor, 1 if the search is complete (0: go on with the cursor), rows {name, value …} of those
-- found, with state alive or dead, tids to ask for again with the cursor.
-- go is not indexed by task, and tasks move. But a task that enters go enters behind the cursor, and at the end of
-- go the same step looks into waiting and the stream. So a task that was not found by then is no longer alive at
-- that moment.
-- Safe to stop: no writes.
function leat.find(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local kind, start = args[2]:sub(1, 1), args[2]:sub(2)
  if #args > 2 + CHUNK or kind ~= 'g' and kind ~= 'd' then
    fail('BADARG give a cursor and at most ' .. CHUNK .. ' tasks')
  end
  local wanted, is_wanted, out = rest(args, 3), {}, { rows = {}, seen = {}, later = {}, bytes = 0 }
  for _, tid in ipairs(wanted) do
    is_wanted[tid] = true
  end
  local tasks, following = leat.page_of(kind == 'g' and q[GO] or q[DEAD], kind, start, PAGE)
  for _, task in ipairs(tasks) do
    start = task.token:sub(2)
    if is_wanted[task.tid] then
      out.seen[task.tid] = true
      out.rows[#out.rows + 1] = kind == 'd' and leat.letter_row(task) or { 'tid', task.tid, 'state', 'alive' }
    end
  end
  if kind == 'g' and following == '' then
    find_elsewhere(q, wanted, out)
  end
  return { PROTOCOL, kind .. start, following == '' and 1 or 0, out.rows, out.later }
end

end
