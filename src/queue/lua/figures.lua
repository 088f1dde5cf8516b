do -- Figures: what workers have seen, ends by cause, and the rate.
--
-- stats has them under prefixes of their own, each name only once it has been counted:
-- f:HISTOGRAM:BOUND: how many values were at most BOUND and above the bound before it; f:HISTOGRAM:sum: the sum of all
-- (µs, or bytes). f:NAME: a counter of the workers. e:OUTCOME:CAUSE: attempts that ended so, and dead letters.
-- m:now and m:then, 'MS SUCCEEDED FAILED': the totals at two earlier heartbeats, from which a rate is made.

local TIMES = '0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 25 50 100 250 500 1000 2500 5000 10000 25000 '
  .. '50000 100000 inf sum'
local SIZES = '1000000 2500000 5000000 10000000 25000000 50000000 100000000 250000000 500000000 1000000000 2500000000 '
  .. '5000000000 10000000000 25000000000 50000000000 100000000000 250000000000 500000000000 inf sum'
local CAUSES = 'exit signal killed oom timeout output-limit cannot-execute refused host no-program lease-lost shutdown '
  .. 'reported check batch cancelled no-verdict crash expired vanished damaged other'
local MARK, FORMER_MARK, MARK_MS = 'm:now', 'm:then', 10000 -- between two marks
local SMALL_STATS = 600

local NAMES_OF_FIGURES, IS_FIGURE = {}, {}

local function add_names(prefix, names)
  for name in names:gmatch('%S+') do
    NAMES_OF_FIGURES[#NAMES_OF_FIGURES + 1] = prefix .. name
    IS_FIGURE[prefix .. name] = true
  end
end

add_names('f:waiting:', TIMES)
add_names('f:duration:', TIMES)
add_names('f:cpu:', TIMES)
add_names('f:memory:', SIZES)
add_names('f:', 'started leases_lost stale_results')
add_names('e:retry:', CAUSES)
add_names('e:dead:', CAUSES)
add_names('e:release:', CAUSES)

function leat.is_figure(name)
  return IS_FIGURE[name]
end

-- The counter of an end. A worker may tell any text as a cause.
function leat.end_name(outcome, cause)
  local name = 'e:' .. outcome .. ':' .. cause
  return IS_FIGURE[name] and name or 'e:' .. outcome .. ':other'
end

-- Adds the figures of a heartbeat to those of the queue, unless the worker's last heartbeat had them, too: its reply was
-- lost. Returns the text as it is kept, with the number of the figures in place of them.
function leat.add_figures(q, text)
  local at = text:find('"figures": *{') or 1
  local packed, following = text:match('^"figures": *(%b{})()', at)
  if not packed then
    return text
  end
  local fine, figures = pcall(cjson.decode, packed)
  local number = fine and tonumber(figures.number) or 0
  local last = (redis.call('HGET', q[WORKERS], q.consumer) or ''):match('"figures":(%d+)')
  if fine and number ~= tonumber(last) then
    for name, value in pairs(figures) do
      value = IS_FIGURE['f:' .. name] and tonumber(value) or 0
      if value > 0 and value < EXACT then
        count(q, 'f:' .. name, value - value % 1)
      end
    end
  end
  return text:sub(1, at - 1) .. '"figures":' .. str(number) .. text:sub(following)
end

-- Notes the totals now and then, so that whoever reads the figures can tell the rate of the last seconds.
function leat.mark_totals(q)
  local v = redis.call('HMGET', q[STATS], MARK, 'succeeded', 'retried', 'dead')
  local since = q.now - number_or((v[1] or ''):match('^%d+'), 0)
  if since >= 0 and since < MARK_MS then
    return
  end
  local failed = number_or(v[3], 0) + number_or(v[4], 0)
  local mark = q.now_text .. ' ' .. str(number_or(v[2], 0)) .. ' ' .. str(failed)
  redis.call('HSET', q[STATS], FORMER_MARK, v[1] or mark, MARK, mark)
end

-- {name, value …} of all figures that were counted, and the marks. A small hash is a list to Redis, which would search it
-- for each name. A large one may have very many names, of lanes and workers.
function leat.read_figures(q)
  if redis.call('HLEN', q[STATS]) > SMALL_STATS then
    return leat.members_of(q[STATS], { MARK, FORMER_MARK, unpack(NAMES_OF_FIGURES) })
  end
  local list, all = {}, redis.call('HGETALL', q[STATS])
  for i = 1, #all, 2 do
    if IS_FIGURE[all[i]] or all[i] == MARK or all[i] == FORMER_MARK then
      list[#list + 1], list[#list + 2] = all[i], all[i + 1]
    end
  end
  return list
end

end
