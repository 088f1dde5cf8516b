"""Redis by name while the name servers are away: nothing in leatd waits for them."""
import subprocess

import pytest
from harness.short_leases import LEASE_S, MARGIN_S, boot_s, wait_empty

# replaces libc's function: while a file exists, lookups take long
SLOW = r"""
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        dlsym(RTLD_NEXT, "getaddrinfo");
    int is_address = (node && isdigit(*node)) || (hints && hints->ai_flags & AI_NUMERICHOST);
    for (int i = 0; i < 1000 && !is_address && access(getenv("SLOW_NAMES"), F_OK) == 0; i++) {
        poll(NULL, 0, 10);
    }
    return real(node, service, hints, found);
}
"""


@pytest.fixture
def slow_names(folder):
    """(the file that makes names slow, the environment)."""
    source, library, switch = folder / 'slow.c', folder / 'slow.so', folder / 'slow'
    source.write_text(SLOW)
    subprocess.run(['cc', '-shared', '-fPIC', '-o', library, source, '-ldl'], check=True)
    return switch, {'LD_PRELOAD': str(library), 'SLOW_NAMES': str(switch),
                    'ASAN_OPTIONS': 'verify_asan_link_order=0'}


@pytest.fixture
def by_name(redis_server, base_config):
    """Every daemon reaches the server as localhost."""
    base_config['redis'] = {'host': 'localhost', 'port': redis_server.listen()}


def test_by_name(daemon, by_name, queue):
    """A name is looked up at the start and after a lost connection."""
    one = daemon().wait_ready()
    queue.add({'command': 'true'})
    wait_empty(queue)
    queue.redis.client_kill_filter(_type='normal', skipme=True)
    one.wait_log('no session')
    queue.add({'command': 'true'})
    wait_empty(queue)


def test_unknown_name(daemon, base_config):
    """An unknown name is logged and looked up again; SIGTERM ends the daemon."""
    base_config['redis'] = {'host': 'no-such-host.invalid'}
    one = daemon().wait_log('no-such-host.invalid')
    one.terminate()
    assert one.wait_exit() == 0


def test_no_name_servers(daemon, slow_names, by_name, short_leases, redis_server, queue, heartbeats, late):
    """If Redis is gone and the lookup of its name takes 10 s, tasks are killed before their lease ends, and
    SIGTERM works meanwhile."""
    switch, env = slow_names
    one = daemon(env=env).wait_ready()
    queue.add({'command': heartbeats.task(60, stubborn=True)})
    heartbeats.wait_runs(1)
    switch.touch()
    begun = boot_s()
    redis_server.kill()
    runs = heartbeats.wait_dead()
    assert runs[0].last < begun + LEASE_S - MARGIN_S + 0.05 + late()
    asked = boot_s()
    one.terminate()
    one.wait_log('stopping')
    assert boot_s() - asked < 3 + late.start()
