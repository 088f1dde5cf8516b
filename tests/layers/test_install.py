"""make install and uninstall, into a folder."""
import os
import re
import shutil
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
    expected = {"bin/leat", "bin/leatd", "bin/leat-board", "lib/systemd/system/leat-board.service",
                "lib/sysusers.d/leat-board.conf", "share/man/man8/leat-board.8",
                "lib/systemd/system/leatd@.service", "lib/systemd/system/leat.slice",
                "lib/sysusers.d/leat.conf", "lib/tmpfiles.d/leat.conf", "lib/systemd/catalog/leat.catalog",
                "share/man/man8/leatd.8",
                "share/man/man1/leat.1", "share/man/man1/leat-enqueue.1", "share/man/man1/leat-resume.1",
                "share/man/man5/leat.ini.5",
                "share/man/man7/leat-protocol.7", "share/leat/examples/leat.ini",
                "share/doc/leat/README.md", "share/bash-completion/completions/leat",
                "share/zsh/site-functions/_leat", "share/fish/vendor_completions.d/leat.fish",
                "share/leat/examples/nightly.service", "share/leat/examples/nightly.timer",
                "share/leat/clients/leat.py", "share/leat/clients/leat.js", "share/leat/clients/leat.d.ts",
                "share/leat/examples/Containerfile", "share/leat/examples/runit-run.sh",
                "share/leat/examples/archive.sh", "share/leat/examples/handler.py",
                "share/leat/examples/handler.c", "share/leat/examples/leatd-strict.conf"}
    assert {f"{inside}/{name}" for name in expected} | {"etc/logrotate.d/leat"} <= files(tmp_path)
    unit = (tmp_path / inside / "lib/systemd/system/leatd@.service").read_text()
    assert f"ExecStart={prefix}/bin/leatd -c /etc/leat/%i.ini" in unit
    example = (tmp_path / inside / "share/leat/examples/nightly.service").read_text()
    assert f"ExecStart={prefix}/bin/leat -q thumbnails enqueue" in example
    for name in ("archive", "webhook"):
        script = tmp_path / inside / f"share/leat/examples/{name}.sh"
        assert os.access(script, os.X_OK)
        assert f"command = {prefix}/share/leat/examples/{name}.sh" in script.with_suffix(".ini").read_text()
    assert files(tmp_path / inside / "share/doc/leat") == {"README.md", "LICENSE"}
    make("uninstall", tmp_path, PREFIX=prefix)
    assert files(tmp_path) == set() and not [path for path in tmp_path.rglob("*leat*")]


@pytest.mark.skipif(not shutil.which("journalctl"), reason="no journalctl here")
def test_journalctl_finds_the_catalog(tmp_path):
    """journalctl reads the installed catalog, and has a text for each MESSAGE_ID."""
    def journalctl(*words):
        return subprocess.run(["journalctl", f"--root={tmp_path}", *words], capture_output=True, text=True,
                              check=True).stdout
    make("install-files", tmp_path, PREFIX="/usr")
    (tmp_path / "var/lib/systemd/catalog").mkdir(parents=True)
    journalctl("--update-catalog")
    ids = set(re.findall(r'"([0-9a-f]{32})"', (ROOT / "src/base/log/log_ids.h").read_text()))
    listed = journalctl("--list-catalog").splitlines()
    assert {line.split()[0] for line in listed if line.split()[1] == "leat:"} == ids and len(ids) > 30
    [one] = re.findall(r'_TASK_DEAD "(\w+)"', (ROOT / "src/base/log/log_ids.h").read_text())
    assert "leat -q @LEAT_QUEUE@ dead retry ID" in journalctl("--dump-catalog", one)


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
    assert {"opt/exec/bin/leat", "opt/exec/sbin/leatd", "opt/man/man8/leatd.8", "opt/doc/README.md",
            "opt/leat/share/leat/examples/leat.ini",
            "opt/conf/logrotate.d/leat", "opt/leat/lib/systemd/system/leatd@.service",
            "opt/leat/share/bash-completion/completions/leat"} <= files(tmp_path)
    assert (tmp_path / "opt/conf/leat").is_dir()
    unit = (tmp_path / "opt/leat/lib/systemd/system/leatd@.service").read_text()
    assert "ExecStart=/opt/exec/sbin/leatd -c /opt/conf/leat/%i.ini" in unit
    assert "d /opt/conf/leat 0755" in (tmp_path / "opt/leat/lib/tmpfiles.d/leat.conf").read_text()
    assert "ExecStart=/opt/exec/sbin/leat-board\n" in (
        tmp_path / "opt/leat/lib/systemd/system/leat-board.service").read_text()
    for path in files(tmp_path) - {"opt/exec/bin/leat", "opt/exec/sbin/leatd", "opt/exec/sbin/leat-board"}:
        text = (tmp_path / path).read_text()
        others = ("/etc/leat", "/usr/bin/leat", "/etc/logrotate.d", "/usr/local/share/leat")
        assert not [name for name in others if name in text], path
    make("uninstall", tmp_path, **folders)
    assert files(tmp_path) == set()


def test_uninstalling_is_in_the_manual():
    """leatd.8 names each folder and user that the installation makes beside its files; /etc/leat is kept."""
    text = (ROOT / "src/daemon/leatd.8").read_text().split(".Sh UNINSTALLING\n")[1].split("\n.Sh ")[0]
    folders = {line.split()[1] for line in (ROOT / "systemd/leat.tmpfiles").read_text().splitlines()
               if line.startswith("d ")}
    removed = {word for line in text.splitlines() if line.startswith("# rm -rf ") for word in line.split()[3:]}
    assert folders - removed == {"/etc/leat"} and "/run/leat" in removed
    for line in (ROOT / "systemd/leat.sysusers").read_text().splitlines():
        if line.startswith("u "):
            assert f"userdel {line.split()[1]}" in text
    assert "make uninstall" in text
