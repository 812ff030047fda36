"""Running tests in this process until one fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import hypothesis
import pytest

from tools.rule_trials.measured_tests import MeasuredTests
from tools.rule_trials.trial_process import say

OPTIONS = ("-q", "-s", "-p", "no:cacheprovider", "-m", "not long", "-o", "timeout=0")


def use_fixed_examples() -> None:
    """Let hypothesis draw the same examples in each process, and not look at the clock."""
    slow = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large]
    hypothesis.settings.register_profile(
        "rules", derandomize=True, database=None, deadline=None, suppress_health_check=slow
    )
    hypothesis.settings.load_profile("rules")


class Failures:
    """A pytest plugin that notes what fails."""

    def __init__(self) -> None:
        self.tests: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test."""
        if report.failed:
            self.tests.append(report.nodeid)

    def happen(
        self, items: Sequence[pytest.Item], measured: MeasuredTests, swap_back: Callable[[], None] | None = None
    ) -> bool:
        """Run tests until one fails because of a change; returns whether one does, and says which.

        A test that waits may fail because the machine is slow: it has to fail twice, and to pass between them where
        the change can be taken back.

        Args:
            items: the tests.
            measured: without the change.
            swap_back: exchanges the change and what was there before; None where that cannot be done.
        """
        for item in items:
            if not self._fails(item):
                continue
            if measured.durations[item.nodeid].is_waiting:
                if swap_back is not None:
                    swap_back()
                    is_slow = self._fails(item)
                    swap_back()
                    if is_slow:
                        continue
                if not self._fails(item):
                    continue
            say(item.nodeid)
            return True
        return False

    def _fails(self, item: pytest.Item) -> bool:
        self.tests.clear()
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        except BaseException:  # what ends the whole run is noticed as well
            return True
        return bool(self.tests)
