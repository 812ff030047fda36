"""A backlog that no slots work off is none in the plan stage either: windows as the table has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from include.domain.graph import JobGraph, Operator
from models.policies.observations import MEASURES
from spark_jobs.plan_inputs.windows import observations_of

GRAPH = JobGraph.from_operators([Operator("source", ())])
WINDOW_S, TAKEN_PER_S, STUCK = 300, 1000.0, 500_000.0


def windows(pending: list[float | None], **others: Any) -> pd.DataFrame:
    """Rows of the table; the source is idle for more than half of the time unless it is said otherwise."""
    measures = dict.fromkeys(MEASURES, np.nan) | {"processing_rate_per_s": TAKEN_PER_S, "idle_share": 0.58}
    measures |= {"busy_share": 0.42, "busy_share_max": 0.42, "backpressured_share": 0.0}
    latency = [None if value is None else 1000.0 * value / TAKEN_PER_S for value in pending]
    rows = {"operator": "source", "window_s": WINDOW_S, "parallelism": 3, "disturbed": False} | measures | others
    starts = 1_795_000_200 + WINDOW_S * np.arange(len(pending))
    return pd.DataFrame({**rows, "window_start_s": starts, "pending_records": pending, "latency_ms": latency})


def test_records_that_stand_while_the_source_rests_wait_for_nothing() -> None:
    observed = observations_of(GRAPH, windows([STUCK] * 6))
    assert observed.pending_records[-1, 0] == STUCK
    assert observed.waiting_records[-1, 0] == 0.0
    assert observed.latency_ms[-1, 0] == 0.0


def test_what_comes_on_top_of_them_waits() -> None:
    observed = observations_of(GRAPH, windows([*[STUCK] * 5, STUCK + 60_000.0]))
    assert observed.waiting_records[-1, 0] == pytest.approx(60_000.0)
    assert observed.latency_ms[-1, 0] == pytest.approx(60_000.0)


@pytest.mark.parametrize(
    "others",
    [
        {"idle_share": 0.02},  # it works as fast as it can
        {"busy_share_max": 1.0},  # one subtask does
        {"backpressured_share": 0.5},  # it is held up
        {"busy_share_max": None},  # nobody knows
    ],
)
def test_a_backlog_of_a_source_without_idle_time_is_work(others: dict[str, float | None]) -> None:
    observed = observations_of(GRAPH, windows([STUCK] * 6, **others))
    assert observed.waiting_records[-1, 0] == STUCK


def test_a_backlog_that_falls_is_work() -> None:
    observed = observations_of(GRAPH, windows([STUCK - 60_000.0 * step for step in range(6)]))
    assert observed.waiting_records[-1, 0] == STUCK - 300_000.0


def test_a_source_that_tells_no_backlog_has_none_that_stands() -> None:
    observed = observations_of(GRAPH, windows([None] * 6))
    assert np.isnan(observed.waiting_records).all()
