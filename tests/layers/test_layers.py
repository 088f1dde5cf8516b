"""The shape of the source: layers, sizes, and a src/DESIGN.md that names what there is."""
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
# each may include itself and what stands to its left; the two programs do not know each other
LAYERS = ("base", "config", "queue", "exec", "daemon")
ALLOWED = {layer: LAYERS[:i + 1] for i, layer in enumerate(LAYERS)}
ALLOWED["cli"] = ("base", "config", "queue", "cli")
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 80


def sources(*suffixes):
    return sorted(path for path in SRC.rglob("*") if path.suffix in suffixes and path.is_file())


def functions(path):
    """(name, lines) of each function: clang-format leaves its braces alone in the first column."""
    lines = path.read_text().splitlines()
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            head = " ".join(lines[max(0, start - 3):start])
            yield (re.findall(r"(\w+)\(", head) or ["?"])[-1], number - start + 1
            start = None


def test_includes_point_to_the_left():
    """A file includes headers of its own folder and of folders to its left."""
    wrong = []
    for path in sources(".c", ".h"):
        folder = path.parent.name
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if found and found.group(1).split("/")[0] not in ALLOWED.get(folder, ()):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {found.group(1)}")
            elif found and not (SRC / found.group(1)).exists():
                wrong.append(f"{path.relative_to(ROOT)}:{number}: no file {found.group(1)}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("header, layer", [
    ("hiredis/async.h", "queue"), ("hiredis/adapters/libev.h", "queue"), ("ini.h", "config")])
def test_each_library_is_known_to_one_layer(header, layer):
    """Asynchronous hiredis stays below queue, inih below config."""
    users = {path.parent.name for path in sources(".c", ".h") if f"<{header}>" in path.read_text()}
    assert users <= {layer}


def test_jansson_is_known_to_the_command_and_to_batches():
    """Only cli and the one file that writes tasks as JSON know jansson."""
    users = {str(path.relative_to(SRC)) for path in sources(".c", ".h")
             if path.parent.name != "cli" and "<jansson.h>" in path.read_text()}
    assert users == {"exec/batch.c"}


def test_redis_commands_are_spelled_in_queue_only():
    """Only the layer queue names Redis commands and functions of the library."""
    pattern = re.compile(r'"(leat_\w+|FCALL\w*|X(ADD|ACK|DEL|READ\w*|CLAIM|AUTOCLAIM|RANGE|GROUP|INFO))"')
    wrong = [str(path.relative_to(ROOT)) for path in sources(".c", ".h")
             if path.parent.name != "queue" and pattern.search(path.read_text())]
    assert not wrong


def test_no_file_and_no_function_grows_too_long():
    """C files hold at most 500 lines, functions at most 80."""
    wrong = []
    for path in sources(".c", ".h"):
        lines = len(path.read_text().splitlines())
        if lines > MAX_FILE_LINES:
            wrong.append(f"{path.relative_to(ROOT)}: {lines} lines")
        wrong += [f"{path.relative_to(ROOT)}: {name} has {length} lines"
                  for name, length in functions(path) if length > MAX_FUNCTION_LINES]
    assert not wrong, "\n".join(wrong)


def test_design_names_every_file_and_no_other():
    """src/DESIGN.md has a table row for each file, or for a module (`queue/task`: its .c and .h)."""
    text = (SRC / "DESIGN.md").read_text().split("\n## Files\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w./-]+)` \|", text, re.M)
    files = {str(path.relative_to(SRC)) for path in SRC.rglob("*") if path.is_file()} - {"DESIGN.md"}
    modules = {file: file.rsplit(".", 1)[0] for file in files if file.endswith((".c", ".h"))}
    missing = {file for file in files if file not in rows and modules.get(file) not in rows}
    assert not missing, f"not in src/DESIGN.md: {sorted(missing)}"
    gone = set(rows) - files - set(modules.values())
    assert not gone, f"in src/DESIGN.md, but not there: {sorted(gone)}"
    assert len(rows) == len(set(rows)), "a file has two rows"


def test_top_level_is_as_agreed():
    """Nothing but the folders and files of the layout stands at the top."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not in a git work tree")
    top = {line.split("/")[0] for line in done.stdout.splitlines()}
    allowed = {"src", "conf", "systemd", "tests", "Makefile", "README.md", "LICENSE"}
    assert {name for name in top if not name.startswith(".")} <= allowed
