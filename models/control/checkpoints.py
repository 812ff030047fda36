"""The rules about checkpoints: a rescale restarts the job from the last one, so that is looked at before a request."""

from __future__ import annotations

from models.control.bad_steps import effective_mode
from models.control.case import Action, Case, Verb, refuse
from models.control.readiness import Checkpoints, Readiness
from models.control.reasons import Reason, Refusal
from models.control.state import Intention, Mode, Origin

_PATIENCE_S = 60.0  # a rise for an overload waits no longer for a checkpoint that was asked for before it
_FRESH_S = 10.0  # a checkpoint of so short a time ago needs no other


def check_checkpoints(case: Case, desired: Intention) -> Action | None:
    """Refuse a request that would lose state, end a savepoint, or repeat the work of hours.

    A rise for an overload goes on although checkpoints are old or fail: the job that cannot process its load takes none
    any more. Where nobody has asked Flink (:class:`Readiness` is None) nothing is refused here, and nothing is sent.
    """
    ready = case.observed.readiness
    if ready is None:
        return None
    refused, reported = check_restart(ready), ready.checkpoints
    if refused is not None or reported is None or not ready.restarts or case.observed.is_restarting:
        return refused  # a job that restarts goes back to its last checkpoint anyway
    if _is_rise_for_overload(case, desired):
        return _wait_for_fresh(case, ready, _PATIENCE_S)
    why = _describe_age(case, ready, reported)
    if why:
        return Action(
            Verb.REFUSE, Reason.CHECKPOINTS_FAILING if reported.is_failing else Reason.CHECKPOINT_TOO_OLD, why
        )
    return _wait_for_fresh(case, ready, reported.timeout_s)


def check_restart(ready: Readiness) -> Action | None:
    """Refuse whatever restarts a job while that would lose its state, or end a savepoint that is in progress."""
    danger = _find_danger(ready.checkpoints, ready.unknown) if ready.restarts else None
    return None if danger is None else refuse(danger)


def _find_danger(told: Checkpoints | None, unknown: str) -> Refusal | None:
    if told is None:
        return Refusal(Reason.CHECKPOINTS_UNKNOWN, f"nobody knows the job's checkpoints: {unknown}")
    if told.interval_s is None:
        return Refusal(Reason.CHECKPOINTS_OFF, "the job takes no checkpoints: a rescale would lose its state")
    if told.savepoints is None:
        return Refusal(
            Reason.CHECKPOINTS_UNKNOWN,
            "Flink counts more checkpoints in progress than it lists: one may be a savepoint",
        )
    if told.savepoints:
        return Refusal(Reason.SAVEPOINT_IN_PROGRESS, "a rescale would end the savepoint that is in progress")
    if told.completed_at_s is None:
        return Refusal(Reason.NO_CHECKPOINT, "the job has completed no checkpoint yet: a rescale would lose its state")
    return None


def describe_doubt(case: Case, desired: Intention) -> str:
    """Return what is wrong with the checkpoints of a job that is rescaled nevertheless; empty when nothing is."""
    ready = case.observed.readiness
    if ready is None or ready.checkpoints is None or not _is_rise_for_overload(case, desired):
        return ""
    why = _describe_age(case, ready, ready.checkpoints)
    return f"; it is overloaded, so it is enlarged although {why}" if why else ""


def _is_rise_for_overload(case: Case, desired: Intention) -> bool:
    added = case.observed.slots_of(desired.parallelism) - case.observed.slots
    return desired.origin is Origin.REACTIVE and added > 0


def _age_s(case: Case, ready: Readiness, told: Checkpoints) -> float:
    now_s = case.now_s if ready.now_s is None else ready.now_s
    return now_s - (told.completed_at_s or 0.0)


def _describe_age(case: Case, ready: Readiness, told: Checkpoints) -> str:
    """Return what is wrong with the age of the last checkpoint; empty when nothing is."""
    age_s, most_s = _age_s(case, ready, told), case.limits.guards.max_age_s(told.interval_s or 0.0)
    if told.is_failing:
        return f"checkpoints fail: the last completed one is {age_s:.0f} s old"
    return f"the last completed checkpoint is {age_s:.0f} s old, more than {most_s:.0f} s" if age_s > most_s else ""


def _wait_for_fresh(case: Case, ready: Readiness, most_s: float) -> Action | None:
    """Wait for a checkpoint that is asked for before the request, where Flink itself does not wait for one."""
    is_asked_before = case.limits.guards.triggers_checkpoint and not ready.waits_for_checkpoint
    if not is_asked_before or effective_mode(case) is Mode.DRY_RUN or ready.is_fresh or ready.checkpoints is None:
        return None
    if _age_s(case, ready, ready.checkpoints) <= _FRESH_S:
        return None
    if ready.asked_ago_s is not None and ready.asked_ago_s >= most_s:
        return None
    return Action(
        Verb.WAIT, Reason.CHECKPOINT_FIRST, "a checkpoint is asked for first, so that little is processed again"
    )
