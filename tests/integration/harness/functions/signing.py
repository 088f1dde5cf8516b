"""Signatures as leat-protocol(7) defines them, and keys in files."""
import hashlib
import hmac
import secrets
import time


def as_bytes(value):
    return value if isinstance(value, bytes) else str(value).encode()


def netstring(value):
    return b'%d:%s,' % (len(value), value)


def canonical(key, nonce, stream, fields):
    """fields: {name: value}."""
    own = {as_bytes(name): as_bytes(value) for name, value in fields.items()}
    own.pop(b'signature', None)
    words = [b'leat1', as_bytes(key), as_bytes(nonce), as_bytes(stream)]
    return b''.join(map(netstring, words + [part for name in sorted(own) for part in (name, own[name])]))


def signature(secret, key, nonce, stream, fields):
    mac = hmac.new(as_bytes(secret), canonical(key, nonce, stream, fields), hashlib.sha256).hexdigest()
    return f'leat1:{key}:{nonce}:{mac}'


class Key:
    """A key in a file of its own."""

    def __init__(self, folder, name):
        self.name, self.secret = name, secrets.token_hex(32)
        self.path = folder / f'{name}.key'
        self.path.write_text(self.secret + '\n')
        self.path.chmod(0o600)
        self.entry = f'{name}:{self.path}'

    def sign(self, fields, stream='emails', valid=3600, nonce=None):
        """The fields with not_after and signature; without not_after if valid is None."""
        signed = dict(fields)
        if valid is not None:
            signed.setdefault('not_after', str(int(time.time() + valid)))
        signed['signature'] = signature(self.secret, self.name, nonce or secrets.token_hex(16), stream, signed)
        return signed
