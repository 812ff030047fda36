"""Measurements of a job between two plans: load, lag, utilisation."""

from __future__ import annotations

import math

import numpy as np

from models.observing.source_rates import GROWTH_ABOVE
from models.policies.evaluation.window_memory import WindowMemory
from models.policies.job_snapshot import Snapshot
from models.policies.observations import Observations
from models.policies.tuning.capacity_history import most_capacity_at
from models.policies.tuning.reading import SPAN_S, MeanMetrics, select_new_windows

LATEST = 2  # windows that show the present, but at least a minute of them: they may be as short as five seconds
NO_AGE = 0.2
"""Of what is late: records that are younger wait no longer than they do anyhow."""
_EDGES_S = 600  # of ratios: buffers hold what an operator has sent and the next has not taken, for half a minute


def latest_windows(snapshot: Snapshot) -> Observations:
    """Return the windows that show the present: the last undisturbed ones."""
    return _select_last(snapshot.observations, SPAN_S)


def _select_last(observations: Observations, least_s: int) -> Observations:
    """Return the undisturbed ones of the last windows, of ``LATEST`` and of so many seconds at least."""
    if not len(observations):
        return observations
    end_s = int(observations.window_start_s[-1]) + observations.window_s
    return select_new_windows(observations, end_s - max(LATEST * observations.window_s, least_s))


def edge_windows(snapshot: Snapshot) -> Observations:
    """Return the undisturbed windows that show what goes over edges, without what ran otherwise.

    How many records leave an operator that aggregates depends on its own subtasks: its rates at another parallelism are
    unknown.
    """
    windows = _select_last(snapshot.observations, _EDGES_S)
    if not len(windows):
        return windows
    counts = np.array([snapshot.running[name] for name in snapshot.graph.names], np.int64)
    is_other = (windows.parallelism != counts) & (windows.parallelism >= 1)
    sends = [snapshot.graph.position(up) for up in {up for one in snapshot.graph.operators for up in one.upstream}]
    return windows.rows(np.flatnonzero(~is_other[:, sends].any(axis=1)))


def lag_s(observations: Observations) -> float:
    """Return the age of the oldest record that waits at the end of the last window, s; 0 when it was not measured."""
    if not len(observations):
        return 0.0
    last = observations.latency_ms[-1]
    return float(np.max(last[np.isfinite(last)], initial=0.0)) / 1000.0


def is_behind(snapshot: Snapshot) -> bool:
    """Whether records wait for longer than they do anyhow."""
    return lag_s(snapshot.observations) >= NO_AGE * snapshot.options.costs.late_after_s


def count_waiting(snapshot: Snapshot) -> tuple[float, float]:
    """Return the records that wait at the end of the last window but one, and of the last one; NaN if not known."""
    windows, sources = snapshot.observations, [snapshot.graph.position(name) for name in snapshot.graph.sources]
    before, now = [math.nan] * max(2 - len(windows), 0) + windows.waiting_records[-2:, sources].sum(axis=1).tolist()
    return before, now


def stays_behind(snapshot: Snapshot) -> bool:
    """Whether a job is behind and does not work its backlog off."""
    windows, (before, now) = snapshot.observations, count_waiting(snapshot)
    sources = [snapshot.graph.position(name) for name in snapshot.graph.sources]
    arrived = windows.window_s * windows.target_data_rate_per_s[-1:, sources].sum()
    return is_behind(snapshot) and bool(now - before > -GROWTH_ABOVE * arrived)


def utilisation(snapshot: Snapshot, reading: MeanMetrics, memory: WindowMemory) -> float:
    """Return the highest required share of capacity of the operators; 0 when none is known.

    The capacity is the mean of the recent observations at the running parallelism ("mean reversion" of ContTune), or
    the most that it may be where the operator was only seen lightly used: such a figure alone is no reason to act.
    """
    shares = []
    for name, need in reading.required_per_s.items():
        capacity = most_capacity_at(memory.histories.get(name, ()), snapshot.running[name])
        shares.append(need / (capacity if math.isfinite(capacity) else reading.capacity_per_s[name]))
    return max((share for share in shares if math.isfinite(share)), default=0.0)
