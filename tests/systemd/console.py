"""Documents as scripts: their console blocks, and a comparison of what they show with what commands print.

In a `console` block, a line after the prompt `#` is a command of root, and a line after `$` a command of any user.
The lines below a command are its complete output, stderr included.

The comparison is word by word. Ids, times, ages and workers differ between runs: one in the document matches any
of its kind. An id that the document shows twice must also be the same one twice in the run.
"""
import re
from dataclasses import dataclass

ID = r"\d{13}-\d+"
KINDS = {
    "id": ID,
    "time": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC",
    "worker": r"\bweb1:\d+:[0-9a-f]{8}\b",
    "age": r"\bnow\b|\b\d+(?:\.\d)?m?s(?: ago)?(?!\S)",
}
VARYING = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items()))


@dataclass
class Block:
    """A code block: its language and its text."""
    language: str
    text: str


@dataclass
class Step:
    """A command, its user, and its output."""
    is_root: bool
    command: str
    output: str


def blocks(document):
    """The code blocks of a text in Markdown, in order."""
    return [Block(*found) for found in re.findall(r"^```(\w*)\n(.*?)^```$", document, re.M | re.S)]


def steps(text):
    """The steps of a console block."""
    found = []
    for line in text.splitlines():
        if line[:2] in ("# ", "$ "):
            found.append(Step(line[0] == "#", line[2:], ""))
        else:
            found[-1].output += line + "\n"
    return found


def words(text):
    """The text with single spaces, since the width of a column depends on its values."""
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


class Ids:
    """The ids that a document shows, each with its id in this run."""

    def __init__(self):
        self.known = {}

    def fill(self, command):
        """The command with the ids of this run."""
        return re.sub(ID, lambda shown: self.known[shown[0]], command)

    def match(self, expected, output):
        """True if the output is as expected; then keeps the ids that are new in it."""
        groups, pattern, expected, end = {}, "", words(expected), 0
        for found in VARYING.finditer(expected):
            pattern += re.escape(expected[end:found.start()]) + self._pattern(found, groups)
            end = found.end()
        matched = re.fullmatch(pattern + re.escape(expected[end:]), words(output))
        if matched:
            self.known.update({shown: matched[group] for shown, group in groups.items()})
        return bool(matched)

    def _pattern(self, found, groups):
        """The pattern for a word that varies; groups maps each new id to its group in the pattern."""
        shown = found[0]
        if found.lastgroup != "id":
            return f"(?:{KINDS[found.lastgroup]})"
        if shown in self.known:
            return re.escape(self.known[shown])
        if shown in groups:
            return f"(?P={groups[shown]})"
        groups[shown] = f"id{len(groups)}"
        return f"(?P<{groups[shown]}>{ID})"
