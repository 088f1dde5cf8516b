do -- Enqueue for programs: the caller names one key, the stream, and gives plain fields or JSON.

local MOST_TASKS, MOST_JSON = 10000, 33554432 -- tasks and bytes in one call: meanwhile Redis does nothing else
local SECONDS_BELOW = 1e11 -- as ms this is March 1973, so a smaller number is a time in seconds

local SUFFIXES = {
  [BELL] = ':bell', [WAITING] = ':waiting', [DELAYED] = ':delayed', [NAMES] = ':names', [CONF] = ':conf',
  [STATS] = ':stats', [LANES] = ':lanes', [LANED] = ':laned',
}

local function refuse(index, problem)
  fail('REFUSED task ' .. index .. ': ' .. problem)
end

-- Opens the queue of the only key that the caller names, and adds the other keys to the list. Those have the names
-- that workers use: if the stream has a {tag}, the suffix follows its name, so that all keys share its hash slot.
--
-- Redis checks declared keys before a call runs, and other keys when a command uses them. While a Cluster moves
-- the slot, the call could therefore fail after its first write. The EXISTS uses all keys before that: it fails if
-- one of them is on the other node, or does not exist.
local function open_stream(keys)
  local stream = keys[1]
  if #keys ~= 1 then
    fail('BADARG expected 1 keys, got ' .. #keys .. '; give the stream of the queue alone')
  end
  local prefix = stream:match('^[^{]*{[^}]+}') and stream or '{' .. stream .. '}'
  for i = 2, PRODUCER_KEYS do
    keys[i] = prefix .. SUFFIXES[i]
  end
  local found = redis.pcall('EXISTS', unpack(keys))
  if type(found) == 'table' and found.err then
    -- the first text is that of Redis 7.0
    if found.err:find('non local key', 1, true) or found.err:find('during rehashing', 1, true) then
      fail('TRYAGAIN the hash slot of ' .. stream .. ' is being moved to another node; repeat the call later')
    end
    error(found, 0)
  end
  return open(keys, PRODUCER_KEYS)
end

-- When a task is due (ms; 0: now), from its fields delay and at. An empty one counts as absent.
local function due_of(q, delay, at, index)
  if delay and at then
    refuse(index, 'delay and at: a task has one due time; leave one of them out')
  elseif delay then
    local ms = duration_ms(delay)
    return ms and q.now + ms or refuse(index, 'delay: not a duration: ' .. shown(delay) .. DURATION_HINT)
  elseif at then
    local ms = short(at):match('^%d+%.?%d*$') and math.floor(tonumber(at))
    if not ms or ms > q.now + CENTURY_MS then
      refuse(index, 'at: not a unix time in ms, at most 100 years ahead: ' .. shown(at))
    elseif ms > 0 and ms < SECONDS_BELOW then
      refuse(index, 'at: a time in seconds: ' .. at .. '; give it in ms')
    end
    return ms
  end
  return 0
end

-- Checks a task given as {name, value …}. Returns it as enqueue_items takes it, without delay and at.
local function item_of(q, fields, index)
  local own, times = {}, {}
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    if name ~= 'delay' and name ~= 'at' then
      own[#own + 1], own[#own + 2] = name, value
    elseif times[name] then
      refuse(index, 'field given twice: ' .. name .. '; leave one out')
    else
      times[name] = value
    end
  end
  if #own == 0 or #own > MAX_FIELDS * 2 then
    leat.refuse_count(index)
  end
  local due = due_of(q, times.delay ~= '' and times.delay, times.at ~= '' and times.at, index)
  return leat.make_item(q, own, index, due)
end

-- leat_add: adds one task.
-- KEYS: the stream.
-- ARGV: name and value of each field. Besides those that the task keeps, delay (a duration) or at (unix ms) says
-- when it is due.
-- Reply: new or exists, and the id of the task.
-- Safe to stop: the whole task is checked before the first write, and all writes are one whole step.
function leat.add(keys, args)
  local q = open_stream(keys)
  if #args % 2 ~= 0 then
    refuse(1, 'field without a value: ' .. shown(args[#args]) .. '; give a value after each name')
  end
  return leat.enqueue_items(q, { item_of(q, args, 1) }, {})
end

-- ---------------------------------------------------------------- JSON

local function number_text(number)
  if number == math.floor(number) then
    return number == 0 and '0' or string.format('%.0f', number)
  end
  local text = string.format('%.15g', number)
  return tonumber(text) == number and text or string.format('%.17g', number)
end

-- A JSON value as the bytes of a field.
local function value_text(value, name, index)
  local kind = type(value)
  if kind == 'string' then
    return value
  elseif kind == 'boolean' then
    return value and '1' or '0'
  elseif kind ~= 'number' then
    refuse(index, shown(name) .. ': neither a string nor a number, true or false; leave it out, or give it as text')
  elseif not (value > -EXACT and value < EXACT) then
    refuse(index, shown(name) .. ': a number that JSON does not hold exactly; give it as a string')
  end
  return number_text(value)
end

-- The fields of a JSON object as {name, value …}, sorted by name, because an object has no order.
local function fields_of(object, index)
  if type(object) ~= 'table' or object[1] ~= nil then
    refuse(index, 'not an object; give one such as {"command": "make thumbs"}')
  end
  local names, fields, number = {}, {}, 0
  for name in pairs(object) do
    number = number + 1
    -- delay and at are no fields of the task; to sort a million names takes seconds
    if number > MAX_FIELDS + 2 then
      leat.refuse_count(index)
    end
    names[number] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    fields[2 * i - 1], fields[2 * i] = name, value_text(object[name], name, index)
  end
  return fields
end

-- leat_add_many: adds tasks, all or none.
-- KEYS: the stream.
-- ARGV: one JSON list of objects. Each is a task with the fields of leat_add; values are strings, numbers, true
-- (1) or false (0).
-- Reply: new or exists and the id, of each task in order.
-- Safe to stop: all tasks are checked before the first write, and all writes are one whole step.
function leat.add_many(keys, args)
  local q = open_stream(keys)
  local text = args[1]
  if #text > MOST_JSON then
    fail('REFUSED ' .. #text .. ' bytes of JSON in one call; give at most ' .. MOST_JSON)
  end
  local fine, objects = pcall(cjson.decode, text)
  if #args ~= 1 or not fine or type(objects) ~= 'table' or not text:match('^%s*%[') then
    local why = #args == 1 and not fine and ': ' .. message_of(objects) or ''
    fail('REFUSED not one argument with a JSON list of objects' .. why .. '; give [{"command": "make thumbs"}]')
  elseif #objects > MOST_TASKS then
    fail('REFUSED ' .. #objects .. ' tasks in one call; give at most ' .. MOST_TASKS)
  end
  local items = {}
  for index, object in ipairs(objects) do
    items[index] = item_of(q, fields_of(object, index), index)
  end
  return leat.enqueue_items(q, items, {})
end

end
