"""When a job without a plan gives slots back: at what waiting has cost, against what two rescales cost."""

from __future__ import annotations

import pytest

from include.domain.graph import JobGraph, Operator
from lab.policies.planner.controller_memory import LowLoadPeriod
from lab.policies.planner.scale_down import break_even_scale_down, update_low_loads
from lab.scheduling.planner_settings import PlannerSettings

HOUR_S = 3600
GRAPH = JobGraph((Operator("a"),))
SLOTS_MAX = 32


def find_wait_min(downtime_s: float, needed: int = 8, running: int = 16) -> int:
    """Minutes until a job is scaled down to what it needs of 32 slots."""
    low_loads = (LowLoadPeriod({"a": needed}, 0),)
    for minute in range(100 * 60):
        fall = break_even_scale_down(
            low_loads,
            {"a": running},
            60 * minute,
            SLOTS_MAX,
            graph=GRAPH,
            downtime_s=downtime_s,
            options=PlannerSettings(),
        )
        if fall is not None:
            return minute
    raise AssertionError("never scaled down")


def test_a_job_waits_until_its_slots_have_cost_two_rescales() -> None:
    # 8 of 32 slots cost 0.2 x 8 / 32 = 0.05 a minute; two rescales cost 0.8.
    assert find_wait_min(0.0) == 16
    assert find_wait_min(0.0, needed=12) == 32
    assert find_wait_min(0.0, needed=15) == 128


@pytest.mark.parametrize(
    ("downtime_s", "minutes"),
    [(45.0, 16), (60.0, 16), (120.0, 32), (660.0, 176)],  # late for a minute: 0.4 more for each rescale
)
def test_a_rescale_costs_what_it_makes_the_job_late(downtime_s: float, minutes: int) -> None:
    assert find_wait_min(downtime_s) == minutes


def test_more_load_ends_a_period_of_low_load() -> None:
    low = update_low_loads((), {"a": 4}, 0, GRAPH)
    low = update_low_loads(low, {"a": 6}, 600, GRAPH)
    assert [(period.parallelism["a"], period.since_s) for period in low] == [(6, 600)]
    low = update_low_loads(low, {"a": 5}, 1200, GRAPH)
    assert [(period.parallelism["a"], period.since_s) for period in low] == [(6, 600), (5, 1200)]


def test_the_times_that_the_module_states() -> None:
    times = {surplus: find_wait_min(0.0, needed=32 - surplus, running=32) for surplus in (1, 2, 4, 8, 16)}
    assert times == {1: 128, 2: 64, 4: 32, 8: 16, 16: 8}
    assert find_wait_min(120.0, needed=31, running=32) == 256
