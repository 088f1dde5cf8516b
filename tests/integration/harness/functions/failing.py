"""The library with one of its writes made to fail."""
from ..queue import LIBRARY

# Begins the copy: redis.call and redis.pcall go through a counter of writes. At the beginning of each call
# the key test:fail tells which write fails: a number, and 'on' if all later ones fail, too. test:writes is
# the number of writes.
WRAPPER = '''
local test_at, test_on, test_writes = 0, false, 0
local TEST_WRITES = {
  XADD = true, XACK = true, XDEL = true, XCLAIM = true, XAUTOCLAIM = true, XREADGROUP = true,
  XGROUP = true, HSET = true, HSETNX = true, HDEL = true, HINCRBY = true, ZADD = true, ZREM = true,
  SADD = true, SREM = true, PEXPIRE = true, LTRIM = true,
}
local function test_fails(command)
  if not TEST_WRITES[command] then
    return false
  end
  test_writes = test_writes + 1
  return test_writes == test_at or test_on and test_at > 0 and test_writes > test_at
end
local function test_call(command, ...)
  if test_fails(command) then
    error({ err = 'INJECTED ' .. command })
  end
  return redis.call(command, ...)
end
local function test_pcall(command, ...)
  if test_fails(command) then
    return { err = 'INJECTED ' .. command }
  end
  return redis.pcall(command, ...)
end
local function test_wrap(callback)
  return function(keys, args)
    local plan = redis.call('GET', 'test:fail') or '0'
    test_at, test_on, test_writes = tonumber(plan:match('^%d+')), plan:match('on$') ~= nil, 0
    local fine, result = pcall(callback, keys, args)
    redis.call('SET', 'test:writes', test_writes)
    if not fine then
      error(result, 0)
    end
    return result
  end
end
'''


def failing_library():
    source = LIBRARY.read_text()
    head, body = source.split('\n', 1)
    assert 'naming_keys(functions[i + 1])' in body
    body = body.replace('redis.call(', 'test_call(').replace('redis.pcall(', 'test_pcall(')
    body = body.replace('naming_keys(functions[i + 1])', 'test_wrap(naming_keys(functions[i + 1]))')
    # only enqueue writes without the flag, and only the reading functions must not write
    body = body.replace("{ 'no-writes' }", "{ 'allow-oom' }")
    return head + WRAPPER + body


class Failing:
    """Decides which write of the next calls fails."""

    def __init__(self, queue):
        self.queue, self.redis = queue, queue.redis
        queue.load(failing_library())

    def at(self, number, and_on=False):
        self.redis.set('test:fail', f'{number}{" on" if and_on else ""}')

    def off(self):
        self.redis.delete('test:fail')

    def writes(self):
        """How many writes the last call made or tried."""
        return int(self.redis.get('test:writes') or 0)
