do -- Settings that all workers share.

local MOST_SETTING = 9e15
local SMALL_TASKS, SEVERAL = 80, 4

-- The whole number of a setting. One that leat_conf would not take counts as not set.
local function setting(text, least, default)
  local number = text and tonumber(text)
  return number and number >= least and number <= MOST_SETTING and number - number % 1 or default
end
leat.setting = setting

function leat.read_lease(q)
  return setting(redis.call('HGET', q[CONF], 'lease_ms'), MIN_LEASE_MS, DEFAULT_LEASE_MS)
end

-- The lease (ms) that workers are told, of its text in conf. Without one, somebody has deleted the settings, and perhaps
-- all the rest. The next registration restores them. Until then nobody knows what the lease is, so no worker gets one.
function leat.known_lease(text)
  if not text then
    fail('NOGROUP the settings of the queue are gone')
  end
  return setting(text, MIN_LEASE_MS, DEFAULT_LEASE_MS)
end

function leat.read_max_crashes(q)
  return setting(redis.call('HGET', q[CONF], 'max_crashes'), 1, DEFAULT_MAX_CRASHES)
end

-- conf has what is known of the sizes of tasks (sizes): after a large one, until when nothing is known (ms); then how
-- many tasks have come in claims of several small ones, up to SMALL_TASKS. Whoever adds a task to go notes its size, so
-- go has small ones as long as no large one was noted. An hour after a large one, it may still be there: only a claim
-- of several small ones ends that.
function LAZY.sizes(q)
  q.sizes = setting(redis.call('HGET', q[CONF], 'sizes'), 0, 0)
  return q.sizes
end

function leat.has_small_tasks(q, kind)
  return q.sizes == SMALL_TASKS or kind == 'g' and q.sizes < SMALL_TASKS
end

-- Notes the size of a task. Never fails a step.
function leat.note_size(q, bytes)
  if bytes >= LARGE_BYTES and q.sizes < q.now + LARGE_MS / 2 then
    q.sizes = q.now + LARGE_MS
    redis.pcall('HSET', q[CONF], 'sizes', str(q.sizes))
  end
end

-- Notes that a claim has brought so many tasks, with so many bytes together. Never fails a step.
function leat.note_small_tasks(q, number, bytes)
  if number >= SEVERAL and bytes < SMALL_BYTES and q.sizes ~= SMALL_TASKS and q.sizes < q.now then
    local known = q.sizes < SMALL_TASKS and q.sizes or 0
    redis.pcall('HSET', q[CONF], 'sizes', str(math.min(known + number, SMALL_TASKS)))
  end
end

-- Why a task is too large, or nil.
function leat.size_problem(q, task)
  if task.bytes < LEAST_MAX_TASK then
    return nil
  end
  local most = setting(redis.call('HGET', q[CONF], 'max_task'), 0, 0)
  if most == 0 or task.bytes <= most then
    return nil
  end
  task.size = task.bytes
  return 'larger than max_task: it has ' .. str(task.bytes) .. ' bytes, at most ' .. str(most)
    .. ' are allowed; store the data elsewhere and give its name'
end

-- How long (ms) and how many dead letters are kept; 0: no limit.
function leat.read_retention(q)
  local v = redis.call('HMGET', q[CONF], 'dead_keep_ms', 'dead_keep_number')
  return setting(v[1], 0, 0), setting(v[2], 0, 0)
end

-- The lease (ms), the one that was in force before it was shortened, and until when that still applies.
local function read_leases(q)
  local v = redis.call('HMGET', q[CONF], 'lease_ms', 'floor_ms', 'floor_until')
  return setting(v[1], MIN_LEASE_MS, DEFAULT_LEASE_MS), setting(v[2], 0, 0), setting(v[3], 0, 0)
end

-- The idle time after which an entry is taken over. A shorter lease applies here one old lease later, since
-- workers may still use the old one.
function leat.read_reclaim(q)
  local lease, floor, until_ms = read_leases(q)
  return q.now < until_ms and math.max(lease, floor) or lease
end

-- When (ms) the idle time of an entry is so long that was renewed at `since`.
function leat.lease_end(q, since)
  local lease, floor, until_ms = read_leases(q)
  return math.max(since + lease, math.min(since + floor, until_ms))
end

-- For so long from now on (ms), entries are taken over after that idle time at the earliest.
function leat.set_floor(q, ms)
  redis.call('HSET', q[CONF], 'floor_ms', str(ms), 'floor_until', str(q.now + ms))
end

local function at_least(least)
  return function(value)
    local number = tonumber(value)
    return number and number >= least and number <= MOST_SETTING and number == math.floor(number)
  end
end

local function is_rate(value)
  return value == '' or leat.interval_us(value) ~= nil
end

-- The parts of 'WEIGHT, MAX_RUNNING, RATE, BURST' (see lanes.lua). A missing part or '-' is ''.
function leat.spec_parts(value)
  local parts = {}
  for part in (value .. ','):gmatch('([^,]*),') do
    part = part:match('^%s*(.-)%s*$')
    parts[#parts + 1] = part ~= '-' and part or ''
  end
  for i = #parts + 1, 4 do
    parts[i] = ''
  end
  return parts
end

function leat.is_lane(value)
  if #value > LONG_VALUE then
    return false
  end
  local parts = leat.spec_parts(value)
  local function is_whole(text)
    return text == '' or at_least(1)(text)
  end
  local weight = tonumber(parts[1])
  return value == '' or #parts == 4 and (parts[1] == 'strict' or weight and weight >= 0.001 and weight <= 1000)
    and is_whole(parts[2]) and is_rate(parts[3]) and is_whole(parts[4])
end

local function is_max_task(value)
  return value == '0' or at_least(LEAST_MAX_TASK)(value)
end

local function is_history(value)
  local number = natural(value)
  return number and number <= HISTORY_MOST or not number and duration_ms(value)
end

local function is_lanes_only(value)
  return value == 'any' or value == 'named'
end

local CHANGEABLE = {
  lease_ms = at_least(MIN_LEASE_MS), max_crashes = at_least(1), max_length = at_least(0), rate = is_rate,
  burst = at_least(1), max_task = is_max_task, dead_keep_ms = at_least(0), dead_keep_number = at_least(0),
  lanes_only = is_lanes_only, history = is_history,
}

function leat.is_changeable(name)
  return CHANGEABLE[name] ~= nil or name:sub(1, 5) == 'lane:'
end

-- Fails if conf has no such setting, or if the value is not allowed.
function leat.check_conf(name, value)
  local check = CHANGEABLE[name] or leat.may_be_lane(name:match('^lane:(.+)$') or '') and leat.is_lane
  if not check or not check(value) then
    fail('BADARG ' .. shown(name) .. ' cannot be set to ' .. shown(value))
  end
end

end
