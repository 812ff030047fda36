"""Windows of a job on which models are judged: held out of a fit, or ahead of a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from include.settings import Training
from models.arrays import Bools, Floats, Ints
from models.capacity.busy_windows import TRUSTED
from models.capacity.robust_means import number_points
from models.training.busy_choice import BusyWindows, choose_busy, keep_trusted
from models.training.held_out import find_held, hash_numbers
from models.training.job_facts import measure_utilisation
from models.training.job_windows import TrainingHistory, TrainingWindows

RECENT_HELD: Final = 20
"""Held-back windows per operator and parallelism on which models are scored."""
RECENT_HELD_WINDOWS: Final = 200
"""Held-back windows of a job on which latency models are scored."""
WINDOWS_PER_POINT: Final = 3
"""Windows of one parallelism resemble each other: so many of each are enough, and none decides alone."""
HISTORY_SHARE: Final = 0.25
"""Of a short history the last part of this share is predicted."""
LEAST_S: Final = 600.0
"""With less time than this after the moment nothing is judged."""


@dataclass(frozen=True, slots=True)
class MeasuredCapacities:
    """Capacities that were measured, (n,) each: place of the operator, parallelism, begin, records/s, idle or not."""

    operator: Ints
    parallelism: Ints
    start_s: Ints
    capacity_per_s: Floats
    idle: Bools


@dataclass(frozen=True, slots=True)
class JobTests:
    """Windows of a job that judge its models.

    Attributes:
        operators: (O,) names.
        held: held-back capacities.
        held_utilisation, held_latency_ms: (k,) of held-back windows of the job.
        hours: mean capacities of each hour, operator and parallelism ahead of the trial.
        ahead: single windows ahead of the trial, by which intervals are calibrated.
    """

    operators: tuple[str, ...]
    held: MeasuredCapacities
    held_utilisation: Floats
    held_latency_ms: Floats
    hours: MeasuredCapacities
    ahead: MeasuredCapacities


def find_since(first_s: float, as_of_s: float, champion_s: float | None, options: Training) -> float | None:
    """Return the moment from which on windows are predicted, epoch seconds; None when too little time would be left.

    It is never before the training of the champion, which shall not have seen those hours either. ``champion_s`` is
    None without a champion, or when that is not known.
    """
    since_s = as_of_s - min(options.gate_forward_h * 3600.0, HISTORY_SHARE * (as_of_s - first_s))
    since_s = max(since_s, since_s if champion_s is None else champion_s)
    return since_s if as_of_s - since_s >= LEAST_S else None


def list_tests(history: TrainingHistory, options: Training, since_s: float | None) -> JobTests:
    """Return the windows that judge models; ``since_s`` of :func:`find_since`."""
    windows = history.windows
    held = find_held(history.job, windows.start_s, options.holdout_share)
    scored = keep_trusted(choose_busy(windows, np.ones(len(windows.start_s), bool), options))
    later = scored.take(scored.start_s >= (np.inf if since_s is None else since_s))
    utilisation, latency_ms = measure_utilisation(windows)
    known = np.flatnonzero(held & np.isfinite(latency_ms))[-RECENT_HELD_WINDOWS:]
    return JobTests(
        windows.operators,
        held=_measured(scored.take(held[scored.window]).take_recent(RECENT_HELD)),
        held_utilisation=utilisation[known],
        held_latency_ms=latency_ms[known],
        hours=_average_hours(later),
        ahead=draw_ahead(later),
    )


def draw_ahead(later: BusyWindows) -> MeasuredCapacities:
    """Return a few windows of each operator and parallelism by which intervals are calibrated.

    Windows of an operator that is lightly used would show how little it varies, not how far off it is near saturation:
    they would make the intervals of all others too narrow.
    """
    later = later.take(~later.idle & (later.busy >= TRUSTED))
    order = np.lexsort((hash_numbers(later.start_s), later.parallelism, later.operator))
    point = number_points(later.operator, later.parallelism)[order]
    first = np.flatnonzero(np.diff(point, prepend=-1))
    drawn = order[np.arange(len(order)) - first[point] < WINDOWS_PER_POINT] if len(order) else order
    return _measured(later.take(np.sort(drawn)))


def _average_hours(later: BusyWindows) -> MeasuredCapacities:
    """Return one row per operator, parallelism and hour."""
    hour_s = later.start_s // 3600 * 3600
    keys, place = np.unique(np.stack([later.operator, later.parallelism, hour_s]), axis=1, return_inverse=True)
    count = np.maximum(np.bincount(place, minlength=keys.shape[1]), 1)
    mean = np.bincount(place, later.capacity_per_s, minlength=keys.shape[1]) / count
    idle = np.zeros(keys.shape[1], bool)
    idle[place] = later.idle
    return MeasuredCapacities(keys[0], keys[1], keys[2], np.asarray(mean, float), idle)


def _measured(rows: BusyWindows) -> MeasuredCapacities:
    return MeasuredCapacities(rows.operator, rows.parallelism, rows.start_s, rows.capacity_per_s, rows.idle)


def measure_sustained(windows: TrainingWindows, from_s: Floats, until_s: Floats) -> Floats:
    """Return what all sources emitted over the share that the busiest operator was busy, (n,) records/s.

    It is the mean of the windows that began in each span, (n,) epoch seconds without the last, NaN without one.
    """
    is_busy = windows.is_measured & np.isfinite(windows.busy_share)
    busiest = np.where(is_busy, windows.busy_share, -np.inf).max(axis=1, initial=-np.inf)
    is_emitted = windows.is_measured & windows.is_source & np.isfinite(windows.output_per_s)
    emitted = np.where(is_emitted, windows.output_per_s, 0.0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        sustained = np.where(is_emitted.any(axis=1), emitted / busiest, np.nan)
    use = np.isfinite(sustained) & (busiest > 0)
    inside = (windows.start_s >= from_s[:, None]) & (windows.start_s < until_s[:, None]) & use
    total = np.where(inside, sustained, 0.0).sum(axis=1)
    # Rounded: the last bits of a sum depend on the order of its terms.
    return np.asarray(np.where(inside.any(axis=1), np.round(total / np.maximum(inside.sum(axis=1), 1), 3), np.nan))
