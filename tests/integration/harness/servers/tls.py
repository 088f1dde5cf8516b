"""Certificates, a redis-server with TLS, and a tunnel to it by the shipped recipe."""
import re
import socket
import subprocess
from pathlib import Path

from .. import processes
from ..polling import wait_until

ROOT = Path(__file__).resolve().parents[4]
RECIPE = ROOT / 'conf/leat-tls.conf'
NAME = 'localhost'


def openssl(*argv):
    subprocess.run(['openssl', *map(str, argv)], check=True, capture_output=True)


class Authority:
    """Signs certificates; `path` is its own."""

    def __init__(self, folder, name):
        self._folder, self.path, self._key = folder, folder / f'{name}.pem', folder / f'{name}.key'
        openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', 2,
                '-subj', f'/CN={name}', '-keyout', self._key, '-out', self.path)

    def sign(self, file, name=NAME):
        """(certificate, key) for that host name."""
        certificate, key = self._folder / f'{file}.pem', self._folder / f'{file}.key'
        request, names = self._folder / f'{file}.csr', self._folder / f'{file}.ext'
        names.write_text(f'subjectAltName=DNS:{name}\n')
        openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', f'/CN={name}',
                '-keyout', key, '-out', request)
        openssl('x509', '-req', '-days', 2, '-in', request, '-CA', self.path, '-CAkey', self._key,
                '-CAcreateserial', '-extfile', names, '-out', certificate)
        return certificate, key

    def lock(self, key):
        """That key with the passphrase `secret`."""
        locked = key.with_suffix('.locked')
        openssl('pkey', '-in', key, '-aes256', '-passout', 'pass:secret', '-out', locked)
        return locked


def server_options(authority, certificate, key):
    """The options with which a replicated.Server uses TLS for all its connections."""
    return {'tls_cert_file': certificate, 'tls_key_file': key, 'tls_ca_cert_file': authority.path,
            'tls_auth_clients': 'no', 'tls_replication': 'yes', 'tls_cluster': 'yes'}


def open_tls_port(server, authority, certificate, key, clients='no'):
    """Opens a TLS port of the running server, and returns it."""
    client = server.client()
    for name, value in (('tls-cert-file', certificate), ('tls-key-file', key),
                        ('tls-ca-cert-file', authority.path), ('tls-auth-clients', clients)):
        client.config_set(name, str(value))

    def listens():
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            port = probe.getsockname()[1]
        try:
            client.config_set('tls-port', port)
        except Exception:  # another process took the port first
            return None
        return port

    return wait_until(listens)


class Tunnel:
    """stunnel with conf/leat-tls.conf, with some `values` replaced."""

    def __init__(self, folder, port, authority, **values):
        self.socket, self._log = folder / 'tunnel.sock', folder / 'tunnel.log'
        values = {'connect': f'127.0.0.1:{port}', 'checkHost': NAME, 'CAfile': authority.path,
                  'accept': self.socket, **values}
        text = RECIPE.read_text()
        for name, value in values.items():
            text, found = re.subn(rf'^;?{name} = .*$', f'{name} = {value}', text, flags=re.M)
            assert found == 1, name
        config = folder / 'tunnel.conf'
        config.write_text(text)
        with open(self._log, 'wb') as log:
            self._process = processes.start(['stunnel4', str(config)], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        wait_until(self.socket.exists, message=lambda: f'the tunnel is there: {self.log()}')

    def log(self):
        return self._log.read_text(errors='replace')

    def close(self):
        processes.end(self._process)
