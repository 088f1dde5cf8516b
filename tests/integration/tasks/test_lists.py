"""[intake]: producers that know nothing of leat push items onto lists, and each item becomes a task."""
import statistics
import time

import pytest

from harness.functions.lists import Output, watched, watching
from harness.polling import wait_until
from harness.short_leases import boot_s, cpu_share, pass_time, wait_blocked, wait_empty
from harness.tasks import wait_file


@pytest.fixture
def output(folder):
    return Output(folder / 'output')


@pytest.fixture(autouse=True)
def intake(base_config, quick_tasks, output):
    """The worker has one slot, so that tasks end in the order in which they started. No lease expires, even
    if the machine stalls, and the scan finds nothing unless a test makes it frequent."""
    base_config['queue'].update(concurrency=1, lease='60s')
    base_config['task']['command'] = output.command
    base_config['intake'] = {'lists': 'work other', 'prefix': 'work:', 'scan': '1h'}


def wait_lines(output, lines, timeout=60.0):
    wait_until(lambda: len(output.lines()) >= len(lines), timeout, lambda: f'{lines}: {output.lines()}')
    assert output.lines() == lines


def wait_watching(client, keys=2, workers=1):
    """All lists are empty and watched."""
    wait_until(lambda: watching(client) == workers and watched(client) >= keys,
               message=lambda: f'{client.client_list()}, {watched(client)} keys')


def test_rpop_order(daemon, client, output):
    """The item that LPUSH added first runs first, also if it was there before the worker."""
    client.lpush('work', *range(50))
    daemon().wait_ready()
    client.lpush('work', *range(50, 100))
    wait_lines(output, [str(n) for n in range(100)])
    for number in range(100, 120):
        client.lpush('other', number)
    wait_lines(output, [str(n) for n in range(120)])
    wait_until(lambda: client.exists('work', 'other') == 0)


def test_every_byte_arrives(daemon, client, folder, queue):
    """NUL, newlines, the empty item: the payload is the item, byte for byte."""
    items = [b'', b'\0', b'a\nb', bytes(range(256)), b'x' * 3_000_000]
    target = folder / 'bytes'
    daemon({'task': {'command': f'cat >> {target}; echo "|" >> {target}'}}).wait_ready()
    client.lpush('work', *items)
    whole = b''.join(item + b'|\n' for item in items)
    assert wait_file(target, len(whole), 20.0) == whole
    wait_empty(queue)


def test_the_field_of_items(daemon, client, folder):
    """An item can become a shell line or a variable."""
    target = folder / 'field'
    one = daemon({'task': {'command': None}, 'intake': {'field': 'command'}}).wait_ready()
    client.lpush('work', f'echo line > {target}')
    assert wait_file(target, 5) == b'line\n'
    one.terminate()
    assert one.wait_exit() == 0
    daemon({'task': {'command': f'echo "$TASK_URL" >> {target}'}, 'intake': {'field': 'URL'}})
    client.lpush('work', 'http://a/?b=c d')
    assert wait_file(target, 10) == b'line\nhttp://a/?b=c d\n'


def test_prompt(daemon, client, output, late):
    """An idle worker starts an item of a known list within 50 ms: of a named list, and of one with the prefix
    that has had items before."""
    stamps = output.path.with_name('stamps')
    command = f'date "+%s%N" >> {stamps}'
    daemon({'task': {'command': command}, 'intake': {'scan': '100ms'}}).wait_ready()
    client.lpush('work:known', 'first')
    wait_file(stamps)
    for key in ('work', 'work:known'):
        delays = []
        for _ in range(7):
            wait_blocked(client)
            wait_until(lambda: watched(client) >= 3)
            before = stamps.read_text().count('\n')
            pushed = time.time()
            client.lpush(key, 'x')
            wait_until(lambda n=before: stamps.read_text().count('\n') > n)
            delays.append(int(stamps.read_text().split()[-1]) / 1e9 - pushed)
        print(key, [round(delay * 1000, 1) for delay in delays])
        assert statistics.median(delays) <= 0.05 + late.start() and max(delays) <= 5, delays


def test_idle_costs_nothing(daemon, client):
    """Between two scans an idle worker sends nothing to Redis and does not wake up."""
    worker = daemon().wait_ready()
    wait_watching(client)
    wait_blocked(client)
    client.config_resetstat()
    assert cpu_share(worker.pid, 2.0) < 0.05
    asked = client.info('commandstats')
    assert not {'cmdstat_llen', 'cmdstat_client|caching', 'cmdstat_scan', 'cmdstat_lrange'} & set(asked)


def test_new_lists_are_found(daemon, client, output):
    """A new list with the prefix is found in time, also if it comes back, and never with KEYS; other lists
    and types are left alone."""
    base = {'intake': {'lists': None, 'prefix': 'w*[k]?:\\', 'scan': '200ms'}}
    client.mset({f'filler:{n}': n for n in range(3000)})
    client.lpush('wxk1:\\a', 'not one')
    client.set('w*[k]?:\\string', 'x')
    daemon(base).wait_ready()
    client.lpush('w*[k]?:\\a', 'a')
    wait_lines(output, ['a'])
    client.lpush('w*[k]?:\\b', 'b')
    wait_lines(output, ['a', 'b'])
    for number in range(5):
        client.lpush('w*[k]?:\\a', number)
    wait_lines(output, ['a', 'b', '0', '1', '2', '3', '4'])
    assert client.lrange('wxk1:\\a', 0, -1) == [b'not one']
    stats = client.info('commandstats')
    assert 'cmdstat_scan' in stats and 'cmdstat_keys' not in stats


def test_one_worker_scans_for_all(daemon, client):
    """Two workers scan the keys no more often than one."""
    for _ in range(2):
        daemon({'intake': {'scan': '200ms'}}).wait_ready()
    wait_watching(client, workers=2)
    client.config_resetstat()
    begun = boot_s()
    pass_time(3.0)

    def walks():
        return client.info('commandstats').get('cmdstat_scan', {'calls': 0})['calls']

    wait_until(lambda: walks() >= 2)
    assert walks() <= (boot_s() - begun) / 0.2 + 2


def test_clients_lists_are_lanes(daemon, client, queue, output, folder):
    """lane_from = suffix: a client's single item does not wait behind another client's backlog; a named list
    is no lane."""
    latch = folder / 'latch'
    wait = f'while ! test -e {latch}; do sleep 0.01; done; '
    daemon({'task': {'command': Output(output.path, wait).command},
            'intake': {'lane_from': 'suffix', 'scan': '200ms'}}).wait_ready()
    client.lpush('work', 'first')
    wait_until(lambda: queue.pending())
    client.lpush('work:a', *[f'a{n}' for n in range(60)])
    client.lpush('work:b', 'b')
    wait_until(lambda: not client.exists('work:a', 'work:b'))
    latch.write_text('')
    wait_until(lambda: len(output.lines()) == 62, 30.0, output.lines)
    assert output.lines()[0] == 'first' and 'b' in output.lines()[:8]
    # a task that was claimed ahead and requeued may run after the next one of its lane
    assert sorted(output.lines()) == sorted(['first', 'b', *[f'a{n}' for n in range(60)]])


def test_a_paused_queue_takes_items(daemon, client, queue, output):
    """Items leave their lists while the queue is paused, wait in the queue, and run in order after the
    resume."""
    daemon().wait_ready()
    wait_watching(client)
    queue.gate('paused', True)
    client.lpush('work', *range(5))
    wait_until(lambda: not client.exists('work'))
    assert queue.status()['ready'] == 5 and output.lines() == []
    queue.gate('paused', False)
    wait_lines(output, [str(n) for n in range(5)])


def test_equal_items_run_once(daemon, client, queue, output, folder):
    """unique = item: an equal item is removed while the first one waits or runs; afterwards it runs again."""
    latch = folder / 'latch'
    wait = f'while ! test -e {latch}; do sleep 0.01; done; '
    daemon({'task': {'command': Output(output.path, wait).command},
            'intake': {'unique': 'item'}}).wait_ready()
    for key, items in (('work', ['a', 'b', 'a', 'x' * 300, 'x' * 300]), ('other', ['b'])):
        client.lpush(key, *items)
        wait_until(lambda key=key: not client.exists(key))
    latch.write_text('')
    wait_lines(output, ['a', 'b', 'x' * 300])
    wait_empty(queue)
    client.lpush('work', 'a')
    wait_lines(output, ['a', 'b', 'x' * 300, 'a'])


def test_an_invalid_lane_name(daemon, client, output):
    """The items of that list stay, with one record in the log; other lists go on."""
    worker = daemon({'intake': {'lane_from': 'suffix', 'scan': '100ms'}}).wait_ready()
    long = 'work:' + 'x' * 201
    client.lpush(long, 'stays')
    client.lpush('work:' + 'x' * 600, 'stays')
    worker.wait_log('cannot take items: task 1: lane: longer').wait_log('cannot take items: its name is too long')
    client.lpush('work:fine', 'runs')
    wait_lines(output, ['runs'])
    assert client.llen(long) == 1
    pass_time(0.5)
    assert worker.log().count('lane: longer than') == worker.log().count('too long') == 1


def test_a_full_queue_waits(daemon, client, queue, folder, output):
    """At max_length items stay in their list; as soon as there is room they become tasks, each once and in
    order."""
    latch = folder / 'latch'
    wait = f'while ! test -e {latch}; do sleep 0.01; done; '
    worker = daemon({'queue': {'max_length': 5},
                     'task': {'command': Output(output.path, wait).command}}).wait_ready()
    client.lpush('work', *range(50))
    worker.wait_log('queue full: ')
    assert (client.xlen(queue.stream), client.llen('work')) == (5, 45)
    assert cpu_share(worker.pid, 1.0) < 0.2
    latch.write_text('')
    wait_lines(output, [str(n) for n in range(50)], 60.0)
    worker.wait_log('queue no longer full')
    assert worker.log().count('queue full: ') == worker.log().count('queue no longer full')


def test_an_item_that_is_too_large(daemon, client, output):
    """It becomes a dead letter, and the items around it run."""
    worker = daemon({'queue': {'max_task': '64K'}}).wait_ready()
    wait_watching(client)
    client.lpush('work', 'before', 'x' * 70_000, 'behind')
    wait_lines(output, ['before', 'behind'])
    worker.wait_log('larger than max_task: it has 70007 bytes')
    assert client.llen('work') == 0


def test_full_memory_waits(daemon, client, output):
    """If Redis refuses writes, items stay, the log says why once, and they are taken when there is memory."""
    worker = daemon().wait_ready()
    wait_watching(client)
    client.config_set('maxmemory-policy', 'noeviction')
    pipeline = client.pipeline()
    pipeline.lpush('work', *range(20))
    pipeline.config_set('maxmemory', 1)
    pipeline.execute()
    worker.wait_log('list work: cannot take items: OOM')
    pass_time(0.5)
    assert client.llen('work') == 20 and output.lines() == []
    client.config_set('maxmemory', 0)
    wait_lines(output, [str(n) for n in range(20)])
    assert worker.log().count('cannot take items') == 1


def test_a_key_of_another_type_blocks_no_list(daemon, client, output):
    """The log says so once, other lists go on, and a list under that name is taken later."""
    client.set('work', 'a string')
    worker = daemon({'intake': {'scan': '100ms'}}).wait_ready()
    worker.wait_log('list work: cannot take items: WRONGTYPE')
    client.lpush('other', 'fine')
    wait_lines(output, ['fine'])
    pass_time(0.5)
    assert worker.log().count('cannot take items') == 1
    client.delete('work')
    client.lpush('work', 'now')
    wait_lines(output, ['fine', 'now'])


def test_connections_for_lists_are_lost(daemon, client, output):
    """Whichever of the two connections breaks, both come back, and new items are taken. The other connections
    stay."""
    worker = daemon().wait_ready()
    sent = 0
    for name in ('leat:emails:watch', 'leat:emails:lists') * 3:
        wait_watching(client)
        [found] = [one for one in client.client_list() if one['name'] == name]
        pipeline = client.pipeline()
        pipeline.execute_command('CLIENT', 'KILL', 'ID', found['id'])
        pipeline.lpush('work', sent)
        pipeline.execute()
        sent += 1
        wait_lines(output, [str(n) for n in range(sent)])
    assert worker.log().count('registered with Redis') == 1


def test_no_reply_to_the_subscription(daemon, client, output, proxy, through_proxy):
    """If one connection gets no reply before it listens while the others work, the worker opens it again and
    takes all items."""
    trap = proxy.trap('SUBSCRIBE', action='hold')
    client.lpush('work', 'a')
    worker = daemon({'redis': {**through_proxy['redis'], 'command_timeout': '4s'}}).wait_ready()
    trap.wait()
    wait_lines(output, ['a'])
    wait_watching(client)
    assert worker.log().count('registered with Redis') == 1


def test_redis_restarts(daemon, redis_server, client, output):
    """Items are taken again after a restart of Redis, even with an empty function library."""
    worker = daemon().wait_ready()
    redis_server.restart()
    client = redis_server.client()
    client.lpush('work', 'a')
    wait_lines(output, ['a'])
    client.execute_command('FUNCTION', 'FLUSH')
    client.lpush('work', 'b')
    wait_lines(output, ['a', 'b'])
    assert worker.running()


def test_a_flushed_database(daemon, client, output):
    """FLUSHALL means that anything may have changed, and new items are noticed. If the worker adds a task before
    it registers again, none starts for a lease."""
    daemon({'queue': {'lease': '2s'}}).wait_ready()
    wait_watching(client)
    client.flushall()
    client.lpush('work', 'after')
    wait_lines(output, ['after'])


def test_the_documented_acl_suffices(daemon, client, output):
    """The rights that leatd(8) names for lists suffice beside those that every worker needs."""
    lists = '+llen +lrange +ltrim +scan +subscribe +client|tracking +client|caching'
    others = '+client|setname +client|id +client|unblock +client|kill'
    client.execute_command(
        'ACL', 'SETUSER', 'worker', 'on', '>pw', '~*', 'resetchannels', '&__redis__:invalidate', '+@all',
        '-client', '-scan', '-@pubsub', '-@list', *others.split(), *lists.split())
    worker = daemon({'redis': {'user': 'worker', 'password': 'pw'}, 'intake': {'scan': '300ms'}})
    worker.wait_ready()
    wait_watching(client)
    client.lpush('work', 'a')
    client.lpush('work:new', 'b')
    wait_until(lambda: sorted(output.lines()) == ['a', 'b'])
    assert 'does not notify' not in worker.log() and 'cannot take items' not in worker.log()


def test_without_the_right_to_subscribe(daemon, client, output):
    """If the ACL forbids the subscription, the worker says once what it needs, and checks the lists with
    every scan."""
    client.execute_command('ACL', 'SETUSER', 'worker', 'on', '>pw', '~*', '+@all', 'resetchannels')
    worker = daemon({'redis': {'user': 'worker', 'password': 'pw'}, 'intake': {'scan': '200ms'}})
    worker.wait_ready().wait_log('Redis does not notify of changes')
    assert '__redis__:invalidate' in worker.log() and 'NOPERM' in worker.log()
    for number, key in enumerate(('work', 'work:a', 'other', 'work')):
        client.lpush(key, number)
        wait_lines(output, [str(n) for n in range(number + 1)])
    assert worker.log().count('does not notify') == 1


def test_without_the_right_to_track(daemon, client, output):
    """The same holds if the ACL forbids CLIENT TRACKING."""
    client.execute_command('ACL', 'SETUSER', 'worker', 'on', '>pw', '~*', '&*', '+@all',
                           '-client|tracking')
    worker = daemon({'redis': {'user': 'worker', 'password': 'pw'}, 'intake': {'scan': '200ms'}})
    worker.wait_ready().wait_log('Redis does not notify of changes')
    client.lpush('work', 'x')
    wait_lines(output, ['x'])


def test_a_stopping_worker_takes_nothing(daemon, client, queue, folder, output):
    """From the signal on items stay in their lists, while running tasks end."""
    latch = folder / 'latch'
    command = f'touch {folder}/begun; while ! test -e {latch}; do sleep 0.01; done; ' + output.command
    worker = daemon({'task': {'command': command}}).wait_ready()
    client.lpush('work', 'running')
    wait_file(folder / 'begun', 0)
    worker.terminate()
    worker.wait_log('stopping')
    wait_until(lambda: watching(client) == 0)
    client.lpush('work', 'left')
    latch.write_text('')
    assert worker.wait_exit() == 0
    assert output.lines() == ['running']
    assert client.lrange('work', 0, -1) == [b'left'] and client.xlen(queue.stream) == 0


def test_a_reload_changes_the_lists(daemon, client, output):
    """A reload adds, changes and removes lists."""
    worker = daemon({'intake': {'lists': None, 'prefix': None}}).wait_ready()

    def reload(**values):
        count = worker.log().count('configuration reloaded')
        lines = [f'{key} = {value}' for key, value in values.items()]
        text = worker.config_path.read_text().split('[intake]')[0]
        worker.config_path.write_text(text + '\n'.join(['[intake]', *lines]) + '\n')
        worker.reload()
        wait_until(lambda: worker.log().count('configuration reloaded') > count)

    assert watching(client) == 0
    client.lpush('work', 'a')
    reload(lists='work')
    wait_lines(output, ['a'])
    reload(lists='other')
    wait_watching(client, 1)
    client.lpush('work', 'stays')
    client.lpush('other', 'b')
    wait_lines(output, ['a', 'b'])
    reload(lists='other', field='payload')
    wait_watching(client, 1)
    client.lpush('other', 'c')
    wait_lines(output, ['a', 'b', 'c'])
    reload(scan='1h')
    wait_until(lambda: watching(client) == 0)
    client.lpush('other', 'stays')
    pass_time(0.3)
    assert output.lines() == ['a', 'b', 'c'] and client.llen('work') == client.llen('other') == 1


def test_a_cluster_with_keys_in_several_slots(daemon, redis_servers, folder, output):
    """The server refuses a list in another hash slot: the log says once what to do, and the list with the
    queue's hash tag is taken."""
    server = redis_servers(port=0, cluster_enabled='yes', cluster_config_file=str(folder / 'nodes.conf'))
    client = server.client()
    client.execute_command('CLUSTER', 'ADDSLOTSRANGE', 0, 16383)
    wait_until(lambda: b'cluster_state:ok' in client.execute_command('CLUSTER', 'INFO'))
    worker = daemon({'redis': {'socket': server.socket},
                     'intake': {'lists': 'work {emails}work', 'scan': '100ms'}}).wait_ready()
    client.lpush('work', 'x')
    client.lpush('{emails}work', 'y')
    worker.wait_log('list work: cannot take items: CROSSSLOT')
    assert 'give list and stream the same {tag}' in worker.log()
    wait_lines(output, ['y'])
    pass_time(0.5)
    assert worker.log().count('cannot take items') == 1
    assert client.llen('work') == 1
