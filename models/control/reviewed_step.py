"""A step before and after the rules that a team brings: what they are shown, and what their answers make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from models.control.case import Case
from models.control.reasons import Reason
from models.control.state import Intention, ObservedJob, Origin, Parallelism
from models.control.step_review import Review, Situation, Step

VETOED, FAILED = Reason.VETOED, Reason.REVIEW_FAILED
"""Reasons of decisions: a review has said no; a review could not be asked, or has said what it may not."""
_LONGEST = 300  # characters of what a review says


def is_reviewed(case: Case) -> bool:
    """Whether a case has a step that would change the job; what a person or a deployment demands is not reviewed."""
    desired, asked = case.desired, case.observed.requested
    if desired is None or asked is None or case.history.in_flight is not None:
        return False
    is_own = desired.origin in {Origin.PLAN, Origin.REACTIVE} and not desired.objection
    return is_own and dict(desired.parallelism) != dict(asked)


def describe_step(job: str, desired: Intention, observed: ObservedJob, names: Mapping[str, str]) -> Step:
    """Return the step of an intention for a job, ``cluster/job``; ``names`` are those of :func:`name_vertices`."""
    cluster, _, name = job.partition("/")
    asked = observed.requested or {}
    return Step(
        cluster=cluster,
        job=name,
        step_id=desired.step_id,
        origin=str(desired.origin),
        reason=desired.reason,
        before=_by_name(asked, names),
        target=_by_name(desired.parallelism, names),
        slots_before=observed.slots_of(asked),
        slots_target=observed.slots_of(desired.parallelism),
    )


def describe_situation(case: Case, names: Mapping[str, str]) -> Situation:
    """Return the situation of a case."""
    observed = case.observed
    return Situation(
        now_s=case.now_s,
        state=observed.state,
        running=_by_name(observed.running, names),
        free_slots=observed.free_slots,
        cluster_slots_used=observed.cluster_slots_used,
        is_elastic=observed.is_elastic,
        last_change_at_s=case.history.last_change_at_s,
        requests_last_day=len(case.history.request_times_s),
        slots_max=case.limits.slots_max,
    )


def name_vertices(vertices: Parallelism, operators: Mapping[str, str]) -> dict[str, str]:
    """Return vertex id -> name; its id where no name is known, or where another vertex has the same."""
    known = [operators.get(vertex, vertex) for vertex in vertices]
    names = {vertex: operators.get(vertex, vertex) for vertex in vertices}
    return {vertex: name if known.count(name) == 1 else vertex for vertex, name in names.items()}


def take_review(name: str, said: object, desired: Intention, asked: Parallelism, names: Mapping[str, str]) -> Intention:
    """Return the intention after a review: as it was, lowered, or with an objection that bears the review's name.

    ``asked`` is what Flink is asked for now, ``names`` vertex id -> operator.
    """
    if not isinstance(said, Review) or not isinstance(said.reason, str) or not isinstance(said.is_allowed, bool):
        return fail(
            name, f"returned {type(said).__name__}, which is no Review as let_pass, lower and veto make it", desired
        )
    what = f"review {name}: {' '.join(said.reason.split())[:_LONGEST] or 'no reason given'}"
    if not said.is_allowed:
        return replace(desired, objection=VETOED, objection_detail=what)
    try:
        lowered = _lower(said.target, desired, asked, names)
    except _NotLowerError as error:
        return fail(name, str(error), desired)
    if lowered == dict(asked):
        return replace(desired, objection=VETOED, objection_detail=f"{what}; nothing of the step is left")
    is_same = lowered == dict(desired.parallelism)
    return desired if is_same else replace(desired, parallelism=lowered, reason=f"{desired.reason}; lowered by {what}")


def fail(name: str, why: str, desired: Intention) -> Intention:
    """Return an intention that is not sent, since a review could not be asked or has said what it may not."""
    return replace(desired, objection=FAILED, objection_detail=f"review {name}: {why[:_LONGEST]}")


class _NotLowerError(ValueError):
    """What a review gives is not less than the step; the message says why."""


def _lower(
    target: Mapping[str, int], desired: Intention, asked: Parallelism, names: Mapping[str, str]
) -> dict[str, int]:
    vertices = {operator: vertex for vertex, operator in names.items()}
    lowered = dict(desired.parallelism)
    for operator, count in dict(target).items():
        vertex = vertices.get(operator)
        if vertex not in lowered:
            raise _NotLowerError(f"the step has no operator {operator!r}")
        if type(count) is not int:
            raise _NotLowerError(f"{operator}: {count!r} is no whole number")
        most = lowered[vertex]
        least = min(most, asked.get(vertex, 1))
        if not least <= count <= most:
            raise _NotLowerError(
                f"{operator}: {count} is not between {least}, which is left to it, and the step's {most}"
            )
        lowered[vertex] = count
    return lowered


def _by_name(parallelism: Parallelism, names: Mapping[str, str]) -> dict[str, int]:
    return {names.get(vertex, vertex): count for vertex, count in parallelism.items()}
