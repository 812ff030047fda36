"""Rows of ``gold.plans`` as the executors make them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from include.tables.plan_row import PlanRow
from include.utc import format_utc
from models.arrays import Ints
from models.policies.protocol import Decision, Neighbour, Schedule
from spark_jobs.plan.refusals import PlanRefusedError
from spark_jobs.plan_inputs.job_state import JobState

Row = dict[str, Any]


def step_id(shared: PlanRow, as_of: datetime, effective_at_s: int | None, parallelism_to: Mapping[str, int]) -> str:
    """Return the id of a step: the same plan made again has the same ids."""
    target = json.dumps(dict(parallelism_to), sort_keys=True)
    parts = (shared.cluster, shared.job, str(effective_at_s), target, format_utc(as_of))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def schedule_rows(shared: PlanRow, as_of: datetime, schedule: Schedule) -> list[PlanRow]:
    """Return one row per decision."""
    shared = replace(shared, day_late_minutes=schedule.late_minutes)
    return [
        _decision_row(replace(shared, step_index=index), as_of, schedule.operators, decision)
        for index, decision in enumerate(schedule.decisions)
    ]


def refused_row(shared: PlanRow, as_of: datetime, refused: PlanRefusedError, state: JobState) -> PlanRow:
    """Return the row of a job that could not be planned for."""
    return replace(
        shared,
        step_id=step_id(shared, as_of, None, state.parallelism),
        status="refused",
        parallelism_from=state.parallelism,
        parallelism_to=state.parallelism,
        slots_from=state.slots or None,
        slots=state.slots or None,
        reason=f"not planned ({refused.refusal}): {refused}",
        refusal=str(refused.refusal),
    )


def _decision_row(shared: PlanRow, as_of: datetime, operators: tuple[str, ...], decision: Decision) -> PlanRow:
    step, expected, band = decision.step, decision.step.expected, decision.band
    target = _parallelism(operators, step.parallelism_to)
    return replace(
        shared,
        step_id=step_id(shared, as_of, step.effective_at_s, target),
        status="hold" if step.is_hold else "planned",
        apply_at_s=None if step.is_hold else step.apply_at_s,
        effective_at_s=step.effective_at_s,
        valid_until_s=step.valid_until_s,
        parallelism_from=_parallelism(operators, step.parallelism_from),
        parallelism_to=target,
        slots_from=step.slots_from,
        slots=step.slots,
        expected_load_q50_per_s=expected.load_q50_per_s,
        expected_load_q90_per_s=expected.load_q90_per_s,
        expected_capacity_per_s=_finite(expected.capacity_per_s),
        expected_capacity_lower_per_s=_finite(expected.capacity_lower_per_s),
        expected_capacity_upper_per_s=_finite(expected.capacity_upper_per_s),
        expected_utilisation=_finite(expected.utilisation),
        p_late=expected.p_late,
        expected_late_minutes=expected.late_minutes,
        expected_recovery_s=_finite(expected.recovery_s),
        lead_time_s=float(step.lead_time_s),
        slot_hours_saved=step.slot_hours_saved,
        reason=decision.reason,
        band_load_low_per_s=None if band is None else band.load_low_per_s,
        band_load_high_per_s=None if band is None else _finite(band.load_high_per_s),
        band_backlog_low_s=None if band is None else band.age_low_s,
        band_backlog_high_s=None if band is None else _finite(band.age_high_s),
        **_neighbour_columns("safer", operators, decision.safer),
        **_neighbour_columns("cheaper", operators, decision.cheaper),
    )


def _neighbour_columns(name: str, operators: tuple[str, ...], one: Neighbour | None) -> dict[str, Any]:
    if one is None:
        return {}
    values = asdict(one) | {"parallelism": _parallelism(operators, one.parallelism)}
    return {f"{name}_{key}": value for key, value in values.items()}


def _parallelism(operators: tuple[str, ...], values: Ints) -> dict[str, int]:
    return dict(zip(operators, map(int, values), strict=True))


def _finite(value: float) -> float | None:
    """Return null for what has no bound: unlimited capacity, a backlog that never goes."""
    return value if math.isfinite(value) else None
