"""What a person has to answer or to lift, from last rows of the log."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from fleet.facts import WaitingFact
from fleet.log_tables import JobKey, Row
from include.control.approvals import Approval, WaitingStep
from include.orchestration.waiting_steps import find_waiting
from include.settings import Settings
from models.control.bad_steps import name_suspension
from models.control.limits import Limits
from models.control.state import JobHistory
from models.policies.memory import load
from models.scheduling.figures import format_count

LiftedKeys = Collection[tuple[str, str, str]]
"""Cluster, job and id of each block that a person has lifted."""


@dataclass(frozen=True, slots=True)
class Block:
    """Something that is not tried of a job.

    Attributes:
        kind: ``block`` (a parallelism under which it failed) or ``suspension`` (back in dry-run).
        block_id: by which a person lifts it; empty where it ends by itself.
        target: what is not tried, as a person reads it.
        until_s: its end; infinite: until a person lifts it.
    """

    kind: str
    cluster: str
    job: str
    block_id: str
    target: str
    because: str
    since_s: float | None
    until_s: float = math.inf


def list_waiting(
    last: Mapping[JobKey, Row], settings: Settings, now_s: float, answers: Collection[Approval], lifted: LiftedKeys
) -> dict[JobKey, tuple[WaitingFact, ...]]:
    """Return what waits for a person, by job."""
    result: dict[JobKey, list[WaitingFact]] = {}
    for step in find_waiting(last.values(), settings, now_s, answers):
        result.setdefault((step.cluster, step.job), []).append(_of_step(step))
    for (cluster, job), row in sorted(last.items()):
        if not _may_be_blocked(row):
            continue
        ended = [block_id for *key, block_id in lifted if (cluster, job) == tuple(key)]
        for one in find_blocks(row, settings, ended):
            result.setdefault((cluster, job), []).append(_of_block(one))
    return {key: tuple(listed) for key, listed in result.items()}


def find_blocks(row: Row, settings: Settings, lifted: Collection[str]) -> list[Block]:
    """Return what only a person lifts of a job: parallelism under which it failed, and its suspension."""
    return [one for one in list_blocks(row, settings, lifted, 0.0) if math.isinf(one.until_s) and one.block_id]


def list_blocks(row: Row, settings: Settings, lifted: Collection[str], now_s: float) -> list[Block]:
    """Return what is not tried of a job at a time, but for what was lifted."""
    try:
        history = load(JobHistory, row["history"])
    except ValueError:  # the controller refuses the job, and says so
        return []
    cluster, job = row["cluster"], row["job"]
    names = dict(row["operators"] or ())
    result = []
    for one in history.blocked:
        if now_s < one.until_s and one.block_id not in lifted:
            target = ", ".join(
                f"{names.get(vertex, vertex)} {count}" for vertex, count in sorted(one.parallelism.items())
            )
            result.append(Block("block", cluster, job, one.block_id, target, one.because, None, one.until_s))
    levels = (settings.limits, settings.cluster(cluster).limits, settings.job_limits(cluster, job))
    most = min(level.bad_steps_max for level in levels if level.bad_steps_max is not None)
    suspended = name_suspension(history, Limits(bad_steps_max=most, lifted_blocks=tuple(lifted)))
    if suspended:
        because = f"{format_count(most, 'step')} rolled back or failed within a day"
        result.append(Block("suspension", cluster, job, suspended, "every step", because, history.bad_steps_s[-1]))
    return result


def _may_be_blocked(row: Row) -> bool:
    text = row["history"] or ""
    return '"until_s":"Infinity"' in text or '"bad_steps_s":[]' not in text


def _of_step(step: WaitingStep) -> WaitingFact:
    remedy = f"tidewise approve {step.cluster}/{step.job} {step.step_id}"
    change = step.describe().partition(": ")[2]
    return WaitingFact("approval", step.cluster, step.job, step.step_id, step.at.timestamp(), change, remedy)


def _of_block(one: Block) -> WaitingFact:
    scope = f"{one.cluster}/{one.job}"
    is_suspended = one.kind == "suspension"
    detail = f"back in dry-run: {one.because}" if is_suspended else f"{one.target} is not tried again: {one.because}"
    return WaitingFact(one.kind, one.cluster, one.job, "", one.since_s, detail, f"tidewise lift {scope}")
