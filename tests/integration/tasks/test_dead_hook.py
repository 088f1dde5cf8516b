"""[dead] notify: one worker runs a program, the hook, for each dead letter."""
import json
import signal

import pytest

from harness import processes
from harness.polling import wait_until
from harness.short_leases import SHORT
from harness.tasks import environment, open_files, wait_letters

TELLERS = 'tellers'
DEAD_AT_ONCE = {'retry': {'permanent': '1-125'}}


def lines(path):
    return path.read_text().split('\n')[:-1] if path.exists() else []


def wait_lines(path, count, timeout=20):
    wait_until(lambda: len(lines(path)) >= count, timeout,
               lambda: f'{count} lines in {path}: {lines(path)}')
    return lines(path)


def begun(queue):
    return queue.redis.exists(queue.dead) and any(
        group['name'] == TELLERS.encode() for group in queue.redis.xinfo_groups(queue.dead))


def wait_begun(queue):
    """A worker has asked for dead letters, so that later ones are handed to the hook."""
    wait_until(lambda: begun(queue), 20, 'the group is there')


def pending(queue, idle_ms=0):
    return queue.redis.execute_command(
        'XPENDING', queue.dead, TELLERS, 'IDLE', idle_ms, '-', '+', 100)


def wait_settled(queue, told=None):
    def settled():
        return not pending(queue) and told in (None, queue.counter('told'))
    wait_until(settled, 20, lambda: f'settled: {queue.redis.hgetall(queue.stats)}')


@pytest.fixture
def hook(daemon, queue, quick_tasks):
    """A function that starts a worker with notify = SHELL LINE, and waits until its hook is active."""
    def start(notify, sections=None, **dead):
        config = {'dead': {'notify': notify, **dead}, **DEAD_AT_ONCE}
        for section, values in (sections or {}).items():
            config[section] = {**config.get(section, {}), **values}
        one = daemon(config).wait_ready()
        wait_begun(queue)
        return one
    return start


def test_environment_and_input(queue, hook, folder):
    """The hook has the dead letter in its environment and the end of stderr on its stdin, and neither the payload
    nor variables that only tasks have."""
    hook(f'env -0 > {folder}/env; cat > {folder}/in.new; mv {folder}/in.new {folder}/in')
    [tid] = queue.add([('command', "printf 'no\\0space\\n' >&2; exit 3"), ('client', 'b c'),
                       ('id', 'order-7'), ('payload', 'secret'), ('timeout', '5s')])
    wait_until(lambda: (folder / 'in').exists(), 20, 'it was run')
    found = environment(folder / 'env')
    [worker] = queue.worker_heartbeats()
    wanted = {'LEAT_TASK': tid, 'LEAT_CAUSE': 'exit', 'LEAT_STATUS': '3', 'LEAT_REASON': '',
              'LEAT_ATTEMPTS': '1', 'LEAT_QUEUE': 'emails', 'LEAT_WORKER': worker,
              'LEAT_ID': 'order-7', 'TASK_client': 'b c',
              'LEAT_COMMAND': "printf 'no\\0space\\n' >&2; exit 3"}
    assert {name: found[name.encode()].decode() for name in wanted} == wanted
    assert (folder / 'in').read_bytes() == b'no\0space\n'
    assert b'secret' not in b''.join(found.values())
    for name in (b'LEAT_ATTEMPT', b'LEAT_MAX_ATTEMPTS', b'TASK_id', b'TASK_timeout'):
        assert name not in found
    wait_settled(queue, 1)


def test_fields_that_cannot_be_variables(queue, hook, folder):
    """The hook also runs for a task that was refused for its fields, with those that fit."""
    hook(f'env -0 > {folder}/new; mv {folder}/new {folder}/env')
    queue.redis.execute_command(
        'XADD', queue.stream, '*', 'command', b'a\0b', 'good', '1', 'good', '2', 'bad-name', 'x',
        'nul', b'a\0b', 'big', 'x' * 200000, 'leat.tid', 'forged', 'last', 'z')
    wait_until(lambda: (folder / 'env').exists(), 20, 'it was run')
    found = environment(folder / 'env')
    assert found[b'LEAT_CAUSE'] == b'refused' and b'twice' in found[b'LEAT_REASON']
    assert {name for name in found if name.startswith(b'TASK_')} == {b'TASK_good', b'TASK_last'}
    assert found[b'TASK_good'] == b'1' and b'LEAT_COMMAND' not in found


def test_dead_letters_of_lost_workers_are_not_checked(queue, hook, folder):
    """[task] check does not run for dead letters; the hook does in any case."""
    told, checked = folder / 'told', folder / 'checked'
    hook(f'echo "$LEAT_CAUSE" >> {told}', {'task': {'check': f'touch {checked}; exit 0'}})
    queue.redis.execute_command('XADD', queue.dead, '*', 'payload', 'x', 'leat.tid', '5-5', 'leat.crashes', '3',
                                'leat.cause', 'crash', 'leat.fields', '1')
    queue.add({'command': 'exit 3'})
    assert sorted(wait_lines(told, 2)) == ['crash', 'exit']
    wait_settled(queue, 2)
    assert not checked.exists()


def test_large_dead_letters(queue, hook, folder):
    """Redis hands out fewer large letters than a worker asks for. The worker asks again."""
    told = folder / 'told'
    # on a busy machine Redis needs long for them
    patient = {'redis': {'command_timeout': '5m'}, 'queue': {'lease': '15m'}}
    hook(f'echo "$LEAT_TASK" >> {told}', patient, notify_jobs=4)
    for number in range(3):
        queue.redis.xadd(queue.dead, {'payload': 'x' * (20 << 20), 'leat.tid': f'{number}-5', 'leat.cause': 'exit',
                                      'leat.fields': '1'})
    queue.add({'command': 'exit 3'})
    assert len(set(wait_lines(told, 4, 600))) == 4
    wait_settled(queue, 4)


def test_each_dead_letter_once(queue, hook, folder):
    """With two workers and all kinds of dead letters, the hook runs exactly once for each."""
    told = folder / 'told'
    for _ in range(2):
        hook(f'echo "$LEAT_TASK $LEAT_CAUSE" >> {told}', {'queue': {'concurrency': 3}})
    tids = queue.add(*[{'command': f'exit {i % 3 + 1}'} for i in range(40)])
    tids += queue.add({'command': 'true', 'expires': '1'}, {'command': ''},
                      {'command': 'kill -9 $$', 'max_attempts': '1'})
    rows = wait_lines(told, len(tids))
    wait_settled(queue, len(tids))
    assert sorted(row.split()[0] for row in lines(told)) == sorted(tids)
    assert {row.split()[1] for row in rows} == {'exit', 'expired', 'refused', 'killed'}


def test_notify_jobs(queue, hook, folder, latch):
    """At most notify_jobs hooks run at a time, and they take no slot of a task."""
    trace = folder / 'trace'
    hook(f'echo + >> {trace}; {latch.wait}; sleep 0.2; echo - >> {trace}', {'queue': {'concurrency': 1}},
         notify_jobs=3)
    queue.add(*[{'command': 'exit 1'}] * 12)
    wait_letters(queue, 12)
    assert wait_lines(trace, 3) == ['+'] * 3
    latch.open()
    running, most = 0, 0
    for sign in wait_lines(trace, 24):
        running += 1 if sign == '+' else -1
        most = max(most, running)
    assert most == 3


def test_a_hanging_hook_blocks_no_task(queue, hook, folder):
    """A worker with one slot runs its tasks while the hook hangs."""
    hook(f'echo x >> {folder}/told; exec sleep 60', {'queue': {'concurrency': 1}}, notify_jobs=1)
    queue.add({'command': 'exit 1'}, {'command': 'exit 1'})
    wait_lines(folder / 'told', 1)
    queue.add(*[{'command': f'echo y >> {folder}/ran'}] * 20)
    wait_lines(folder / 'ran', 20)
    wait_until(lambda: queue.status()['running'] == 0)
    assert len(lines(folder / 'told')) == 1


def test_dead_letters_of_batches(queue, hook, folder):
    """If tasks run in batches, the hook still runs once for each dead letter, with stderr on stdin."""
    hook(f'cat >> {folder}/in; echo $LEAT_TASK $TASK_n >> {folder}/told',
         {'task': {'command': 'cat > /dev/null; exit 3', 'batch': 10, 'batch_format': 'json'}})
    tids = queue.add(*[{'n': str(i)} for i in range(5)])
    rows = wait_lines(folder / 'told', 5)
    assert sorted(rows) == sorted(f'{tid} {i}' for i, tid in enumerate(tids))
    assert (folder / 'in').read_bytes() == b''


def test_no_hook_for_old_dead_letters(queue, daemon, hook, folder):
    """The hook does not run for tasks that died before it was first configured."""
    one = daemon(DEAD_AT_ONCE).wait_ready()
    queue.add({'command': 'exit 1'}, {'command': 'exit 1'})
    wait_letters(queue, 2)
    one.terminate()
    assert one.wait_exit() == 0
    hook(f'echo $LEAT_TASK >> {folder}/told')
    [tid] = queue.add({'command': 'exit 1'})
    assert wait_lines(folder / 'told', 1) == [tid]


def test_dead_letters_of_other_workers(queue, daemon, hook, folder, latch):
    """The hook also runs for dead letters of other workers, within a scan period. It runs later for those
    that died while no worker had a hook."""
    one = hook(f'echo $LEAT_TASK >> {folder}/told', {'queue': {'concurrency': 1}})
    queue.register('w')
    queue.redis.hset(queue.conf, 'dead_keep_ms', '0')
    [first] = queue.add({'command': f'{latch.wait}; exit 1'})
    wait_until(one.descendants, message='it runs')
    one.stop()
    queue.expire()
    queue.scan('w')
    [task] = queue.begin('w')
    assert queue.finish('w', task, 'dead', cause='exit') == 'ok'
    one.cont()
    latch.open()
    assert wait_lines(folder / 'told', 1) == [first]
    one.terminate()
    assert one.wait_exit() == 0
    [second] = queue.add({'command': 'exit 1'})
    [task] = queue.begin('w')
    queue.finish('w', task, 'dead', cause='exit')
    hook(f'echo $LEAT_TASK >> {folder}/told')
    assert wait_lines(folder / 'told', 2) == [first, second]


def test_dead_letters_of_renewals(queue, hook, folder):
    """If a renewal finds that a running task's entry was deleted, the hook runs for its dead letter at once."""
    hook(f'echo $LEAT_CAUSE >> {folder}/told', {'queue': {'lease': '6s', 'scan': '1h'}})
    [task] = queue.add({'command': 'sleep 1000'})
    wait_until(lambda: queue.redis.hlen(queue.running) == 1, message='it runs')
    queue.redis.xdel(queue.stream, task)
    assert wait_lines(folder / 'told', 1) == ['vanished']


def test_a_failure_is_logged_and_not_repeated(queue, hook, folder):
    """A hook that fails runs once, and its exit status and output are logged once; the dead letter stays."""
    one = hook(f'echo $LEAT_STATUS >> {folder}/told; echo moan >&2; exit 7')
    queue.add({'command': 'exit 1'}, {'command': 'exit 2'})
    wait_lines(folder / 'told', 2)
    one.wait_log('dead-letter hook failed: exit 7').wait_log('moan')
    wait_settled(queue, 2)
    assert sorted(lines(folder / 'told')) == ['1', '2'] and len(queue.letters()) == 2
    assert one.log().count('; not retried') == 2


def test_a_timeout(queue, hook, folder):
    """After the timeout the hook is killed with all its processes, by KILL if it ignores TERM, and does not
    run again."""
    one = hook(f"trap '' TERM; echo $$ >> {folder}/told; sleep 61 & wait; sleep 62",
               notify_timeout='4s')
    queue.add({'command': 'exit 1'})
    [pid] = wait_lines(folder / 'told', 1)
    one.wait_log('dead-letter hook failed: timeout')
    wait_settled(queue, 1)
    assert not processes.alive(int(pid)) and one.descendants() == []


def test_a_worker_that_dies_in_the_hook(queue, daemon, hook, folder, base_config):
    """If the worker dies, another one runs the hook after the timeout."""
    base_config['queue'].update(SHORT['queue'])
    notify = f'echo $LEAT_TASK >> {folder}/told; test -e {folder}/second || exec sleep 60'
    one = hook(notify, notify_timeout='4s')
    [tid] = queue.add({'command': 'exit 1'})
    wait_lines(folder / 'told', 1)
    one.kill9()
    (folder / 'second').touch()
    hook(notify, notify_timeout='4s')
    assert wait_lines(folder / 'told', 2) == [tid, tid]
    wait_settled(queue, 1)


def test_a_host_that_cannot_run_it(queue, hook, folder):
    """A missing program does not count against the dead letter: a worker on a better host gets it."""
    bad = hook(f'{folder}/program', {'queue': {'scan': '1h'}})
    [tid] = queue.add({'command': 'exit 1'})
    bad.wait_log('left to another worker')
    wait_until(lambda: pending(queue, 30000), 10, 'it was given back')
    hook(f'echo $LEAT_TASK >> {folder}/told')
    assert wait_lines(folder / 'told', 1) == [tid]
    wait_settled(queue, 1)
    assert bad.running()


def test_stopping_waits_for_it(queue, hook, folder):
    """A running hook has the rest of the drain, and is finished before the worker exits."""
    one = hook(f'echo >> {folder}/begun; sleep 1; echo $LEAT_TASK >> {folder}/told')
    [tid] = queue.add({'command': 'exit 1'})
    wait_lines(folder / 'begun', 1)
    one.terminate()
    assert one.wait_exit() == 0 and lines(folder / 'told') == [tid]
    wait_settled(queue, 1)


def test_stopping_ends_it(queue, hook, folder):
    """After the drain the hook gets TERM, then KILL; the next worker runs it at once."""
    one = hook(f"trap 'echo term >> {folder}/told' TERM; echo begun >> {folder}/told;"
               'while :; do sleep 0.1; done',
               {'shutdown': {'drain': '200ms'}, 'queue': {'lease': '60s'},
                'task': {'kill_grace': '5s'}})
    [tid] = queue.add({'command': 'exit 1'})
    wait_lines(folder / 'told', 1)
    one.terminate()
    assert one.wait_exit() == 0 and lines(folder / 'told') == ['begun', 'term']
    hook(f'echo $LEAT_TASK >> {folder}/told')
    assert wait_lines(folder / 'told', 3)[2] == tid
    wait_settled(queue, 1)


def test_a_hurried_stop(queue, hook, folder):
    """A second and a third signal kill hooks as they kill tasks."""
    one = hook(f"trap '' TERM; echo begun >> {folder}/told; while :; do sleep 0.1; done",
               {'task': {'kill_grace': '2s'}})
    queue.add({'command': 'exit 1'})
    wait_lines(folder / 'told', 1)
    one.terminate()
    one.wait_log('stopping: running tasks may finish')
    one.terminate()
    one.wait_log('stopping: ending running tasks')
    one.signal(signal.SIGTERM)
    assert one.wait_exit() == 0
    assert not processes.end_orphans()


def test_reload(queue, daemon, quick_tasks, folder):
    """The hook can be switched on, changed and switched off while the worker runs."""
    one = daemon(DEAD_AT_ONCE).wait_ready()

    def configure(line):
        text = one.config_path.read_text().split('[dead]')[0]
        one.config_path.write_text(text + (f'[dead]\nnotify = {line}\n' if line else ''))
        seen = one.log().count('configuration reloaded')
        one.reload()
        wait_until(lambda: one.log().count('configuration reloaded') > seen, 10, one.log)

    queue.add({'command': 'exit 1'})
    wait_letters(queue, 1)
    configure(f'echo first $LEAT_STATUS >> {folder}/told')
    wait_begun(queue)
    queue.add({'command': 'exit 2'})
    assert wait_lines(folder / 'told', 1) == ['first 2']
    configure(f'echo second $LEAT_STATUS >> {folder}/told')
    queue.add({'command': 'exit 3'})
    assert wait_lines(folder / 'told', 2)[1] == 'second 3'
    wait_settled(queue, 2)
    configure(None)
    queue.add({'command': 'exit 4'})
    wait_letters(queue, 4)
    one.terminate()
    assert one.wait_exit() == 0 and len(lines(folder / 'told')) == 2


def test_broken_connection(queue, hook, folder, proxy, through_proxy):
    """If the connection breaks while hooks run, the finished ones are reported afterwards, once."""
    hook(f'echo $LEAT_TASK >> {folder}/told; while test ! -e {folder}/go; do sleep 0.05; done',
         through_proxy)
    [tid] = queue.add({'command': 'exit 1'})
    wait_lines(folder / 'told', 1)
    proxy.cut()
    (folder / 'go').touch()
    wait_settled(queue, 1)
    assert lines(folder / 'told') == [tid]


def test_a_broken_dead_letter_stream_blocks_no_task(queue, hook, folder):
    """Whatever is wrong with the dead letters, tasks run on, and the log says so once."""
    one = hook(f'echo >> {folder}/told')
    queue.redis.delete(queue.dead)
    queue.redis.set(queue.dead, 'x')
    one.wait_log('dead-letter hook: cannot fetch dead letters: WRONGTYPE')
    one.wait_log('; give the queue another name, or set stream in [queue]')
    queue.add(*[{'command': f'echo y >> {folder}/ran'}] * 5)
    wait_lines(folder / 'ran', 5)
    queue.redis.delete(queue.dead)
    queue.add({'command': 'exit 1'})
    wait_lines(folder / 'told', 1)
    assert one.log().count('cannot fetch dead letters') == 1


def test_counters(queue, daemon, folder, quick_tasks, leat):
    """leat status counts dead letters that were handed to the hook, and no descriptor stays open in the
    worker."""
    one = daemon({'dead': {'notify': 'true'}, **DEAD_AT_ONCE}).wait_ready()
    wait_begun(queue)
    files = open_files(one.pid)
    queue.add(*[{'command': 'exit 1'}] * 30)
    wait_settled(queue, 30)
    wait_until(lambda: open_files(one.pid) == files, 10, 'files are closed')
    one.wait_log('dead-letter hook succeeded: exit 0')
    status = json.loads(leat('status', '--json').stdout)
    assert status['figures']['total_notified'] == 30
