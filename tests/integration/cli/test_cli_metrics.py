"""leat metrics: its formats, its numbers, and Prometheus itself."""
import contextlib
import functools
import http.server
import json
import subprocess
import threading
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from harness.daemon import program, write_config
from harness.polling import wait_until
from harness.tasks import wait_letters

EX_UNAVAILABLE, EX_IOERR = 69, 74
CONF = Path(__file__).parents[3] / 'conf'


def samples(text):
    """{(name, *values of labels but the queue's): value} of OpenMetrics text."""
    return {(sample.name, *(value for name, value in sorted(sample.labels.items()) if name != 'queue')):
            sample.value for family in text_string_to_metric_families(text) for sample in family.samples}


def fill(queue):
    """Each state of a task, and figures of a worker."""
    figures = {'number': 1, 'waiting:0.005': 3, 'waiting:inf': 1, 'waiting:sum': 200000007000, 'started': 5,
               'leases_lost': 2, 'memory:1000000': 4, 'memory:sum': 5000}
    queue.register('w1:1:a', heartbeat=json.dumps(
        {'slots': 8, 'capacity': 8, 'running': 3, 'state': 'pressed', 'figures': figures}))
    queue.add(*[{'command': 'x'}] * 4, {'command': 'x', 'lane': 'a "b"\n\\'}, {'command': 'x', 'lane': b'\xff'})
    queue.add({'command': 'later'}, due='+60000')
    tasks = queue.begin('w1:1:a', 3)
    queue.finish('w1:1:a', tasks[0], 'retry', cause='exit', delay=60000)
    queue.finish('w1:1:a', tasks[1], 'dead', cause='oom')


def test_numbers(leat, queue):
    """OpenMetrics text has tasks by state, workers, ends by cause, histograms and lanes with any name, and is
    valid for a strict reader."""
    fill(queue)
    done = leat('metrics')
    assert done.returncode == 0 and done.stdout.endswith('# EOF\n')
    found = samples(done.stdout)
    status = json.loads(leat('status', '--json').stdout)['figures']
    for state in ('ready', 'running', 'delayed', 'retrying', 'dead'):
        assert found['leat_tasks', state] == status[state]
    assert (found['leat_up',], found['leat_workers',], found['leat_workers_pressed',]) == (1, 1, 1)
    assert (found['leat_worker_slots',], found['leat_worker_busy',]) == (8, 1)
    assert found['leat_tasks_retried_total', 'exit'] == found['leat_tasks_dead_total', 'oom'] == 1
    assert (found['leat_tasks_started_total',], found['leat_leases_lost_total',]) == (5, 2)
    waiting = 'leat_task_waiting_seconds'
    assert [found[f'{waiting}_bucket', bound] for bound in ('0.001', '0.005', '100000', '+Inf')] == [0, 3, 3, 4]
    assert (found[f'{waiting}_count',], found[f'{waiting}_sum',]) == (4, 200000.007)
    assert found['leat_task_memory_bytes_sum',] == 5000
    assert {key[1] for key in found if key[0] == 'leat_lane_waiting'} <= {'a "b"\\n\\\\', '\\xff'}


def test_at_most_300_series(leat, queue):
    """However many lanes and causes there are, a queue has at most 300 series."""
    fill(queue)
    queue.add(*[{'command': 'x', 'lane': f'lane {i}'} for i in range(50)])
    counts = {f'e:{outcome}:{cause}': 1 for outcome in ('retry', 'dead', 'release')
              for cause in ('exit signal killed oom timeout output-limit cannot-execute refused host no-program '
                            'lease-lost shutdown reported check batch cancelled no-verdict crash expired vanished '
                            'damaged other').split()}
    queue.redis.hset(queue.stats, mapping=counts)
    found = samples(leat('metrics').stdout)
    assert 200 < len(found) <= 300
    assert len([key for key in found if key[0] == 'leat_lane_waiting']) == 10


def test_the_text_file(leat, queue, folder):
    """The file for node_exporter is replaced as a whole, readable for all, and promtool finds nothing wrong."""
    fill(queue)
    path = folder / 'leat.prom'
    path.write_text('old')
    assert leat('metrics', '--textfile', path).returncode == 0
    assert path.stat().st_mode & 0o777 == 0o644 and list(folder.glob('leat.prom.*')) == []
    checked = subprocess.run(['promtool', 'check', 'metrics'], input=path.read_text(), text=True,
                             capture_output=True)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, '')
    assert leat('metrics', '--textfile', folder / 'none' / 'x').returncode == EX_IOERR


@pytest.mark.parametrize('target', ['victim', 'none'])
def test_the_text_file_follows_no_link(queue, folder, base_config, target):
    """Whoever owns the folder of the text file, such as the user of node_exporter, cannot have root overwrite or
    make another file by a link in place of the one that is being made. It is removed, as what an interrupted
    command has left."""
    fill(queue)
    path, victim = folder / 'leat.prom', folder / 'victim'
    victim.write_text('precious')
    victim.chmod(0o600)
    made = subprocess.run(['sh', '-c', 'ln -s "$1" "$2.$$.new" && exec "$3" -c "$4" metrics --textfile "$2"',
                           'sh', folder / target, path, program('leat'),
                           write_config(folder / 'emails.ini', base_config)])
    assert made.returncode == 0
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ('precious', 0o600)
    assert 'leat_up' in path.read_text() and not path.is_symlink()
    assert not (folder / 'none').exists() and list(folder.glob('leat.prom.*')) == []


def test_a_queue_that_cannot_be_read(leat, folder):
    """It has leat_up 0 and nothing else, and the exit status says why."""
    done = leat('metrics', config={'redis': {'socket': folder / 'none.sock'}})
    assert done.returncode == EX_UNAVAILABLE and 'none.sock' in done.stderr
    found = samples(done.stdout)
    assert found['leat_up',] == 0 and {key[0] for key in found} == {'leat_up', 'leat_build_info'}


def test_rules_and_dashboard():
    """promtool accepts the rules; they and the dashboard use metrics that leat metrics prints."""
    checked = subprocess.run(['promtool', 'check', 'rules', CONF / 'prometheus-rules.yml'], text=True,
                             capture_output=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    board = json.loads((CONF / 'grafana.json').read_text())
    assert len({panel['id'] for panel in board['panels']}) == len(board['panels']) == 10


# ---- Prometheus

class Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {'': 'text/plain; version=0.0.4'}

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """A server of these files on the loopback; gives its port."""
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


@contextlib.contextmanager
def prometheus(folder, target, **scrape):
    """A Prometheus that scrapes the target each second; gives a function that asks it for {labels: value}."""
    (folder / 'prometheus.yml').write_text(json.dumps({
        'global': {'scrape_interval': '1s', 'scrape_timeout': '1s'},
        'rule_files': [str(CONF / 'prometheus-rules.yml')],
        'scrape_configs': [{'job_name': 'leat', 'static_configs': [{'targets': [f'127.0.0.1:{target}']}],
                            **scrape}]}))
    log = folder / 'prometheus.log'
    with open(log, 'wb') as out:
        process = subprocess.Popen(
            ['prometheus', f'--config.file={folder}/prometheus.yml', f'--storage.tsdb.path={folder}/data',
             '--web.listen-address=127.0.0.1:0', '--log.level=info'], stderr=out, stdout=out)
    try:
        def port():
            try:
                inodes = {link.stat().st_ino for link in Path(f'/proc/{process.pid}/fd').glob('*')
                          if str(link.readlink()).startswith('socket:')}
            except FileNotFoundError:
                return None  # a descriptor was closed meanwhile
            rows = [line.split() for line in Path(f'/proc/{process.pid}/net/tcp').read_text().splitlines()[1:]]
            ports = [int(row[1].split(':')[1], 16) for row in rows if row[3] == '0A' and int(row[9]) in inodes]
            return ports[0] if ports else None

        found = wait_until(port, 120, lambda: log.read_text())
        base = f'http://127.0.0.1:{found}/api/v1/query?'

        def ask(query):
            with contextlib.suppress(OSError), urllib.request.urlopen(
                    base + urllib.parse.urlencode({'query': query}), timeout=30) as answer:
                return {tuple(value for name, value in sorted(row['metric'].items()) if name in ('cause', 'le')):
                        float(row['value'][1]) for row in json.load(answer)['data']['result']}
            return {}
        yield ask
    finally:
        process.terminate()
        process.wait(60)


@contextlib.contextmanager
def scraped_file(folder, leat):
    """A Prometheus that scrapes the text file, and a function that writes it."""
    files = folder / 'served'
    files.mkdir()

    def write():
        assert leat('metrics', '--textfile', files / 'leat.prom').returncode == 0

    write()
    with served(files) as port, prometheus(folder, port, metrics_path='/leat.prom') as ask:
        yield ask, write


@contextlib.contextmanager
def scraped_board(folder, board):
    """A Prometheus that scrapes leat-board with its token."""
    board.start()
    authorization = {'credentials_file': str(board.token_file)}
    with prometheus(folder, board.port, authorization=authorization) as ask:
        yield ask, lambda: None


@pytest.mark.usefixtures('quick_tasks')
@pytest.mark.parametrize('way', ['file', 'board'])
def test_prometheus_has_what_happened(way, daemon, queue, leat, folder, request):
    """A real Prometheus scrapes while tasks run, the file or leat-board; in the end its values are the numbers of
    tasks that succeeded, failed and became dead letters, and of all attempts."""
    worker = daemon().wait_ready()
    board = request.getfixturevalue('board') if way == 'board' else None
    with scraped_board(folder, board) if board else scraped_file(folder, leat) as (ask, write):
        wait_until(lambda: ask('leat_up') == {(): 1.0}, 120)
        for _ in range(10):
            queue.add(*[{'command': 'true'}] * 12, {'command': 'exit 3', 'max_attempts': '3'})
            write()
        queue.add({'command': 'exit 4', 'max_attempts': '1'})
        wait_letters(queue, 11)
        wait_until(lambda: queue.counter('succeeded') == 120)
        worker.terminate()
        assert worker.wait_exit() == 0
        write()
        wait_until(lambda: ask('leat_workers') == {(): 0.0}, 120)
        # after a scrape that took too long there is no value until the next one
        for query, value in (
                ('leat_tasks_succeeded_total', {(): 120.0}), ('leat_tasks_retried_total', {('exit',): 20.0}),
                ('leat_tasks_dead_total', {('exit',): 11.0}), ('leat_tasks_started_total', {(): 151.0}),
                ('leat_task_duration_seconds_count', {(): 151.0}),
                ('leat_task_waiting_seconds_count', {(): 151.0}),
                ('leat_task_waiting_seconds_bucket{le="+Inf"}', {('+Inf',): 151.0})):
            assert wait_until(lambda query=query: ask(query)) == value
