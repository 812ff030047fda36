"""From observed windows to the samples that the autoscaler's rules read."""

from __future__ import annotations

import numpy as np

from include.domain.graph import JobGraph
from lab.policies.flink_autoscaler.config import AutoscalerConfig
from lab.policies.flink_autoscaler.true_rates import observed_rate
from lab.policies.flink_autoscaler.window import (
    ACCUMULATED_BUSY_MS,
    LAG,
    LOAD,
    OBSERVED_TPR,
    RECORDS_IN,
    RECORDS_IN_PER_S,
    RECORDS_OUT,
    MetricWindow,
)
from models.arrays import Floats, Ints
from models.policies.observations import Observations


def latest_run(observations: Observations, running: Ints) -> Observations:
    """Return the latest windows without a gap, a restart or another parallelism than the running one, (O,).

    The autoscaler drops its samples at a restart; none are left when the last window shows one.
    """
    if not len(observations):
        return observations
    fits = ~observations.disturbed & ((observations.parallelism == running) | (observations.parallelism < 1)).all(
        axis=1
    )
    follows = np.concatenate([[True], np.diff(observations.window_start_s) == observations.window_s])
    # A window belongs to the run if it and all later ones fit, and each later one follows its predecessor.
    unbroken = fits & np.concatenate([follows[1:], [True]])
    length = int(np.logical_and.accumulate(unbroken[::-1]).sum())
    return observations.rows(np.arange(len(observations) - length, len(observations)))


def samples_of(config: AutoscalerConfig, graph: JobGraph, run: Observations) -> MetricWindow:
    """Return one sample at the begin of the first window and one at the end of each.

    Counters begin at 0 and grow by rate x window; in a window without a rate by the mean of the others, so that a gap
    does not end the counter.  Load, lag and gauges are those of the window that a sample ends, NaN at the beginning.

    Deviation: the load is that of a mean subtask where the autoscaler takes the busiest one (MAX), since windows keep
    no more than means.

    Args:
        config: the settings.
        graph: the job, in whose order the windows are.
        run: windows that follow each other, at least one.
    """
    times = np.asarray(run.window_start_s[0] + run.window_s * np.arange(len(run) + 1), float)
    values = {name: _metrics(config, run, place, name in graph.sources) for place, name in enumerate(graph.names)}
    return MetricWindow(times, values)


def _metrics(config: AutoscalerConfig, run: Observations, place: int, is_source: bool) -> dict[str, Floats]:
    taken, busy = run.processing_rate_per_s[:, place], run.busy_share[:, place]
    subtasks = np.maximum(run.parallelism[:, place], 1)
    metrics = {
        RECORDS_IN: _counter(taken, run.window_s),
        RECORDS_OUT: _counter(run.output_rate_per_s[:, place], run.window_s),
        ACCUMULATED_BUSY_MS: _counter(1000.0 * busy * subtasks, run.window_s),
        RECORDS_IN_PER_S: _gauge(taken),
        LOAD: _gauge(busy),
    }
    if not is_source:
        return metrics
    lag, backpressured = run.pending_records[:, place], run.backpressured_share[:, place]
    backpressured_ms = 1000.0 * np.where(np.isfinite(backpressured), backpressured, 0.0)
    caught = [observed_rate(config, *map(float, one)) for one in zip(taken, backpressured_ms, lag, strict=True)]
    return metrics | {LAG: _gauge(lag), OBSERVED_TPR: _gauge(np.array(caught, float))}


def _gauge(values: Floats) -> Floats:
    return np.concatenate([[np.nan], values])


def _counter(rates_per_s: Floats, window_s: int) -> Floats:
    known = np.isfinite(rates_per_s)
    if not known.any():
        return np.full(len(rates_per_s) + 1, np.nan)
    filled = np.where(known, rates_per_s, rates_per_s[known].mean())
    return np.concatenate([[0.0], np.cumsum(filled * window_s)])
