"""Operators that take records in bursts, by windows of ten seconds of Nexmark's q8 and q3 on a real Flink 2.1.3."""

from __future__ import annotations

import numpy as np
import pytest

from include.domain.graph import JobGraph, Operator
from include.settings import Planner
from lab.policies.planner.controller_memory import ControllerMemory
from lab.policies.planner.reactive_controller import decide_reactively
from lab.policies.tuning.observed_capacity import capacity_at
from models.policies.job_snapshot import Snapshot
from models.policies.observations import MEASURES, Observations
from models.policies.tidewise.measurements import edge_windows
from models.policies.tuning.reading import learn_histories, measure_capacity, read_windows

GRAPH = JobGraph.from_operators([Operator("source", (), 128), Operator("join", ("source",), 128)])
RUNNING = {"source": 1, "join": 1}
START_S = 1_795_697_000


def windows(
    taken: list[float],
    joined: list[float],
    busy: list[float],
    *,
    arriving: list[float] | None = None,
    counts: list[int] | None = None,
    pending: float = 0.0,
) -> Observations:
    """Return windows of ten seconds: what the source and the operator behind it took, and how busy that one was."""
    rate = np.array([taken, joined], float).T
    share = np.array([[0.05] * len(busy), busy]).T
    measures = {name: np.full(rate.shape, np.nan) for name in MEASURES}
    with np.errstate(divide="ignore", invalid="ignore"):
        measures["true_processing_rate_per_s"] = np.where(rate > 0, rate / share, np.nan)
    measures |= {"processing_rate_per_s": rate, "busy_share": share}
    measures["target_data_rate_per_s"][:, 0] = taken if arriving is None else arriving
    measures["pending_records"][:, 0] = pending
    parallelism = np.array([[1] * len(busy), counts or [1] * len(busy)]).T
    return Observations(
        window_start_s=START_S + 10 * np.arange(len(busy)),
        window_s=10,
        parallelism=parallelism,
        disturbed=np.zeros(len(busy), bool),
        **measures,
    )


# q8 at 2,000 events/s: the aggregate takes what the window before has sent when it has worked off the one before that.
TAKEN = [1994.5, 2010.5, 1956.3, 1512.5, 5159.3, 0.0, 4009.5, 0.0]
JOINED = [235.2, 0.0, 55.5, 184.9, 219.9, 0.0, 153.9, 76.3]
BUSY = [0.91, 1.0, 0.98, 1.0, 1.0, 1.0, 0.96, 1.0]
CAPACITY_PER_S = 127.0  # of one subtask: the median of its windows under a load that it sustains


def test_windows_in_which_an_operator_only_works_count_as_its_time():
    result = windows(TAKEN, JOINED, BUSY)
    assert measure_capacity(result, GRAPH)[1] == pytest.approx(CAPACITY_PER_S, rel=0.1)
    reported = result.true_processing_rate_per_s[:, 1]
    assert np.nanmean(reported) > 1.2 * CAPACITY_PER_S  # what the mean of the windows that took records would say
    reading = read_windows(GRAPH, result, RUNNING)
    assert reading is not None
    assert reading.capacity_per_s["join"] == pytest.approx(CAPACITY_PER_S, rel=0.1)


def test_short_windows_are_learnt_from_together_and_long_ones_each():
    result = windows(TAKEN, JOINED, BUSY)
    history = learn_histories({}, GRAPH, result, 5)["join"]
    assert len(history[0].recent_per_s) == 2  # eight windows of ten seconds: one minute, and what is left
    assert capacity_at(history, 1) < 1.2 * CAPACITY_PER_S
    other = windows(TAKEN, JOINED, BUSY, counts=[1, 1, 1, 1, 2, 2, 2, 2])
    assert [one.parallelism for one in learn_histories({}, GRAPH, other, 5)["join"]] == [1, 2]


def test_an_operator_without_work_has_no_capacity():
    assert np.isnan(measure_capacity(windows([10.0], [0.0], [0.0]), GRAPH)[1])
    assert np.isnan(measure_capacity(windows([10.0], [0.0], [1.0]), GRAPH)[1])


def snapshot(found: Observations, running: dict[str, int] = RUNNING) -> Snapshot:
    return Snapshot(START_S + 10 * len(found), GRAPH, running, True, found, 4, Planner())


def test_a_job_behind_a_window_that_gets_more_than_it_can_do_is_enlarged():
    calm = ([450.0, 452.4, 449.2, 451.0] * 3, [57.3, 61.2, 56.6, 59.7] * 3, [0.44, 0.46, 0.49, 0.46] * 3)
    taken, joined, busy = ([*one, *other] for one, other in zip(calm, (TAKEN, JOINED, BUSY), strict=True))
    arriving = [*calm[0], *[2000.0] * len(TAKEN)]
    memory = ControllerMemory()
    for until in range(2, len(taken) + 1, 2):
        first = windows(taken[:until], joined[:until], busy[:until], arriving=arriving[:until])
        reported, memory = decide_reactively(snapshot(first), memory)
        if until <= len(calm[0]):
            assert reported.wanted is None, reported.reason
    assert reported.wanted is not None, reported.reason
    assert reported.wanted["join"] == 2


# q3 after a rescale of the join: what waits in its buffers keeps it busy while the source is held up.
HELD_UP = ([0.0, 1.2, 1957.2], [339.7, 374.6, 287.3], [1.0, 1.0, 0.91])


def test_what_waits_in_buffers_is_no_share_of_what_the_source_takes():
    before = ([1600.0] * 8, [288.0] * 8, [0.8] * 8)
    taken, joined, busy = ([*one, *other] for one, other in zip(before, HELD_UP, strict=True))
    arriving = [*[1600.0] * 8, 1301.0, 1317.0, 326.0]
    counts = [*[1] * 8, 2, 2, 2]
    result = windows(taken, joined, busy, arriving=arriving, counts=counts)
    now = snapshot(result, {"source": 1, "join": 2})
    assert len(edge_windows(now)) == 11  # the join's own parallelism changes nothing of what it gets
    reported, memory = decide_reactively(now, ControllerMemory())
    assert memory.shares["join"] == pytest.approx(0.2, rel=0.15)
    assert reported.wanted is None, reported.reason
    alone = snapshot(windows(*HELD_UP, arriving=arriving[8:], counts=[2, 2, 2]), {"source": 1, "join": 2})
    assert decide_reactively(alone, ControllerMemory())[1].shares["join"] > 0.5  # nothing better is known of it


def test_windows_of_another_parallelism_of_what_sends_are_none_of_its_edges():
    result = windows([100.0] * 4, [50.0] * 4, [0.5] * 4)
    result.parallelism[:2, 0] = 2
    assert len(edge_windows(snapshot(result))) == 2
