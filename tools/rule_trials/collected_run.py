"""Tries changed rules in copies of a process that has collected the tests: nothing is imported twice.

A copy puts the changed rule in its place and runs the tests that execute it, the quickest first, until one fails.
The types are asked before the longer tests: of a guard against None they tell in seconds what tests would in minutes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

import pytest

from tools.rule_breaks import Break
from tools.rule_trials.measured_tests import LineRecorder, MeasuredTests
from tools.rule_trials.outcomes import BY_TYPES
from tools.rule_trials.running_tests import OPTIONS, Failures, use_fixed_examples
from tools.rule_trials.swapped_code import ImportedFunctions
from tools.rule_trials.trial_process import MISSED, Trial, run_trials, say

ANEW = "to be imported anew"
_FAILING_MAX = 0.01
"""Where a larger share of the tests fails without any change, something else is wrong."""
QUICK_S = 2.0
"""Every change is shown to tests of so many seconds of the processor before any is to the longer ones."""

Report = Callable[[Break, str, str], None]


class CollectedRun:
    """A pytest plugin that tries changes in the place of running the tests.

    Args:
        root: the project.
        breaks: the changes.
        file: where what is measured without any change is, or will be.
        children: how many processes run at a time.
        report: gets each change, its outcome, and the test that noticed.
        is_refused: whether the types refuse a change.
        is_quick: no change is shown to the longer tests; what they alone could notice is not reported.
    """

    def __init__(
        self,
        root: Path,
        breaks: Sequence[Break],
        file: Path,
        children: int,
        report: Report,
        *,
        is_refused: Callable[[Break], bool],
        is_quick: bool,
    ) -> None:
        self._root, self._breaks, self._file = root, breaks, file
        self._children, self._report, self._is_refused, self._is_quick = children, report, is_refused, is_quick
        self._files = sorted({one.file for one in breaks})
        self._recorder, self._failures = LineRecorder(root, self._files), Failures()
        self._measured, self._why = MeasuredTests(), "the tests cannot be collected"

    def collect_and_try(self, tests: Sequence[str]) -> str:
        """Collect files of tests in this process and try each change in copies of it; returns why that is not done."""
        use_fixed_examples()
        self._recorder.start()
        pytest.main([*OPTIONS, *tests], plugins=[self, self._failures])
        return self._why

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure the tests and try the changes."""
        self._recorder.stop()
        if session.testsfailed:
            return True
        if not self._file.is_file():
            run_trials([Trial("no change", partial(self._measure, session.items), 3600, 36000)], 1, lambda *_: None)
        self._measured = MeasuredTests.read(self._file)
        self._why = f"{len(self._measured.failed)} tests fail without any change"
        if len(self._measured.failed) > _FAILING_MAX * len(session.items):
            self._file.unlink()
            return True
        self._why = ""
        items = {item.nodeid: item for item in session.items}
        functions = ImportedFunctions(self._root, self._files)
        gc.collect()
        gc.freeze()  # copies of this process share its memory
        later: dict[str, tuple[Break, list[str]]] = {}
        rounds = (self._first(later),) if self._is_quick else (self._first(later), self._rest(later))
        for waiting in rounds:
            run_trials(self._trials(waiting, items, functions), self._children, partial(self._take, later))
        return True

    def _measure(self, items: Sequence[pytest.Item]) -> bool:
        measured = LineRecorder(self._root, self._files).measure(items, self._failures.tests)
        measured.imported = self._recorder.lines()
        measured.write(self._file)
        return False

    def _first(self, later: dict[str, tuple[Break, list[str]]]) -> Iterator[tuple[Break, list[str]]]:
        """Yield changes with the quick ones of the tests that execute them; the others are put down for later."""
        for changed in self._breaks:
            tests = self._measured.tests_of(changed)
            if self._measured.is_run_at_import(changed, self._root):
                self._report(changed, ANEW, "")
            elif not tests:
                self._report(changed, MISSED, "")
            else:
                sums_s = accumulate(self._measured.durations[test].cpu_s for test in tests)
                quick = max(1, sum(one <= QUICK_S for one in sums_s))
                later[changed.key] = (changed, tests[quick:])
                yield changed, tests[:quick]

    def _rest(self, later: dict[str, tuple[Break, list[str]]]) -> Iterator[tuple[Break, list[str]]]:
        for changed, tests in list(later.values()):
            later[changed.key] = (changed, [])
            if self._is_refused(changed):
                self._report(changed, BY_TYPES, "")
            else:
                yield changed, tests

    def _trials(
        self, waiting: Iterator[tuple[Break, list[str]]], items: dict[str, pytest.Item], functions: ImportedFunctions
    ) -> Iterator[Trial]:
        for changed, tests in waiting:
            run = partial(self._try, changed, [items[test] for test in tests], functions)
            yield Trial(changed.key, run, *self._measured.limits_s(tests))

    def _try(self, changed: Break, items: Sequence[pytest.Item], functions: ImportedFunctions) -> bool:
        if not functions.swap_code(changed):
            say(ANEW)
            return False
        return self._failures.happen(items, self._measured, functions.swap_back)

    def _take(self, later: dict[str, tuple[Break, list[str]]], key: str, outcome: str, noted: str) -> None:
        changed, remaining = later[key]
        if outcome == MISSED and noted != ANEW and remaining:
            return
        del later[key]
        if noted == ANEW:
            self._report(changed, ANEW, "")
        else:
            self._report(changed, outcome, noted)
