"""Plans, and what is kept of jobs, under the names that operators have now, in a job that was deployed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from controller.view.job_view import EvaluationState
from controller.view.plan_rows import JobPlan
from include.domain.operator_matching import PlacedOperator, follow_names, match_operators
from models.policies.renamed_memory import rename_operators

Placed = Sequence[PlacedOperator]


def follow_plan(plan: JobPlan, versions: Sequence[Placed], present: Placed) -> JobPlan:
    """Return a plan with its steps under present names; an operator that has gone keeps the name it had.

    A step that names an operator which the job does not have is refused for it. ``versions`` are its graphs as
    ingested, in the order in which they were seen; ``present`` is empty while it is not known.
    """
    written = {name for step in plan.steps for name in (*step.parallelism_from, *step.parallelism_to)}
    if not present or written <= {one.name for one in present}:  # they stand as they are, and matching takes long
        return plan
    names = follow_names(written, [*versions, present])

    def rename(parallelism: Mapping[str, int]) -> dict[str, int]:
        return {names.get(name, name): count for name, count in parallelism.items()}

    steps = tuple(
        replace(step, parallelism_from=rename(step.parallelism_from), parallelism_to=rename(step.parallelism_to))
        for step in plan.steps
    )
    return replace(plan, steps=steps)


def follow_kept(kept: EvaluationState, present: Placed) -> EvaluationState:
    """Return what was kept of a job under present names, and those names with it.

    What a policy remembers is read by that policy: it is renamed there (:func:`match_kept`).
    """
    if not present:
        return kept
    names = match_kept(kept, present)
    known = {one.name for one in kept.operators}
    if names is None:
        return replace(kept, operators=tuple(present))
    return replace(
        kept,
        standing=rename_operators(kept.standing, names, known),
        operators=tuple(present),
    )


def match_kept(kept: EvaluationState, present: Placed) -> dict[str, str] | None:
    """Return name before -> present name of the operators that are still there; None where no name has changed."""
    if not kept.operators or not present or not _has_changed([kept.operators], present):
        return None
    return match_operators(kept.operators, present)


def _has_changed(versions: Sequence[Placed], present: Placed) -> bool:
    """Whether any earlier graph had other names, or the same names for other vertices."""
    now = {(one.name, one.vertex_id) for one in present}
    return any({(one.name, one.vertex_id) for one in version} != now for version in versions)
