"""The Makefile's variables for packagers: tools, options, and the libraries that pkg-config names."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PKG_CONFIG = """#!/bin/sh
case "$*" in
    *--exists*) exit {exists} ;;
    *--cflags*) echo -I/elsewhere/include/hiredis -DELSEWHERE ;;
    *--libs*) echo -L/elsewhere/lib "$@" ;;
esac
"""


def make(*words, cwd=ROOT):
    done = subprocess.run(["make", *map(str, words)], cwd=cwd, check=True, capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"]})
    return done.stdout


@pytest.fixture
def planned(tmp_path):
    """A function: the commands that would build leatd, with these variables."""
    def plan(*variables):
        return make("-n", "-B", f"BUILD={tmp_path}/build", f"{tmp_path}/build/leatd", *variables).splitlines()
    return plan


@pytest.mark.parametrize("tls", [True, False])
def test_libraries_are_those_of_pkg_config(tmp_path, planned, tls):
    """Headers and libraries come from the same place: both by pkg-config, with the folder above hiredis as well.
    TLS is built in if pkg-config knows hiredis_ssl."""
    tool = tmp_path / "pkg-config"
    tool.write_text(PKG_CONFIG.format(exists=0 if tls else 1))
    tool.chmod(0o755)
    lines = planned(f"PKG_CONFIG={tool}")
    link = next(line for line in lines if f"-o {tmp_path}/build/leatd " in line)
    assert "-L/elsewhere/lib" in link and "-lev" in link and "-lhiredis" not in link
    names = link.split("--libs ")[1].split(" -lev")[0].split()
    assert names == ["hiredis_ssl", "libssl"] * tls + ["hiredis", "inih", "libsystemd", "jansson", "libcrypto",
                                                       "libseccomp"]
    compiled = [line for line in lines if " -c -o " in line]
    assert len(compiled) > 50
    for line in compiled:
        assert "-isystem /elsewhere/include/hiredis" in line and "-isystem /elsewhere/include " in line
        assert "-DELSEWHERE" in line and ("-DLEAT_TLS" in line) == tls


def test_tools_and_options(planned):
    """CC, AR, CPPFLAGS, CFLAGS and LDFLAGS are the caller's; his level of fortification replaces ours."""
    lines = planned("CC=my-cc", "AR=my-ar", "CPPFLAGS=-D_FORTIFY_SOURCE=3", "CFLAGS=-O1", "LDFLAGS=-Wl,-mine")
    compiled = [line for line in lines if " -c -o " in line]
    assert all(line.startswith("my-cc ") and line.count("_FORTIFY_SOURCE") == 1 and "-D_FORTIFY_SOURCE=3" in line
               and " -O1" in line for line in compiled)
    assert [line for line in lines if "my-ar " in line] and not [line for line in lines if " ar " in line]
    assert [line for line in lines if line.startswith("my-cc ") and "-Wl,-mine" in line]


def test_times_have_64_bits(planned):
    """On 32-bit systems, too. Only client.c is compiled as hiredis was, since it passes a time to it."""
    compiled = [line for line in planned() if " -c -o " in line]
    without = [line.split()[-1] for line in compiled if "-D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64" not in line]
    assert without == ["src/redis/server/client.c"]


def test_programs_know_sysconfdir(tmp_path):
    """The folder of the queues' files is that of the installation."""
    objects = [tmp_path / f"src/{name}.o" for name in ("config/file/source", "daemon/options")]
    make("-s", f"BUILD={tmp_path}", "sysconfdir=/opt/conf", *objects)
    for path in objects:
        assert b"/opt/conf/leat" in path.read_bytes() and b"/etc/leat" not in path.read_bytes()


def test_builds_are_reproducible(tmp_path):
    """An object is the same wherever the source is, with debug information and assertions."""
    made = []
    for name in ("one", "two/deeper"):
        folder = tmp_path / name
        shutil.copytree(ROOT / "src", folder / "src")
        shutil.copy(ROOT / "Makefile", folder)
        make("-s", "CFLAGS=-O2 -g", "build/src/base/buffer.o", cwd=folder)
        made.append((folder / "build/src/base/buffer.o").read_bytes())
    assert made[0] == made[1] and str(tmp_path).encode() not in made[0]
