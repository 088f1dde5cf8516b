do -- History: tasks that have ended.
--
-- {queue}:history is a stream, and conf's history says how many tasks stay, or how long. An entry has one or more tasks,
-- those of one call: the value of its one field is a packed list of texts for each, in the order of ITEMS, one after the
-- other. What is unknown is ''. A worker packs the list of a task that it has run; queue/history_record.h has the same
-- order. Not every caller may use this key, so entries are written last, by pcall, and nothing else depends on them. Dead
-- letters of tasks that never ran are not here: anyone who may add tasks can make any number of them.
--
-- Entries have any number of tasks, and counting them would mean to read them. So stats has marks, as 'h:': 'SUCCEEDED ID …',
-- the newest first: an entry, and how many tasks of the queue had succeeded before it.

local FIELD = 'tasks'
local MARKS = 'h:' -- in stats
local STEPS = 8 -- from one mark to the next until there are as many tasks as conf says
local LEAST_STEP = 16 -- successes from one mark to the next
local MOST_MARKS = STEPS + 2
local MARK_SIZE = 64 -- bytes at most, with a blank

local ITEMS = {
  'tid', 'outcome', 'cause', 'status', 'reason', 'worker', 'attempts', 'enqueued_ms', 'waited_ms', 'begun_ms',
  'duration_us', 'usage', 'id', 'lane', 'command',
}

local function history_key(q)
  return q[STATS]:sub(1, -6) .. 'history'
end

local function read_setting(q)
  local text = redis.call('HGET', q[CONF], 'history')
  local number = natural(text)
  return number, not number and duration_ms(text)
end

-- How many ends are kept, or nil. With an age or none, trim_history deletes them.
local function history_length(q)
  local number, age = read_setting(q)
  return age and HISTORY_MOST or number and number > 0 and number or nil
end

-- Notes an end that is no success; holder and ending as for tell_end.
function leat.remember_end(q, holder, outcome, ending)
  local record, attempts = ending.record or {}, holder.attempts or holder.attempt or 0
  local most = (outcome ~= 'dead' or attempts + (holder.crashes or 0) > 0) and history_length(q)
  local list = most and (ending.history or cmsgpack.pack({
    holder.tid, outcome, ending.cause or '', ending.status or '', (ending.reason or ''):sub(1, PREVIEW),
    record.consumer or ending.worker or '', str(attempts), holder.enqueued or '0', '', record.begun or '', '', '',
    (holder.id or ''):sub(1, MAX_KEY), (holder.lane or ''):sub(1, MAX_LANE),
    (holder.fields and field(holder, 'command') or ''):sub(1, PREVIEW),
  }))
  if list and #list <= HISTORY_RECORD then
    redis.call('XADD', history_key(q), 'MAXLEN', '~', str(most), '*', FIELD, list)
  end
end

-- Marks the entry of so many successes, unless there is a mark near it, and deletes the oldest ones if `most` tasks have
-- succeeded after them. Redis deletes entries of one task by itself. total: how many have succeeded with this entry.
local function mark(q, most, tasks, total, id)
  if total % math.max(LEAST_STEP, math.ceil(most / STEPS)) >= tasks then
    return
  end
  local former, marks, oldest = redis.call('HGET', q[STATS], MARKS) or '', {}, nil
  if #former > MOST_MARKS * MARK_SIZE then
    former = '' -- written by hand, and the search takes the square of its length
  end
  for before, from in (str(math.max(total - tasks, 0)) .. ' ' .. id .. ' ' .. former):gmatch('(%d+) (%d+%-%d+)') do
    marks[#marks + 1] = before .. ' ' .. from
    oldest = before + 0 <= total - most and from
    if oldest or #marks == MOST_MARKS then
      break
    end
  end
  redis.call('HSET', q[STATS], MARKS, table.concat(marks, ' '))
  if oldest then
    redis.pcall('XTRIM', history_key(q), 'MINID', '=', oldest)
  end
  redis.call('XTRIM', history_key(q), 'MAXLEN', '~', str(most))
end

-- total: an error or other text if somebody has damaged the counter.
local function remember(q, lists, tasks, total)
  local most = history_length(q)
  if most and #lists <= tasks * HISTORY_RECORD then
    local id = redis.call('XADD', history_key(q), '*', FIELD, lists)
    mark(q, most, tasks, number_or(total, 0), id)
  end
end

-- Notes successes. lists: as a worker has packed them, one for each of so many tasks. total: how many tasks of the queue
-- have succeeded.
function leat.remember_successes(q, lists, tasks, total)
  pcall(remember, q, lists, tasks, total)
end

-- The same for some of the lists. counts: for each, whether it is noted.
function leat.remember_some(q, lists, counts, total)
  local unpacked, kept = { pcall(cmsgpack.unpack, lists) }, { nil }
  for i = 1, #counts do
    if counts[i] and type(unpacked[i + 1]) == 'table' then
      kept[#kept + 1] = cmsgpack.pack(unpacked[i + 1])
    end
  end
  if #kept > 0 then
    pcall(remember, q, table.concat(kept), #kept, total)
  end
end

-- Deletes what is older than the history's age, or everything if none is kept.
function leat.trim_history(q)
  local number, age = read_setting(q)
  if number == 0 then
    redis.pcall('XTRIM', history_key(q), 'MAXLEN', '0')
    redis.call('HDEL', q[STATS], MARKS)
  elseif age then
    redis.pcall('XTRIM', history_key(q), 'MINID', '=', str(math.max(q.now - age, 0)))
  end
end

-- The tasks of an entry, at least one.
local function lists_of(entry)
  local lists = { pcall(cmsgpack.unpack, entry[2][2]) }
  local fine = table.remove(lists, 1)
  return fine and #lists > 0 and lists or { {} }
end

local function row_of(entry, list)
  local row = { 'state', 'done', 'ended_ms', entry[1]:match('%d+') }
  for n = 1, type(list) == 'table' and #ITEMS or 0 do
    row[#row + 1] = ITEMS[n]
    row[#row + 1] = type(list[n]) == 'string' and list[n] or ''
  end
  return row
end

-- For leat_list. The cursor is 'd' for the newest first or 'a' for the oldest first; where to begin; and how many tasks of
-- that entry, which may be gone meanwhile, were listed before. Entries have any number of tasks, so it reads a few at a
-- time.
function leat.list_done(q, cursor, limit, rows)
  local way, from, listed = short(cursor):match('^(%a)(%S*) ?(%d*)$')
  local is_up, skip, size = way == 'a', number_or(listed, 0), PAGE
  local found, wanted
  limit = math.min(limit, 2 * PAGE)
  repeat
    wanted = math.max(math.ceil((limit - #rows) / size), 1)
    found = redis.call(is_up and 'XRANGE' or 'XREVRANGE', history_key(q), from or '', is_up and '+' or '-', 'COUNT',
      str(wanted))
    for _, entry in ipairs(found) do
      local lists = lists_of(entry)
      skip = entry[1] == from and skip or 0
      for n = skip + 1, #lists do
        if #rows == limit then
          return way .. entry[1] .. ' ' .. str(n - 1)
        end
        rows[#rows + 1] = row_of(entry, lists[is_up and n or #lists + 1 - n])
      end
      from, size = '(' .. entry[1], #lists
    end
  until #found < wanted
  return ''
end

end
