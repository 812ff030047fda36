"""Measurements of a job before and after a rescale, from its windows."""

from __future__ import annotations

import math

import numpy as np

from controller.view.job_view import JobView
from models.control.outcome import Measurements
from models.policies.observations import Observations
from models.polling.seen_job import PolledJob

WINDOWS = 3  # the last ones count: one alone varies too much
_BUSY_ENOUGH = 0.5  # of its time: what a vertex that is busy for less could process is an extrapolation


def measure_outcome(
    seen: PolledJob, observations: Observations | None, until_s: float, since_s: float = 0.0
) -> Measurements | None:
    """Return what a job did over its last undisturbed windows in ``[since_s, until_s]``; None without any.

    Windows are in the order of the graph.
    """
    if observations is None or seen.graph is None:
        return None
    ends_s = observations.window_start_s + observations.window_s
    inside = (ends_s <= until_s) & (observations.window_start_s >= since_s) & ~observations.disturbed
    taken = np.flatnonzero(inside)[-WINDOWS:]
    if not len(taken):
        return None
    sources = np.array([seen.graph.position(name) for name in seen.graph.sources], np.int64)
    taken_in, arriving, held_back, late_ms = (
        values[np.ix_(taken, sources)]
        for values in (
            observations.processing_rate_per_s,
            observations.target_data_rate_per_s,
            observations.backpressured_share,
            observations.latency_ms,
        )
    )
    return Measurements(
        until_s=float(ends_s[taken[-1]]),
        throughput_per_s=_mean_sum(taken_in),
        arriving_per_s=_mean_sum(arriving),
        backpressured_share=_largest(np.nanmean(held_back, axis=0) if np.isfinite(held_back).any() else held_back[:1]),
        lag_s=_largest(late_ms[-1:], math.nan) / 1000.0,
        restarts=round(seen.metrics.get("numRestarts", 0.0) - seen.metrics.get("numRescales", 0.0)),
        backlog_slope_per_s=_slope(ends_s[taken], observations.waiting_records[np.ix_(taken, sources)].sum(axis=1)),
        capacity_per_s=_measure_capacities(seen, observations.rows(taken)),
    )


def find_lateness_s(view: JobView, now_s: float) -> float | None:
    """Return how long a job's records wait by its latest windows; infinite while it is down, None where unknown."""
    if view.has_failed or (view.seen is not None and view.seen.restarting):
        return math.inf
    if view.seen is None or view.observations is None:
        return None
    since_s = now_s - (WINDOWS + 2) * view.observations.window_s
    result = measure_outcome(view.seen, view.observations, math.inf, since_s)
    return None if result is None or math.isnan(result.lag_s) else result.lag_s


def _slope(at_s: np.ndarray, records: np.ndarray) -> float:
    """Return the slope of the line through what is known, records/s; NaN where that is less than two values."""
    known = np.isfinite(records)
    if known.sum() < 2:
        return math.nan
    return float(np.polyfit(at_s[known] - at_s[0], records[known], 1)[0])


def _measure_capacities(seen: PolledJob, windows: Observations) -> dict[str, float]:
    """Return vertex id -> what it can process, of those that were busy enough in all windows, records/s."""
    known = np.where(windows.busy_share >= _BUSY_ENOUGH, windows.true_processing_rate_per_s, np.nan).mean(axis=0)
    names = () if seen.graph is None else seen.graph.names
    return {seen.vertex_ids[name]: float(one) for name, one in zip(names, known, strict=False) if np.isfinite(one)}


def _mean_sum(values: np.ndarray) -> float:
    """Return the mean over windows of the sum over sources; NaN where one was never measured."""
    if np.isnan(values).all(axis=0).any():
        return math.nan
    return float(np.nanmean(values, axis=0).sum())


def _largest(values: np.ndarray, unknown: float = 0.0) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else unknown
