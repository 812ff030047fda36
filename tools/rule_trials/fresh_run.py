"""Tries a changed rule in a process that imports the changed file in the place of the one on disk.

For rules that are asked while their file is imported; every other is tried quicker (``collected_run``).
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from tools.rule_breaks import Break
from tools.rule_trials.measured_tests import MeasuredTests
from tools.rule_trials.running_tests import OPTIONS, Failures, use_fixed_examples
from tools.rule_trials.trial_process import say


class ChangedSource(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports one module from a text in the place of its file."""

    def __init__(self, module: str, file: Path, source: str) -> None:
        self._module, self._file, self._source = module, file, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module's spec; None for every other module."""
        del path, target
        if fullname != self._module:
            return None
        return importlib.util.spec_from_file_location(fullname, self._file, loader=self)

    def get_source(self, fullname: str) -> str:
        """Return the text."""
        del fullname
        return self._source

    def get_filename(self, fullname: str) -> str:
        """Return the file in whose place it stands, for tracebacks."""
        del fullname
        return str(self._file)


class SelectedRun:
    """A pytest plugin that runs selected tests in their order."""

    def __init__(self, tests: Sequence[str], measured: MeasuredTests, failures: Failures) -> None:
        self._tests, self._measured, self._failures = tests, measured, failures
        self.has_noticed = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run them until one fails; tests that cannot be collected any more have noticed as well."""
        items = {item.nodeid: item for item in session.items}
        missing = [test for test in self._tests if test not in items]
        if session.testsfailed or missing:
            say(*missing[:1])
            self.has_noticed = True
        else:
            self.has_noticed = self._failures.happen([items[test] for test in self._tests], self._measured)
        return True


def try_changed_file(root: Path, changed: Break, tests: Sequence[str], measured: MeasuredTests) -> bool:
    """Import a changed file and run tests; returns whether one fails.

    This process must not have imported anything of the project but ``tools``, which it does not change.
    """
    module = changed.file.removesuffix(".py").replace("/", ".")
    sys.meta_path.insert(0, ChangedSource(module, root / changed.file, changed.source))
    use_fixed_examples()
    failures = Failures()
    run = SelectedRun(tests, measured, failures)
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    code = pytest.main([*OPTIONS, *files], plugins=[run, failures])
    return run.has_noticed or code not in (0, 1)
