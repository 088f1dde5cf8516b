"""make dist, and what Debian's tools read from conf/debian."""
import base64
import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r"^VERSION = (\S+)$", (ROOT / "Makefile").read_text(), re.M)[1]
NAME = f"leat-{VERSION}"
# libraries that every build has (build-essential)
ESSENTIAL = {"gcc", "libc6-dev"}


def dist(folder, cwd=ROOT, umask=0o022, **env):
    """Runs the script of make dist. Returns the tarball."""
    done = subprocess.run(["tests/tools/dist", VERSION, folder], cwd=cwd, capture_output=True, text=True,
                          check=False, umask=umask, env={"PATH": os.environ["PATH"], **env})
    if "no source: there is neither" in done.stderr:
        pytest.skip("not in a git work tree")
    assert done.returncode == 0, done.stderr
    return folder / f"{NAME}.tar.gz"


def git(folder, *words):
    done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder,
                          capture_output=True, text=True, check=True)
    return done.stdout


def members(tarball):
    with tarfile.open(tarball) as tar:
        return {one.name.partition("/")[2]: (one.mode, one.uid, tar.extractfile(one).read())
                for one in tar.getmembers() if one.isfile()}


@pytest.fixture
def tarball(tmp_path):
    return dist(tmp_path / "made")


def test_tarball_has_what_is_tracked(tarball):
    """Each file of the repository, and besides only the name of the commit; programs can be executed."""
    found = members(tarball)
    tracked = set(git(ROOT, "ls-files").splitlines()) if (ROOT / ".git").exists() else set(found) - {".commit"}
    assert set(found) == tracked | {".commit"}
    assert {mode for mode, _, _ in found.values()} == {0o644, 0o755}
    assert {uid for _, uid, _ in found.values()} == {0} and found["tests/tools/dist"][0] == 0o755
    commit, seconds = found[".commit"][2].decode().split()
    assert re.fullmatch(r"release|[0-9a-f]{12}(\+changes)?", commit) and int(seconds) > 1.7e9


def test_checksum_and_list(tarball):
    """The checksum is that of the tarball. The SPDX list names each file with its hashes, and the tarball's."""
    data = tarball.read_bytes()
    checksum = hashlib.sha256(data).hexdigest()
    assert tarball.with_name(f"{NAME}.tar.gz.sha256").read_text() == f"{checksum}  {NAME}.tar.gz\n"
    text = tarball.with_name(f"{NAME}.spdx").read_text()
    assert f"PackageChecksum: SHA256: {checksum}\n" in text and f"PackageVersion: {VERSION}\n" in text
    form = r"^FileName: \./(.+)\nSPDXID: (.+)\nFileChecksum: SHA1: (.+)\nFileChecksum: SHA256: (.+)$"
    rows = re.findall(form, text, re.M)
    found = members(tarball)
    assert {name for name, *_ in rows} == set(found) and len({row[1] for row in rows}) == len(rows)
    for name, _, sha1, sha256 in rows:
        content = found[name][2]
        assert (sha1, sha256) == (hashlib.sha1(content).hexdigest(), hashlib.sha256(content).hexdigest()), name


def test_tarball_makes_itself_again(tmp_path, tarball):
    """Without a repository, and with other modes and times of files, the tarball has the same bytes."""
    folder = tmp_path / "else where"
    folder.mkdir()
    subprocess.run(["tar", "-xzf", tarball, "-C", folder, "--touch", "--no-same-permissions"], check=True,
                   umask=0o077)
    again = dist(tmp_path / "again", cwd=folder / NAME, umask=0o077, TZ="Pacific/Kiritimati", LC_ALL="C.UTF-8")
    for path in tarball.parent.iterdir():
        assert (again.parent / path.name).read_bytes() == path.read_bytes(), path.name


def clients(folder):
    """Runs the script of make dist-clients. Returns the wheel and the npm tarball."""
    done = subprocess.run([sys.executable, "tests/tools/dist-clients", VERSION, folder], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    return [Path(line) for line in done.stdout.splitlines()]


def test_packages_of_the_clients(tmp_path):
    """The wheel's list has the hash of each member, and it can be imported from where pip would unpack it; the npm
    tarball has the files that its description names, and modules of both kinds can import it."""
    wheel, tarball = clients(tmp_path)
    with zipfile.ZipFile(wheel) as packed:
        [record] = [name for name in packed.namelist() if name.endswith(".dist-info/RECORD")]
        rows = list(csv.reader(packed.read(record).decode().splitlines()))
        assert [name for name, *_ in rows] == packed.namelist()
        for name, digest, size in rows[:-1]:
            data = packed.read(name)
            hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            assert (digest, size) == (f"sha256={hashed}", str(len(data))), name
        packed.extractall(tmp_path / "site")
    done = subprocess.run([sys.executable, "-Bc", "import leat; print(leat.Queue('x').name)"], cwd=tmp_path,
                          capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": str(tmp_path / "site"), "PATH": os.environ["PATH"]})
    assert done.stdout == "x\n"
    found = members(tarball)
    package = json.loads(found["package.json"][2])
    assert package["version"] == VERSION and {package["main"], package["types"], "README.md"} <= set(found)
    if shutil.which("node"):
        unpacked = tmp_path / "node_modules/leat"
        unpacked.mkdir(parents=True)
        for name, (_, _, data) in found.items():
            (unpacked / name).write_bytes(data)
        shown = "console.log(Queue.name, serve.name)"
        for head in ("import { Queue, serve } from 'leat';", "const { Queue, serve } = require('leat');"):
            kind = "module" if head.startswith("import") else "commonjs"
            done = subprocess.run(["node", f"--input-type={kind}", "-e", head + shown], cwd=tmp_path,
                                  capture_output=True, text=True, check=True)
            assert done.stdout == "Queue serve\n"


def test_packages_of_the_clients_are_reproducible(tmp_path):
    """Two runs make the same bytes."""
    one, two = clients(tmp_path / "one"), clients(tmp_path / "two")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_no_source_is_an_error(tmp_path):
    """A copy of the files without their commit makes no tarball."""
    (tmp_path / "tests/tools").mkdir(parents=True)
    for name in ("dist", "commit"):
        (tmp_path / "tests/tools" / name).write_bytes((ROOT / "tests/tools" / name).read_bytes())
        (tmp_path / "tests/tools" / name).chmod(0o755)
    done = subprocess.run(["tests/tools/dist", VERSION, "made"], cwd=tmp_path, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1 and done.stderr.startswith("dist: no source: there is neither")


def test_what_a_work_tree_is(tmp_path):
    """The commit, whether files differ from it, and whether it is the release of that version."""
    tool = ROOT / "tests/tools/commit"

    def state(version="1.0"):
        done = subprocess.run([tool, version], cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout.split(" ")[0] if done.returncode == 0 else None

    assert state() is None
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")[:12]
    assert state() == commit
    git(tmp_path, "tag", "v1.0")
    assert (state(), state("1.1")) == ("release", commit)
    (tmp_path / "file").write_text("two")
    assert state() == f"{commit}+changes"


@pytest.mark.parametrize("commit, shown", [
    ("release 1795388024", ""), ("c47d60272913 1795388024", " (commit c47d60272913)"),
    (None, " (commit unknown)")])
def test_programs_name_the_commit(tmp_path, commit, shown):
    """--version names the commit unless this is the release; no other file is compiled with it."""
    for name in ("Makefile", "src/cli/main.c", "src/daemon/options.c", "src/daemon/heartbeat.c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    if commit:
        (tmp_path / ".commit").write_text(f"{commit}\n")
    done = subprocess.run(["make", "-n", "build/src/cli/main.o", "build/src/daemon/options.o",
                           "build/src/daemon/heartbeat.o"], cwd=tmp_path, capture_output=True, text=True,
                          check=True, env={"PATH": os.environ["PATH"]})
    lines = [line for line in done.stdout.splitlines() if " -c -o " in line]
    given = {line.split()[-1]: re.findall(r"-DLEAT_COMMIT='\"(.*?)\"'", line) for line in lines}
    assert given == {"src/cli/main.c": [shown], "src/daemon/options.c": [shown], "src/daemon/heartbeat.c": []}


def test_news_begins_with_this_version():
    """What changed in the version that is built is the first part of the news."""
    assert re.search(r"^## (\S+)", (ROOT / "src/NEWS.md").read_text(), re.M)[1] == VERSION


def test_debian_builds_with_the_same_packages():
    """Debian's list of packages for the build is that of the Makefile."""
    control = (ROOT / "conf/debian/control").read_text()
    wanted = re.search(r"^Build-Depends: (.*(?:\n .*)*)", control, re.M)[1]
    listed = re.search(r"^BUILD_PACKAGES = ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text(), re.M)[1]
    assert {word.split()[0] for word in wanted.split(",")} - {"debhelper-compat", "po-debconf"} \
        == set(listed.replace("\\", "").split()) - ESSENTIAL


def test_scripts_of_the_package_are_programs():
    """debhelper needs rules to be executable; the other scripts are, so that shellcheck and readers know them."""
    for name in ("rules", "config", "postinst", "prerm", "postrm", "leat-board.prerm", "leat-board.postrm",
                 "tests/demo", "tests/unit", "tests/board"):
        assert os.access(ROOT / "conf/debian" / name, os.X_OK), name
