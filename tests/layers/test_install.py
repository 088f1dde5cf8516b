"""make install and uninstall, into a folder."""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(target, root, **variables):
    build = os.environ.get("LEAT_BUILD", "build")
    subprocess.run(["make", "-s", target, f"BUILD={build}", f"DESTDIR={root}",
                    *(f"{name}={value}" for name, value in variables.items())],
                   cwd=ROOT, check=True, env={"PATH": os.environ["PATH"]})


def files(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local"])
def test_install_and_uninstall(tmp_path, prefix):
    """All files are installed below the prefix, the unit names the program there, and uninstall removes all."""
    make("install-files", tmp_path, PREFIX=prefix)
    inside = prefix.lstrip("/")
    expected = {"bin/leat", "bin/leatd", "lib/systemd/system/leatd@.service", "lib/systemd/system/leat.slice",
                "lib/sysusers.d/leat.conf", "lib/tmpfiles.d/leat.conf", "share/man/man8/leatd.8",
                "share/man/man1/leat.1", "share/man/man1/leat-enqueue.1", "share/man/man1/leat-resume.1",
                "share/man/man5/leat.ini.5",
                "share/man/man7/leat-protocol.7", "share/doc/leat/leat.ini",
                "share/doc/leat/README.md", "share/bash-completion/completions/leat",
                "share/doc/leat/nightly.service", "share/doc/leat/nightly.timer"}
    assert {f"{inside}/{name}" for name in expected} | {"etc/logrotate.d/leat"} <= files(tmp_path)
    unit = (tmp_path / inside / "lib/systemd/system/leatd@.service").read_text()
    assert f"ExecStart={prefix}/bin/leatd -c /etc/leat/%i.ini" in unit
    example = (tmp_path / inside / "share/doc/leat/nightly.service").read_text()
    assert f"ExecStart={prefix}/bin/leat -q thumbnails enqueue" in example
    make("uninstall", tmp_path, PREFIX=prefix)
    assert files(tmp_path) == set()


def test_install_keeps_configs(tmp_path):
    """A queue's own file in /etc/leat survives both."""
    config = tmp_path / "etc/leat/thumbnails.ini"
    config.parent.mkdir(parents=True)
    config.write_text("[queue]\n")
    make("install-files", tmp_path, PREFIX="/usr")
    make("uninstall", tmp_path, PREFIX="/usr")
    assert config.read_text() == "[queue]\n"


def test_gnu_names_of_folders(tmp_path):
    """Packagers name folders as the GNU coding standards do. Each file lands in its folder, and no installed
    file names another one."""
    folders = {"prefix": "/opt/leat", "exec_prefix": "/opt/exec", "sbindir": "/opt/exec/sbin",
               "mandir": "/opt/man", "sysconfdir": "/opt/conf", "docdir": "/opt/doc"}
    make("install-files", tmp_path, **folders)
    assert {"opt/exec/bin/leat", "opt/exec/sbin/leatd", "opt/man/man8/leatd.8", "opt/doc/leat.ini",
            "opt/conf/logrotate.d/leat", "opt/leat/lib/systemd/system/leatd@.service",
            "opt/leat/share/bash-completion/completions/leat"} <= files(tmp_path)
    assert (tmp_path / "opt/conf/leat").is_dir()
    unit = (tmp_path / "opt/leat/lib/systemd/system/leatd@.service").read_text()
    assert "ExecStart=/opt/exec/sbin/leatd -c /opt/conf/leat/%i.ini" in unit
    assert "d /opt/conf/leat 0755" in (tmp_path / "opt/leat/lib/tmpfiles.d/leat.conf").read_text()
    for path in files(tmp_path) - {"opt/exec/bin/leat", "opt/exec/sbin/leatd"}:
        text = (tmp_path / path).read_text()
        others = ("/etc/leat", "/usr/bin/leat", "/etc/logrotate.d", "/usr/local/share/doc/leat")
        assert not [name for name in others if name in text], path
    make("uninstall", tmp_path, **folders)
    assert files(tmp_path) == set()
