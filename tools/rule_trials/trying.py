"""Tries changes one after the other, in the quickest way that tells the truth, and goes on from an earlier run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

from tools.rule_breaks import Break
from tools.rule_trials.collected_run import ANEW, CollectedRun
from tools.rule_trials.fresh_run import try_changed_file
from tools.rule_trials.measured_tests import MeasuredTests
from tools.rule_trials.outcomes import BY_TYPES, SURVIVED, Outcome, OutcomeFile, make_digest, print_progress
from tools.rule_trials.trial_process import MISSED, Trial, run_trials
from tools.rule_trials.type_check import is_refused_by_types

_OWN = frozenset(
    {"benchmarks", "cli", "controller", "fleet", "include", "lab", "models", "page", "spark_jobs", "tests"}
)


class Trials:
    """Changes to be tried.

    Args:
        root: the project; a folder of it, ``out/mutation``, holds outcomes and what was measured.
        files: that can be changed.
        tests: files of tests.
        children: how many processes run at a time.
    """

    def __init__(self, root: Path, files: Sequence[str], tests: Sequence[str], children: int) -> None:
        self._root, self._tests, self._children = root, tests, children
        self._work = root / "out" / "mutation"
        used = [*tests, *sorted(str(file.relative_to(root)) for file in (root / "tests" / "support").glob("*.py"))]
        self._stored = OutcomeFile(self._work / "rules.jsonl", root, used)
        self._measured = self._work / f"measured-{make_digest(root / file for file in [*files, *used])}.json"

    def run(self, breaks: Sequence[Break], is_anew: bool, is_quick: bool = False) -> dict[str, Outcome] | None:
        """Return key of each change -> what became of it; None where the tests fail without any change.

        Args:
            breaks: the changes.
            is_anew: outcomes of earlier runs do not count.
            is_quick: changes that the quick tests miss are shown to no other, and are not in the result.
        """
        if is_anew:
            self._stored.forget()
        self._work.mkdir(parents=True, exist_ok=True)
        done = self._stored.read()
        if any(one.key not in done for one in breaks):
            self._in_copy(partial(self._try_collected, breaks, done, is_quick))
            done = self._stored.read()
            if not is_quick and any(one.key not in done for one in breaks):
                return None
        breaks = [one for one in breaks if one.key in done]
        self._try_anew([one for one in breaks if done[one.key].outcome == ANEW])
        done = self._stored.read()
        for one in breaks:
            if done[one.key].outcome == MISSED:
                is_refused = is_refused_by_types(one, self._work / "types")
                self._stored.add(one, BY_TYPES if is_refused else SURVIVED, "")
        return self._stored.read()

    def _in_copy(self, action: Callable[[TextIO], None]) -> None:
        """Do something in a process that has imported nothing of the project but ``tools``; its output is in a file."""
        sys.stdout.flush()
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return
        code = 70
        try:
            forget_own_modules()
            shown = os.fdopen(os.dup(1), "w")
            log = os.open(self._work / "pytest.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(log, stream)
            action(shown)
            code = 0
        finally:
            shown.flush()
            os._exit(code)

    def _try_collected(self, breaks: Sequence[Break], done: dict[str, Outcome], is_quick: bool, shown: TextIO) -> None:
        note = print_progress(len(breaks), shown)
        for one in breaks:
            if one.key in done:
                note(done[one.key].outcome)

        def report(changed: Break, outcome: str, test: str) -> None:
            self._stored.add(changed, outcome, test)
            note(outcome)

        for other in self._work.glob("measured-*.json"):
            if other != self._measured:
                other.unlink()
        remaining = [one for one in breaks if one.key not in done]
        run = CollectedRun(
            *(self._root, remaining, self._measured, self._children, report),
            is_refused=partial(is_refused_by_types, work=self._work / "types"),
            is_quick=is_quick,
        )
        why = run.collect_and_try(self._tests)
        if why:
            print(f"mutate-rules: {why}; see {self._work / 'pytest.log'}", file=shown)

    def _try_anew(self, breaks: Sequence[Break]) -> None:
        if not breaks:
            return
        measured, by_key = MeasuredTests.read(self._measured), {one.key: one for one in breaks}

        def trials() -> Iterator[Trial]:
            for one in breaks:
                tests = measured.tests_of_import(one)
                yield Trial(one.key, partial(self._try_file, one, tests, measured), *measured.limits_s(tests))

        run_trials(trials(), self._children, lambda key, outcome, test: self._stored.add(by_key[key], outcome, test))

    def _try_file(self, changed: Break, tests: Sequence[str], measured: MeasuredTests) -> bool:
        forget_own_modules()
        return try_changed_file(self._root, changed, tests, measured)


def forget_own_modules() -> None:
    """Let the project be imported again, but for ``tools``, which is not changed."""
    for name in [name for name in sys.modules if name.partition(".")[0] in _OWN]:
        del sys.modules[name]
