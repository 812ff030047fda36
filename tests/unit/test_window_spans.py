"""Capacities of all spans of a job's windows at once are those of each span alone, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from capacity_points import add_observation

from include.domain.graph import JobGraph, Operator
from models.capacity.held_up import CLEAR, SATURATED, find_held_up_share
from models.policies.observations import MEASURES, Observations
from models.policies.tuning.capacity_history import History
from models.policies.tuning.reading import learn_histories

WINDOWS = 200


def made_windows(operators: int, window_s: int) -> Observations:
    """Return windows of all kinds: idle, busy, held up, not measured, at three parallelisms."""
    generator, shape = np.random.default_rng(operators), (WINDOWS, operators)
    values = {name: generator.random(shape) for name in MEASURES}
    values["processing_rate_per_s"] *= 1000.0 * (generator.random(shape) < 0.9)
    values["true_processing_rate_per_s"] *= 2000.0
    values["backpressured_share"] *= generator.random(shape) < 0.5
    for one in values.values():
        one[generator.random(shape) < 0.05] = np.nan
    values["backpressured_share"][180:], values["busy_share"][180:] = 0.95, 0.6
    values["backpressured_share"][180:, -1] = 0.0  # the last operator holds up the one before it
    values["processing_rate_per_s"][180:], values["true_processing_rate_per_s"][180:] = 900.0, 1500.0
    runs = np.repeat(generator.integers(1, 4, (WINDOWS // 25, operators)), 25, axis=0)
    starts = 1_700_000_000 + window_s * np.arange(WINDOWS)
    return Observations(starts, window_s, runs, disturbed=np.zeros(WINDOWS, bool), **values)


def list_spans(windows: Observations) -> list[np.ndarray]:
    spans, first = [], 0
    for row in range(1, WINDOWS + 1):
        is_long = (row - first) * windows.window_s >= 60
        if row == WINDOWS or is_long or (windows.parallelism[row] != windows.parallelism[first]).any():
            spans.append(np.arange(first, row))
            first = row
    return spans


def average(values: np.ndarray) -> np.ndarray:
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0)


def learn_span_by_span(graph: JobGraph, windows: Observations) -> dict[str, History]:
    result: dict[str, History] = dict.fromkeys(graph.names, ())
    for rows in list_spans(windows):
        span = windows.rows(rows)
        rate, true, busy = span.processing_rate_per_s, span.true_processing_rate_per_s, span.busy_share
        held_up = find_held_up_share(graph.list_feeders(), busy, span.backpressured_share)
        is_reported, only_works = np.isfinite(true) & (true > 0) & (rate > 0), (rate == 0) & np.isfinite(busy)
        with np.errstate(divide="ignore", invalid="ignore"):
            useful = np.where(is_reported, rate / true, np.where(only_works, busy, 0.0))
            is_held = (is_reported | only_works) & (held_up > useful + CLEAR)
            total = np.where(is_held, held_up, useful).sum(axis=0)
            capacity = np.where(is_reported.any(axis=0), np.where(is_reported, rate, 0.0).sum(axis=0) / total, np.nan)
        share, held = average(busy), average(held_up)
        for place, name in enumerate(graph.names):
            is_limit = bool(held[place] >= SATURATED and held[place] > share[place] + CLEAR)
            result[name] = add_observation(
                result[name],
                int(span.parallelism[0, place]),
                float(capacity[place]),
                keep=5,
                busy=float((held if is_limit else share)[place]),
                at_s=float(span.window_start_s[0]),
                is_limit=is_limit,
            )
    return result


@pytest.mark.parametrize("operators", [1, 2, 5])
@pytest.mark.parametrize("window_s", [5, 20, 60, 300])
def test_all_spans_at_once_are_as_each_alone(operators: int, window_s: int) -> None:
    names = [f"operator-{place}" for place in range(operators)]
    graph = JobGraph(tuple(Operator(name, (names[at - 1],) if at else ()) for at, name in enumerate(names)))
    windows = made_windows(operators, window_s)
    learned = learn_histories({}, graph, windows, 5)
    assert learned == learn_span_by_span(graph, windows)
    assert operators == 1 or any(one.is_limit for history in learned.values() for one in history)
    kept = {name: history[:1] for name, history in learned.items()}
    assert learn_histories(kept, graph, windows.rows(np.zeros(0, np.int64)), 5) == kept
