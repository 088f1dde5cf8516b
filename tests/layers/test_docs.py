"""The documents agree with the code."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def source(pattern):
    return "\n".join(path.read_text() for path in sorted(ROOT.glob(pattern)))


def test_leatd_8_names_every_message_id():
    """The manual lists the MESSAGE_IDs of log_ids.h, by which operators filter, and no others."""
    ids = re.findall(r'LOG_ID_\w+ "([0-9a-f]{32})"', source("src/base/log/log_ids.h"))
    assert ids and sorted(ids) == sorted(re.findall(r"^\.It ([0-9a-f]{32})$", source("src/daemon/leatd.8"), re.M))


def test_readme_names_the_requirements():
    """README names the requirements of a host: the C library for the start of the guards, the systemd with
    each key of the unit, TLS, and the servers that leat refuses or warns of. README stays short."""
    text = " ".join(source("README.md").split())
    for words in ("glibc 2.34", "systemd 247", "Debian 13, where TLS is built in", "Redis 7.0 or later, or Valkey",
                  "Redis #13311"):
        assert words in text
    assert "posix_spawn_file_actions_addclosefrom_np" in source("src/exec/guard/guard.c")  # glibc 2.34
    assert "ProtectProc=" in source("systemd/leatd@.service")  # systemd 247
    assert len(source("README.md").splitlines()) <= 150


def test_queues_get_users_before_they_start():
    """A text that tells to enable the unit of a queue also tells to make its service, or it would not start."""
    told = 0
    texts = [ROOT / "README.md", *ROOT.glob("conf/*"), *ROOT.glob("systemd/*"), *ROOT.glob("src/**/*.[1-8]")]
    for path in filter(Path.is_file, texts):
        text = path.read_text()
        for queue in re.findall(r"systemctl enable (?:--quiet )?--now leatd@(\w+)", text):
            told += 1
            assert f"leat init --service {queue}" in text, (path, queue)
    assert told > 5


def test_the_catalog_explains_every_message_id():
    """journalctl -x finds a text for each MESSAGE_ID of log_ids.h, and for no other: what it means, and then, as a
    paragraph of its own, what to do. A text names only fields that all records have, and commands of leat."""
    ids = re.findall(r'LOG_ID_\w+ "([0-9a-f]{32})"', source("src/base/log/log_ids.h"))
    entries = source("systemd/leat.catalog").split("\n-- ")[1:]
    assert ids == [entry[:32] for entry in entries if entry[32] == "\n"] and len(ids) == len(entries)
    commands = set(re.findall(r"^\.It Xr leat-(\w+) 1", source("src/cli/man/leat.1"), re.M))
    subjects = set()
    for entry in entries:
        head, text = entry.split("\n\n", 1)
        subject = re.fullmatch(
            r"[0-9a-f]{32}\nSubject: (.+)\nDefined-By: leat\nDocumentation: man:leatd\(8\)", head)
        assert subject and len(subject[1]) < 76, head
        subjects.add(subject[1])
        assert len(text.strip().split("\n\n")) == 2 and max(map(len, text.splitlines())) <= 78, text
        assert set(re.findall(r"@([A-Z_]+)@", text)) <= {"LEAT_QUEUE", "LEAT_TASK", "MESSAGE_ID"}
        assert set(re.findall(r"^    leat -q @LEAT_QUEUE@ (\w+)", text, re.M)) <= commands
    assert len(subjects) == len(ids)


def test_every_message_id_is_used():
    """Each kind of record in log_ids.h is written somewhere."""
    names = re.findall(r"(LOG_ID_\w+) ", source("src/base/log/log_ids.h"))
    code = source("src/**/*.c")
    assert not [name for name in names if not re.search(rf"\b{name}\b", code)]


def test_leatd_8_names_every_variable_and_field():
    """Each LEAT_… variable of tasks or field of the journal is in the manual."""
    names = set(re.findall(r'"(LEAT_[A-Z_]+)=?"', source("src/exec/**/*.c") + source("src/daemon/**/*.c")))
    assert names
    manual = source("src/daemon/leatd.8")
    assert not [name for name in sorted(names) if not re.search(rf"\b{name}\b", manual)]


def test_leatd_8_names_every_event():
    """The manual lists the values of LEAT_EVENT, by which operators filter."""
    code = source("src/exec/**/*.c") + source("src/daemon/**/*.c")
    forms = (r'"LEAT_EVENT",([^;{}]*?)\)', r"describe_task\(&?fields,([^;]*)\);",
             r"log_about\(child, LOG_\w+, \w+,([^;]*?),", r'LOG_ID_\w+,\s+("[a-z]+")\}')
    places = [place for form in forms for place in re.findall(form, code)]
    names = {name for place in places for name in re.findall(r'"([a-z-]+)"', place)}
    assert {"succeeded", "redis-down", "pressed", "eased", "output-limit", "fenced"} <= names
    section = source("src/daemon/leatd.8").split(".Ss Events\n")[1].split("\n.S")[0]
    listed = [name for line in re.findall(r"^\.It (.+)$", section, re.M) for name in line.split(" , ")]
    assert len(listed) == len(set(listed)) and names <= set(listed)
    assert not [name for name in listed if f'"{name}"' not in code]


def test_doctor_s_kinds_are_known_everywhere():
    """The command's table has each kind of finding of doctor.lua, and leat-doctor.1 has each kind of the
    table."""
    lua, table = source("src/queue/lua/doctor.lua"), source("src/cli/doctor/doctor_kinds.c")
    made = set(re.findall(r"^function checks\.(\w+)|^checks\['([\w-]+)'\]|note_plainly\(q, '([\w-]+)'", lua, re.M))
    made = {name for names in made for name in names if name}
    known = re.findall(r'^    \{"([\w-]+)"', table, re.M)
    assert len(made) > 20 and made <= set(known)
    manual = source("src/cli/man/leat-doctor.1").split(".Sh FINDINGS\n")[1].split("\n.S")[0]
    assert sorted(known) == re.findall(r"^\.It Cm ([\w-]+)$", manual, re.M)
    repaired = set(re.findall(r"^repairs\.(\w+)|^repairs\['([\w-]+)'\]|^function repairs\.(\w+)",
                              source("src/queue/lua/repair.lua"), re.M))
    entries = re.findall(r'^    \{"([\w-]+)",((?:.|\n)*?)(?:true|false)\},', table, re.M)
    repairable = {name for name, rest in entries if not re.search(r"\bNULL,\s*(NULL|\")", rest)}
    assert {name for names in repaired for name in names if name} <= repairable


def test_reasons_of_explain_are_in_its_manual():
    """leat-explain.1 has each reason of src/view, and no other."""
    code = source("src/view/explain*.c")
    made = set(re.findall(r'reasons_add\(\s*explanation,\s*"([a-z-]+)"', code))
    manual = source("src/cli/man/leat-explain.1").split(".Sh REASONS\n")[1].split("\n.Sh ")[0]
    listed = [name for line in re.findall(r"^\.It Cm (.+)$", manual, re.M) for name in line.split(" , ")]
    assert len(made) > 18 and made <= set(listed)
    assert not [name for name in listed if f'"{name}"' not in code]


def test_links_lead_somewhere():
    """Files that README.md links to exist."""
    targets = re.findall(r"\]\(([^):#]+)\)", source("README.md"))
    assert targets and not [target for target in targets if not (ROOT / target).exists()]


def test_tests_that_pages_name_exist():
    """A file or function of tests that a page for contributors names is there."""
    files = [path for path in (ROOT / 'tests').rglob('test_*') if path.suffix in ('.py', '.c')]
    names = {name for path in files for name in (path.name, path.stem)}
    for path in files:
        names.update(re.findall(r'^(?:def|static void) (test_\w+)', path.read_text(), re.M))
    for page in ('src/DESIGN.md', 'tests/chaos/RESULTS.md', 'tests/bench/SCALE.md'):
        named = set(re.findall(r'\btest_[a-z0-9_]+(?:\.py)?', (ROOT / page).read_text()))
        assert not named - names, page


def test_causes_have_the_same_names_everywhere():
    """leatd.8 explains every cause of the daemon and the functions, and no others; the causes of dead letters
    are offered as --cause by the manual, the help and the completion, and are in leat-protocol.7."""
    code = source("src/exec/job/outcome.c").split("const char *cause_name(")[1].split("\n}\n")[0]
    lua = source("src/queue/lua/*.lua")
    given = set(re.findall(r'= "([a-z-]+)"', code))
    given |= set(re.findall(r"\bcause = '([a-z-]+)'", lua)) | {"success"}
    manual = source("src/daemon/leatd.8").split(".Sh CAUSES\n")[1].split("\n.Sh ")[0]
    assert len(given) > 15 and given == set(re.findall(r"^\.It ([a-z-]+)$", manual, re.M))

    deadly = given - {"success", "done", "cancelled", "host", "no-program", "lease-lost", "shutdown",
                      "batch"}
    listed = source("src/cli/man/leat-dead.1").split(".It Fl -cause Ar cause\n")[1].split(";\n")[0]
    assert set(re.findall(r"(?!Cm)[a-z-]{3,}", listed.split("\n", 1)[1])) == deadly
    told = source("src/queue/leat-protocol.7").split(".It Ic leat.cause\n")[1].split(";\n")[0]
    assert set(re.findall(r"[a-z-]{3,}", told)) == deadly
    helped = source("src/cli/dead/dead.c").split("--cause CAUSE")[1].split("--older-than")[0]
    assert set(re.findall(r"[a-z-]{3,}", helped)) == deadly
    for shell, form in (("bash", r"--cause\)\n +_leat_offer '(.*)'"), ("zsh", r"--cause\)\n +compadd (.*)"),
                        ("fish", r"--cause\n +printf '.*' (.*)")):
        assert set(re.search(form, source(f"src/cli/leat.{shell}"))[1].split()) == deadly, shell


def test_listed_examples_examine_their_arguments():
    """Producers choose the arguments of listed programs, and those in the examples are the site's own: with
    convert(1), a task could write any file of its user, such as ~/.forward."""
    found = 0
    for path in ("conf/leat.ini", "conf/leat.ini.5", "src/daemon/leatd.8"):
        for section in re.findall(r"^\[command\.\w+\]\n((?:.+\n)+?)(?=\n|\[|\.)", source(path), re.M):
            found += 1
            assert re.search(r"^;?program = /usr/local/", section, re.M), (path, section)
    assert found >= 3
