"""Operators at their limit whose mean subtask is idle at times: what they do is what they can do."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from capacity_points import add_observation

from include.domain.graph import JobGraph, Operator
from include.settings import PROJECT, Training
from lab.policies.tuning.observed_capacity import capacity_at
from lab.replay.row_histories import build_history
from models.capacity.held_up import find_held_up_share
from models.policies.observations import Observations
from models.policies.tidewise.job_sizes import _draw
from models.policies.tuning.reading import learn_histories, measure_capacity
from models.polling.poll_history import PollHistory
from models.scheduling.need import CapacityBounds
from models.training.busy_choice import choose_busy
from models.training.job_windows import KnownOperator
from spark_jobs.train.job_tables import read_windows
from tools.raw_records import read_records

RECORDING = PROJECT / "data" / "recording_skewed" / "q3.jsonl.gz"
MODELLED_PER_S = 48.0  # of each subtask of the join, as the simulated days before the recording had it


@cache
def read_recording() -> tuple[JobGraph, Observations]:
    records = read_records(RECORDING)
    history = PollHistory({"live": 300}, polls=len(records))
    assert history.add(records) == []
    (job,) = history.jobs()
    assert job.graph is not None
    windows = history.windows(records[-1].observed_at_ms / 1000 + 60)  # when the next poll would have come
    return job.graph, windows.observations(0)


def select_saturated(windows: Observations, join: int, subtasks: int) -> Observations:
    source = windows.backpressured_share[:, 1 - join]
    is_one = ~windows.disturbed & (windows.parallelism[:, join] == subtasks) & (source > 0.95)
    return windows.rows(np.flatnonzero(is_one))


def find_join(graph: JobGraph) -> int:
    return next(place for place, one in enumerate(graph.operators) if one.name.startswith("Join"))


def test_what_a_real_job_processed_under_backpressure_is_its_capacity():
    graph, windows = read_recording()
    join = find_join(graph)
    saturated = select_saturated(windows, join, 7)
    assert len(saturated) >= 2
    processed = saturated.processing_rate_per_s[:, join].mean()
    by_busy_time = (saturated.processing_rate_per_s / saturated.busy_share)[:, join].mean()
    assert by_busy_time > 1.1 * processed
    assert measure_capacity(saturated, graph)[join] == pytest.approx(processed, rel=0.05)


def test_a_light_load_later_does_not_raise_what_the_limit_was():
    graph, windows = read_recording()
    join = find_join(graph)
    history = learn_histories({}, graph, windows.rows(np.flatnonzero(~windows.disturbed)), 5)[graph.names[join]]
    at_seven = next(one for one in history if one.parallelism == 7)
    assert at_seven.is_limit
    processed = select_saturated(windows, join, 7).processing_rate_per_s[:, join]
    assert at_seven.capacity_per_s == pytest.approx(processed.mean(), rel=0.05)


def test_a_sure_model_gives_way_to_a_limit_that_was_seen():
    graph, windows = read_recording()
    join = find_join(graph)
    history = learn_histories({}, graph, windows.rows(np.flatnonzero(~windows.disturbed)), 5)[graph.names[join]]
    mean = MODELLED_PER_S * np.arange(1, 17)
    drawn = _draw(CapacityBounds(mean, 0.01 * mean, mean), history)
    limit = capacity_at(history, 7)
    assert mean[6] > 1.15 * limit
    assert drawn.mean_per_s[6] == pytest.approx(limit, rel=0.05)
    assert drawn.mean_per_s[5] < 0.9 * mean[5]  # its neighbours are no better


@pytest.mark.parametrize("share", [0.0, 1e-300, 0.1])
def test_an_operator_that_stands_still_is_not_at_its_limit(share: float):
    mean = MODELLED_PER_S * np.arange(1, 17)
    bounds = CapacityBounds(mean, 0.01 * mean, mean)
    first = add_observation((), 7, share * mean[6], busy=0.98, at_s=300.0, is_limit=True)
    assert _draw(bounds, first).mean_per_s[6] > 0.9 * mean[6]
    later = add_observation((), 7, mean[6], busy=0.7, at_s=300.0)
    later = add_observation(later, 7, share * mean[6], busy=0.98, at_s=600.0, is_limit=True)
    assert not later[0].is_limit


def test_a_sure_model_does_not_give_way_to_a_window_that_is_no_limit():
    mean = MODELLED_PER_S * np.arange(1, 17)
    bounds = CapacityBounds(mean, 0.01 * mean, mean)
    seen_once = add_observation((), 7, 0.85 * mean[6], busy=0.8, at_s=300.0)
    assert _draw(bounds, seen_once).mean_per_s[6] > 0.95 * mean[6]


def test_training_learns_the_limit_and_not_what_lighter_windows_say():
    graph, windows = read_recording()
    join = find_join(graph)
    measured = build_history("q3", graph, windows, 16).windows
    chosen = choose_busy(measured, np.ones(len(windows), bool), Training())
    processed = select_saturated(windows, join, 7).processing_rate_per_s[:, join]
    at_seven = (chosen.operator == join) & (chosen.parallelism == 7)
    assert chosen.capacity_per_s[at_seven].mean() == pytest.approx(processed.mean(), rel=0.05)
    assert chosen.busiest[at_seven].min() > 0.95


def test_rows_of_the_lake_show_who_holds_up_whom():
    names = ["out", "in"]
    rows = {
        "operator": names,
        "start_s": [300, 300],
        "window_s": [300, 300],
        "is_source": [False, True],
        "parallelism": [7, 1],
        "rate_per_s": [285.0, 1300.0],
        "output_per_s": [0.0, 285.0],
        "true_rate_per_s": [335.0, 1e5],
        "busy_share": [0.85, 0.01],
        "busy_share_max": [0.85, 0.01],
        "backpressured_share": [0.0, 0.98],
        "latency_ms": [None, 60_000.0],
        "is_demand": [False, True],
    }
    known = (KnownOperator("in", (), 128), KnownOperator("gone", ("in",), 128), KnownOperator("out", ("in",), 128))
    with_graph = read_windows(pa.table(rows), (known[0], known[2]))
    assert with_graph.operators == ("in", "out")
    assert with_graph.capacity_per_s[0].tolist() == [1e5, pytest.approx(285 / 0.98)]
    assert with_graph.busy_share[0].tolist() == [0.01, 0.85]
    without = read_windows(pa.table(rows))
    assert without.capacity_per_s[0].tolist() == [1e5, 335.0]
    assert read_windows(pa.table(rows), known).capacity_per_s[0].tolist() == with_graph.capacity_per_s[0].tolist()


UPSTREAM = [[], [0], [0], [1]]  # a source feeds two operators, the first of them a third


@pytest.mark.parametrize(
    ("busy", "backpressured", "expected"),
    [
        ([0.1, 0.5, 0.5, 0.8], [0.0, 0.97, 0.0, 0.0], [0.0, 0.0, 0.0, 0.97]),
        ([0.1, 0.8, 0.8, 0.3], [0.97, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),  # either of two may be the one
        ([0.1, 0.5, 0.5, 0.8], [0.0, 0.97, 0.0, 0.5], [0.0, 0.0, 0.0, 0.0]),  # it is held up itself
        ([0.1, 0.5, 0.5, 0.3], [0.0, 0.97, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),  # it hardly works: something else does
        ([0.1, 0.5, 0.5, 0.8], [0.0, np.nan, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
        ([0.1, 0.5, 0.5, np.nan], [0.0, 0.97, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
        ([0.1, 0.5, 0.5, 0.8], [0.0, 0.97, 0.0, np.nan], [0.0, 0.0, 0.0, 0.97]),
    ],
)
def test_who_holds_up_whom(busy: list[float], backpressured: list[float], expected: list[float]):
    result = find_held_up_share(UPSTREAM, np.array([busy]), np.array([backpressured]))
    assert result[0].tolist() == expected


def test_an_edge_of_two_exchanges_is_one_operator():
    shares = find_held_up_share([[], [0, 0]], np.array([[0.1, 0.8]]), np.array([[0.9, 0.0]]))
    assert shares.tolist() == [[0.0, 0.9]]


def test_an_evenly_loaded_operator_is_as_before():
    graph = JobGraph.from_operators([Operator("source", ()), Operator("map", ("source",))])
    rate = np.array([[100.0, 100.0]])
    windows = Observations(
        window_start_s=np.array([300]),
        window_s=300,
        parallelism=np.array([[1, 2]]),
        processing_rate_per_s=rate,
        output_rate_per_s=rate,
        true_processing_rate_per_s=rate / np.array([[0.2, 0.98]]),
        true_output_rate_per_s=rate,
        target_data_rate_per_s=np.array([[150.0, np.nan]]),
        busy_share=np.array([[0.2, 0.98]]),
        idle_share=np.array([[0.0, 0.02]]),
        backpressured_share=np.array([[0.8, 0.0]]),
        pending_records=np.array([[9000.0, np.nan]]),
        latency_ms=np.array([[90_000.0, np.nan]]),
        disturbed=np.zeros(1, bool),
    )
    assert measure_capacity(windows, graph)[1] == pytest.approx(100 / 0.98)
    assert not learn_histories({}, graph, windows, 5)["map"][0].is_limit


def test_a_limit_takes_the_place_of_lighter_windows_and_lasts():
    history = add_observation((), 7, 340.0, busy=0.8, at_s=300.0)
    history = add_observation(history, 7, 285.0, busy=0.98, at_s=600.0, is_limit=True)
    assert (history[0].recent_per_s, history[0].is_limit) == ((285.0,), True)
    assert add_observation(history, 7, 335.0, busy=0.85, at_s=900.0) == history
    later = add_observation(history, 7, 335.0, busy=0.85, at_s=600.0 + 8 * 86_400)
    assert (later[0].recent_per_s, later[0].is_limit) == ((335.0,), False)
    both = add_observation(history, 7, 290.0, busy=0.97, at_s=900.0, is_limit=True)
    assert both[0].recent_per_s == (285.0, 290.0)
