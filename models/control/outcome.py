"""Whether a rescale did good: the job's measurements after it against those before it and what was promised."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from include.utc import HOUR_S
from models.control.case import OutcomeCheck
from models.control.state import Request

_WINDOWS_S = 120.0  # measured for at least so long after the time to settle
_SETTLES_S = HOUR_S  # so long at most a backlog that falls is waited for
_LESS = 0.9  # below this share of what there was before, throughput or capacity has fallen
_GROWS = 0.02  # share of what arrives: a backlog that grows by less stands still


@dataclass(frozen=True, slots=True)
class Measurements:
    """What a job did over some windows.

    Attributes:
        until_s: end of the last window, epoch seconds.
        throughput_per_s: records that the sources emitted.
        arriving_per_s: records that arrived at the sources; NaN when it is not known.
        backpressured_share: of the busiest source, 0..1.
        lag_s: age of the backlog at the end; NaN when it is not known.
        restarts: counter of failures.
        backlog_slope_per_s: of the outstanding records, records/s; NaN when it is not known.
        capacity_per_s: vertex id -> what a vertex that is busy enough to tell can process, records/s.
    """

    until_s: float
    throughput_per_s: float
    arriving_per_s: float
    backpressured_share: float
    lag_s: float
    restarts: int
    backlog_slope_per_s: float = math.nan
    capacity_per_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def growth_per_s(self) -> float:
        """By how much the backlog grows, records/s; negative while it is worked off, NaN when it is not known.

        What the sources take in may lie in buffers: where nothing tells those, what arrives beyond it is the growth.
        """
        if math.isfinite(self.backlog_slope_per_s):
            return self.backlog_slope_per_s
        return self.arriving_per_s - self.throughput_per_s

    @property
    def least_growth_per_s(self) -> float:
        """From which growth on a backlog does not stand still, records/s."""
        return _GROWS * (self.throughput_per_s if math.isnan(self.arriving_per_s) else self.arriving_per_s)

    @property
    def is_worked_off(self) -> bool:
        """Whether the backlog falls."""
        return self.growth_per_s < -self.least_growth_per_s


def judge_outcome(
    request: Request | None,
    confirmed_at_s: float | None,
    before: Measurements | None,
    after: Measurements | None,
    late_after_s: float = 60.0,
) -> OutcomeCheck:
    """Return whether the job is worse than before for a reason that the rescale explains.

    It is worse when it fails again and again at the new parallelism, or when records wait for longer than before and
    than ``late_after_s`` though no more arrives, and the backlog grows faster than before, or does not fall at a
    capacity per slot that is less. What has piled up until the new parallelism ran is put down to nothing: a backlog
    that is worked off is the way out of it, and judged at its end. Before the time to settle nothing is judged.
    """
    if request is None or confirmed_at_s is None or before is None or after is None:
        return OutcomeCheck()
    if after.until_s < confirmed_at_s + request.settle_s + _WINDOWS_S:
        return OutcomeCheck()
    failures = after.restarts - before.restarts
    if failures >= 2:
        return OutcomeCheck(True, f"the job has failed {failures} times since the rescale", is_failing=True)
    waits = after.lag_s > max(late_after_s, before.lag_s)
    if waits and after.is_worked_off and after.until_s < confirmed_at_s + _SETTLES_S:
        return OutcomeCheck()
    arrives_more = after.arriving_per_s > before.arriving_per_s / _LESS
    if not waits or arrives_more or after.is_worked_off or not _falls_behind(request, before, after):
        return OutcomeCheck(False, "the rescale did no harm")
    why = f"records wait for {after.lag_s:.0f} s ({before.lag_s:.0f} s before) at {after.throughput_per_s:.0f}/s"
    why += f" ({before.throughput_per_s:.0f}/s before)"
    if math.isfinite(after.growth_per_s):
        why += f", the backlog grows by {after.growth_per_s:.0f}/s"
    return OutcomeCheck(True, f"{why}, backpressured {after.backpressured_share:.0%} of the time")


def find_caught_up_s(after: Measurements | None, late_after_s: float) -> float | None:
    """Return a time since a rescale at which no record was late; None while there is none."""
    return after.until_s if after is not None and after.lag_s <= late_after_s else None


def _falls_behind(request: Request, before: Measurements, after: Measurements) -> bool:
    """Whether the backlog grows faster than before, or a slot processes less."""
    known_before = 0.0 if math.isnan(before.growth_per_s) else before.growth_per_s
    if after.growth_per_s > max(known_before, 0.0) + after.least_growth_per_s:
        return True
    known = before.capacity_per_s.keys() & after.capacity_per_s.keys()
    if not known:  # what was processed tells of capacities that nobody has measured
        return after.throughput_per_s < _LESS * before.throughput_per_s
    return any(after.capacity_per_s[one] < _LESS * _keeps(request, one) * before.capacity_per_s[one] for one in known)


def _keeps(request: Request, vertex: str) -> float:
    """Return the share of its capacity that a vertex keeps at least: of more slots each may carry less."""
    ran = {**request.before, **request.running_before}.get(vertex)
    return min(1.0, request.target.get(vertex, ran) / ran) if ran else 1.0
