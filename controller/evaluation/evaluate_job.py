"""The evaluation of one job: its newest plan, its windows and its memory -> what it should run at.

The step that a plan or the reactive controller wants stays wanted until the job runs so, it expires, or a later
evaluation wants something else: nothing is taken as done because it was decided once.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from controller.evaluation.policy_evaluation import decide
from controller.view.job_view import ActiveTarget, EvaluationState, JobView, NotObservedError, name_step, take_snapshot
from controller.view.plan_rows import EVALUATED, LoadBand
from controller.view.present_names import follow_kept, match_kept
from include.domain.graph import JobGraph
from include.flink.job_states import BATCH
from include.policy_catalogue import decides_at_evaluations
from include.settings import Settings
from include.settings.limits import SINGLE_WINDOW_UP_SHARE
from include.utc import HOUR_S
from models.control.reasons import Reason
from models.control.state import Intention, Origin
from models.plausibility import agree, limit_rise
from models.policies.observations import Observations
from models.policies.tidewise.pending_steps import PendingStep
from models.policies.tidewise.reactive_controller import accept_plan, decide_without_windows, drop_plan, evaluate_job
from models.policies.tidewise.tidewise_memory import ControllerMemory, ReactiveDecision

LOAD_OVER_S = 600  # one window may be as short as 15 s: the load is the mean over at least this long
log = logging.getLogger(__name__)


def evaluate(view: JobView, previous: EvaluationState, settings: Settings, now_s: int) -> EvaluationState:
    """Return what the job should run at from now on, with the memory for the next evaluation.

    One job's trouble is one job's: where its evaluation fails, the plan's due step stands as planned.
    """
    present = view.seen.placed if view.seen is not None else ()
    renamed = match_kept(previous, present)
    previous = follow_kept(previous, present)
    return replace(_evaluate(view, previous, settings, now_s, renamed), operators=previous.operators)


def _evaluate(
    view: JobView, previous: EvaluationState, settings: Settings, now_s: int, renamed: Mapping[str, str] | None
) -> EvaluationState:
    if view.seen is not None and view.seen.job_type == BATCH:
        return EvaluationState(
            previous.memory, _plan_as_of_s(view), None, previous.remembered
        )  # it chooses its parallelism itself
    chosen = settings.planner.policy_of(view.cluster, view.job)
    if decides_at_evaluations(chosen):
        return _let_policy_decide(chosen, view, previous, settings, now_s, renamed=renamed)
    if chosen != EVALUATED:
        return _follow_plan(view, previous, now_s)
    memory = _meet_plan(view, previous, settings, now_s)
    try:
        snapshot = take_snapshot(view, settings, now_s)
        reported, after = evaluate_job(snapshot, memory)
        running = snapshot.running
    except NotObservedError as error:
        log.info("%s/%s is not seen: %s", view.cluster, view.job, error)
        reported, after = decide_without_windows(memory, now_s)
        running = {}
    except Exception as error:
        log.exception("evaluation of %s/%s", view.cluster, view.job)
        reported, after = decide_without_windows(memory, now_s)
        reported, running = (
            replace(reported, reason=f"the evaluation failed ({type(error).__name__}); {reported.reason}"),
            {},
        )
    reported = _limit_unconfirmed(reported, view, running, settings)
    valid_until_s = float(now_s + settings.planner.timing.apply_every_s)
    active = _stand(view, reported, running, valid_until_s)
    return EvaluationState(_leave_due(reported, after), _plan_as_of_s(view), active, remark=reported.remark)


def form_intention(
    view: JobView, previous: EvaluationState, settings: Settings, now_s: float, band: LoadBand | None
) -> Intention | None:
    """Return what is wanted of a job by vertex id; None when it is to stay as it is or its vertices are not known.

    Args:
        view: of the job.
        previous: of its last evaluation.
        settings: of the run.
        now_s: epoch seconds.
        band: of the forecast behind the plan for now, all sources; None without one.
    """
    active = previous.standing
    if active is None or view.seen is None or now_s > active.valid_until_s:
        return None
    vertex_ids = view.seen.vertex_ids
    # An operator that the job does not have stays in under its name: the step is refused for it.
    wanted = {vertex_ids.get(name, name): count for name, count in active.wanted.items()}
    for name in view.seen.finished:
        wanted.pop(vertex_ids[name], None)
    wanted |= {vertex_ids[name]: count for name, count in view.seen.idle.items()}
    objection, detail = "", ""
    if active.origin is Origin.PLAN:
        objection, detail = _object_to_step(view, settings, now_s, band)
    return Intention(
        parallelism=wanted,
        origin=active.origin,
        step_id=active.step_id,
        reason=active.reason,
        valid_until_s=active.valid_until_s,
        settle_s=_settle_s(view, active),
        objection=objection,
        objection_detail=detail,
    )


def measure_load_per_s(observations: Observations | None, graph: JobGraph | None) -> float:
    """Return what the sources should emit, records/s: the mean over the last undisturbed windows, NaN when unknown."""
    if observations is None or graph is None or not len(observations):
        return math.nan
    end_s = int(observations.window_start_s[-1]) + observations.window_s
    recent = (observations.window_start_s + observations.window_s > end_s - LOAD_OVER_S) & ~observations.disturbed
    of_sources = observations.target_data_rate_per_s[recent][:, [graph.position(name) for name in graph.sources]]
    if not of_sources.size or np.isnan(of_sources).all(axis=0).any():
        return math.nan
    return float(np.nanmean(of_sources, axis=0).sum())


def _meet_plan(view: JobView, previous: EvaluationState, settings: Settings, now_s: int) -> ControllerMemory:
    """Return the memory of the last evaluation, with a newer plan accepted."""
    plan, of_plan, memory = view.plan, view.plan_memory, previous.memory
    memory = memory or of_plan or ControllerMemory()
    too_old = plan is None or now_s - plan.as_of_s > HOUR_S * settings.apply.max_plan_age_h
    if plan is None or of_plan is None or not of_plan.planned or too_old:
        return drop_plan(memory)
    if previous.memory is not None and plan.as_of_s == previous.plan_as_of_s:
        return memory
    if (of_plan.seen_until_s or 0) > (memory.seen_until_s or 0):  # evaluations missed what ingestion has seen
        memory = replace(memory, seen_until_s=of_plan.seen_until_s, histories=of_plan.histories)
    return accept_plan(memory, of_plan.due)


def _leave_due(told: ReactiveDecision, after: ControllerMemory) -> ControllerMemory:
    """Return the memory with the step that was decided on still due, until the job runs so or it expires.

    What was decided may not have been carried out.
    """
    return after if told.due is None else replace(after, due=(told.due, *after.due))


def _stand(
    view: JobView, told: ReactiveDecision, running: Mapping[str, int], valid_until_s: float
) -> ActiveTarget | None:
    """Return what a decision wants; one of the reactive controller's own is valid until the next evaluation."""
    if told.due is not None:
        step_id, until_s = _id_of(view, told.due), float(told.due.valid_until_s)
        return ActiveTarget(dict(told.due.parallelism), Origin.PLAN, step_id, told.reason, until_s)
    if told.wanted is None or dict(told.wanted) == dict(running):
        return None
    step_id = name_step(view, running, told.wanted)
    return ActiveTarget(dict(told.wanted), Origin.REACTIVE, step_id, told.reason, valid_until_s)


def _limit_unconfirmed(
    told: ReactiveDecision, view: JobView, running: Mapping[str, int], settings: Settings
) -> ReactiveDecision:
    """Return a decision of which a single window's figures move the job by no more than a share of what runs."""
    if told.wanted is None or told.due is not None or not running:
        return told
    wanted, why = _limit_single(dict(told.wanted), view, running, settings)
    return replace(told, wanted=wanted, reason=told.reason + why)


def _limit_single(
    wanted: dict[str, int], view: JobView, running: Mapping[str, int], settings: Settings
) -> tuple[dict[str, int], str]:
    """Return what is wanted within the share for a single window, and what to say of it: nothing where two agree."""
    graph, observed = (view.seen.graph if view.seen is not None else None) or view.graph, view.observations
    if (
        graph is not None
        and observed is not None
        and observed.parallelism.shape[1] == len(graph.operators)
        and agree(observed, [graph.position(name) for name in graph.sources])
    ):
        return wanted, ""
    levels = (settings.limits, settings.cluster(view.cluster).limits, settings.job_limits(view.cluster, view.job))
    shares = [level.steps.up_max_share for level in levels if level.steps.up_max_share is not None]
    share = min(shares, default=SINGLE_WINDOW_UP_SHARE)
    limited = limit_rise(wanted, running, share)
    return limited, "" if limited == wanted else f"; at most {share:g} x what runs more until two windows agree"


def _let_policy_decide(
    name: str,
    view: JobView,
    previous: EvaluationState,
    settings: Settings,
    now_s: int,
    *,
    renamed: Mapping[str, str] | None,
) -> EvaluationState:
    """Return what a policy that reacts wants now; nothing of a job that is not seen or where the policy fails."""
    remembered = previous.remembered if previous.remembered is not None else view.left
    unchanged = replace(previous, plan_as_of_s=_plan_as_of_s(view), standing=None, remembered=remembered)
    try:
        snapshot = take_snapshot(view, settings, now_s)
        of_job = f"{view.cluster}/{view.job}"
        wanted, reason, after = decide(
            name, snapshot, remembered, settings, models=view.models, job=of_job, renamed=renamed
        )
    except NotObservedError as error:
        log.info("%s/%s is not seen: %s", view.cluster, view.job, error)
        return unchanged
    except Exception:
        log.exception("policy %s of %s/%s", name, view.cluster, view.job)
        return unchanged
    wanted, why = _limit_single(dict(wanted), view, snapshot.running, settings)
    active = None
    if wanted != dict(snapshot.running):
        step_id = name_step(view, snapshot.running, wanted)
        valid_until_s = float(now_s + settings.planner.timing.apply_every_s)
        active = ActiveTarget(wanted, Origin.REACTIVE, step_id, reason + why, valid_until_s)
    return replace(unchanged, standing=active, remembered=after)


def _follow_plan(view: JobView, previous: EvaluationState, now_s: int) -> EvaluationState:
    """Return the step of the plan that was due last, for as long as it is valid."""
    plan = view.plan
    steps = () if plan is None else plan.steps
    due = [(step.apply_at_s, step) for step in steps if step.apply_at_s is not None and step.apply_at_s <= now_s]
    if plan is None or not due:
        return EvaluationState(previous.memory, _plan_as_of_s(view))
    _, last = max(due, key=lambda one: one[0])
    active = ActiveTarget(dict(last.parallelism_to), Origin.PLAN, last.step_id, last.reason, last.valid_until_s or 0.0)
    return EvaluationState(previous.memory, plan.as_of_s, active)


def _plan_as_of_s(view: JobView) -> float | None:
    return None if view.plan is None else view.plan.as_of_s


def _id_of(view: JobView, due: PendingStep) -> str:
    """Return the id under which the newest plan has a step; one of its own for a step of an earlier plan."""
    for step in view.plan.steps if view.plan is not None else ():
        if step.apply_at_s == due.apply_at_s and dict(step.parallelism_to) == dict(due.parallelism):
            return step.step_id
    return name_step(view, {}, due.parallelism)


def _object_to_step(view: JobView, settings: Settings, now_s: float, band: LoadBand | None) -> tuple[str, str]:
    """Return why a plan's step must not be sent now, and what is behind it; empty texts when it may be."""
    plan = view.plan
    if plan is None:
        return Reason.STALE_PLAN, "the plan of this step is gone"
    age_h, most_h = (now_s - plan.as_of_s) / HOUR_S, settings.apply.max_plan_age_h
    if age_h > most_h:
        return Reason.STALE_PLAN, f"the plan is {age_h:.1f} h old, more than apply.max_plan_age_h = {most_h:g}"
    observed_s = max(_observed_until_s(view), plan.observations_until_s or 0)
    age_h, most_h = (now_s - observed_s) / HOUR_S, settings.planner.max_input_age_h
    if age_h > most_h:
        return Reason.STALE_METRICS, f"metrics are {age_h:.1f} h old, more than planner.max_input_age_h = {most_h:g}"
    graph = view.seen.graph if view.seen is not None else None
    load = measure_load_per_s(view.observations, graph or view.graph)
    if band is not None and math.isfinite(load):
        low, high, share = band.q50_per_s, band.q90_per_s, settings.apply.load_band
        if not low * (1 - share) <= load <= high * (1 + share):
            detail = f"load is {load:.0f}/s, the forecast for now q50 {low:.0f}/s, q90 {high:.0f}/s, band {share:g}"
            return Reason.LOAD_OUTSIDE_BAND, detail
    return "", ""


def _observed_until_s(view: JobView) -> float:
    if view.observations is None or not len(view.observations):
        return 0.0
    return float(view.observations.window_start_s[-1]) + view.observations.window_s


def _settle_s(view: JobView, standing: ActiveTarget) -> float:
    """Return how long the job catches up after the rescale: the plan's expectation, else that of the recovery model."""
    for step in view.plan.steps if view.plan is not None else ():
        if step.step_id == standing.step_id and step.expected_recovery_s is not None:
            return min(float(step.expected_recovery_s), HOUR_S)
    return float(view.recovery.downtime_rescale_s + 3 * view.recovery.downtime_rescale_sd_s)
