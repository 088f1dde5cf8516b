"""The library's VERSION identifies each text that was ever released under it."""
import hashlib
import re
import time
from pathlib import Path

from harness.queue import LIBRARY

RECORD = Path(__file__).with_name('library_versions.txt')
HINT = '''
The library (src/queue/lua) is not what library_versions.txt records for its VERSION.
Workers load the library only where it is missing or older: a changed text under an old number would
never reach a running queue. If version {version} has been released, raise VERSION in lua/leat.lua and
add a line here; if it has not, replace its line. The line is:
{version} {sha256}
'''


def recorded():
    lines = [line.split() for line in RECORD.read_text().splitlines() if line.strip()]
    return [(int(version), sha256) for version, sha256 in lines]


def test_each_text_of_the_library_has_its_version():
    """The text, its VERSION and the record agree."""
    data = LIBRARY.read_bytes()
    version = int(re.search(rb'^local VERSION = (\d+)', data, re.MULTILINE).group(1))
    sha256 = hashlib.sha256(data).hexdigest()
    assert (version, sha256) in recorded(), HINT.format(version=version, sha256=sha256)


def test_versions_are_recorded_once_and_in_order():
    """Each version has one line, none is removed, and the last one is the current version."""
    versions = [version for version, _ in recorded()]
    assert versions == list(range(1, len(versions) + 1))


def test_the_library_says_its_version(queue):
    """leat_version answers the VERSION of the text."""
    assert queue.version() == recorded()[-1][0]


def test_times_on_a_32_bit_server(queue):
    """There '%d' of Lua is a C long, into which a time in ms does not fit: the library notices it when it is
    loaded, and formats in another way."""
    text = LIBRARY.read_text()
    asked = "('%d'):format(2 ^ 53)"
    assert asked in text
    queue.load(text.replace(asked, "'-2147483648'"))
    assert abs(queue.register('w1')['now'] - time.time() * 1000) < 60000
    [tid] = queue.add({'command': 'true'})
    queue.program_add('command', 'true', 'at', '4102444800000')
    claimed = queue.claim('w1')
    assert [task.tid for task in claimed['tasks']] == [tid] and claimed['next_due'] == 4102444800000
