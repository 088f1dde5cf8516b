"""Daemons of other users than root, and hosts with users of their own. Needs root."""
import os
import shutil

import pytest

# ids that no user has
DAEMON, TASKS, OTHERS = 60100, 60200, 60300
CAPABILITIES = ('setuid', 'setgid', 'kill')

PASSWD = f'''root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
leatd:x:{DAEMON}:{DAEMON}:worker:{{homes}}/leatd:/usr/sbin/nologin
thumbs:x:{TASKS}:{TASKS}:tasks:{{homes}}/thumbs:/bin/bash
'''
GROUP = f'''root:x:0:
leatd:x:{DAEMON}:
thumbs:x:{TASKS}:
media:x:{OTHERS}:thumbs,leatd
photos:x:{OTHERS + 1}:thumbs
others:x:{OTHERS + 2}:leatd
'''

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which('setpriv'), reason='needs root and setpriv, to be other users')


def as_user(uid=DAEMON, capabilities=(), groups=()):
    """The words before a program that run it so."""
    having = ','.join(['-all', *('+' + name for name in capabilities)])
    return ['setpriv', f'--reuid={uid}', f'--regid={uid}',
            f'--groups={",".join(map(str, groups))}' if groups else '--clear-groups',
            f'--inh-caps={having}', f'--ambient-caps={having}']


def path_with_systemctl(folder, user='', group='', state='loaded'):
    """A PATH on which systemctl knows each unit, or none, and its user."""
    tool = folder / 'bin' / 'systemctl'
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$@" > {folder}/asked\n'
                    f'printf "User={user}\\nGroup={group}\\nLoadState={state}\\n"\n')
    tool.chmod(0o755)
    return f'{tool.parent}:{os.environ["PATH"]}'


class Host:
    """/etc/passwd, /etc/group and homes of its own, for programs that run in it."""

    def __init__(self, folder):
        self.passwd, self.group, self.homes = folder / 'passwd', folder / 'group', folder / 'homes'
        self.homes.mkdir()
        for name, uid in ('leatd', DAEMON), ('thumbs', TASKS):
            self.home(name).mkdir()
            os.chown(self.home(name), uid, uid)
        self.passwd.write_text(PASSWD.format(homes=self.homes))
        self.group.write_text(GROUP)

    def home(self, name):
        return self.homes / name

    def words(self):
        script = f'mount --bind {self.passwd} /etc/passwd && mount --bind {self.group} /etc/group && exec "$@"'
        return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, 'sh']
