"""Downtimes of one kind of event as a function of the state's size, and what each event would have been expected to be.

    D = centre (1 + slope (S / S' - 1))     S size of the state, S' its mean over the job's events

The centre is the median of the job's events, drawn towards the fleet's and the prior, and the less so the further they
lie apart (a prior with the tails of Cauchy's distribution: some jobs are unlike all others).  The slope is a ridge
regression of relative downtimes, drawn towards none.  The expectation of an event uses events before it alone: no event
is its own witness, nor one that came later.

    n events in order of time, J jobs, K places of a job's events
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.bundle.state_factor import MOST_FACTOR, state_factor

PRIOR_EVENTS = 2.0
"""A coarser level counts like so many events."""
PRIOR_LOG_SD = 0.5
"""So far apart, in logarithms, a coarser level counts half. Where the fleet's downtime is 30 s, a job whose events take
60 s is expected to take 45 s after one, 53 s after three; one whose events take 300 s 248 s after one."""
SLOPE_PENALTY = 0.0625
"""(noise of a relative downtime / sd of a slope)^2 = (0.1 / 0.4)^2."""
_SHORTEST_S = 0.1


@dataclass(frozen=True, slots=True)
class Downtimes:
    """Downtimes of one kind of event.

    Attributes:
        slope: (J,) relative change of D per relative change of the state.
        state_bytes: (J,) the state's mean size over the events; NaN where it is not known.
        before_s: (n,) what was expected of each event before it.
        fleet_s: (n,) what was typical of the fleet before it.
        seen_before: (n,) events of the same job before each.
    """

    slope: Floats
    state_bytes: Floats
    before_s: Floats
    fleet_s: Floats
    seen_before: Ints


def fit_downtimes(
    duration_s: Floats,
    state_bytes: Floats,
    job: Ints,
    jobs: int,
    prior_s: float,
    *,
    change_s: Floats | None = None,
) -> Downtimes:
    """Fit the slopes, and predict each event from those before it.

    Events, (n,), are in order of time, of jobs 0..J-1: from a duration of NaN nothing is learnt, it is predicted alone;
    a state's size may be NaN. ``change_s``, (n,), is by how much the job is known to differ from the fleet's typical
    downtime, before each event.
    """
    n = len(duration_s)
    place = _places(job, jobs)
    width = int(place.max(initial=-1)) + 1
    seconds, sizes = np.full((jobs, width), np.nan), np.full((jobs, width), np.nan)
    seconds[job, place], sizes[job, place] = np.maximum(duration_s, _SHORTEST_S), state_bytes
    fleet_s = np.exp(_fleet_before(seconds[job, place], prior_s))
    typical_s = fleet_s if change_s is None else fleet_s + change_s
    parent = np.log(np.clip(typical_s, fleet_s / MOST_FACTOR, fleet_s * MOST_FACTOR))
    before = np.full(n, np.nan)
    for count in range(width):
        mine = place == count
        centre, slope, size = _fit(seconds[job[mine], :count], sizes[job[mine], :count], parent[mine])
        before[mine] = centre * state_factor(slope, state_bytes[mine], size)
    _, slope, size = _fit(seconds, sizes, np.full(jobs, np.log(prior_s)))
    return Downtimes(slope, size, before, fleet_s, place)


def find_change_s(
    duration_s: Floats, state_bytes: Floats, job: Ints, jobs: int, prior_s: float, *, is_other: Bools
) -> Floats:
    """Return by how much a job's downtimes of one kind differ from the fleet's, before each event of another kind.

    What a failure takes besides a rescale, to be noticed above all, is added to what the job's rescales take.  The
    arguments are those of :func:`fit_downtimes`, of both kinds; ``is_other``, (n,), are the m events of the other kind,
    of which (m,) s are returned.
    """
    result = fit_downtimes(np.where(is_other, np.nan, duration_s), state_bytes, job, jobs, prior_s)
    return np.asarray((result.before_s - result.fleet_s)[is_other])


def _places(job: Ints, jobs: int) -> Ints:
    """Return (n,) how many events of the same job came before each."""
    order = np.argsort(job, kind="stable")
    count = np.bincount(job, minlength=jobs)
    place = np.empty(len(job), np.int64)
    place[order] = np.arange(len(job)) - np.repeat(np.cumsum(count) - count, count)
    return place


def _fleet_before(seconds: Floats, prior_s: float) -> Floats:
    """Return (n,) the log of the fleet's typical downtime before each event: the median, drawn towards the prior."""
    observed: list[float] = []
    typical = np.empty(len(seconds))
    prior = float(np.log(prior_s))
    for index, value in enumerate(np.log(seconds).tolist()):  # NaN: learnt from nothing
        half = len(observed) // 2
        median = 0.5 * (observed[half] + observed[(len(observed) - 1) // 2]) if observed else prior
        typical[index] = (len(observed) * median + PRIOR_EVENTS * prior) / (len(observed) + PRIOR_EVENTS)
        if np.isfinite(value):
            insort(observed, value)
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
    weight = PRIOR_EVENTS / (1.0 + np.where(count > 0, (median - parent_log) / PRIOR_LOG_SD, 0.0) ** 2)
    centre = np.exp((count * median + weight * parent_log) / (count + weight))
    sized = known & np.isfinite(sizes) & (sizes > 0)
    sizes_known = np.maximum(sized.sum(axis=1), 1)
    size = np.where(sized, sizes, 0.0).sum(axis=1) / sizes_known
    size = np.where(size > 0, size, np.nan)
    with np.errstate(invalid="ignore"):
        x = np.where(sized, sizes / size[:, None] - 1.0, 0.0)
        y = np.where(sized, np.clip(seconds / np.exp(median)[:, None] - 1.0, -1.0, 1.0), 0.0)
    y = np.where(sized, y - y.sum(axis=1, keepdims=True) / sizes_known[:, None], 0.0)
    slope = (x * y).sum(axis=1) / ((x * x).sum(axis=1) + SLOPE_PENALTY)
    return centre, slope, size
