"""Whether a rescale did good: the job's measurements after it against those before it and what was promised."""

from __future__ import annotations

from dataclasses import dataclass

from models.control.reconcile import OutcomeCheck
from models.control.state import Request

_WINDOWS_S = 120.0  # measured for at least so long after the job has caught up
_LESS = 0.9  # below this share of what was processed before, throughput has fallen
_BACKPRESSURED = 0.5  # share of time


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


def judge_outcome(
    request: Request | None,
    confirmed_at_s: float | None,
    before: Measurements | None,
    after: Measurements | None,
    late_after_s: float = 60.0,
) -> OutcomeCheck:
    """Return whether the job is worse than before for a reason that the rescale explains.

    It is worse when it fails again and again at the new parallelism, or when it cannot keep up any more though no more
    arrives: records wait for longer than before and than ``late_after_s``, and it is backpressured or emits less.
    Before the time to catch up has passed nothing is judged.
    """
    if request is None or confirmed_at_s is None or before is None or after is None:
        return OutcomeCheck()
    if after.until_s < confirmed_at_s + request.settle_s + _WINDOWS_S:
        return OutcomeCheck()
    failures = after.restarts - before.restarts
    if failures >= 2:
        return OutcomeCheck(True, f"the job has failed {failures} times since the rescale")
    waits = after.lag_s > max(late_after_s, before.lag_s)
    arrives_more = after.arriving_per_s > before.arriving_per_s / _LESS
    falls_behind = after.throughput_per_s < _LESS * before.throughput_per_s
    is_held_back = after.backpressured_share > max(_BACKPRESSURED, before.backpressured_share)
    if waits and not arrives_more and (falls_behind or is_held_back):
        return OutcomeCheck(
            True,
            f"records wait for {after.lag_s:.0f} s ({before.lag_s:.0f} s before) at {after.throughput_per_s:.0f}/s"
            f" ({before.throughput_per_s:.0f}/s before), backpressured {after.backpressured_share:.0%} of the time",
        )
    return OutcomeCheck(False, "the rescale did no harm")
