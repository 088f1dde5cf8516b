"""Attempts to break upgrades in place, by a new program and by tasks: the table in RIGHTS of leatd(8)."""
import ctypes
import os
import signal
import socket
import time

import pytest

from harness.polling import wait_until
from harness.processes import takes_signals
from harness.upgrades import Service, alive

pytestmark = pytest.mark.usefixtures('quick_tasks')

# sends packets of all kinds, each with eight descriptors, and refuses with the given text
HOSTILE = """#!/usr/bin/python3 -IS
import array, socket, struct
side = socket.socket(fileno=3)
side.setblocking(True)
fds = array.array('i', [2] * 8)
def say(word, size=400, text=b''):
    packet = (struct.pack('12I', word, *[2 ** 32 - 1] * 11) + b'x' * 32 + text + bytes(256))[:size]
    side.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
for size in 1, 4, 47, 100, 400, 5000:
    for word in 0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 2 ** 32 - 1:
        say(word, size)
say(3, text=b'no\\n\\x1b[31mforged: a line')
"""


@pytest.fixture
def service(folder, daemon, manager):
    sections = {'queue': {'concurrency': 2}}
    return Service(folder, daemon(sections, start=False, env=manager.environment()), manager)


def descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


def test_hostile_program(service, queue):
    """A new program that sends whatever it likes and then refuses changes nothing: no reload, no stop, no other
    main process, no descriptor that stays open, and no line of its own in the log. Tasks run meanwhile."""
    service.install_script('#!/bin/sh\nexit 3\n')
    service.refused()
    before = descriptors(service.main)
    service.install_script(HOSTILE)
    assert service.refused().startswith('no')
    lines = service.daemon.log().splitlines()
    assert not [line for line in lines if line.startswith('forged') or '\x1b' in line or 'forged: a line' in line
                and 'upgrade to' not in line]
    assert not [line for line in lines if 'reloaded' in line or 'stopping' in line or 'upgraded' in line]
    wait_until(lambda: descriptors(service.main) <= before, message=lambda: descriptors(service.main))
    queue.add({'command': 'true'})
    wait_until(lambda: queue.counter('succeeded') == 1, message=service.daemon.log)
    assert alive(service.main)


def test_flood_of_requests(service, queue):
    """Somebody who asks for upgrades without end gets no record for each, and tasks run meanwhile."""
    service.install_script('#!/bin/sh\nexec tail -f /dev/null\n')
    service.ask()
    began = time.monotonic()
    for _ in range(300):
        service.ask()
        wait_until(lambda: takes_signals(service.main))
    records = wait_until(lambda: service.daemon.log().count('another upgrade is under way'))
    assert records <= time.monotonic() - began + 1
    queue.add({'command': 'true'})
    wait_until(lambda: queue.counter('succeeded') == 1, message=service.daemon.log)


def test_second_request_for_one_answer(service):
    """A task of the daemon's user can see for which answer leat upgrade waits, in /proc/net/unix, and ask for it
    again in its name. The answer is still that of the upgrade, and not that another one is under way."""
    number = 4711
    libc = ctypes.CDLL(None, use_errno=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as answers:
        answers.bind(f'\0leat-answer-{os.getpid()}-{number}')
        answers.settimeout(60)
        for _ in range(2):
            assert libc.sigqueue(service.main, signal.SIGUSR2, ctypes.c_void_p(number)) == 0
            wait_until(lambda: takes_signals(service.main))
        assert answers.recv(500).startswith(b'+')
    assert service.reasons() == []


def test_tasks_inherit_nothing(service, queue, folder):
    """Tasks of both processes have no descriptor of the upgrade."""
    path, go = folder / 'seen', folder / 'go'
    command = f'ls /proc/self/fd >> {path}; while ! [ -e {go} ]; do sleep 0.05; done'
    queue.add({'command': command})
    wait_until(path.exists)
    service.upgrade()
    queue.add({'command': command})
    wait_until(lambda: path.read_text().split() == ['0', '1', '2', '3'] * 2, message=path.read_text)
    go.touch()
    wait_until(lambda: queue.counter('succeeded') == 2)
