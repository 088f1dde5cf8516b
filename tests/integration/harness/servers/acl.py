"""conf/leat.acl as an administrator installs it."""
import hashlib
import re
from pathlib import Path

FILE = Path(__file__).resolve().parents[4] / 'conf/leat.acl'
ROOT_USER = 'user root on #HASH_OF_ROOT ~* &* +@all'
ROOT_LOGIN = {'username': 'root', 'password': 'root'}


def with_passwords(text):
    """Each user's password is the last part of its name."""
    def hashed(found):
        return '#' + hashlib.sha256(found[1].lower().encode()).hexdigest()
    return re.sub(r'#HASH_OF_([A-Z]+)\b', hashed, text)


def ask(client, *words):
    """Sends a command over the one connection of client.client(). The client itself would log in anew after an
    error, since 6.0."""
    client.connection.send_command(*words)
    return client.connection.read_response()


def acl_text(queue='emails'):
    """The file for that queue, with passwords."""
    return with_passwords(FILE.read_text().replace('thumbnails', queue))


def suggested_users():
    """The users that the file suggests in comments, with passwords: {name: line}."""
    lines = re.findall(r'^#[^#]*?(user (\w+) on #HASH_OF_.*)$', FILE.read_text(), re.M)
    return {name: with_passwords(line) for line, name in lines}


def write_acl(path, *users):
    """A file for the option `include`: leat.acl, and these users."""
    path.write_text('\n'.join([acl_text(), *users, '']))
    return path
