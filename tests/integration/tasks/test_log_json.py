"""[log] target = json: an object in each line, with the fields of the journal."""
import json

from harness.daemon import merged, write_config
from harness.polling import wait_until

CONFIG_RELOADED = 'b93edb922aea4b579ab47fce460d4c32'


def records(worker):
    """All complete lines of the log. Messages from before the configuration was read are no objects."""
    lines = worker.log(whole=True).split('\n')[:-1]
    return [json.loads(line) for line in lines if line.startswith('{')]


def test_life_of_a_task(daemon, queue, client):
    """Start, output and end of a task are objects whose members are texts, with time, level and the task."""
    worker = daemon({'log': {'target': 'json', 'started': 'yes'}}).wait_ready()
    tid = client.xadd('emails', {'command': 'echo out; echo err >&2'}).decode()
    ended = wait_until(lambda: [row for row in records(worker) if row.get('event') == 'succeeded'])
    [end] = ended
    assert (end['task'], end['queue'], end['attempt'], end['exit_status']) == (tid, 'emails', '1', '0')
    assert (end['level'], end['program']) == ('info', 'leatd') and end['message'].startswith(f'task {tid}: ')
    assert end['time'].endswith('Z') and int(end['duration_usec']) > 0 and len(end['message_id']) == 32
    rows = records(worker)
    output = {(row['stream'], row['message']) for row in rows if 'stream' in row}
    assert output == {('stdout', 'out'), ('stderr', 'err')}
    assert [row['task'] for row in rows if row.get('event') == 'started'] == [tid]
    assert all(isinstance(value, str) for row in rows for value in row.values())


def test_output_cannot_forge_records(daemon, queue, client):
    """Quotes, line breaks, control characters and bytes that are not UTF-8 stay inside of one message."""
    worker = daemon({'log': {'target': 'json'}}).wait_ready()
    text = r'printf "%b" "\"}\n{\"message\":\"forged\"}\n\033[2J\0\377 \302\233 gr\303\274n \\\\ \342\200\256"'
    client.xadd('emails', {'command': text})
    wait_until(lambda: [row for row in records(worker) if row.get('event') == 'succeeded'])
    output = [row for row in records(worker) if 'stream' in row]
    assert [row['message'] for row in output] == [
        '"}', '{"message":"forged"}', '\033[2J\0\ufffd \u009b gr\u00fcn \\ \u202e']
    raw = worker.log(whole=True)
    assert '\033' not in raw and '\u009b' not in raw and '\u202e' not in raw


def test_reload_changes_the_form(daemon, base_config):
    """A reload takes a new target at once."""
    worker = daemon({'log': {'target': 'stderr'}}).wait_ready()
    assert records(worker) == []
    write_config(worker.config_path, merged(base_config, {'log': {'target': 'json'}}))
    worker.reload()
    wait_until(lambda: [row for row in records(worker) if row.get('message_id') == CONFIG_RELOADED])
