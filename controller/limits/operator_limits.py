"""Limits of single operators, by the ids of the vertices that run them now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from include.settings import JobLimits
from models.control.limits import Limits, combine_limits
from models.scheduling.slot_bounds import SlotBounds


def limit_by_schedules(limits: Limits, bounds: SlotBounds, vertex_ids: Mapping[str, str], now_s: float) -> Limits:
    """Return the limits of a job with those of the schedules that are on; where an operator is not there, it is held.

    ``vertex_ids``: operator -> vertex id, of the job as it runs.

    Raises:
        ValueError: they contradict the other limits.
    """
    for one in bounds.list_on(now_s):
        unknown = sorted(set(one.operators) - set(vertex_ids))
        if unknown:
            reason = f"schedule {one.name} names the operators {unknown}; the job has {sorted(vertex_ids)}"
            return replace(limits, is_held=True, hold_reason="; ".join(filter(None, [limits.hold_reason, reason])))
        ranges = {vertex_ids[name]: pair for name, pair in one.operators.items()}
        own = replace(
            limits,
            slots_min=one.least,
            slots_max=one.most,
            operator_min={vertex: least for vertex, (least, _) in ranges.items()},
            operator_max={vertex: most for vertex, (_, most) in ranges.items()},
            schedule_reason=one.describe(now_s),
        )
        limits = combine_limits([limits, own])
    return limits


def limit_operators(limits: Limits, of_job: JobLimits, vertex_ids: Mapping[str, str]) -> Limits:
    """Return the limits of a job with those of its operators; where one is not there, the job is held.

    ``vertex_ids``: operator -> vertex id, of the job as it runs.
    """
    operators = of_job.operators
    unknown = sorted(set(operators) - set(vertex_ids))
    if unknown:
        reason = f"the limits name the operators {unknown}; the job has {sorted(vertex_ids)}"
        return replace(limits, is_held=True, hold_reason="; ".join(filter(None, [limits.hold_reason, reason])))
    ids = {vertex_ids[name]: one for name, one in operators.items()}
    return replace(
        limits,
        operator_min={one: its.parallelism_min for one, its in ids.items() if its.parallelism_min is not None},
        operator_max={one: its.parallelism_max for one, its in ids.items() if its.parallelism_max is not None},
        left_alone=tuple(one for one, its in ids.items() if its.left_alone),
    )
