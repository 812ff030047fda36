"""Rows of silver.observations as windows of a plan: the age is the latency, and what stands does not wait."""

from __future__ import annotations

import numpy as np

from include.domain.graph import JobGraph, Operator
from spark_jobs.plan_inputs.windows import READ, WINDOW, observations_of

GRAPH = JobGraph((Operator("in", (), 128), Operator("work", ("in",), 128)))


def columns(**own: list[float]) -> dict[str, np.ndarray]:
    """A window of the source and one of the operator behind it."""
    given = {
        "operator": ["in", "work"],
        "window_start_s": [0, 0],
        "window_s": [60, 60],
        "parallelism": [3, 3],
        "disturbed": [False, False],
        **{name: [np.nan, np.nan] for name in READ},
        **own,
    }
    return {name: np.array(given[name], object if name == "operator" else None) for name in WINDOW}


def test_the_age_is_the_latency_and_a_backlog_that_stands_does_not_wait() -> None:
    windows = observations_of(
        GRAPH, columns(pending_records=[5e5, np.nan], outstanding_records=[20.0, np.nan], age_s=[0.5, np.nan])
    )
    assert windows.latency_ms[0, 0] == 500.0
    assert (windows.pending_records[0, 0], windows.waiting_records[0, 0]) == (5e5, 20.0)


def test_rows_of_an_earlier_release_have_no_age_and_wait_with_all_that_is_pending() -> None:
    windows = observations_of(GRAPH, columns(pending_records=[5e5, np.nan]))
    assert np.isnan(windows.latency_ms).all()
    assert windows.waiting_records[0, 0] == 5e5
