"""Rows of the newest plan as facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from fleet.facts import FleetStatus, JobStatus, NeighbourFact, StepFact
from include.tables.plan_row import PlanRow

PLANNED = "planned"


def step_of(row: PlanRow) -> StepFact:
    """Return a row of a plan as a fact."""
    return StepFact(
        cluster=row.cluster,
        job=row.job,
        step_id=row.step_id,
        plan_as_of_s=row.as_of_s,
        apply_at_s=row.apply_at_s,
        effective_at_s=row.effective_at_s,
        valid_until_s=row.valid_until_s,
        parallelism_from=row.parallelism_from,
        parallelism_to=row.parallelism_to,
        slots_from=row.slots_from,
        slots_to=row.slots,
        load_q50_per_s=row.expected_load_q50_per_s,
        load_q90_per_s=row.expected_load_q90_per_s,
        capacity_per_s=row.expected_capacity_per_s,
        capacity_lower_per_s=row.expected_capacity_lower_per_s,
        capacity_upper_per_s=row.expected_capacity_upper_per_s,
        late_minutes=row.expected_late_minutes,
        recovery_s=row.expected_recovery_s,
        slot_hours_saved=row.slot_hours_saved,
        policy=row.policy or "",
        reason=row.reason,
        warning=row.warning or "",
        safer=_neighbour_of(row, "safer"),
        cheaper=_neighbour_of(row, "cheaper"),
    )


def _neighbour_of(row: PlanRow, name: str) -> NeighbourFact | None:
    """Return a neighbour of a step; None of a policy, or a release, that prices none."""
    values = {one.name: getattr(row, f"{name}_{one.name}") for one in fields(NeighbourFact)}
    return None if values["slots"] is None else NeighbourFact(**values)


def list_steps(rows: Sequence[PlanRow]) -> tuple[StepFact, ...]:
    """Return the planned steps of a plan."""
    return tuple(step_of(row) for row in rows if row.status == PLANNED)


def select_steps(steps: Sequence[StepFact], now_s: float) -> tuple[StepFact, ...]:
    """Return the steps that are still to come or in effect now."""
    return tuple(step for step in steps if step.valid_until_s is None or step.valid_until_s > now_s)


def _is_done(job: JobStatus, step: StepFact) -> bool:
    """Whether a step was sent, or the job ran as it wants when the controller last wrote."""
    last, sent = job.last_decision, job.last_rescale
    was_sent = sent is not None and sent.step_id == step.step_id
    return was_sent or (last is not None and dict(last.parallelism_from) == dict(step.parallelism_to))


def select_due(facts: FleetStatus, hours: float, jobs: Iterable[str] = ()) -> list[StepFact]:
    """Return the steps that are to be sent within so many hours, of some jobs (``cluster/job``) or all, by time.

    Those whose time has passed are among them while they are valid and were not carried out.
    """
    until_s, wanted = facts.at_s + 3600 * hours, set(jobs)
    due = (
        step
        for job in facts.jobs
        if not wanted or f"{job.cluster}/{job.job}" in wanted
        for step in job.steps
        if step.apply_at_s is not None and step.apply_at_s <= until_s
        if step.apply_at_s >= facts.at_s or not _is_done(job, step)
    )
    return sorted(due, key=lambda step: (step.apply_at_s or 0.0, step.cluster, step.job))
