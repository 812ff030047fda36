"""Inputs of Phoebe and TWRES from a situation: one scale-out, one workload and one latency for the whole job."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lab.policies.phoebe.optimiser import Load
from lab.profiling.rows import Measurement
from models.arrays import Floats
from models.policies.observations import Observations
from models.policies.protocol import Situation
from models.scheduling.demand import MEDIAN

MEASURED_S = 120


def scale_out(situation: Situation) -> int:
    """Return the workers that the job occupies: operators share slots, so the largest parallelism."""
    return max(situation.parallelism.values())


def same_for_all(situation: Situation, workers: int) -> Mapping[str, int]:
    """Return the configuration in which every operator runs at one parallelism."""
    return dict.fromkeys(situation.graph.names, workers)


def forecast_per_s(situation: Situation, horizon_s: int) -> Floats:
    """Return (horizon_s,) the median forecast of all sources at 1 Hz from the time of the decision, records/s.

    A coarser forecast is interpolated between the middles of its bins; beyond its ends the outer value is kept.
    """
    forecast = situation.forecast
    total = np.sum([levels[MEDIAN] for levels in forecast.quantiles.values()], axis=0)
    middles = forecast.start_s + forecast.bin_s * (np.arange(forecast.bins) + 0.5)
    return np.asarray(np.interp(situation.as_of_s + np.arange(horizon_s) + 0.5, middles, total), float)


def load(situation: Situation, horizon_s: int, history_s: float) -> Load:
    """Return history, at the rate of the last window in which the arrivals are known, and forecast."""
    ahead = forecast_per_s(situation, horizon_s)
    arrived = _over_sources(situation, situation.observations.target_data_rate_per_s)
    known = arrived[np.isfinite(arrived)]
    past = np.full(int(np.ceil(history_s)), known[-1] if len(known) else ahead[0])
    return Load(np.concatenate([past, ahead]), len(past))


def measure(situation: Situation) -> Measurement | None:
    """Return the means of the last 120 s of undisturbed windows; None when a figure is missing.

    Deviation: the paper's latency is end to end; windows of a running job have the age of outstanding
    records, and say so.
    """
    observations = situation.observations
    recent = observations.rows(np.flatnonzero(_recent(observations) & ~observations.disturbed))
    if not len(recent):
        return None
    throughput = _over_sources(situation, recent.processing_rate_per_s)
    latency = _latency_ms(recent)
    if not (np.isfinite(throughput).any() and np.isfinite(latency).any()):
        return None
    means = float(np.nanmean(throughput)), float(np.nanmean(latency))
    return Measurement(scale_out(situation), *means, observations.latency)


def _recent(observations: Observations) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return (W,) whether a window belongs to the last 120 s; at least the last one does."""
    if not len(observations):
        return np.zeros(0, bool)
    return np.asarray(
        observations.window_start_s
        >= min(observations.window_start_s[-1] + observations.window_s - MEASURED_S, observations.window_start_s[-1])
    )


def _over_sources(situation: Situation, rate_per_s: Floats) -> Floats:
    """Return (W,) the sum over sources; NaN where one of them is not known."""
    rows = [situation.graph.names.index(name) for name in situation.graph.sources]
    return np.asarray(rate_per_s[:, rows].sum(axis=1), float) if rate_per_s.shape[1] else np.zeros(0)


def _latency_ms(observations: Observations) -> Floats:
    """Return (W,) the age of the backlog at the slowest source, NaN where none is known."""
    known = np.isfinite(observations.latency_ms)
    highest = np.where(known, observations.latency_ms, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(highest), highest, np.nan)
