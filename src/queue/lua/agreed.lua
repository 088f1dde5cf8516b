do -- What all workers agree on.

-- The lease (ms) and until when the gate is closed (ms; 0: open).
function leat.read_lease(q)
  local v = redis.call('HMGET', q[CONF], 'lease_ms', 'hold_until')
  local hold_until = number_or(v[2], 0)
  return number_or(v[1], DEFAULT_LEASE_MS), hold_until > q.now and hold_until or 0
end

function leat.read_max_crashes(q)
  return number_or(redis.call('HGET', q[CONF], 'max_crashes'), DEFAULT_MAX_CRASHES)
end

-- How long (ms) and how many dead letters are kept; 0: no limit.
function leat.read_keep(q)
  local v = redis.call('HMGET', q[CONF], 'dead_keep_ms', 'dead_keep_number')
  return number_or(v[1], 0), number_or(v[2], 0)
end

-- Idle time after which an entry is taken over. A shortened lease counts one old lease later.
function leat.read_reclaim(q)
  local v = redis.call('HMGET', q[CONF], 'lease_ms', 'floor_ms', 'floor_until')
  local lease = number_or(v[1], DEFAULT_LEASE_MS)
  return q.now < number_or(v[3], 0) and math.max(lease, number_or(v[2], 0)) or lease
end

end
