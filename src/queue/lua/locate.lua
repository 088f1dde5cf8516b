do -- Finding many tasks at once (no writes).

local TIME_DIGITS = 13 -- of the part of an id before the hyphen, until the year 2286

-- leat_find: which of some tasks are alive, or dead letters.
-- KEYS: all.
-- ARGV: group, cursor ('g0-0' at first; 'd0-0': among dead letters), then at most CHUNK tids.
-- Reply: PROTOCOL, cursor, 1 if the search is complete (0: go on with the cursor), rows {name, value …} of those
-- found, with state alive or dead, tids to ask for again with the cursor.
-- Only as long as older entries are not indexed, tasks that are not found have to be searched for. They may move
-- meanwhile, but then they are indexed.
-- Safe to stop: no writes.
function leat.find(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local cursor, kind = args[2], args[2]:sub(1, 1)
  if #args > 2 + CHUNK or kind ~= 'g' and kind ~= 'd' then
    fail('BADARG give a cursor and at most ' .. CHUNK .. ' tasks')
  end
  local rows, later, missing, bytes = {}, {}, {}, 0
  local function add(tid, place, task)
    for _, value in ipairs(task and task.fields or {}) do
      bytes = bytes + #value
    end
    if (place:sub(1, 1) == 'd') == (kind == 'd') then
      rows[#rows + 1] = kind == 'd' and leat.letter_row(task) or { 'tid', tid, 'state', 'alive' }
    end
  end
  for i = 3, #args do
    local tid, place, task = args[i], nil, nil
    if bytes <= MOVE_BYTES then
      place, task = leat.place_of(q, tid)
    else
      later[#later + 1] = tid
    end
    if place then
      add(tid, place, task)
    else
      missing[tid] = true
    end
  end
  local is_complete = next(missing) == nil or leat.is_indexed(q)
  if not is_complete then
    local found, following = leat.search(q, cursor, function(tid)
      return missing[tid]
    end)
    for _, task in ipairs(found) do
      add(task.tid, task.token, task)
    end
    is_complete = following:sub(1, 1) ~= kind
    cursor = is_complete and cursor or following
  end
  return { PROTOCOL, cursor, is_complete and 1 or 0, rows, later }
end

-- leat_match: the tasks whose ids begin with some digits.
-- KEYS: all.
-- ARGV: group, cursor ('' at first), the digits.
-- Reply: PROTOCOL, next cursor ('': no more), tids, some of them perhaps twice. If a task has these digits as its
-- label, its tid alone.
-- Safe to stop: no writes.
function leat.match(keys, args)
  local q = open(keys, ALL_KEYS, args[1])
  local kind, at, digits, tids = args[2]:sub(1, 1), args[2]:sub(2), args[3], {}
  if not digits:match('^%d+$') or not args[2]:match('^[nwgd]?[%d-]*$') then
    fail('BADARG give a cursor and digits')
  end
  local function scan(key, prefix, following)
    local page = redis.call('HSCAN', q[key], at, 'MATCH', prefix .. digits .. '*', 'COUNT', str(CHUNK))
    for i = 1, #page[2], 2 do
      tids[#tids + 1] = page[2][i]:sub(#prefix + 1)
    end
    return page[1] ~= '0' and kind .. page[1] or following
  end
  if kind == '' then
    local tid = leat.tid_of(q, digits)
    local rest_of_time = TIME_DIGITS - #digits
    if tid ~= digits or rest_of_time < 0 then
      return { PROTOCOL, '', tid ~= digits and { tid } or {} }
    end
    local found = redis.call('XRANGE', q[STREAM], digits .. ('0'):rep(rest_of_time), digits .. ('9'):rep(rest_of_time),
      'COUNT', '2')
    for i, entry in ipairs(found) do
      tids[i] = entry[1]
    end
    return { PROTOCOL, 'n0', tids }
  elseif kind == 'n' then
    return { PROTOCOL, scan(NAMES, 't:', 'w0'), tids }
  elseif kind == 'w' then
    return { PROTOCOL, scan(WAITING, '', leat.is_indexed(q) and '' or 'g0-0'), tids }
  end
  local found, following = leat.search(q, args[2], function(tid)
    return tid:sub(1, #digits) == digits
  end)
  for i, task in ipairs(found) do
    tids[i] = task.tid
  end
  return { PROTOCOL, following, tids }
end

end
