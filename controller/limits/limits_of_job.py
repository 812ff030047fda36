"""A job's limits now: settings of fleet, cluster and job, holds, blackouts, pins and what persons have said.

Nothing here raises: what cannot be read stops the jobs that it is about, with the reason in the limits.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from controller.limits.lost_restraints import OF_SETTINGS
from controller.limits.operator_limits import limit_by_schedules, limit_operators
from controller.limits.settings_memory import SettingsMemory
from controller.limits.settings_watch import SettingsState, SettingsWatch
from controller.view.recent_files import list_clusters
from include.control.approvals import NOBODY, Approval, ApprovalStore
from include.control.holds import Hold, HoldStore, holds_of_variable
from include.control.lifted_blocks import LiftedBlock, LiftedBlockStore
from include.control.pins import ActivePins, PersonalPin, PinStore, find_pin
from include.control.small_objects import list_once
from include.control.undo_orders import UndoOrder, UndoStore, find_order
from include.place import place
from include.settings import Apply, ClusterLimits, FleetLimits, JobLimits, Settings, load_settings
from include.settings.people import Act
from include.utc import HOUR_S
from models.control.approval import StepApproval
from models.control.blackout import BlackoutPeriod
from models.control.limits import Limits, combine_limits
from models.control.readiness import Guards
from models.control.state import Mode
from models.control.undo import Undo
from models.scheduling.slot_bounds import SlotBounds

log = logging.getLogger(__name__)

_Level = FleetLimits | ClusterLimits | JobLimits
_OPEN = Limits(
    mode=Mode.AUTO,
    slots_min=1,
    slots_max=2**31,
    cooldown_s=0.0,
    concurrent_share=1.0,
    confirm_timeout_s=math.inf,
    slots_wait_s=math.inf,
    foreign_change_hold_s=0.0,
    block_s=0.0,
)  # limits nothing


@dataclass(frozen=True, slots=True)
class LimitsSnapshot:
    """What limits all jobs at one time.

    Attributes:
        lifted: blocks and suspensions that persons have lifted.
        known_clusters: those that a hold may name, besides those of the settings.
    """

    state: SettingsState
    holds: Sequence[Hold]
    approvals: Sequence[Approval]
    now_s: float
    lifted: Sequence[LiftedBlock] = ()
    known_clusters: frozenset[str] = frozenset()
    undos: Sequence[UndoOrder] = ()
    pins: Sequence[PersonalPin] = ()

    def limits_of(
        self, cluster: str, job: str, vertex_ids: Mapping[str, str], known_jobs: Collection[str] = ()
    ) -> Limits:
        """Return the limits of a job: of all versions of the settings that count the strictest.

        ``vertex_ids``: operator -> vertex id, as the job runs. A hold that names none of ``known_jobs``
        (``cluster/job``) holds the cluster.
        """
        holds = self._holds_of(cluster, job, known_jobs)
        held = [one.describe() for one in holds]
        why = self.state.why_unusable
        stopped = Limits(mode=Mode.OFF, mode_reason=why, is_held=bool(held), hold_reason="; ".join(held))
        if self.state.settings is None:
            return stopped
        try:
            result = self._pin_by_person(self._combine_versions(cluster, job, vertex_ids), cluster, job)
        except Exception as error:  # whatever it is: nothing is sent
            log.exception("limits of %s/%s", cluster, job)
            reason = f"the limits of {cluster}/{job} cannot be formed: {error}"
            return replace(stopped, mode_reason=reason)
        if held:
            order = None if result.is_held else find_order(self.undos, cluster, job, holds)
            undo = _undo_of(order) if order is not None and self._may("rescale", order.by) else None
            result = replace(
                result, undo=undo, is_held=True, hold_reason="; ".join([*filter(None, [result.hold_reason]), *held])
            )
        return replace(result, mode=Mode.OFF, settings_changed=True) if self.state.just_changed else result

    def _holds_of(self, cluster: str, job: str, known_jobs: Collection[str]) -> list[Hold]:
        """Return what holds a job; a hold that names what nobody knows holds the cluster, or everything."""
        versions = self.state.versions
        clusters = {cluster, *self.known_clusters, *(name for one in versions for name in one.clusters)}

        def is_known(name: str) -> bool:
            return name in known_jobs or any(name in one.limits.jobs for one in versions)

        return [hold for hold in self.holds if hold.widened(clusters, is_known).covers(cluster, job)]

    def _combine_versions(self, cluster: str, job: str, vertex_ids: Mapping[str, str]) -> Limits:
        """Return the limits of all versions of the settings that count.

        Raises:
            ValueError: they contradict each other.
        """
        formed = [self._combine_named(one, cluster, job, vertex_ids) for one in self.state.versions]
        newest = formed[0]
        lifted = tuple(one.block_id for one in self.lifted if (one.cluster, one.job) == (cluster, job))
        if len({one.cluster(cluster).actuator for one in self.state.versions}) > 1:
            newest = replace(newest, mode=Mode.OFF, mode_reason=f"clusters.{cluster}.actuator changed")
            formed = [newest, *formed[1:]]
        if any((one.pin, one.pin_all) != (newest.pin, newest.pin_all) for one in formed):
            # Neither of two pins is the stricter one.
            return replace(newest, mode=Mode.OFF, settings_changed=True, lifted_blocks=lifted)
        return replace(combine_limits(formed), approvals=newest.approvals, lifted_blocks=lifted)

    def _combine_named(self, settings: Settings, cluster: str, job: str, vertex_ids: Mapping[str, str]) -> Limits:
        """Return the limits of one version; a cluster that it does not name is never left to the defaults."""
        if cluster in settings.clusters:
            return self._combine(settings, cluster, job, vertex_ids)
        if cluster in self.state.named:
            return Limits(mode=Mode.OFF, mode_reason=f"the settings name no cluster {cluster!r} any more")
        result = self._combine(settings, cluster, job, vertex_ids)  # known from raw files alone
        return replace(result, mode=result.mode if result.mode is Mode.OFF else Mode.DRY_RUN)

    def wants_undo(self, cluster: str, job: str) -> bool:
        """Whether a person wants a rescale of a job taken back, and has not for too long."""
        key = (cluster, job)
        return any((one.cluster, one.job) == key and self.now_s < one.until_s for one in self.undos)

    def priority_of(self, cluster: str, job: str) -> int:
        """Return a job's priority among those of its cluster."""
        return 0 if self.state.settings is None else self.state.settings.job_limits(cluster, job).priority

    def _combine(self, settings: Settings, cluster: str, job: str, vertex_ids: Mapping[str, str]) -> Limits:
        of_cluster, of_job = settings.cluster(cluster), settings.job_limits(cluster, job)
        at = datetime.fromtimestamp(self.now_s, UTC)
        levels = [
            _limits_of_level("limits", settings.limits, settings.limits.slots_max, at),
            _limits_of_level(f"clusters.{cluster}.limits", of_cluster.limits, of_cluster.slots_max, at),
            _limits_of_level(f'limits.jobs."{cluster}/{job}"', of_job, of_job.slots_max, at),
        ]
        apply, budget = settings.apply, of_cluster.slots_total
        combined = replace(
            combine_limits(levels),
            mode=Mode(settings.mode_of(cluster, job)),
            late_after_s=settings.planner.costs.late_after_s,
            confirm_timeout_s=apply.confirm_timeout_s,
            slots_wait_s=of_cluster.slots_wait_s,
            foreign_change_hold_s=apply.foreign_change_hold_h * HOUR_S,
            block_s=apply.block_h * HOUR_S,
            cluster_slots_max=math.inf if budget is None else budget,
            approvals=tuple(self._approvals_of(cluster, job, vertex_ids)),
            guards=_guards_of(apply),
            approval_band=settings.approval.band,
            neighbours=tuple(sorted(settings.neighbours_of(cluster, job))),
        )
        limited = limit_operators(combined, of_job, vertex_ids)
        bounds = SlotBounds.of(of_job.schedules, self.now_s, self.now_s + 1.0)
        return self._pin(limit_by_schedules(limited, bounds, vertex_ids, self.now_s), of_job, vertex_ids)

    def _approvals_of(self, cluster: str, job: str, vertex_ids: Mapping[str, str]) -> list[StepApproval]:
        """Return what was said to the job's steps; a yes to operators that the job does not have is none."""
        ids = {**{vertex: vertex for vertex in vertex_ids.values()}, **vertex_ids}
        result = []
        for one in self.approvals:
            names = {*one.parallelism_from, *one.parallelism_to}
            counts = not one.is_approved or (names <= set(ids) and self._may("approve", one.by))
            if (one.cluster, one.job) == (cluster, job) and counts:
                before, target = (
                    {ids[name]: count for name, count in shown.items() if name in ids}
                    for shown in (one.parallelism_from, one.parallelism_to)
                )
                by = "" if one.by == NOBODY else one.by
                times = (one.at_s, one.until_s)
                result.append(StepApproval(one.step_id, before, target, one.is_approved, *times, by, one.approval_id))
        return sorted(result, key=lambda one: (one.step_id, one.at_s, one.key))

    def _may(self, act: Act, login: str) -> bool:
        return all(one.roles.may(act, login) for one in self.state.versions)  # none where they cannot be used

    def _pin_by_person(self, limits: Limits, cluster: str, job: str) -> Limits:
        """Return limits with a person's pin, unless the settings have one: that goes before."""
        pin = find_pin(self.pins, cluster, job)
        if pin is None or limits.pin is not None or limits.pin_all is not None:
            return limits
        if self._may("rescale", pin.by):
            return replace(limits, pin_all=pin.parallelism)
        reason = f"it is pinned by {pin.by or 'nobody'}, whom roles.rescale does not name"
        return replace(limits, is_held=True, hold_reason="; ".join(filter(None, [limits.hold_reason, reason])))

    def _pin(self, limits: Limits, of_job: JobLimits, vertex_ids: Mapping[str, str]) -> Limits:
        pin, until = of_job.pin, of_job.pin_until
        if pin is None or (until is not None and self.now_s >= until.timestamp()):
            return limits
        if isinstance(pin, int):
            return replace(limits, pin_all=pin)
        unknown = sorted(set(pin) - set(vertex_ids))
        if unknown:
            reason = f"the pin names {unknown}; the job has {sorted(vertex_ids)}"
            return replace(limits, is_held=True, hold_reason="; ".join(filter(None, [limits.hold_reason, reason])))
        return replace(limits, pin={vertex_ids[name]: count for name, count in pin.items()})


class LimitsReader:
    """Reads limits anew each time: the settings when they have changed, holds and approvals always."""

    def __init__(
        self,
        load: Callable[[], Settings],
        holds: Callable[[Sequence[str], float], Sequence[Hold]],
        approvals: Callable[[float], Sequence[Approval]],
        clock: Callable[[], float],
        lifted: Callable[[], Sequence[LiftedBlock]] = tuple,
        *,
        list_clusters: Callable[[], Iterable[str]] = tuple,
        undos: Callable[[], Sequence[UndoOrder]] = tuple,
        pins: Callable[[float], ActivePins] = lambda _: ActivePins(),
        together: Callable[[], AbstractContextManager[None]] = nullcontext,
        memory: SettingsMemory | None = None,
    ) -> None:
        """Read from given sources.

        Holds, approvals and pins are of a time, epoch seconds; all that persons have said is read ``together``.
        """
        self._pins, self._together = pins, together
        self._lifted, self._list_clusters, self._undos = lifted, list_clusters, undos
        self._settings, self._holds, self._approvals, self._clock = (
            SettingsWatch(load, clock, self._read_confirmed, memory),
            holds,
            approvals,
            clock,
        )

    def read(self) -> LimitsSnapshot:
        """Return what limits all jobs now."""
        state, now_s = self._settings.read(), self._clock()
        known = frozenset(self._list_clusters())
        clusters = sorted({*known, *(name for one in state.versions for name in one.clusters)})
        with self._together():
            pinned = self._pins(now_s)
            holds = [*self._holds(clusters, now_s), *pinned.holds]
            approvals, lifted, undos = self._approvals(now_s), self._lifted(), self._undos()
        return LimitsSnapshot(state, holds, approvals, now_s, lifted, known, undos, pinned.pins)

    def _read_confirmed(self) -> set[str]:
        return {one.block_id for one in self._lifted() if one.job == OF_SETTINGS}

    def load_in_force(self) -> Settings:
        """Return the settings that have stood for long enough; raises SettingsError."""
        return self._settings.load_in_force()

    def read_limits(self, cluster: str, job: str, vertex_ids: Mapping[str, str]) -> Limits:
        """Return the limits of a job now; call it again right before a request."""
        return self.read().limits_of(cluster, job, vertex_ids)


def open_limits(
    settings: Settings,
    clock: Callable[[], float],
    load: Callable[[], Settings] = load_settings,
    *,
    is_rehearsal: bool = False,
) -> LimitsReader:
    """Return the reader of an installation: its settings, and the holds and approvals below its lake.

    A rehearsal neither knows nor keeps the settings that were in force before.
    """
    holds, approvals = HoldStore(settings.paths.lake), ApprovalStore(settings.paths.lake)

    def read_holds(clusters: Sequence[str], now_s: float) -> list[Hold]:
        return [*holds_of_variable(os.environ, clusters), *holds.read(now_s)]

    lifted = LiftedBlockStore(settings.paths.lake)
    raw_root = place(settings.paths.raw)
    return LimitsReader(
        *(load, read_holds, approvals.read, clock, lifted.read),
        list_clusters=lambda: list_clusters(raw_root),
        undos=UndoStore(settings.paths.lake).read,
        pins=PinStore(settings.paths.lake).read,
        together=list_once,
        memory=None if is_rehearsal else SettingsMemory(settings.paths.lake),
    )


def _undo_of(order: UndoOrder) -> Undo:
    return Undo(
        *(order.step_id, order.job_id, order.undone, order.target),
        by=order.by,
        reason=order.reason,
        until_s=order.until_s,
    )


def _guards_of(apply: Apply) -> Guards:
    return Guards(
        checkpoint_max_age_s=apply.checkpoint_max_age_s,
        triggers_checkpoint=apply.trigger_checkpoint,
        heap_share_max=apply.memory.heap_share_max,
        gc_share_max=apply.memory.gc_share_max,
        state_per_slot_max_bytes=apply.memory.state_per_slot_max_mib * 2**20,
    )


def _limits_of_level(name: str, level: _Level, slots_max: int | None, at: datetime) -> Limits:
    blackouts = [key for key, one in level.blackouts.items() if _is_on(one.cron, one.duration_s, one.time_zone, at)]
    given: dict[str, Any] = {
        "slots_min": level.slots_min,
        "slots_max": slots_max,
        "step_up_max_slots": level.steps.up_max_slots,
        "step_up_max_share": level.steps.up_max_share,
        "step_down_max_slots": level.steps.down_max_slots,
        "step_down_max_share": level.steps.down_max_share,
        "rescales_per_hour": level.rescales_per_hour,
        "rescales_per_day": level.rescales_per_day,
        "cooldown_s": level.cooldown_s,
        "bad_steps_max": level.bad_steps_max,
        "concurrent_rescales": getattr(level, "concurrent_rescales", None),
        "concurrent_share": getattr(level, "concurrent_share", None),
    }
    return replace(
        _OPEN,
        **{key: value for key, value in given.items() if value is not None},
        allows_falls=level.allows_falls,
        is_held=level.is_held,
        hold_reason=f"{name}.is_held" if level.is_held else "",
        in_blackout=bool(blackouts),
        has_blackouts=bool(level.blackouts),
        blackout_reason=f"{name}.blackouts: {', '.join(blackouts)}" if blackouts else "",
    )


@lru_cache(maxsize=1024)  # the windows of fleet and cluster are the same for all jobs of a tick
def _is_on(cron: str, duration_s: float, time_zone: str, at: datetime) -> bool:
    return BlackoutPeriod(cron, duration_s, time_zone).covers(at)
