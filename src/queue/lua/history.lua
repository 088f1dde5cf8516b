do -- History: tasks that have ended.
--
-- {queue}:history is a stream with an entry for each end, and conf's history says how many stay, or how long. The one
-- field of an entry is a packed list of texts, in the order of ITEMS: what is unknown is ''. A worker packs the list of a
-- task that it has run; queue/history_record.h has the same order. Not every caller may use this key, so entries are
-- written last, by pcall, and nothing else depends on them. Dead letters of tasks that never ran are not here: anyone
-- who may add tasks can make any number of them.

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
  return number, not number and duration_ms(text), text
end

-- How many ends are kept, as text, or nil. With an age, trim_history deletes the old ones.
function leat.history_length(q)
  local number, age, text = read_setting(q)
  return age and HISTORY_MOST .. '' or number and number > 0 and text or nil
end

-- most: of history_length.
function leat.remember(q, most, record)
  if most and record and #record <= HISTORY_RECORD then
    redis.pcall('XADD', history_key(q), 'MAXLEN', '~', most, '*', 'r', record)
  end
end

-- Notes an end that is no success; holder and ending as for tell_end.
function leat.remember_end(q, holder, outcome, ending)
  local record, attempts = ending.record or {}, holder.attempts or holder.attempt or 0
  local most = (outcome ~= 'dead' or attempts + (holder.crashes or 0) > 0) and leat.history_length(q)
  leat.remember(q, most, most and (ending.history or cmsgpack.pack({
    holder.tid, outcome, ending.cause or '', ending.status or '', (ending.reason or ''):sub(1, PREVIEW),
    record.consumer or ending.worker or '', str(attempts), holder.enqueued or '0', '', record.begun or '', '', '',
    (holder.id or ''):sub(1, MAX_KEY), (holder.lane or ''):sub(1, MAX_LANE),
    (holder.fields and field(holder, 'command') or ''):sub(1, PREVIEW),
  })))
end

-- Deletes what is older than the history's age.
function leat.trim_history(q)
  local _, age = read_setting(q)
  if age then
    redis.pcall('XTRIM', history_key(q), 'MINID', '=', str(math.max(q.now - age, 0)))
  end
end

-- For leat_list. The cursor is 'd' for the newest first or 'a' for the oldest first, and where to begin.
function leat.list_done(q, cursor, limit, rows)
  local is_up, start = cursor:sub(1, 1) == 'a', cursor:sub(2)
  limit = math.min(limit, 2 * PAGE)
  local found = redis.call(is_up and 'XRANGE' or 'XREVRANGE', history_key(q), start, is_up and '+' or '-', 'COUNT',
    str(limit))
  for i, entry in ipairs(found) do
    local fine, values = pcall(cmsgpack.unpack, entry[2][2])
    local list = { 'state', 'done', 'ended_ms', entry[1]:match('%d+') }
    for n = 1, fine and type(values) == 'table' and #ITEMS or 0 do
      list[#list + 1] = ITEMS[n]
      list[#list + 1] = type(values[n]) == 'string' and values[n] or ''
    end
    rows[i] = list
  end
  return #found == limit and cursor:sub(1, 1) .. '(' .. found[limit][1] or ''
end

end
