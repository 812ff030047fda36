"""Downtimes of one kind of event as a function of the state's size, and what each event would have been expected to be.

    D = centre (1 + slope (S / S' - 1))     S size of the state, S' its mean over the job's events

The centre is the median of the job's events, drawn towards the fleet's and the prior; the slope is a ridge regression
of relative downtimes, drawn towards none.  The expectation of an event uses events before it alone: no event is its
own witness, nor one that came later.

    n events in order of time, J jobs, K places of a job's events
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints

PRIOR_EVENTS = 2.0
"""A coarser level counts like so many events."""
SLOPE_PENALTY = 0.0625
"""(noise of a relative downtime / sd of a slope)^2 = (0.1 / 0.4)^2."""
MOST_FACTOR = 3.0
"""The state changes an expected downtime by no more than this factor: beyond what was seen nothing is known."""
_SHORTEST_S = 0.1


@dataclass(frozen=True, slots=True)
class Downtimes:
    """Downtimes of one kind of event.

    Attributes:
        slope: (J,) relative change of D per relative change of the state.
        state_bytes: (J,) the state's mean size over the events; NaN where it is not known.
        before_s: (n,) what was expected of each event before it.
        seen_before: (n,) events of the same job before each.
    """

    slope: Floats
    state_bytes: Floats
    before_s: Floats
    seen_before: Ints


def fit_downtimes(duration_s: Floats, state_bytes: Floats, job: Ints, jobs: int, prior_s: float) -> Downtimes:
    """Fit the slopes, and predict each event from those before it.

    Args:
        duration_s: (n,) in order of time, not negative.
        state_bytes: (n,) NaN where it is not known.
        job: (n,) 0..J-1.
        jobs: J.
        prior_s: what is assumed with no event at all.
    """
    n = len(duration_s)
    place = _places(job, jobs)
    width = int(place.max(initial=-1)) + 1
    seconds, sizes = np.full((jobs, width), np.nan), np.full((jobs, width), np.nan)
    seconds[job, place], sizes[job, place] = np.maximum(duration_s, _SHORTEST_S), state_bytes
    parent = _fleet_before(seconds[job, place], prior_s)
    before = np.full(n, np.nan)
    for count in range(width):
        mine = place == count
        centre, slope, size = _fit(seconds[job[mine], :count], sizes[job[mine], :count], parent[mine])
        before[mine] = centre * state_factor(slope, state_bytes[mine], size)
    _, slope, size = _fit(seconds, sizes, np.full(jobs, np.log(prior_s)))
    return Downtimes(slope, size, before, place)


def state_factor(slope: Floats, state_bytes: Floats, usual_bytes: Floats) -> Floats:
    """Return by what a downtime differs from its centre for a state of this size; 1 where a size is not known."""
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = 1.0 + slope * (state_bytes / usual_bytes - 1.0)
    return np.asarray(np.where(np.isfinite(factor), np.clip(factor, 1.0 / MOST_FACTOR, MOST_FACTOR), 1.0))


def _places(job: Ints, jobs: int) -> Ints:
    """Return (n,) how many events of the same job came before each."""
    order = np.argsort(job, kind="stable")
    count = np.bincount(job, minlength=jobs)
    place = np.empty(len(job), np.int64)
    place[order] = np.arange(len(job)) - np.repeat(np.cumsum(count) - count, count)
    return place


def _fleet_before(seconds: Floats, prior_s: float) -> Floats:
    """Return (n,) the log of the fleet's typical downtime before each event: the median, drawn towards the prior."""
    seen: list[float] = []
    typical = np.empty(len(seconds))
    prior = float(np.log(prior_s))
    for index, value in enumerate(np.log(seconds).tolist()):
        half = len(seen) // 2
        median = 0.5 * (seen[half] + seen[(len(seen) - 1) // 2]) if seen else prior
        typical[index] = (len(seen) * median + PRIOR_EVENTS * prior) / (len(seen) + PRIOR_EVENTS)
        insort(seen, value)
    return typical


def _fit(seconds: Floats, sizes: Floats, parent_log: Floats) -> tuple[Floats, Floats, Floats]:
    """Return centre, slope and mean size of each row of (m, K) events, NaN where there is none, with parents (m,)."""
    known = np.isfinite(seconds)
    count = known.sum(axis=1)
    logs = np.where(known, np.log(np.where(known, seconds, 1.0)), np.inf)
    ordered = np.append(np.sort(logs, axis=1), np.zeros((len(logs), 1)), axis=1)
    rows = np.arange(len(logs))
    middle = 0.5 * (ordered[rows, np.maximum(count - 1, 0) // 2] + ordered[rows, np.maximum(count, 1) // 2])
    median = np.where(count > 0, middle, 0.0)
    centre = np.exp((count * median + PRIOR_EVENTS * parent_log) / (count + PRIOR_EVENTS))
    sized = known & np.isfinite(sizes) & (sizes > 0)
    weight = np.maximum(sized.sum(axis=1), 1)
    size = np.where(sized, sizes, 0.0).sum(axis=1) / weight
    size = np.where(size > 0, size, np.nan)
    with np.errstate(invalid="ignore"):
        x = np.where(sized, sizes / size[:, None] - 1.0, 0.0)
        y = np.where(sized, np.clip(seconds / np.exp(median)[:, None] - 1.0, -1.0, 1.0), 0.0)
    y = np.where(sized, y - y.sum(axis=1, keepdims=True) / weight[:, None], 0.0)
    slope = (x * y).sum(axis=1) / ((x * x).sum(axis=1) + SLOPE_PENALTY)
    return centre, slope, size
