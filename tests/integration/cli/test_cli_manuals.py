"""The manual page of each command agrees with the command's help."""
import re
import subprocess

import pytest

from harness.daemon import ROOT, program

PAGES = ROOT / 'src/cli/man'
SECTIONS = ['NAME', 'SYNOPSIS', 'DESCRIPTION', 'OPTIONS', 'EXIT STATUS', 'EXAMPLES', 'SEE ALSO']
LINK = re.compile(r'\.so man1/(\S+)\n')


def help_of(*command):
    return subprocess.run([program('leat'), *command, '--help'], capture_output=True, text=True, check=True).stdout


def commands():
    text = (ROOT / 'src/cli/man/leat.1').read_text().split('.Sh COMMANDS\n')[1].split('\n.Sh ')[0]
    return re.findall(r'\bXr leat-(\w+) 1', text)


def page_of(command):
    """The text of a page; for a link, that of its target."""
    text = (PAGES / f'leat-{command}.1').read_text()
    link = LINK.fullmatch(text)
    return (PAGES / link[1]).read_text() if link else text


def helps_of(command):
    """The help texts of a page: pause and resume share one."""
    names = re.findall(r'^\.Nm leat-(\w+)', page_of(command).split('.Sh SYNOPSIS')[0], re.M)
    assert command in names
    return [help_of(name) for name in names]


def section(text, name):
    return re.search(rf'^\.Sh {name}\n(.*?)(?=^\.Sh |\Z)', text, re.M | re.S).group(1)


def test_every_page_is_listed():
    """leat.1 refers to each page, and to no other."""
    assert {f'leat-{name}.1' for name in commands()} | {'leat.1'} == {path.name for path in PAGES.iterdir()}


@pytest.mark.parametrize('command', commands())
def test_sections(command):
    """Each page has the seven sections in their order; others may come between them."""
    sections = re.findall(r'^\.Sh (.*)$', page_of(command), re.M)
    assert [name for name in sections if name in SECTIONS] == SECTIONS
    assert '.Bd -literal' in section(page_of(command), 'EXAMPLES')


@pytest.mark.parametrize('command', commands())
def test_options(command):
    """A page has the options of the help, with a value if they take one."""
    rows = set()
    for text in helps_of(command):
        rows |= set(re.findall(r'^  (?:-(\w), )?--([a-z-]+)( \[?[A-Z])?', text, re.M))
    items = re.findall(r'^\.It Fl (?:(\w) , Fl )?-([a-z-]+)(.*)$', section(page_of(command), 'OPTIONS'), re.M)
    assert len(items) == len(set(items))
    assert {(letter, name, 'Ar' in value) for letter, name, value in items} == \
        {(letter, name, bool(value)) for letter, name, value in rows}


@pytest.mark.parametrize('command', commands())
def test_exit_statuses(command):
    """A page has the exit statuses of the help, in their order."""
    codes = set()
    for text in helps_of(command):
        codes |= set(re.findall(r'^  (\d+) ', text.split('\nExit codes:\n')[1], re.M))
    listed = re.findall(r'^\.It (\d+)', section(page_of(command), 'EXIT STATUS'), re.M)
    assert listed == sorted(codes, key=int)


@pytest.mark.parametrize('command', commands())
def test_references(command):
    """SEE ALSO names the overview and existing pages."""
    others = re.findall(r'^\.Xr (leat\S*) (\d)', section(page_of(command), 'SEE ALSO'), re.M)
    assert ('leat', '1') in others
    pages = {path.name for path in [*ROOT.glob('src/*/*.[1-8]'), *ROOT.glob('src/*/man/*.[1-8]'),
                                    *ROOT.glob('conf/*.[1-8]')]}
    assert {f'{name}.{number}' for name, number in others} <= pages


def test_the_pages_are_valid():
    """mandoc has no warning about the pages."""
    pages = [path for path in sorted(PAGES.iterdir()) if not LINK.fullmatch(path.read_text())]
    done = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning', *pages], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')
