"""Which tests execute which line of the unchanged files, and how long each takes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import coverage
import pytest

from include.atomic_write import write_text
from tools.rule_breaks import Break
from tools.rule_trials.swapped_code import find_function


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a test takes, with its fixtures and with its lines recorded: by the clock and of the processor."""

    wall_s: float
    cpu_s: float

    @property
    def is_waiting(self) -> bool:
        """Whether the test waits for something: under load it may fail without any change."""
        return self.wall_s - self.cpu_s > 0.5


@dataclass(slots=True)
class MeasuredTests:
    """What a run without any change did.

    Attributes:
        durations: by test, those left out that fail without any change.
        executed: file -> line -> the tests that execute it.
        imported: file -> lines that are executed when the tests are collected.
        failed: tests that fail without any change.
    """

    durations: dict[str, Duration] = field(default_factory=dict)
    executed: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    imported: dict[str, list[int]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def tests_of(self, changed: Break) -> list[str]:
        """Return the tests that execute a changed rule, the quickest first."""
        lines = self.executed.get(changed.file, {})
        return self._sort(test for line in changed.lines for test in lines.get(line, []))

    def tests_of_import(self, changed: Break) -> list[str]:
        """Return the tests for a rule that is asked at import: those that execute it, then those of the same files.

        The files are those with a test that executes any line of the changed file.
        """
        executing = self.tests_of(changed)
        any_line = {test for tests in self.executed.get(changed.file, {}).values() for test in tests}
        files = {test.partition("::")[0] for test in any_line}
        beside = self._sort(test for test in self.durations if test.partition("::")[0] in files)
        return list(dict.fromkeys([*executing, *beside]))

    def _sort(self, tests: Iterable[str]) -> list[str]:
        return sorted(self.durations.keys() & set(tests), key=lambda test: (self.durations[test].cpu_s, test))

    def is_run_at_import(self, changed: Break, root: Path) -> bool:
        """Whether collecting the tests executes a rule, so that it counts only in a process that imports it anew."""
        function = find_function(root / changed.file, changed.lines)
        lines = range(function.body[0].lineno, (function.end_lineno or 0) + 1) if function else changed.lines
        return function is None or not set(lines).isdisjoint(self.imported.get(changed.file, []))

    def limits_s(self, tests: Iterable[str]) -> tuple[float, float]:
        """Return after how many seconds of the processor, and by the clock, some tests do not end any more."""
        durations = [self.durations[test] for test in tests]
        return 20 + 5 * sum(one.cpu_s for one in durations), 60 + 10 * sum(one.wall_s for one in durations)

    def write(self, file: Path) -> None:
        """Write it whole."""
        durations = {test: [one.wall_s, one.cpu_s] for test, one in self.durations.items()}
        write_text(file, json.dumps([durations, self.executed, self.imported, self.failed]))

    @classmethod
    def read(cls, file: Path) -> MeasuredTests:
        """Return what another process wrote."""
        durations, executed, imported, failed = json.loads(file.read_text())
        return cls(
            {test: Duration(*one) for test, one in durations.items()},
            {name: {int(line): tests for line, tests in lines.items()} for name, lines in executed.items()},
            imported,
            failed,
        )


class LineRecorder:
    """Records the lines of some files that this process executes."""

    def __init__(self, root: Path, files: Sequence[str]) -> None:
        self._root, self._files = root, files
        include = [str(root / file) for file in files]
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=include, messages=False)

    def start(self) -> None:
        """Begin to record."""
        self._coverage.start()

    def stop(self) -> None:
        """Record no more."""
        self._coverage.stop()

    def lines(self) -> dict[str, list[int]]:
        """Return file -> lines."""
        data = self._coverage.get_data()
        return {file: sorted(data.lines(str(self._root / file)) or []) for file in self._files}

    def measure(self, items: Sequence[pytest.Item], failed: Sequence[str]) -> MeasuredTests:
        """Run tests one after the other and return what each executes.

        Args:
            items: the tests.
            failed: where a plugin notes those that fail.
        """
        result = MeasuredTests()
        self.start()
        for item, following in zip(items, [*items[1:], None], strict=True):
            self._coverage.switch_context(item.nodeid)
            wall_s, cpu_s = time.monotonic(), time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            result.durations[item.nodeid] = Duration(time.monotonic() - wall_s, time.process_time() - cpu_s)
        self.stop()
        data = self._coverage.get_data()
        for file in self._files:
            lines = data.contexts_by_lineno(str(self._root / file))
            result.executed[file] = {line: [test for test in tests if test] for line, tests in lines.items()}
        result.failed = list(dict.fromkeys(failed))
        for test in result.failed:
            result.durations.pop(test, None)
        return result
