"""Limits that a person sets: for the fleet, for a cluster, for a job; of several the strictest holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from include.utc import HOUR_S
from models.control.approval import StepApproval
from models.control.readiness import Guards, combine_guards
from models.control.state import Mode, Parallelism
from models.control.undo import Undo

_STRICTNESS = list(Mode)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the controller may do with a job.

    Attributes:
        mode: how far it may go.
        slots_min, slots_max: of the job.
        step_up_max_slots, step_down_max_slots: largest change of one rescale, in slots and of each vertex.
        step_up_max_share, step_down_max_share: the same as a share of what runs.
        rescales_per_hour, rescales_per_day: most requests.
        late_after_s: a job is late while its records wait for longer.
        cooldown_s: time without a further rescale after one.
        confirm_timeout_s: a request that is not confirmed by then has failed.
        slots_wait_s: so long a rise waits for slots that the cluster has yet to get, wanted or not.
        foreign_change_hold_s: how long a job is left alone after a change that the controller did not make.
        block_s: how long a target that did harm is not tried again.
        in_blackout, has_blackouts: whether a blackout window is on now, and whether there are any.
        allows_falls: whether the job may be made smaller.
        pin: parallelism that a person demands of some vertices instead of plans; None without one.
        pin_all: the same, one number for all vertices.
        is_held: whether a person has put the job on hold.
        settings_changed: whether the settings changed a moment ago, so that nothing is sent yet; the mode is off then.
        cluster_slots_max: budget of the cluster for all its jobs.
        approvals: what persons have said to steps of the job.
        guards: what Flink has to say of the job before a request.
        approval_band: share of the slots by which a step may differ from the one that an answer was given to.
        operator_min, operator_max: least and largest parallelism of some vertices.
        left_alone: vertices whose bounds are never changed.
        mode_reason, blackout_reason, hold_reason: why, for a person.
        schedule_reason: which schedules are on that bound slots or vertices, for a person; empty without any.
        lifted_blocks: ids of blocked targets that persons have lifted, of suspensions, and of holds after a change.
        concurrent_rescales: most jobs of the cluster whose requests have no end yet.
        concurrent_share: the same as a share of the cluster's jobs and of its slots; the larger of both counts.
        bad_steps_max: after so many steps within a day that were rolled back or failed the job is in dry-run.
        neighbours: jobs, ``cluster/job``, that feed it through a topic or that it feeds.
        undo: what a person wants back, where nothing else holds the job; None without it.
    """

    mode: Mode = Mode.DRY_RUN
    slots_min: int = 1
    slots_max: int = 64
    step_up_max_slots: float = math.inf
    step_down_max_slots: float = math.inf
    step_up_max_share: float = math.inf
    step_down_max_share: float = math.inf
    rescales_per_hour: float = math.inf
    rescales_per_day: float = math.inf
    late_after_s: float = 60.0
    cooldown_s: float = 300.0
    confirm_timeout_s: float = 180.0
    slots_wait_s: float = 600.0
    foreign_change_hold_s: float = 4 * HOUR_S
    block_s: float = 6 * HOUR_S
    in_blackout: bool = False
    has_blackouts: bool = False
    allows_falls: bool = True
    pin: Parallelism | None = None
    pin_all: int | None = None
    is_held: bool = False
    settings_changed: bool = False
    cluster_slots_max: float = math.inf
    approvals: tuple[StepApproval, ...] = ()
    approval_band: float = 0.0
    operator_min: Parallelism = field(default_factory=dict)
    operator_max: Parallelism = field(default_factory=dict)
    left_alone: tuple[str, ...] = ()
    mode_reason: str = ""
    blackout_reason: str = ""
    hold_reason: str = ""
    schedule_reason: str = ""
    guards: Guards = field(default_factory=Guards)
    lifted_blocks: tuple[str, ...] = ()
    concurrent_rescales: float = math.inf
    concurrent_share: float = 0.0
    bad_steps_max: int = 100
    neighbours: tuple[str, ...] = ()
    undo: Undo | None = None

    def pin_of(self, vertices: Iterable[str]) -> Parallelism:
        """Return what is pinned of a job with these vertices; empty when nothing is."""
        for_all = {} if self.pin_all is None else dict.fromkeys(vertices, self.pin_all)
        return {**for_all, **(self.pin or {})}


_LARGER_IS_STRICTER = frozenset({"slots_min", "cooldown_s", "foreign_change_hold_s", "block_s"})
_ANY_HOLDS = frozenset({"in_blackout", "has_blackouts", "is_held", "settings_changed"})
_OF_THE_JOB = frozenset({"lifted_blocks", "undo"})  # not of a level
_OF_VERTICES: dict[str, Callable[..., int]] = {"operator_min": max, "operator_max": min}
_REASONS = frozenset({"mode_reason", "blackout_reason", "hold_reason", "schedule_reason"})


def combine_limits(levels: Iterable[Limits]) -> Limits:
    """Return the limits that satisfy all levels (fleet, cluster, job): of each the strictest.

    A pin is the last level's that has one; approvals and reasons of all levels are kept, and what is said of single
    vertices.

    Raises:
        ValueError: no level, or the levels contradict each other (slots_min above slots_max).

    >>> fleet, job = Limits(slots_max=32, cooldown_s=60.0), Limits(slots_max=16, cooldown_s=600.0)
    >>> found = combine_limits([fleet, job])
    >>> found.slots_max, found.cooldown_s
    (16, 600.0)
    """
    known = list(levels)
    if not known:
        raise ValueError("limits need at least one level")
    combined = known[0]
    names = [one.name for one in fields(Limits) if one.name not in _OF_THE_JOB]
    for level in known[1:]:
        strictest: dict[str, Any] = {name: _strictest(name, combined, level) for name in names}
        combined = replace(combined, **strictest)
    if combined.slots_min > combined.slots_max:
        raise ValueError(f"slots_min = {combined.slots_min} is above slots_max = {combined.slots_max}")
    return combined


def _strictest(name: str, left: Limits, right: Limits) -> object:
    one, other = getattr(left, name), getattr(right, name)
    if name == "mode":
        return min(one, other, key=_STRICTNESS.index)
    if name == "guards":
        return combine_guards((one, other))
    if name in {"pin", "pin_all"}:
        return one if other is None else other
    if name in {"approvals", "left_alone", "neighbours"}:
        return (*one, *(each for each in other if each not in one))
    if name in _OF_VERTICES:
        pick = _OF_VERTICES[name]
        return {vertex: pick(level[vertex] for level in (one, other) if vertex in level) for vertex in {**one, **other}}
    return _strictest_value(name, one, other)


def _strictest_value(name: str, one: Any, other: Any) -> object:
    if name in _REASONS:
        return "; ".join(dict.fromkeys(filter(None, (one, other))))
    if name in _ANY_HOLDS:
        return one or other
    return max(one, other) if name in _LARGER_IS_STRICTER else min(one, other)
