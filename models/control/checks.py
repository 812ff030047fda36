"""The rules that an intention has to pass before a request is formed from it."""

from __future__ import annotations

import math
from dataclasses import replace

from include.utc import DAY_S, HOUR_S
from models.control.approval import describe_void_yes, find_denial, find_yes
from models.control.bad_steps import effective_mode
from models.control.bounds import allow_any_step, bound_target
from models.control.case import Action, Case, Verb
from models.control.checkpoints import check_checkpoints
from models.control.memory_guard import check_memory
from models.control.partial_rise import fit_rise
from models.control.reasons import Reason
from models.control.resubmission import restore_lost
from models.control.schedules import keep_schedule
from models.control.state import OF_A_PERSON, Intention, Mode, Origin, Parallelism
from models.control.undo import form_undo, is_held_after_change
from models.scheduling.figures import format_count


def find_desired(case: Case) -> Intention | None:
    """Return what is desired within the limits and the slots to be had: what a person demands before all else."""
    pin = case.limits.pin_of(case.observed.requested or {})
    undo = form_undo(case.limits.undo, case.history, case.observed, case.now_s)
    if undo is not None:
        target = {**undo.parallelism, **pin}
        return replace(undo, parallelism=bound_target(target, case.observed, allow_any_step(case.limits)))
    desired = _pin(case, pin) if pin else case.desired or restore_lost(case) or keep_schedule(case)
    if desired is None:
        return None
    bounded = replace(desired, parallelism=bound_target(desired.parallelism, case.observed, case.limits))
    return fit_rise(bounded, case)


def _pin(case: Case, pin: Parallelism) -> Intention:
    """Return what a person demands; vertices that they do not name go by an intention that may be acted on."""
    desired, asked = case.desired, dict(case.observed.requested or {})
    follows = desired is not None and not desired.objection and case.now_s <= desired.valid_until_s
    if desired is not None and follows and not set(pin) >= set(asked):
        return replace(desired, parallelism={**desired.parallelism, **pin})
    return Intention({**asked, **pin}, Origin.PIN, "pin", "pinned by a person", case.now_s + DAY_S)


def check_permission(case: Case) -> Action | None:
    """Refuse what a person, another autoscaler or an earlier event does not allow at all."""
    if case.limits.settings_changed:
        return Action(Verb.WAIT, Reason.SETTINGS_CHANGED, "the settings have just been changed")
    if case.limits.mode is Mode.OFF:
        return Action(Verb.WAIT, Reason.MODE_OFF, case.limits.mode_reason or "the mode is off")
    if case.limits.is_held and form_undo(case.limits.undo, case.history, case.observed, case.now_s) is None:
        return Action(Verb.REFUSE, Reason.ON_HOLD, case.limits.hold_reason or "a person has put the job on hold")
    refused = _check_autoscaler(case.observed.other_autoscaler, case.observed.autoscaler_unknown)
    if refused is not None:
        return refused
    if is_held_after_change(case.history, case.limits.lifted_blocks, case.now_s):
        remaining_min = (case.history.held_until_s - case.now_s) / 60
        return Action(
            Verb.REFUSE,
            Reason.HELD,
            f"{case.history.held_because}; held for {remaining_min:.0f} more minutes, or until tidewise release",
        )
    return None


def _check_autoscaler(key: str | None, unknown: str) -> Action | None:
    if key:
        return Action(Verb.REFUSE, Reason.OTHER_AUTOSCALER, f"{key} rescales the job as well")
    if unknown:
        detail = f"nobody knows whether another autoscaler rescales the job: {unknown}"
        return Action(Verb.REFUSE, Reason.AUTOSCALER_UNKNOWN, detail)
    return None


def check_objection(case: Case) -> Action | None:
    """Refuse an intention that was formed with an objection."""
    desired = find_desired(case)
    if desired is None or not desired.objection:
        return None
    return Action(Verb.REFUSE, Reason(desired.objection), desired.objection_detail)


def check_state(case: Case) -> Action | None:
    """Wait for a job that does not run; a rise for one that restarts need not wait, nor a person's undo."""
    observed = case.observed
    if observed.running:
        return None
    if observed.is_restarting and form_undo(case.limits.undo, case.history, observed, case.now_s) is not None:
        return None
    desired = case.desired
    is_reactive = desired is not None and desired.origin is Origin.REACTIVE
    slots = 0 if desired is None else observed.slots_of(desired.parallelism)
    if is_reactive and observed.is_restarting and slots > observed.slots_of(observed.requested or {}):
        return None  # it comes back with what it is asked for meanwhile, without another stop
    return Action(Verb.WAIT, Reason.NOT_RUNNING, observed.not_at_work or f"the job is {observed.state}")


def check_intention(case: Case) -> Action | None:
    """Refuse an intention that changes nothing, came too late, or does not fit the job."""
    desired = find_desired(case)
    if desired is None or desired.parallelism == dict(case.observed.requested or {}):
        if case.remark:
            return Action(Verb.WAIT, Reason.LEFT_AS_IS, case.remark)
        return Action(Verb.WAIT, Reason.AS_DESIRED, "nothing to change")
    if case.now_s > desired.valid_until_s:
        return Action(Verb.REFUSE, Reason.EXPIRED, "the step is past its validity")
    different = sorted(set(desired.parallelism) ^ set(case.observed.requested or {}))
    if different:
        return Action(
            Verb.REFUSE, Reason.UNKNOWN_OPERATOR, f"the job's vertices are not those of the step: {different}"
        )
    return _check_blocked(case, desired.parallelism)


def _check_blocked(case: Case, target: Parallelism) -> Action | None:
    """Refuse what did harm; a block of unlimited time ends when a person lifts it."""
    for block in case.history.blocked:
        is_lifted = bool(block.block_id) and block.block_id in case.limits.lifted_blocks
        if target == dict(block.parallelism) and case.now_s < block.until_s and not is_lifted:
            why = block.because or "this parallelism did harm lately"
            lift = (
                "; it is tried again when a person lifts the block (tidewise lift)" if math.isinf(block.until_s) else ""
            )
            return Action(Verb.REFUSE, Reason.BLOCKED_TARGET, f"{why}{lift}")
    return None


def check_obstacle(case: Case) -> Action | None:
    """Refuse what cannot be carried out now, or not in the way that is allowed."""
    observed = case.observed
    if observed.obstacle:
        return Action(Verb.REFUSE, Reason(observed.obstacle), observed.obstacle_detail)
    if observed.upgrade_reason and case.history.lost is not None:
        detail = "Flink lost at its last submission what the resource holds; another upgrade would lose it as well"
        return Action(Verb.REFUSE, Reason.UPGRADE_LOSES_MAP, f"{detail}: {observed.upgrade_reason}")
    return None


def check_slots(case: Case) -> Action | None:
    """Refuse what takes more slots than there are, or gives slots back that may not come again."""
    desired = find_desired(case)
    if desired is None:
        return None
    observed, limits = case.observed, case.limits
    slots = observed.slots_of(desired.parallelism)
    added = slots - observed.slots
    if slots > limits.slots_max and added >= 0:
        return Action(Verb.REFUSE, Reason.EXCEEDS_SLOTS, f"slots wanted: {slots}, at most {limits.slots_max}")
    if added < 0:
        return None if desired.origin is Origin.UNDO else _check_fall(case)
    return _check_rise(case, added) if added > 0 else None


def _check_rise(case: Case, added: int) -> Action | None:
    observed, budget = case.observed, case.limits.cluster_slots_max
    own, free = observed.slots_shown_free, observed.free_slots
    wanted = f"{format_count(added, 'more slot')} wanted"
    if not observed.is_elastic and free is None:
        return Action(Verb.REFUSE, Reason.FREE_SLOTS_UNKNOWN, f"{wanted}, nobody knows how many are free")
    if not observed.is_elastic and free is not None and added > free - own:
        return Action(Verb.REFUSE, Reason.NO_FREE_SLOTS, f"{wanted}, {max(free - own, 0)} free")
    if math.isinf(budget):
        return None
    if observed.cluster_slots_used is None:
        return Action(
            Verb.REFUSE, Reason.BUDGET_UNKNOWN, f"nobody has counted the slots under the budget of {budget:g}"
        )
    used = observed.cluster_slots_used + own
    if used + added > budget:
        return Action(Verb.REFUSE, Reason.EXCEEDS_BUDGET, f"{wanted}, the cluster's jobs have {used} of {budget:g}")
    return None


def _check_fall(case: Case) -> Action | None:
    observed = case.observed
    if not case.limits.allows_falls:
        return Action(Verb.REFUSE, Reason.FALLS_OFF, "scale-downs are switched off")
    is_known = observed.free_slots is not None and (observed.free_slots > 0 or observed.is_elastic is False)
    if not observed.is_elastic and not is_known:
        return Action(
            Verb.REFUSE, Reason.FREE_SLOTS_UNKNOWN, "nobody knows whether slots given back could be had again"
        )
    return None


def check_pace(case: Case) -> Action | None:
    """Wait while a blackout is on, or after too many requests; an undo goes by no count, as a roll-back does."""
    history, limits, now_s = case.history, case.limits, case.now_s
    if limits.in_blackout:
        return Action(Verb.WAIT, Reason.BLACKOUT, limits.blackout_reason or "a blackout window is on")
    if form_undo(limits.undo, case.history, case.observed, now_s) is not None:
        return _check_others(case)
    desired, observed = find_desired(case), case.observed
    is_urgent = desired is not None and desired.falls_behind and observed.slots_of(desired.parallelism) > observed.slots
    cooled_s = math.inf if is_urgent or history.last_change_at_s is None else now_s - history.last_change_at_s
    if cooled_s < limits.cooldown_s:
        return Action(Verb.WAIT, Reason.COOLDOWN, f"the last change was {cooled_s:.0f} s ago")
    paces = (
        (limits.rescales_per_hour, HOUR_S, "hour", Reason.RESCALES_PER_HOUR),
        (limits.rescales_per_day, DAY_S, "day", Reason.RESCALES_PER_DAY),
    )
    for most, span_s, name, reason in paces:
        if sum(now_s - at_s < span_s for at_s in history.request_times_s) >= most:
            return Action(Verb.WAIT, reason, f"{most:g} requests within a {name} are the limit")
    return _check_others(case)


def check_neighbours(case: Case) -> Action | None:
    """Wait while a job that feeds this one, or that it feeds, is rescaled; a job that is down has no stop to add."""
    others = case.observed.neighbours_rescaled
    if (
        not others
        or case.observed.is_restarting
        or form_undo(case.limits.undo, case.history, case.observed, case.now_s) is not None
    ):
        return None
    return Action(Verb.WAIT, Reason.NEIGHBOUR_RESCALES, f"{', '.join(others)} is being rescaled or catches up")


def _check_others(case: Case) -> Action | None:
    """Wait while as many other jobs of the cluster as are allowed at once are being rescaled, or jobs of as many slots.

    A job that is down has no stop to add, one that is far behind next to none: neither need wait.
    """
    limits, observed, others = case.limits, case.observed, case.observed.cluster_rescales
    most = max(limits.concurrent_rescales, math.floor(limits.concurrent_share * observed.cluster_jobs))
    if observed.needs_no_turn or math.isinf(most) or (others is not None and others < limits.concurrent_rescales):
        return None
    if others is not None and others < most:
        most_slots = limits.concurrent_share * observed.cluster_slots_held
        stopped = observed.cluster_rescaled_slots + observed.slots
        if stopped <= most_slots:
            return None
        detail = f"with it jobs of {stopped} slots would be rescaled at once, {most_slots:.0f} are the limit"
        return Action(Verb.WAIT, Reason.CONCURRENT_RESCALES, detail)
    count = "nobody knows how many" if others is None else str(others)
    detail = f"{count} other jobs of the cluster are being rescaled, {most:g} at once are the limit"
    return Action(Verb.WAIT, Reason.CONCURRENT_RESCALES, detail)


def check_approval(case: Case) -> Action | None:
    """Wait for a person's yes where the mode asks for it; a person's no stands in the mode auto as well."""
    desired = find_desired(case)
    if desired is None or desired.origin in OF_A_PERSON or effective_mode(case) not in {Mode.APPROVE, Mode.AUTO}:
        return None
    needs, limits = _needs_approval(case, desired), case.limits
    reported = limits if needs else replace(limits, approvals=tuple(one for one in limits.approvals if one.by))
    denial = find_denial(reported, desired.step_id, case.observed, desired.parallelism, case.now_s)
    if denial is not None:
        return Action(Verb.REFUSE, Reason.DENIED, f"{denial.by or 'a person'} has said no")
    if not needs or find_approvals(case, desired):
        return None
    void = describe_void_yes(limits, case.history, case.observed, case.now_s)
    return Action(Verb.WAIT, Reason.NEEDS_APPROVAL, f"{desired.reason}; it waits for a person's yes{void}")


def find_approvals(case: Case, desired: Intention) -> tuple[str, ...]:
    """Return the ids of the answers that allow a step; empty where none does, or none is needed."""
    if not _needs_approval(case, desired):
        return ()
    result = find_yes(case.limits, case.history, case.observed, desired.parallelism, case.now_s)
    return tuple(one.key for one in result)


def _needs_approval(case: Case, desired: Intention) -> bool:
    return effective_mode(case) is Mode.APPROVE and desired.origin not in OF_A_PERSON


def check_readiness(case: Case) -> Action | None:
    """Refuse what Flink's own state forbids; the last rule, since Flink is asked only where all others let pass."""
    desired, ready = find_desired(case), case.observed.readiness
    if desired is None or ready is None:
        return None
    refused = _check_autoscaler(ready.other_autoscaler, ready.autoscaler_unknown)
    return refused or check_checkpoints(case, desired) or check_memory(case, desired)
