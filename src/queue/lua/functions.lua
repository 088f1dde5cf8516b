do -- The functions by name.

-- leat_version.
-- KEYS and ARGV: none.
-- Reply: PROTOCOL, VERSION.
-- Safe to stop: no writes.
local function version()
  return { PROTOCOL, VERSION }
end

-- An argument that is left out at the end counts as empty.
local LEFT_OUT = { __index = function() return '' end }

-- Redis does not say which key has a wrong type: the error of the call does. Redis's pcall makes a text of an error,
-- to which error() would add "ERR ", so that its first word would no longer be the code.
local function naming_keys(callback)
  return function(keys, args)
    local fine, result = pcall(callback, keys, setmetatable(args, LEFT_OUT))
    if fine then
      return result
    end
    local problem = message_of(result)
    if problem:find('WRONGTYPE Operation', 1, true) then
      leat.check_types(keys)
    end
    error({ err = problem:find('^%u+ ') and problem or 'ERR ' .. problem })
  end
end

-- While a library is loaded, pairs and ipairs do not exist.
local function register_all(functions, flags)
  for i = 1, #functions, 2 do
    redis.register_function({ function_name = functions[i], callback = naming_keys(functions[i + 1]), flags = flags })
  end
end

register_all({
  'leat_add', leat.add, 'leat_add_many', leat.add_many, 'leat_enqueue', leat.enqueue, 'leat_intake', leat.intake,
  'leat_output', leat.output, 'leat_change', leat.change, 'leat_import', leat.import,
}, {})
register_all({
  'leat_claim', leat.claim, 'leat_renew', leat.renew, 'leat_register', leat.register, 'leat_init', leat.init,
  'leat_finish', leat.finish, 'leat_requeue', leat.requeue_consumer, 'leat_cancel', leat.cancel,
  'leat_gate', leat.set_pause, 'leat_conf', leat.conf, 'leat_await', leat.await, 'leat_follow', leat.follow,
  'leat_dead_retry', leat.dead_retry, 'leat_dead_drop', leat.dead_drop, 'leat_lists_turn', leat.lists_turn,
  'leat_tell', leat.tell, 'leat_repair', leat.repair, 'leat_once', leat.once, 'leat_report', leat.report,
}, { 'allow-oom' })
register_all({
  'leat_status', leat.status, 'leat_lanes', leat.lanes, 'leat_list', leat.list, 'leat_show', leat.show,
  'leat_version', version, 'leat_preview', leat.preview, 'leat_doctor', leat.doctor,
  'leat_find', leat.find, 'leat_match', leat.match, 'leat_explain', leat.explain,
}, { 'no-writes' })

end
