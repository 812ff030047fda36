"""Rises that were asked for ahead of their load."""

from __future__ import annotations

import numpy as np

from lab.replay.rises import ParallelismRequest, RisesAhead, measure_rises
from lab.replay.workload import Workload
from lab.simulation.spec import JobSpec, OperatorSpec

SPEC = JobSpec("one", (OperatorSpec("work", (), 100.0, contention=0.0, selectivity=0.0),), slots_max=4)
# 100/s for twenty minutes, then 250/s
LOAD = Workload(SPEC, 0, 10, np.repeat([100.0, 250.0], [120, 240])[:, None])


def ask(at_s: float, before: int, after: int) -> ParallelismRequest:
    return ParallelismRequest(at_s, np.array([before]), np.array([after]))


def test_a_rise_is_ahead_by_the_time_until_its_load_exceeds_what_ran() -> None:
    asked = [ask(0.0, 4, 2), ask(600.0, 2, 3), ask(1500.0, 2, 3), ask(1800.0, 3, 4)]
    assert measure_rises(LOAD, asked, 0.0, 3600.0) == RisesAhead(2, 0.5, 10.0)  # the last has no load to be for


def test_where_no_rise_was_for_a_load_nothing_is_ahead() -> None:
    assert measure_rises(LOAD, [ask(600.0, 2, 3)], 0.0, 600.0) == RisesAhead(0, None, None)
