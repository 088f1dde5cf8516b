"""make check runs every test; those that it leaves out with SAN=1 run no compiled program."""
import ast
import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# fixtures and names of the harness for leatd, leat, or a process that runs either
PROGRAMS = {"daemon", "caged", "leat", "start", "program", "run_leat", "Daemon", "processes", "subprocess",
            "machine"}


def check_tool():
    loader = importlib.machinery.SourceFileLoader("check_tool", str(ROOT / "tests/tools/check"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_tool", loader))
    loader.exec_module(module)
    return module


LEFT_OUT = [path for pattern in check_tool().NOT_COMPILED for path in sorted(ROOT.glob(pattern))
            if path.name.startswith("test_") and path.suffix == ".py" and path.parent.name != "layers"]


def test_every_file_is_run(monkeypatch):
    """The folders that pytest is given have every test file, each once."""
    monkeypatch.chdir(ROOT)
    folders = check_tool().folders()
    for path in (path.relative_to(ROOT) for path in ROOT.glob("tests/**/test_*.py")):
        assert [folder for folder in folders if Path(folder) in path.parents] == ["/".join(path.parts[:2])], path


def test_patterns_match_files():
    """The patterns match files."""
    assert len(LEFT_OUT) > 15


@pytest.mark.parametrize("path", LEFT_OUT, ids=lambda path: path.name)
def test_left_out_tests_run_no_program(path):
    """Such a test uses no fixture, and imports nothing, that starts a program of leat."""
    used = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            used |= {argument.arg for argument in node.args.args}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            used |= {name.name for name in node.names}
    assert not used & PROGRAMS, used & PROGRAMS
