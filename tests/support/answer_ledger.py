"""What persons have answered to steps, and which answers have had their request: kept by the persons alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from models.control.approval import StepApproval
from models.control.state import ObservedJob

BAND = 0.25


@dataclass
class AnswerLedger:
    """The answers that were given.

    Attributes:
        given: those that a controller can read.
        used: ids of those that have allowed a request.
    """

    given: tuple[StepApproval, ...] = ()
    used: set[str] = field(default_factory=set)
    count: int = 0

    def give(
        self,
        step_id: str,
        before: Mapping[str, int],
        target: Mapping[str, int],
        is_approved: bool,
        at_s: float,
        until_s: float,
    ) -> None:
        self.count += 1
        reported = StepApproval(
            step_id, dict(before), dict(target), is_approved, at_s, until_s, "ada", f"id-{self.count}"
        )
        self.given = (*self.given, reported)

    def lift(self) -> None:
        """Take back every no."""
        self.given = tuple(one for one in self.given if one.is_approved)

    def check(self, step_id: str, seen: ObservedJob, target: Mapping[str, int], now_s: float) -> None:
        """A request is to have a yes that had none yet, and no no."""
        reported = [one for one in self.given if now_s < one.until_s]
        covering = [one for one in reported if _covers(one, seen, target)]
        assert not [one for one in reported if not one.is_approved and (one.step_id == step_id or one in covering)], (
            "denied"
        )
        allowing = {one.approval_id for one in covering if one.is_approved} - self.used
        assert allowing, "a request without a yes of its own"
        self.used |= allowing


def _covers(said: StepApproval, seen: ObservedJob, target: Mapping[str, int]) -> bool:
    asked = dict(seen.requested or {})
    return any(_is_like(said, seen, now, target) for now in (asked, {**asked, **seen.running}))


def _is_like(said: StepApproval, seen: ObservedJob, now: Mapping[str, int], target: Mapping[str, int]) -> bool:
    shown, meant = (dict(said.before), dict(said.target)), (dict(now), dict(target))
    if shown == meant:
        return True
    vertices = set(target)
    if any(set(one) != vertices for one in (*shown, *meant)):
        return False
    room = BAND * seen.slots_of(shown[1])
    distances = [abs(one[v] - other[v]) for one, other in zip(shown, meant, strict=True) for v in vertices]
    distances += [abs(seen.slots_of(one) - seen.slots_of(other)) for one, other in zip(shown, meant, strict=True)]
    ways = [
        math.copysign(1, seen.slots_of(b) - seen.slots_of(a)) if seen.slots_of(a) != seen.slots_of(b) else 0
        for a, b in (shown, meant)
    ]
    if max(distances) > room or 0 in ways or ways[0] != ways[1]:
        return False
    # A vertex that goes the other way has to have been shown to.
    return all(
        (meant[1][v] - meant[0][v]) * ways[0] >= 0 or (shown[1][v] - shown[0][v]) * ways[0] < 0 for v in vertices
    )
