"""Rare coincidences in the worker: events that come while another is being handled."""
import pytest

from harness import processes
from harness.polling import wait_until
from harness.queue import LIBRARY
from harness.short_leases import pass_time, wait_blocked, wait_empty
from harness.tasks import wait_succeeded

# a claim of one task by an idle worker that names no token
CLAIM_ONE = rb'\$1\r\n1\r\n\$1\r\n0\r\n\$0\r\n\r\n$'

# a claim of a task that was read, and of seven more
SEVEN_MORE = rb'\$1\r\n7\r\n\$1\r\n0\r\n\$0\r\n\r\n\$\d+\r\ns\d+-\d+\r\n$'


@pytest.fixture(autouse=True)
def patient(base_config):
    """Scans and heartbeats are rare, so that nothing is found by chance."""
    base_config['queue'].update(lease='60s', scan='60s', concurrency=1)
    base_config['task'] = {'kill_grace': '300ms'}
    base_config['shutdown'] = {'drain': '10ms'}


def named(client, name):
    """How many connections Redis has whose name ends with it."""
    return sum(one['name'].endswith(name) for one in client.client_list())


def lines(path):
    return path.read_text().split() if path.exists() else []


def most_at_once(marks):
    """The largest number that ran side by side, from lines + and -."""
    now = most = 0
    for mark in marks:
        now += 1 if mark == '+' else -1
        most = max(most, now)
    return most


def test_wakeup_during_a_claim(daemon, queue, client, proxy, through_proxy, folder):
    """If the wakeup comes after a claim ran and before its reply is read, the due time that it announces is
    not missed."""
    out = folder / 'out'
    daemon(through_proxy).wait_ready()
    wait_blocked(client)
    claim = proxy.trap('leat_claim', action='hold', holding=CLAIM_ONE)
    for name, due in (('second', '+60000'), ('first', '+200')):
        heard = proxy.trap('XREAD', when='before', action='hold')
        queue.add({'command': f'echo {name} >> {out}'}, due=due)
        claim.wait()
        heard.wait().release()
    claim.release()
    wait_until(lambda: lines(out) == ['first'])


def test_never_beyond_the_slots(daemon, queue, client, proxy, through_proxy, folder):
    """If a blocking read finds tasks in both streams it delivers twice as many as asked for: no more of them
    start than there are slots, and the others are requeued."""
    out = folder / 'out'
    line = f'echo + >> {out}; sleep 0.3; echo - >> {out}'
    read = proxy.trap('XREADGROUP', when='before', action='hold')
    daemon(through_proxy).wait_ready()
    read.wait()
    queue.add(*[{'command': line}] * 2)
    for task in queue.begin('other', 2):
        queue.finish('other', task, 'release')
    queue.add(*[{'command': line}] * 2)
    assert client.xlen(queue.go) == client.xlen(queue.stream) == 2
    read.release()
    wait_until(lambda: len(lines(out)) == 8)
    wait_empty(queue)
    assert most_at_once(lines(out)) == 1


def test_more_than_a_thousand_at_once(daemon, queue, client):
    """With thousands of slots a read never delivers more tasks than one claim may name."""
    one = daemon({'queue': {'concurrency': 10000}}).wait_ready()
    wait_blocked(client)
    queue.enqueue(*[{'command': 'true'}] * 1200)
    wait_empty(queue, 30)
    assert 'no session' not in one.log()


def test_nothing_is_taken_while_redis_refuses(daemon, queue, client):
    """While outcomes wait because Redis refuses them, no further tasks are claimed, also when they are sent
    again."""
    one = daemon({'queue': {'concurrency': 2}, 'retry': {'max_attempts': 1}}).wait_ready()
    wait_blocked(client)
    client.set(queue.dead, 'somebody else')
    queue.add(*[{'command': 'exit 1'}] * 20)
    one.wait_log('keeping it and retrying')
    pass_time(3.5)
    # as many again may have been claimed before the first refusal was known
    assert client.hlen(queue.running) <= 4
    client.delete(queue.dead)
    wait_until(lambda: len(queue.letters()) == 20)


def test_nothing_is_read_while_redis_refuses(daemon, queue, client):
    """While an outcome waits because Redis refuses it, a worker with free slots ends its blocking read, so that
    new tasks stay in the stream; it reads again when the outcome has been settled."""
    one = daemon({'queue': {'concurrency': 4}, 'retry': {'max_attempts': 1}}).wait_ready()
    wait_blocked(client)
    client.set(queue.dead, 'somebody else')
    queue.add({'command': 'exit 1'})
    one.wait_log('keeping it and retrying')
    wait_blocked(client, 0)
    queue.add({'command': 'true'})
    assert queue.counter('succeeded') == 0 and len(queue.pending()) == 1
    client.delete(queue.dead)
    wait_until(lambda: queue.counter('succeeded') == 1 and len(queue.letters()) == 1)
    wait_blocked(client)


def test_work_connection_half_open(daemon, queue, client, proxy, through_proxy, folder):
    """If the connection of the blocking read is dead without an end, a worker that has to claim does not wait
    for it forever."""
    out = folder / 'out'
    through_proxy['redis']['command_timeout'] = '500ms'
    read = proxy.trap('XREADGROUP', when='before', action='hold')
    daemon(through_proxy).wait_ready()
    read.wait()
    queue.add({'command': f'echo due >> {out}'}, due='+100')
    wait_until(lambda: lines(out) == ['due'])


def expired(queue, client):
    """A task in the stream with an expired lease, added without waking blocked workers."""
    pipe = client.pipeline(transaction=True)
    pipe.xadd(queue.stream, {'command': 'true'})
    pipe.xreadgroup(queue.group, 'other', {queue.stream: '>'})
    entry = pipe.execute()[0]
    client.xclaim(queue.stream, queue.group, 'other', 0, [entry], idle=3_600_000, justid=True)


def test_read_connection_silent(daemon, queue, client, proxy, through_proxy, folder):
    """A worker notices that no answer arrives on the connection of its blocking read, although a proxy keeps it
    alive: the task that Redis has sent into it runs within a lease or two, and so does the next."""
    out = folder / 'out'
    worker = daemon({**through_proxy, 'queue': {'lease': '2s', 'scan': '60s'}}).wait_ready()
    wait_blocked(client)
    silent = proxy.trap('XREADGROUP', action='hold')
    for number in ('1', '2'):
        queue.add({'command': f'echo {number} >> {out}'})
    silent.wait()
    wait_until(lambda: lines(out) == ['1', '2'] or lines(out) == ['2', '1'])
    assert 'no answer within' in worker.log() and 'Redis was busy' not in worker.log()


def test_wakeup_connection_silent(daemon, queue, client, proxy, through_proxy):
    """A worker notices that no answer arrives on the connection for wakeups, and opens another one."""
    one = daemon({**through_proxy, 'queue': {'lease': '2s', 'scan': '60s'}}).wait_ready()
    wait_blocked(client)
    silent, accepted = proxy.trap('XREAD', action='hold'), proxy.accepted
    client.xadd(queue.bell, {'why': 'nothing'})
    silent.wait()
    wait_until(lambda: proxy.accepted > accepted, message=one.log)


def test_read_while_writes_are_paused(daemon, queue, client, proxy, through_proxy):
    """Redis holds back a blocking read while writes are paused, as during FAILOVER, and most versions crash if
    CLIENT UNBLOCK is to end it then. A worker that stops ends it after the pause."""
    read = proxy.trap('XREADGROUP', when='before', action='hold')
    worker = daemon(through_proxy).wait_ready()
    read.wait()
    client.execute_command('CLIENT', 'PAUSE', '2000', 'WRITE')
    read.release()
    wait_until(lambda: any(one['cmd'] == 'xreadgroup' and 'b' in one['flags'] for one in client.client_list()))
    worker.terminate()
    assert worker.wait_exit() == 0 and client.ping()


def test_stop_while_scanning(daemon, queue, client, proxy, through_proxy):
    """A worker that stops during a scan does not continue it after it has left: no consumer stays behind."""
    through_proxy['queue'] = {'scan': '500ms'}
    one = daemon(through_proxy).wait_ready()
    wait_blocked(client)
    scan = proxy.trap('leat_claim', action='hold', holding=b'g0-0').wait()
    expired(queue, client)
    left = proxy.trap('leat_requeue', when='before', action='hold')
    one.terminate()
    left.wait().release()
    wait_until(lambda: client.hlen(queue.workers) == 0)
    answer = proxy.trap('leat_requeue', action='hold')
    scan.release()
    answer.wait()
    pass_time(0.1)
    answer.release()
    assert one.wait_exit() == 0
    consumers = client.xinfo_consumers(queue.stream, queue.group)
    assert [consumer['name'] for consumer in consumers] == [b'other']


def test_a_lasting_error_is_not_logged_repeatedly(daemon, queue):
    """If every claim fails and every registration succeeds, the pauses still grow."""
    source, head = LIBRARY.read_text(), 'function leat.claim(keys, args)\n'
    assert head in source
    queue.load(source.replace(head, head + "  fail('ERR made to fail')\n"))
    one = daemon({'redis': {'backoff_base': '20ms'}})
    one.wait_log('no session')
    pass_time(3)
    assert one.log().count('no session') <= 10


def test_failed_attempt_leaves_nothing_in_its_session(daemon, queue, folder):
    """Silent processes of a failed attempt, in other groups of its session, are dead before the next attempt
    may start."""
    pid = folder / 'pid'
    stray = f'sleep 60 </dev/null >/dev/null 2>&1 & echo $! > {pid}'
    line = f"bash -c 'set -m; {stray}; sleep 0.2; exit 1'"
    daemon({'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'command': line})
    wait_until(queue.letters)
    assert not processes.alive(int(pid.read_text()))


def test_shorter_lease_ends_nothing(daemon, queue, client, folder):
    """If the lease is set too short for kill_grace, nothing is claimed, but running tasks are renewed and
    finish."""
    out = folder / 'out'
    one = daemon({'queue': {'lease': '12s'}, 'task': {'kill_grace': '4s'}}).wait_ready()
    queue.add({'command': f'echo + >> {out}; sleep 7; echo - >> {out}'})
    wait_until(lambda: lines(out) == ['+'])
    queue.call('conf', 'lease_ms', 4000)
    one.wait_log('claiming nothing')
    wait_empty(queue)
    assert lines(out) == ['+', '-']
    client.xadd(queue.stream, {'command': 'true'})
    pass_time(0.3)
    assert client.hlen(queue.running) == 0
    queue.call('conf', 'lease_ms', 12000)
    wait_empty(queue)


def test_stop_while_a_claim_s_reply_is_lost(daemon, queue, client, proxy, through_proxy):
    """If the connection breaks at SIGTERM, just after a task was claimed for this worker, it registers once
    more and requeues the task."""
    claim = proxy.trap('leat_claim', action='hold', holding=rb'\r\ns\d+-\d+\r\n$')
    one = daemon(through_proxy).wait_ready()
    wait_blocked(client)
    client.xadd(queue.stream, {'command': 'true'})
    claim.wait()
    one.terminate()
    one.wait_log('stopping')
    proxy.cut()
    assert one.wait_exit() == 0
    assert queue.pending() == [] and client.hlen(queue.running) == 0
    [task] = queue.begin('other')
    assert (task.attempt, task.crashes) == (1, 0)


def test_all_of_a_burst_from_afar(daemon, queue, client, proxy, through_proxy):
    """If Redis is so far away that each read takes its time, a worker that has waited claims all tasks that it has
    room for in one call."""
    daemon({**through_proxy, 'queue': {'concurrency': 8}}).wait_ready()
    proxy.delay(0.002)
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    wait_blocked(client)
    claim = proxy.trap('leat_claim', when='before', action='hold', holding=SEVEN_MORE)
    queue.add(*[{'command': 'true'}] * 8)
    claim.wait()
    assert len(queue.pending()) == 1
    claim.release()
    wait_succeeded(queue, 9)


def test_a_registration_that_comes_late(daemon, queue, client, proxy, through_proxy, latch):
    """If the network delivers a registration after that of the next session, and after a claim, it returns none of
    the worker's tasks to the queue."""
    through_proxy['redis']['command_timeout'] = '500ms'
    daemon(through_proxy).wait_ready()
    late = proxy.trap('leat_register', when='before', action='hold')
    proxy.cut()
    late.wait()
    wait_until(lambda: named(client, ':command') == 2)
    wait_blocked(client)
    queue.add({'command': latch.command})
    [token] = wait_until(lambda: client.hkeys(queue.running))
    late.release()
    wait_until(lambda: named(client, ':command') == 1)
    assert client.hkeys(queue.running) == [token]


def test_a_claim_that_comes_late_after_moves(
        daemon, queue, client, proxy, redis_server, redis_servers, folder, latch):
    """If the worker's server loses its role to a replica, and gets it back within seconds, a claim that the
    network delivers only then, from the first session there, claims nothing."""
    replica, current = redis_servers(), folder / 'current.sock'
    there = replica.client()
    for one in (client, there):
        one.config_set('repl-diskless-sync-delay', 0)
    there.execute_command('REPLICAOF', '127.0.0.1', redis_server.listen())
    wait_until(lambda: client.execute_command('WAIT', 1, 100) == 1)
    current.symlink_to(proxy.path)
    late = proxy.trap('leat_claim', when='before', action='hold', holding=CLAIM_ONE)
    worker = daemon({'redis': {'socket': str(current), 'command_timeout': '500ms'}})
    late.wait()
    there.execute_command('REPLICAOF', 'NO', 'ONE')
    current.unlink()
    current.symlink_to(replica.socket)
    wait_until(lambda: worker.log().count('registered with Redis') == 2)

    client.execute_command('REPLICAOF', '127.0.0.1', replica.listen())
    wait_until(lambda: there.execute_command('WAIT', 1, 100) == 1)
    client.execute_command('REPLICAOF', 'NO', 'ONE')
    current.unlink()
    current.symlink_to(redis_server.socket)
    replica.kill()
    wait_until(lambda: worker.log().count('registered with Redis') == 3)
    wait_blocked(client)
    queue.add({'command': latch.command})
    [token] = wait_until(lambda: client.hkeys(queue.running))
    queue.add({'command': 'true'})
    late.release()
    wait_until(lambda: named(client, ':command') == 1)
    assert client.hkeys(queue.running) == [token]
