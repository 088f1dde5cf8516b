do -- Intake: items of producers' lists, and what an earlier job system left behind, become tasks.

local INTAKE_BYTES = 4 * 1024 * 1024 -- a call ends when its items have so many bytes together
local UNIQUE_BYTES = 200 -- longer items are unique by their SHA-1
local MARK_BYTES = 13 -- of '*' and a unix time at the end of an item
local SHOWN = 20 -- items of a preview

-- Up to n items in order from position `at`, and where to go on (nil: no more).
local function read_by_place(command, key, at, first, last, n)
  local items = redis.call(command, key, str(first), str(last))
  return items, #items == n and at + n or nil
end

-- What each type of key needs: the command for its size; read(key, at, n), which returns items in the order in
-- which they are taken, and where to go on (nil: no more); and remove(key, items), which is one write.
local KINDS = {
  list = {
    size = 'LLEN',
    -- The tail comes first, as with RPOP.
    read = function(key, at, n)
      local items, following = read_by_place('LRANGE', key, at, -at - n, -at - 1, n)
      for i = 1, math.floor(#items / 2) do
        items[i], items[#items + 1 - i] = items[#items + 1 - i], items[i]
      end
      return items, following
    end,
    remove = function(key, items)
      redis.call('LTRIM', key, '0', str(-#items - 1))
    end,
  },
  zset = {
    size = 'ZCARD',
    read = function(key, at, n)
      return read_by_place('ZRANGE', key, at, at, at + n - 1, n)
    end,
    remove = function(key, items)
      redis.call('ZREM', key, unpack(items))
    end,
  },
  set = {
    size = 'SCARD',
    read = function(key, at, n)
      local reply = redis.call('SSCAN', key, tostring(at), 'COUNT', str(n))
      return reply[2], reply[1] ~= '0' and reply[1] or nil
    end,
    remove = function(key, items)
      redis.call('SREM', key, unpack(items))
    end,
  },
}

local function kind_of(text, key)
  local kind = KINDS[text] or fail('BADARG neither list, set nor zset: ' .. shown(text))
  local is = redis.call('TYPE', key).ok
  if is ~= 'none' and is ~= text then
    fail('WRONGTYPE ' .. key .. ' is a ' .. is .. ', but its items are to be taken as those of a ' .. text)
  end
  return kind
end

-- Up to n items, or fewer large ones. Nothing is written yet. A set may return a member twice.
local function collect(kind, key, n)
  local items, seen, bytes, at = {}, {}, 0, 0
  while at and #items < n and bytes < INTAKE_BYTES do
    local got
    got, at = kind.read(key, at, math.min(next_step(#items, bytes), n - #items))
    for _, item in ipairs(got) do
      if #items < n and not (kind == KINDS.set and seen[item]) then
        items[#items + 1], seen[item] = item, kind == KINDS.set
        bytes = bytes + #item
      end
    end
  end
  return items
end

-- An item without its mark (ITEM*UNIXTIME), and when it is due (ms; 0: now).
local function unmark(q, item)
  local mark = item:sub(-MARK_BYTES):match('%*(%d+)$')
  if not mark then
    return item, 0
  end
  local due = tonumber(mark) * 1000
  return item:sub(1, -#mark - 2), due > q.now and due or 0
end

-- A key that is neither empty nor very long.
local function unique_of(value)
  return value ~= '' and #value <= UNIQUE_BYTES and value or 'sha1:' .. redis.sha1hex(value)
end

local function make_task(q, item, how, index)
  local value, due = item, 0
  if how.marks then
    value, due = unmark(q, item)
  end
  local fields = { how.field, value }
  if how.lane ~= '' then
    fields[#fields + 1], fields[#fields + 2] = 'lane', how.lane
  end
  if how.unique then
    fields[#fields + 1], fields[#fields + 2] = 'unique', unique_of(value)
  end
  local task = leat.check_fields(q, fields, index)
  leat.note_size(q, task.bytes)
  task.due = due
  return task
end

-- The tasks are written first. One write, the last, removes the items.
local function take_step(q, key, kind, items, how)
  local added = 0
  for index, item in ipairs(items) do
    local task = make_task(q, item, how, index)
    if not leat.holder_of_item(q, task) then
      leat.add_task(q, task)
      added = added + 1
    end
  end
  kind.remove(key, items)
  return added
end

-- An item, which any program may have written, must not become a field that leat itself acts on.
local function check_field(name)
  local acts = TASK_FIELDS[name] and name ~= 'command' and name ~= 'payload'
  if name == '' or name:sub(1, 5) == 'leat.' or acts then
    fail('BADARG the field of an item cannot be ' .. shown(name))
  end
end

-- leat_intake: moves items of a list into the queue, from its tail, in their order, as far as the length limit
-- allows.
-- KEYS: the producers', then the list.
-- ARGV: how many items at most (and never more than CHUNK); the field that an item becomes; the lane ('': none);
-- 'item' if an item is its own unique key ('': not); then for what an earlier system left behind the type of the
-- key (list, set, zset; '': list), and 1 if items have marks ('': not).
-- Reply: PROTOCOL, items removed, tasks made of them, items left, 1 if the queue is full.
-- An item whose unique key is held is removed and becomes no task.
-- Safe to stop: all writes are one whole step, so a refused write leaves list and queue as they were.
function leat.intake(keys, args)
  check_count(keys, PRODUCER_KEYS + 1)
  local key = table.remove(keys)
  local q = open(keys, PRODUCER_KEYS)
  local kind = kind_of(args[5] ~= '' and args[5] or 'list', key)
  local how = { field = args[2], lane = args[3], unique = args[4] == 'item', marks = args[6] == '1' }
  check_field(how.field)
  local room = leat.room(q) or math.huge
  local wanted = math.min(number_arg(args[1], 'the number of items'), CHUNK)
  local items = collect(kind, key, math.min(wanted, math.max(room, 0)))
  local added = #items > 0 and whole_step(take_step, q, key, kind, items, how) or 0
  local left = redis.call(kind.size, key)
  return { PROTOCOL, #items, added, left, left > 0 and room <= added and 1 or 0 }
end

-- leat_preview: shows what leat_intake would take.
-- KEYS: a list, set or zset.
-- ARGV: its type, how many items (at most SHOWN), 1 if items have marks.
-- Reply: PROTOCOL, the number of items, then for each of the first its first PREVIEW bytes, its size, and when it
-- is due (ms; 0: now).
-- Safe to stop: no writes.
function leat.preview(keys, args)
  local q = open(keys, 1)
  local kind = kind_of(args[1], keys[1])
  local reply = { PROTOCOL, redis.call(kind.size, keys[1]) }
  for _, item in ipairs(collect(kind, keys[1], math.min(number_arg(args[2], 'the number of items'), SHOWN))) do
    local value, due = item, 0
    if args[3] == '1' then
      value, due = unmark(q, item)
    end
    reply[#reply + 1] = value:sub(1, PREVIEW)
    reply[#reply + 1] = #value
    reply[#reply + 1] = str(due)
  end
  return reply
end

-- leat_lists_turn: chooses one worker in each period to look for new lists.
-- KEYS: the producers'.
-- ARGV: the period in ms, 1 if the caller is still looking ('': not).
-- Reply: PROTOCOL, 0 if the caller is to look now, otherwise in how many ms to ask again.
-- Safe to stop: one write. If the chosen worker dies, another is chosen in the next period.
function leat.lists_turn(keys, args)
  local q = open(keys, PRODUCER_KEYS)
  local period = number_arg(args[1], 'the period')
  local since = q.now - number_or(redis.call('HGET', q[STATS], 'lists_sought'), 0)
  if args[2] ~= '1' and since >= 0 and since < period then
    return { PROTOCOL, str(period - since) }
  end
  redis.call('HSET', q[STATS], 'lists_sought', q.now_text)
  return { PROTOCOL, '0' }
end

end
