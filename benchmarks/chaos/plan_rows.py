"""Plans with one step that is due at once, written into ``gold.plans`` as planning does."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.chaos.run_settings import CLUSTER, PLANNED_BY
from include.lake_table import LakeTable, date_of, timestamp_of
from include.tables import PLANS


@dataclass(frozen=True, slots=True)
class Step:
    """A step that was planned; parallelism by operator name, of all operators; the time by the controller's clock."""

    step_id: str
    job: str
    target: Mapping[str, int]
    valid_until_s: float


def plan_step(
    lake: str, job: tuple[str, str], before: Mapping[str, int], target: Mapping[str, int], span_s: tuple[float, float]
) -> Step:
    """Write a plan whose only step is due now.

    Args:
        lake: its folder.
        job: its name, and Flink's id.
        before: what the job was asked for.
        target: what it should run at.
        span_s: from when until when the step counts, epoch seconds by the clock of the controller.
    """
    now_s = span_s[0]
    step = Step(uuid.uuid4().hex[:16], job[0], dict(target), span_s[1])
    now = timestamp_of(now_s)
    row = {
        "as_of": now,
        "step_id": step.step_id,
        "cluster": CLUSTER,
        "job": job[0],
        "job_id": job[1],
        "step_index": 0,
        "status": "planned",
        "apply_at": now,
        "effective_at": now,
        "valid_until": timestamp_of(step.valid_until_s),
        "parallelism_from": dict(before),
        "parallelism_to": dict(target),
        "slots_from": max(before.values()),
        "slots": max(target.values()),
        "expected_recovery_s": 5.0,
        "reason": "planned by the fault harness",
        "policy": PLANNED_BY,
        "observations_until": now,
        "code_version": "chaos",
        "settings": "{}",
        "date": date_of(now_s),
    }
    LakeTable(lake, PLANS).append([row])
    return step
