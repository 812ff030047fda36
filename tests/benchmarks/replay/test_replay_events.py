"""The planner under a load that no forecast knows of: it must not oscillate."""

from __future__ import annotations

import numpy as np
import pytest

from lab.replay.candidate_policies import build_candidates
from lab.replay.conditions import Conditions
from lab.replay.replay_run import ReplayRun
from lab.replay.scores import WindowCosts
from lab.replay.workload import Workload
from lab.simulation.spec import JobSpec, OperatorSpec

MONDAY = 1_709_510_400  # 2024-03-04 00:00 UTC
WINDOWS_A_DAY = 288
JOB = JobSpec(
    "line",
    (
        OperatorSpec("in", (), 100_000.0, contention=0.0),
        OperatorSpec("work", ("in",), 100.0, contention=0.02),
        OperatorSpec("out", ("work",), 100_000.0, contention=0.0, selectivity=0.0),
    ),
    slots_max=32,
)


def replayed(rates_per_s: np.ndarray) -> WindowCosts:
    """Return what the planner did, from a cold start, under rates at steps of 10 s."""
    load, conditions = Workload(JOB, MONDAY, 10, rates_per_s[:, None]), Conditions()
    return ReplayRun(load, build_candidates(["planner"], load, conditions), [0], conditions).run().ledger


def hours(days: float) -> np.ndarray:
    return np.arange(round(days * 8640)) / 360.0


@pytest.mark.parametrize("hour", [31.0, 73.0], ids=["nothing is planned yet", "the forecast knows better"])
def test_a_load_that_quadruples_and_stays_is_met_in_a_few_rescales(hour: float) -> None:
    at = hours((hour + 11.0) / 24.0)
    result = replayed(np.where(at < hour, 350.0, 1400.0))
    since = slice(round(hour * 12), None)
    assert result.rescales[since, 0].sum() <= 8
    assert result.late_s[since, 0].sum() / 60 < 30
