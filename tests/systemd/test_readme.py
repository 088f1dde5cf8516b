"""README.md as a newcomer uses it: its commands run in order as they are written, and print what it shows."""
import re

import pytest

from console import Ids, blocks, steps
from unit import ROOT

pytestmark = pytest.mark.xdist_group("systemd")

USER = "alice"
# with FAKETTY, redis-cli prints its replies as on a terminal
SHELLS = {True: ["env", "FAKETTY=1", "HOME=/root", "bash", "-c"],
          False: ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups",
                  "env", "FAKETTY=1", f"HOME=/home/{USER}", "bash", "-c"]}


def run(machine, step, ids):
    """Runs a command, whose output must be as README shows it."""
    home = "/root" if step.is_root else f"/home/{USER}"
    done = machine.run(*SHELLS[step.is_root], f"cd {home}; exec 2>&1; " + ids.fill(step.command), check=False)
    shown = done.stdout + done.stderr
    assert ids.match(step.output, shown), (
        f"{step.command}\n--- expected:\n{step.output}--- actual:\n{shown}--- journal:\n{machine.tail()}")


def test_readme(fresh_machine):
    """Every console block runs as typed and prints what README shows; sh blocks hold only make, and do not run."""
    ids, ran = Ids(), 0
    fresh_machine.run("useradd", "--create-home", USER)
    for block in blocks((ROOT / "README.md").read_text()):
        if block.language == "sh":
            assert all(re.match("(sudo )?make ", line) for line in block.text.splitlines()), block.text
        else:
            assert block.language == "console", block.text
            for step in steps(block.text):
                run(fresh_machine, step, ids)
                ran += 1
    assert ran > 10


@pytest.mark.parametrize("says, shows, same", [
    ("new 1795388024315-0\n", "new 1700000000000-12\n", True),
    ("new 1795388024315-0\n", "exists 1700000000000-12\n", False),
    ("1795388024315-0 1795388024315-0", "1700000000000-0 1700000000000-0", True),
    ("1795388024315-0 1795388024315-0", "1700000000000-0 1700000000000-1", False),
    ("NAME  LONG  X\na     3ms   b", "NAME LONG  X\na    17.5s  b", True),
    ("begun 2s ago", "begun now", True),
    ("limit 20/s, 5 tasks", "limit 20/s, 6 tasks", False),
    ("one", "one\ntwo", False),
    ("one\ntwo", "one", False),
    ("on web1:90:6019e6b8", "on web1:7:abcdef01", True),
    ("died 2026-11-22 22:51:27 UTC", "died 2026-11-22", False)])
def test_comparison(says, shows, same):
    """A word that varies matches its kind only, an id matches one id only, and everything else matches itself."""
    assert Ids().match(says, shows) is same


def test_ids_of_the_run():
    """Later commands use the id that an earlier command printed."""
    ids = Ids()
    assert ids.match("1795388024315-0", "1700000000000-3")
    assert ids.fill("leat show 1795388024315-0") == "leat show 1700000000000-3"
    assert not ids.match("1795388024315-0", "1700000000000-4")
