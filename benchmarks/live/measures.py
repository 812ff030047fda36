"""What a run cost, from the readings of the job's instruments: pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.live.load_window import Trace, integrate

WORKED_OFF_S = 10.0
"""A backlog of less than so many seconds of the load is none."""
STAYS_S = 25.0
"""More than two fetches of metrics, which come every ten seconds."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The instruments of a job at one time; NaN where the job showed nothing.

    Attributes:
        at_s: seconds since the job was submitted.
        is_up: whether every vertex ran.
        slots: the most subtasks of a vertex, of those that run.
        wanted: (upper bound of the costly vertex, most of any vertex) in Flink's requirements.
        pending: records that are due and not emitted.
        source_age_s: since the oldest of them became due.
        sink_age_s: since the oldest record became due that came to the sink in the last five to ten seconds.
    """

    at_s: float
    is_up: bool
    slots: int
    wanted: tuple[int, int]
    pending: float
    source_age_s: float
    sink_age_s: float


@dataclass(frozen=True, slots=True)
class Moment:
    """A reading without gaps: what was not shown is computed from what was before.

    Attributes:
        at_s, is_up: of the reading.
        slots: taken; those of before while the job is down.
        backlog: records due and not emitted.
        age_s: of the oldest record that has not come to the sink.
    """

    at_s: float
    is_up: bool
    slots: int
    backlog: float
    age_s: float


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures of a run.

    Attributes:
        late_minutes: minutes in which the oldest record was older than the limit.
        slot_hours: of slots taken.
        rescales: changes of what Flink was asked for.
        down_s: seconds in which not every vertex ran.
        peak_backlog: most records due and not emitted.
        worked_off_s: from that peak until the backlog was worked off; None: not within the run.
        recovery_s: from the loss of a TaskManager until the backlog was worked off; None: not within the run.
        cost: as planning weighs slots, late minutes and rescales.
    """

    late_minutes: float
    slot_hours: float
    rescales: int
    down_s: float
    peak_backlog: float
    worked_off_s: float | None
    recovery_s: float | None
    cost: float


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of ``planner.costs``, and from which age a record is late, seconds."""

    late_after_s: float
    resource_weight: float
    late_weight: float
    rescale_weight: float


@dataclass(frozen=True, slots=True)
class RunSpan:
    """What of a run is measured.

    Attributes:
        trace: (second, events/s) of the job.
        span_s: begin and end.
        lost_at_s: when a TaskManager was lost; None: never.
        slots_max: slots of the cluster.
    """

    trace: Trace
    span_s: tuple[float, float]
    lost_at_s: float | None
    slots_max: int


def fill_gaps(readings: Sequence[Reading], trace: Trace) -> list[Moment]:
    """Return moments: while a job shows nothing its backlog grows by what is due, and its oldest record ages."""
    result: list[Moment] = []
    for one in readings:
        before = result[-1] if result else Moment(one.at_s, False, max(one.slots, 1), 0.0, 0.0)
        passed_s = one.at_s - before.at_s
        known = [age for age in (one.source_age_s, one.sink_age_s) if math.isfinite(age)]
        shows = one.is_up and math.isfinite(one.pending)
        backlog = one.pending if shows else before.backlog + integrate(trace, before.at_s, one.at_s)
        age_s = max(known) if shows and known else before.age_s + passed_s
        result.append(Moment(one.at_s, one.is_up, one.slots if one.is_up else before.slots, backlog, age_s))
    return result


def measure(readings: Sequence[Reading], span: RunSpan, prices: Prices) -> Measures:
    """Return the figures of the time between two seconds of a run.

    Args:
        readings: in order, some before the span.
        span: what is measured.
        prices: of the planner.
    """
    trace, span_s, lost_at_s = span.trace, span.span_s, span.lost_at_s
    moments = fill_gaps(readings, trace)
    inside = [one for one in moments if span_s[0] <= one.at_s <= span_s[1]]
    steps = [(after, after.at_s - before.at_s) for before, after in pairwise(inside)]
    late_s = sum(passed_s for one, passed_s in steps if one.age_s > prices.late_after_s)
    slot_s = sum(one.slots * passed_s for one, passed_s in steps)
    asked = [one.wanted for one in readings if span_s[0] <= one.at_s <= span_s[1] and any(one.wanted)]
    rescales = sum(before != after for before, after in pairwise(asked))
    peak = max(inside, key=lambda one: one.backlog)
    shares = (
        prices.resource_weight * slot_s / 60 / span.slots_max,
        prices.late_weight * late_s / 60,
        prices.rescale_weight * rescales,
    )
    return Measures(
        late_minutes=late_s / 60,
        slot_hours=slot_s / 3600,
        rescales=rescales,
        down_s=sum(passed_s for one, passed_s in steps if not one.is_up),
        peak_backlog=peak.backlog,
        worked_off_s=_find_worked_off(inside, trace, peak.at_s, has_begun=True),
        recovery_s=None if lost_at_s is None else _find_worked_off(inside, trace, lost_at_s, has_begun=False),
        cost=sum(shares),
    )


def _find_worked_off(moments: Sequence[Moment], trace: Trace, from_s: float, *, has_begun: bool) -> float | None:
    """Return seconds from a time until a backlog was worked off, for which it need not have begun; None: never.

    A job that has just started shows no backlog before its first metrics are fetched: what is worked off stays so.
    """
    since_s: float | None = None
    for one in moments:
        if one.at_s < from_s:
            continue
        limit = integrate(trace, max(0.0, one.at_s - WORKED_OFF_S), one.at_s)
        is_behind = not one.is_up or one.backlog > limit
        has_begun = has_begun or is_behind
        if is_behind or not has_begun:
            since_s = None
        elif since_s is None:
            since_s = one.at_s
        elif one.at_s - since_s >= STAYS_S:
            return since_s - from_s
    return None
