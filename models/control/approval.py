"""What persons have said to steps that wait for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from include.utc import DAY_S, HOUR_S
from models.control.state import JobHistory, ObservedJob, Parallelism, Request, UsedApproval
from models.scheduling.figures import format_count

AHEAD_S = HOUR_S
"""A yes whose time lies further ahead of the controller's clock is none."""
LONGEST_S = 366 * DAY_S
"""No yes counts for longer."""
_RETAINED = 64  # used-up answers that are never forgotten


@dataclass(frozen=True, slots=True)
class StepApproval:
    """A person's yes or no to a step, as it was shown to them.

    Attributes:
        step_id: of the step.
        before, target: the change that was shown.
        is_approved: yes or no.
        at_s: epoch seconds of the answer, by the clock of who gave it.
        until_s: epoch seconds; later it does not count.
        by: who; empty for a step that nobody answered in time.
        approval_id: of this answer: another one of the same person to the same step has another. Empty in a log of
            before they had one.
    """

    step_id: str
    before: Parallelism
    target: Parallelism
    is_approved: bool
    at_s: float
    until_s: float
    by: str = ""
    approval_id: str = ""

    @property
    def key(self) -> str:
        """What tells this answer from every other."""
        return self.approval_id or f"{self.step_id} {self.by} {self.at_s!r}"

    def is_about(self, observed: ObservedJob, target: Parallelism) -> bool:
        """Whether the change that was shown is the one from what is in force now to ``target``."""
        return dict(self.target) == dict(target) and dict(self.before) in _in_force(observed)

    def covers(self, observed: ObservedJob, target: Parallelism, band: float) -> bool:
        """Whether the change that was shown is as good as the one from what is in force now to ``target``.

        It is where both add slots or both take them away, each vertex goes the way that was shown or stays within
        ``band`` times the slots that were shown, and neither end is further away than that.
        """
        if self.is_about(observed, target):
            return True
        return any(self._is_near(observed, now, target, band) for now in _in_force(observed))

    def _is_near(self, observed: ObservedJob, now: Parallelism, target: Parallelism, band: float) -> bool:
        if not set(self.before) == set(self.target) == set(now) == set(target):
            return False
        slots = observed.slots_of
        shown, meant = slots(self.target) - slots(self.before), slots(target) - slots(now)
        room = band * slots(self.target)
        is_near = all(
            abs(one[vertex] - other[vertex]) <= room
            for one, other in ((self.before, now), (self.target, target))
            for vertex in target
        )
        ends_near = abs(slots(self.target) - slots(target)) <= room and abs(slots(self.before) - slots(now)) <= room
        return is_near and ends_near and shown * meant > 0 and not self._goes_against(now, target, shown)

    def _goes_against(self, now: Parallelism, target: Parallelism, direction: int) -> bool:
        """Whether a vertex goes against the direction of the step that was shown otherwise."""
        return any(
            (target[vertex] - now[vertex]) * direction < 0 <= (self.target[vertex] - self.before[vertex]) * direction
            for vertex in target
        )


class StepApprovals(Protocol):
    """What a person has said, and how far it reaches; :class:`models.control.limits.Limits` has it."""

    @property
    def approvals(self) -> Sequence[StepApproval]:
        """Answers to steps of the job."""

    @property
    def approval_band(self) -> float:
        """Share of the slots."""


def find_denial(
    answers: StepApprovals, step_id: str, observed: ObservedJob, target: Parallelism, now_s: float
) -> StepApproval | None:
    """Return a no to a step; None when nobody has said no.

    It is to the step and to every change that it covers, until it ends, whatever is said later. One of nobody, for a
    step that was not answered in time, is to that step and that change alone. An end that is no time never comes.
    """
    return next(
        (
            one
            for one in answers.approvals
            if not one.is_approved
            and not now_s >= one.until_s
            and (
                one.step_id == step_id
                or (one.covers(observed, target, answers.approval_band) if one.by else one.is_about(observed, target))
            )
        ),
        None,
    )


def find_yes(
    answers: StepApprovals, history: JobHistory, observed: ObservedJob, target: Parallelism, now_s: float
) -> list[StepApproval]:
    """Return all that say yes to a change and have allowed no request yet: together they allow one.

    A yes is to the change that was shown and to those that it covers, so it also counts for the step of a newer plan,
    and not for the same step once it means another change.
    """
    used = {one.approval_id for one in _used(history, answers.approvals)}
    return [
        one
        for one in answers.approvals
        if one.is_approved
        and one.key not in used
        and _is_timely(one, now_s)
        and one.covers(observed, target, answers.approval_band)
    ]


def describe_void_yes(answers: StepApprovals, history: JobHistory, observed: ObservedJob, now_s: float) -> str:
    """Return which yes was given and allows nothing now, to be put after another reason; empty without one."""
    used = {one.approval_id for one in _used(history, answers.approvals)}
    given = [one for one in answers.approvals if one.is_approved and one.key not in used and _is_timely(one, now_s)]
    if not given:
        return ""
    last = max(given, key=lambda one: one.at_s)
    slots = f"{observed.slots_of(last.before)} -> {format_count(observed.slots_of(last.target), 'slot')}"
    at = f"{datetime.fromtimestamp(last.at_s, UTC):%H:%M}Z"
    return f"; the yes of {last.by or 'a person'} ({at}) was to {slots} and does not count for this"


def use_approvals(
    history: JobHistory, request: Request, approvals: Iterable[StepApproval], now_s: float
) -> tuple[UsedApproval, ...]:
    """Return what is used up after a request.

    What cannot count any more is forgotten, but for the newest: the clock may be ahead now.
    """
    reported = list(approvals)
    ends = {one.key: one.until_s for one in reported}
    now_used = [UsedApproval(one, ends.get(one, now_s + LONGEST_S)) for one in request.approvals]
    used = [*_used(history, reported), *now_used]
    return (*(one for one in used[:-_RETAINED] if now_s < one.until_s), *used[-_RETAINED:])


def _used(history: JobHistory, approvals: Iterable[StepApproval]) -> tuple[UsedApproval, ...]:
    """Return what is used up; in a log of before ids were kept, all that was said before the last request."""
    if history.used_approvals is not None:
        return history.used_approvals
    sent_at_s = max(history.request_times_s, default=-math.inf)
    return tuple(UsedApproval(one.key, one.until_s) for one in approvals if one.is_approved and one.at_s <= sent_at_s)


def _is_timely(one: StepApproval, now_s: float) -> bool:
    """Whether a yes counts now; one with times that cannot be does not."""
    return one.at_s <= now_s + AHEAD_S and now_s < one.until_s <= one.at_s + LONGEST_S


def _in_force(observed: ObservedJob) -> list[dict[str, int]]:
    asked = dict(observed.requested or {})
    return [asked, {**asked, **observed.running}]
