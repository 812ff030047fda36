"""Recovery times, savings and errors of recorded runs."""

from __future__ import annotations

import numpy as np

from benchmarks.papers.phoebe import phoebe_setup
from benchmarks.papers.phoebe.phoebe_runs import Runs
from models.arrays import Floats

_STEADY_S = 30
# "near-optimal range of approximately 1000 ms": the base latency and four standard deviations of its noise
NEAR_OPTIMAL_MS = phoebe_setup.BASE_LATENCY_MS * (1.0 + 4.0 * phoebe_setup.LATENCY_NOISE)


def recovery_s(runs: Runs, normal_ms: float, longest_s: float = phoebe_setup.SIX_MINUTES_S) -> Floats:
    """Return (J, 8) seconds from each failure until the latency stays normal for 30 s; NaN after the recording.

    Args:
        runs: recorded.
        normal_ms: latency up to which a job counts as recovered.
        longest_s: returned for what takes longer; "6m+" in the paper's tables.
    """
    windows = _STEADY_S // phoebe_setup.WINDOW_S
    normal = runs.latency_ms <= normal_ms
    result = np.full((normal.shape[1], phoebe_setup.FAILURES), longest_s)
    for number, at in enumerate(phoebe_setup.failure_times_s()):
        first = round(at) // phoebe_setup.WINDOW_S
        reach = normal[first : first + round(longest_s) // phoebe_setup.WINDOW_S + windows]
        if len(reach) < windows:
            result[:, number] = np.nan
            continue
        steady = np.lib.stride_tricks.sliding_window_view(reach, windows, axis=0).all(axis=-1)  # (starts, J)
        seconds = (steady.argmax(axis=0) + 1.0) * phoebe_setup.WINDOW_S
        result[:, number] = np.where(steady.any(axis=0), np.minimum(seconds, longest_s), longest_s)
    return result


def saving_percent(runs: Runs) -> Floats:
    """Return (J,) worker-seconds less than with 24 workers all the time."""
    return np.asarray(100.0 * (1.0 - runs.workers.mean(axis=0) / phoebe_setup.WORKERS_MAX))


def near_optimal_percent(runs: Runs) -> Floats:
    """Return (J,) share of windows with a near-optimal latency."""
    return np.asarray(100.0 * (runs.latency_ms <= NEAR_OPTIMAL_MS).mean(axis=0))


def prediction_error_percent(expected_s: Floats, recovered_s: Floats) -> Floats:
    """Return (J,) mean |R - expected| / expected of the failures; NaN for systems that expect nothing.

    The paper does not define its error.

    Args:
        expected_s: (J, 8) NaN where nothing was expected.
        recovered_s: (J, 8) as :func:`recovery_s` gives them.
    """
    with np.errstate(invalid="ignore"):
        relative = np.abs(recovered_s - expected_s) / expected_s
    known = np.isfinite(relative)
    total = np.where(known, relative, 0.0).sum(axis=1)
    return np.asarray(
        100.0 * np.divide(total, known.sum(axis=1), out=np.full(len(total), np.nan), where=known.any(axis=1))
    )
