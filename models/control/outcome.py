"""Whether a rescale did good: the job's measurements after it against those before it and what was promised."""

from __future__ import annotations

import math
from dataclasses import dataclass

from models.control.reconcile import OutcomeCheck
from models.control.state import Request

_WINDOWS_S = 120.0  # measured for at least so long after the time to settle
_LESS = 0.9  # below this share of what was processed before, throughput has fallen
_GROWS = 0.02  # share of what arrives: a backlog that grows by less stands still


@dataclass(frozen=True, slots=True)
class Measurements:
    """What a job did over some windows.

    Attributes:
        until_s: end of the last window, epoch seconds.
        throughput_per_s: records that the sources emitted.
        arriving_per_s: records that arrived at the sources; NaN when it is not known.
        backpressured_share: of the busiest source, 0..1.
        lag_s: age of the backlog at the end.
        restarts: counter of failures.
    """

    until_s: float
    throughput_per_s: float
    arriving_per_s: float
    backpressured_share: float
    lag_s: float
    restarts: int

    @property
    def growth_per_s(self) -> float:
        """By how much the backlog grows, records/s; negative while it is worked off, NaN when it is not known."""
        return self.arriving_per_s - self.throughput_per_s


def judge_outcome(
    request: Request | None,
    confirmed_at_s: float | None,
    before: Measurements | None,
    after: Measurements | None,
    late_after_s: float = 60.0,
) -> OutcomeCheck:
    """Return whether the job is worse than before for a reason that the rescale explains.

    It is worse when it fails again and again at the new parallelism, or when records wait for longer than before and
    than ``late_after_s`` though no more arrives, and the backlog grows faster than before, or less is processed and it
    does not fall. What has piled up until the new parallelism ran is put down to nothing: a backlog that is worked off
    is the way out of it. Before the time to settle has passed nothing is judged.
    """
    if request is None or confirmed_at_s is None or before is None or after is None:
        return OutcomeCheck()
    if after.until_s < confirmed_at_s + request.settle_s + _WINDOWS_S:
        return OutcomeCheck()
    failures = after.restarts - before.restarts
    if failures >= 2:
        return OutcomeCheck(True, f"the job has failed {failures} times since the rescale", is_failing=True)
    waits = after.lag_s > max(late_after_s, before.lag_s)
    arrives_more = after.arriving_per_s > before.arriving_per_s / _LESS
    if not waits or arrives_more or not _falls_behind(before, after):
        return OutcomeCheck(False, "the rescale did no harm")
    why = f"records wait for {after.lag_s:.0f} s ({before.lag_s:.0f} s before) at {after.throughput_per_s:.0f}/s"
    why += f" ({before.throughput_per_s:.0f}/s before)"
    if math.isfinite(after.growth_per_s):
        why += f", the backlog grows by {after.growth_per_s:.0f}/s"
    return OutcomeCheck(True, f"{why}, backpressured {after.backpressured_share:.0%} of the time")


def _falls_behind(before: Measurements, after: Measurements) -> bool:
    """Whether the backlog grows faster than before, or less is processed though it is not worked off."""
    known_before = 0.0 if math.isnan(before.growth_per_s) else before.growth_per_s
    least = _GROWS * after.arriving_per_s
    if after.growth_per_s > max(known_before, 0.0) + least:
        return True
    is_worked_off = after.growth_per_s < -least
    return after.throughput_per_s < _LESS * before.throughput_per_s and not is_worked_off
