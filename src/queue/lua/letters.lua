do -- Dead letters as they stand: how long they are kept.

local TRIM_STEP = 10000 -- letters that one call removes at the most, but for a node of the stream

local function trim(q, rule, exactly, threshold, ...)
  local removed = redis.call('XTRIM', q[DEAD], rule, exactly, threshold, ...)
  if removed > 0 then
    count(q, 'dead_trimmed', removed)
  end
  return removed
end

-- Whole nodes of the stream as long as there are any: only so Redis bounds its work. Then the rest, which is
-- less than a node, to the letter. Answers whether there may be more.
local function trim_some(q, rule, threshold)
  if trim(q, rule, '~', threshold, 'LIMIT', TRIM_STEP) > 0 then
    return true
  end
  trim(q, rule, '=', threshold)
  return false
end

-- One step of retention; answers whether more is due. An entry's id is when its task died.
function leat.trim_letters(q)
  local keep_ms, most = leat.read_keep(q)
  if keep_ms > 0 and trim_some(q, 'MINID', str(math.max(q.now - keep_ms, 0))) then
    return true
  end
  return most > 0 and trim_some(q, 'MAXLEN', str(most))
end

-- After a letter was written. What is far too much, as after the limit was lowered, is left to the scan.
local function keep_number(q)
  local _, most = leat.read_keep(q)
  local over = most > 0 and redis.call('XLEN', q[DEAD]) - most or 0
  if over > 0 and over <= CHUNK then
    trim(q, 'MAXLEN', '=', str(most))
  end
end

-- A letter was written: counted, and room made for it. Never stops a step.
function leat.has_died(q)
  count(q, 'dead')
  pcall(keep_number, q)
end

end
