"""The structure of the source: layers, sizes, and a src/DESIGN.md that names what exists."""
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
MAX_FILE_LINES = 700
MAX_FUNCTION_LINES = 80


def folders():
    """The folders of src/DESIGN.md, in the order of its table."""
    text = (SRC / "DESIGN.md").read_text().split("\n## Folders\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([\w./-]+)` \|", text, re.M)


def sources(*suffixes):
    return sorted(path for path in SRC.rglob("*") if path.suffix in suffixes and path.is_file())


def layer_of(path):
    return path.relative_to(SRC).parts[0]


def functions(path):
    """(name, lines) of each function; clang-format puts only its braces into the first column."""
    lines = path.read_text().splitlines()
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            head = " ".join(lines[max(0, start - 3):start])
            yield (re.findall(r"(\w+)\(", head) or ["?"])[-1], number - start + 1
            start = None


def includes(path):
    """(line number, header) of each include of a header in src."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if found:
            yield number, found.group(1)


def test_includes_point_upward():
    """A file includes headers of its own folder and of folders above it in DESIGN's table; cli, board and daemon
    do not include each other, and none of view, cli and board starts processes."""
    order = {folder: place for place, folder in enumerate(folders())}
    wrong = []
    for path in sources(".c", ".h"):
        folder = str(path.parent.relative_to(SRC))
        for number, header in includes(path):
            target = header.rpartition("/")[0]
            mine, theirs = folder.split("/")[0], target.split("/")[0]
            apart = mine in ("view", "cli", "board") and theirs in {"exec", "daemon", "cli", "board"} - {mine}
            if not (SRC / header).exists():
                wrong.append(f"{path.relative_to(ROOT)}:{number}: no file {header}")
            elif apart or order[target] > order[folder]:
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {header}")
    assert not wrong, "\n".join(wrong)


def module(path):
    """A module is a .c file and the .h file of its name."""
    return str(path).rsplit(".", 1)[0]


def test_modules_form_no_cycle():
    """No module includes itself by way of others, so that each can be read and tested without its users."""
    needs = {}
    for path in sources(".c", ".h"):
        name = module(path.relative_to(SRC))
        needs.setdefault(name, set()).update({module(header) for _, header in includes(path)} - {name})
    # repeatedly remove modules that need no other; those that stay are in a cycle, or above one
    left = dict(needs)
    while free := [name for name, others in left.items() if not others & left.keys()]:
        for name in free:
            del left[name]
    assert not left, f"in a cycle, or above one: {sorted(left)}"


@pytest.mark.parametrize("header, layer", [
    ("hiredis/async.h", "redis"), ("hiredis/adapters/libev.h", "redis"), ("ini.h", "config"),
    ("microhttpd.h", "board")])
def test_each_library_is_known_to_one_layer(header, layer):
    """Asynchronous hiredis is used only in redis, inih only in config, libmicrohttpd only in board."""
    users = {layer_of(path) for path in sources(".c", ".h") if f"<{header}>" in path.read_text()}
    assert users <= {layer}


def test_jansson_is_known_to_the_command_and_to_batches():
    """Only view, cli, board, and the one file that writes tasks as JSON, use jansson."""
    users = {str(path.relative_to(SRC)) for path in sources(".c", ".h")
             if layer_of(path) not in ("view", "cli", "board") and "<jansson.h>" in path.read_text()}
    assert users == {"queue/batch.c"}


def test_redis_commands_are_spelled_in_two_layers_only():
    """Only redis and queue name Redis commands and functions of the library."""
    pattern = re.compile(r'"(leat_\w+|FCALL\w*|X(ADD|ACK|DEL|READ\w*|CLAIM|AUTOCLAIM|RANGE|GROUP|INFO))"')
    wrong = [str(path.relative_to(ROOT)) for path in sources(".c", ".h")
             if layer_of(path) not in ("redis", "queue") and pattern.search(path.read_text())]
    assert not wrong


def test_no_file_and_no_function_grows_too_long():
    """C files have at most 700 lines, functions at most 80."""
    wrong = []
    for path in sources(".c", ".h"):
        lines = len(path.read_text().splitlines())
        if lines > MAX_FILE_LINES:
            wrong.append(f"{path.relative_to(ROOT)}: {lines} lines")
        wrong += [f"{path.relative_to(ROOT)}: {name} has {length} lines"
                  for name, length in functions(path) if length > MAX_FUNCTION_LINES]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("form, instead", [
    (r"(?:if|while|for) \(.*[!=]= NULL", "use the pointer itself as the condition"),
    (r"\bsizeof\(\*|\bsizeof\([a-z]\w*(?:->|\.)", "sizeof without parentheses for what is no type")])
def test_one_dialect_of_c(form, instead):
    """Forms that clang-format leaves open are written in one way."""
    wrong = [f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
             for path in sources(".c", ".h")
             for number, line in enumerate(path.read_text().splitlines(), 1)
             if re.search(form, line) and not line.lstrip().startswith(("*", "/*"))]
    assert not wrong, f"{instead}:\n" + "\n".join(wrong)


def test_design_names_every_folder_and_no_other():
    """src/DESIGN.md has a table row for each folder below src with sources."""
    there = {str(path.parent.relative_to(SRC)) for path in sources(".c", ".h", ".lua")}
    assert sorted(folders()) == sorted(there)


def test_every_source_begins_with_what_it_is_for():
    """Each .c and .lua file begins with a comment; each header does as well."""
    wrong = [str(path.relative_to(ROOT)) for path in sources(".c", ".h", ".lua")
             if not re.match(r"(#!.*)?\s*(?:do )?(/\*|--)", path.read_text())]
    assert not wrong


def test_top_level_is_as_agreed():
    """The top level has the files and folders of the layout, and no others."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not in a git work tree")
    top = {line.split("/")[0] for line in done.stdout.splitlines()}
    allowed = {"src", "conf", "systemd", "tests", "Makefile", "README.md", "LICENSE"}
    assert {name for name in top if not name.startswith(".")} <= allowed
