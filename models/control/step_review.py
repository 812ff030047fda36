"""What a team's own rules may say to a step: let it pass, lower it, or veto it; nothing that raises a job.

A rule is a pure function ``(Step, Situation) -> Review``. It is asked of every step of a plan or of the reactive
controller that would change the job, after the rules of planning and before the limits that persons have set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A step as it would be sent, but for limits.

    Attributes:
        cluster, job: whose step it is.
        step_id: as in the log.
        origin: ``plan`` or ``reactive``.
        reason: one sentence for a person.
        before: operator -> parallelism that Flink is asked for now; an operator without a known name goes by its
            vertex id.
        target: the same of the step, of all operators.
        slots_before, slots_target: that the two take.
    """

    cluster: str
    job: str
    step_id: str
    origin: str
    reason: str
    before: Mapping[str, int]
    target: Mapping[str, int]
    slots_before: int
    slots_target: int


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known of the job and its cluster; None is unknown, never none.

    Attributes:
        now_s: epoch seconds.
        state: Flink's state of the job.
        running: operator -> parallelism; empty while not all of them run.
        free_slots: of the cluster, without those that other jobs of this tick are to take.
        cluster_slots_used: by all jobs of the cluster.
        is_elastic: whether the cluster adds TaskManagers by itself.
        last_change_at_s: of the job, epoch seconds; None when no change is known.
        requests_last_day: that the controller has sent for the job.
        slots_max: the most slots that persons allow the job.
    """

    now_s: float
    state: str
    running: Mapping[str, int]
    free_slots: int | None
    cluster_slots_used: int | None
    is_elastic: bool | None
    last_change_at_s: float | None
    requests_last_day: int
    slots_max: int


@dataclass(frozen=True, slots=True)
class Review:
    """What a review says; made by :func:`let_pass`, :func:`lower` and :func:`veto`.

    Attributes:
        is_allowed: whether the step may go on.
        target: operators that are lowered -> parallelism; empty when it goes on as it is.
        reason: one sentence for a person.
    """

    is_allowed: bool
    target: Mapping[str, int]
    reason: str


StepReview = Callable[[Step, Situation], Review]


def let_pass() -> Review:
    """Let the step go on as it is."""
    return Review(is_allowed=True, target={}, reason="")


def lower(target: Mapping[str, int], reason: str) -> Review:
    """Let the step go on with less of some operators; never less than is in force now."""
    return Review(is_allowed=True, target=dict(target), reason=reason)


def veto(reason: str) -> Review:
    """Keep the step from being sent."""
    return Review(is_allowed=False, target={}, reason=reason)
