do -- Dead letters: writes one.

-- Causes of the ends of tasks that never ran, if there was no attempt before. Anyone who may add tasks can cause them.
local UNFIT = { refused = true, damaged = true, expired = true, ['cannot-execute'] = true }

local function never_ran(task, letter)
  local counted = letter.record and letter.cause ~= 'refused'
  return UNFIT[letter.cause] and task.crashes == 0 and task.attempts == (counted and 1 or 0)
end

-- Writes a dead letter. letter: cause, status, reason, record, stdout, stderr, usage, damaged, size. If the task has
-- more fields than one call can write, leat.packed has all of them. If the task never ran, q.unfit has the id of the
-- dead letter and the tid; otherwise it is nil.
function leat.write_dead_letter(q, task, letter)
  local list, n
  if task.count > MAX_FIELDS * 2 then
    local own = {}
    for i = 1, task.count do
      own[i] = task.fields[i]
    end
    list, n = { 'leat.packed', cmsgpack.pack(own) }, 2
  else
    list, n = {}, task.count
    for i = 1, n do
      list[i] = task.fields[i]
    end
  end
  local own_pairs = task.count > MAX_FIELDS * 2 and 0 or task.count / 2
  local function add(name, value)
    if value and value ~= '' then
      list[n + 1], list[n + 2] = name, value
      n = n + 2
    end
  end
  local record = letter.record or {}
  add('leat.tid', task.tid)
  add('leat.cause', letter.cause)
  add('leat.status', letter.status)
  add('leat.reason', letter.reason)
  add('leat.attempts', str(task.attempts))
  add('leat.crashes', str(task.crashes))
  add('leat.fence', str(task.fence))
  add('leat.enqueued', task.enqueued)
  add('leat.begun', record.begun)
  add('leat.died', q.now_text)
  add('leat.worker', record.consumer or letter.worker)
  add('leat.history', task.history)
  add('leat.stdout', letter.stdout)
  add('leat.stderr', letter.stderr)
  add('leat.usage', letter.usage)
  add('leat.damaged', letter.damaged)
  add('leat.size', letter.size)
  add('leat.fields', str(own_pairs))
  local id = add_entry(q, q[DEAD], list)
  leat.put_index(q, task.tid, 'd' .. id)
  q.unfit = never_ran(task, letter) and id .. ' ' .. task.tid or nil
end

end
