"""Rows of ``gold.plans`` as the executors make them: times in epoch seconds, parallelism as JSON."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from include.utc import format_utc
from models.arrays import Ints
from models.policies.protocol import Decision, Schedule
from models.scheduling.expectation import Expectation
from spark_jobs.plan.refusals import PlanRefusal

ROW_SCHEMA = """
    cluster STRING, job STRING, job_id STRING, step_id STRING, step_index INT, status STRING, apply_at_s BIGINT,
    effective_at_s BIGINT, valid_until_s BIGINT, parallelism_from STRING, parallelism_to STRING, slots_from INT,
    slots INT, expected_load_q50_per_s DOUBLE, expected_load_q90_per_s DOUBLE, expected_capacity_per_s DOUBLE,
    expected_capacity_lower_per_s DOUBLE, expected_capacity_upper_per_s DOUBLE, expected_utilisation DOUBLE,
    p_late DOUBLE, expected_recovery_s DOUBLE, lead_time_s DOUBLE, slot_hours_saved DOUBLE, reason STRING,
    refusal STRING, policy STRING, forecast_version STRING, observations_until_s BIGINT, memory STRING,
    warning STRING
"""
COLUMNS = [column.split()[0] for column in ROW_SCHEMA.replace("\n", " ").split(",")]
Row = dict[str, Any]


def step_id(shared: Row, as_of: datetime, effective_at_s: int | None, parallelism_to: str) -> str:
    """Return the id of a step: the same plan made again has the same ids."""
    parts = (shared["cluster"], shared["job"], str(effective_at_s), parallelism_to, format_utc(as_of))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def schedule_rows(shared: Row, as_of: datetime, schedule: Schedule) -> list[Row]:
    """Return one row per decision."""
    return [
        _decision_row(shared, as_of, schedule.operators, decision) | {"step_index": index}
        for index, decision in enumerate(schedule.decisions)
    ]


def refused_row(
    shared: Row, as_of: datetime, refusal: PlanRefusal, detail: str, *, parallelism: Mapping[str, int], slots: int
) -> Row:
    """Return the row of a job that could not be planned for."""
    running = json.dumps(dict(parallelism), sort_keys=True)
    return shared | {
        "step_id": step_id(shared, as_of, None, running),
        "step_index": 0,
        "status": "refused",
        "parallelism_from": running,
        "parallelism_to": running,
        "slots_from": slots or None,
        "slots": slots or None,
        "reason": f"not planned ({refusal}): {detail}",
        "refusal": str(refusal),
    }


def _decision_row(shared: Row, as_of: datetime, operators: tuple[str, ...], decision: Decision) -> Row:
    step = decision.step
    target = _parallelism(operators, step.parallelism_to)
    return (
        shared
        | _list_expected(step.expected)
        | {
            "step_id": step_id(shared, as_of, step.effective_at_s, target),
            "status": "hold" if step.is_hold else "planned",
            "apply_at_s": None if step.is_hold else step.apply_at_s,
            "effective_at_s": step.effective_at_s,
            "valid_until_s": step.valid_until_s,
            "parallelism_from": _parallelism(operators, step.parallelism_from),
            "parallelism_to": target,
            "slots_from": step.slots_from,
            "slots": step.slots,
            "lead_time_s": float(step.lead_time_s),
            "slot_hours_saved": step.slot_hours_saved,
            "reason": decision.reason,
        }
    )


def _parallelism(operators: tuple[str, ...], values: Ints) -> str:
    return json.dumps(dict(zip(operators, map(int, values), strict=True)), sort_keys=True)


def _list_expected(expected: Expectation) -> Row:
    return {
        "expected_load_q50_per_s": expected.load_q50_per_s,
        "expected_load_q90_per_s": expected.load_q90_per_s,
        "expected_capacity_per_s": _finite(expected.capacity_per_s),
        "expected_capacity_lower_per_s": _finite(expected.capacity_lower_per_s),
        "expected_capacity_upper_per_s": _finite(expected.capacity_upper_per_s),
        "expected_utilisation": _finite(expected.utilisation),
        "p_late": expected.p_late,
        "expected_recovery_s": _finite(expected.recovery_s),
    }


def _finite(value: float) -> float | None:
    """Return null for what has no bound: unlimited capacity, a backlog that never goes."""
    return value if math.isfinite(value) else None
