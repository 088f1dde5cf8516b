"""The bugs that `make chaos-mutants` puts into copies of leat."""
import importlib.machinery
import importlib.util
import pathlib

HERE = pathlib.Path(__file__).parent


def test_each_bug_can_be_put_in():
    """The lines that a mutant replaces stand once in today's sources: otherwise nobody notices, until the hour in
    which the mutants are run, that one of them is gone."""
    loader = importlib.machinery.SourceFileLoader('mutants', str(HERE / 'mutants'))
    mutants = importlib.util.module_from_spec(importlib.util.spec_from_loader('mutants', loader))
    loader.exec_module(mutants)
    wrong = [(bug, name, was) for bug, (_, _, *patches) in mutants.MUTANTS.items() for name, was, _ in patches
             if (mutants.ROOT / name).read_text().count(was) != 1]
    assert wrong == []
