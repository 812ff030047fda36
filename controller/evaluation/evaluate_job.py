"""The evaluation of one job in the controller: what the host decides, under the limits of a single window.

The step that a plan or an evaluation wants stays wanted until the job runs so, it expires, or a later
evaluation wants something else: nothing is taken as done because it was decided once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from controller.view.job_view import ActiveTarget, EvaluationState, JobView, NotObservedError, name_step, take_snapshot
from controller.view.plan_rows import JobPlan, PolicyMemory
from controller.view.present_names import follow_kept, match_kept
from include.flink.job_states import BATCH
from include.settings import Settings
from include.settings.limits import SINGLE_WINDOW_UP_SHARE
from include.utc import HOUR_S
from models.control.state import Origin
from models.hosting.host import HostedPolicy, HostMemory, Plan, answers_alarms, evaluate_hosted, host_policy
from models.hosting.memories import recall, store
from models.policies.evaluation.pending_steps import PendingStep
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.renamed_memory import rename_operators
from models.polling.plausibility import agree, limit_rise

log = logging.getLogger(__name__)


def evaluate_job(view: JobView, previous: EvaluationState, settings: Settings, now_s: int) -> EvaluationState:
    """Return what the job should run at from now on, with the memory for the next evaluation.

    One job's trouble is one job's: where its evaluation fails, the plan's due step stands as planned.
    """
    present = view.seen.placed if view.seen is not None else ()
    renamed = match_kept(previous, present)
    previous = follow_kept(previous, present)
    if view.seen is not None and view.seen.job_type == BATCH:  # it chooses its parallelism itself
        as_of_s = None if view.plan is None else view.plan.as_of_s
        return replace(previous, plan_as_of_s=as_of_s, standing=None, remark="")
    name = settings.planner.policy_of(view.cluster, view.job)
    hosted = host_policy(name, settings.parameters_of(name, f"{view.cluster}/{view.job}"))
    remembered = view.left if previous.remembered is None else previous.remembered
    before = HostMemory(previous.plan_as_of_s, _recall(hosted, remembered, renamed))
    decision, running, after = _decide(hosted, before, view, settings, now_s)
    if hosted.replans:
        remembered = PolicyMemory(hosted.name, store(hosted.name, after.policy) or "")
    elif not hosted.reacts:
        remembered = None
    elif decision.wanted is not None or renamed is not None:  # else it was not asked
        remembered = PolicyMemory(hosted.name, store(hosted.name, after.policy) or "")
    decision = _limit_single(decision, view, running, settings)
    valid_until_s = float(now_s + settings.planner.timing.apply_every_s)
    return EvaluationState(
        plan_as_of_s=after.plan_as_of_s,
        standing=_stand(view, decision, running, valid_until_s, has_band=hosted.replans),
        remembered=remembered,
        operators=previous.operators,
        remark=decision.remark,
    )


def answer_alarm(view: JobView, previous: EvaluationState, settings: Settings, now_s: int) -> EvaluationState:
    """Return what the job should run at from now on if it falls behind between two evaluations; else what was kept.

    What it remembers stays: the next evaluation learns from the same polls when their windows are whole.
    """
    hosted = HostedPolicy.of(settings.planner.policy_of(view.cluster, view.job))
    if view.seen is None or match_kept(previous, view.seen.placed) is not None:
        return previous
    looked = replace(view, observations=view.looks)
    try:
        if not answers_alarms(hosted, take_snapshot(looked, settings, now_s)):
            return previous
    except NotObservedError:
        return previous
    after = evaluate_job(looked, previous, settings, now_s)
    return replace(previous, standing=after.standing, remark=after.remark)


def _recall(hosted: HostedPolicy, remembered: PolicyMemory | None, renamed: Mapping[str, str] | None) -> Any:
    """Return what a policy that decides here remembers, under present names; None where it was not asked yet."""
    if hosted.policy is None or remembered is None or remembered.policy != hosted.name:
        return None
    memory, problem = recall(hosted.policy, hosted.name, remembered.memory, remembered.policy)
    if problem:
        log.warning("%s", problem)
    return memory if renamed is None else rename_operators(memory, renamed, renamed)


def _decide(
    hosted: HostedPolicy, before: HostMemory, view: JobView, settings: Settings, now_s: int
) -> tuple[ReactiveDecision, Mapping[str, int], HostMemory]:
    """Return what is decided, what runs as far as that is known, and the memory."""
    plan, why = _read_plan(view, settings), ""
    if plan is not None and hosted.replans:
        plan = replace(plan, left=_recall(hosted, view.left, None))
    try:
        job = take_snapshot(view, settings, now_s) if hosted.reacts or hosted.replans else None
        decision, after = evaluate_hosted(hosted, before, now_s, job, plan)
        return decision, {} if job is None else job.running, after
    except NotObservedError as error:
        log.info("%s/%s is not seen: %s", view.cluster, view.job, error)
    except Exception as error:
        log.exception("evaluation of %s/%s under policy %s", view.cluster, view.job, hosted.name)
        why = f"the evaluation failed ({type(error).__name__}); "
    decision, after = evaluate_hosted(hosted, before, now_s, None, plan)
    return replace(decision, reason=why + decision.reason), {}, after


def _read_plan(view: JobView, settings: Settings) -> Plan | None:
    """Return the newest plan of a job as the host reads it."""
    plan: JobPlan | None = view.plan
    if plan is None:
        return None
    steps = [
        PendingStep(round(one.apply_at_s), round(one.valid_until_s or 0.0), one.parallelism_to, 0.0, one.reason)
        for one in plan.steps
        if one.apply_at_s is not None
    ]
    expires_s = plan.as_of_s + HOUR_S * settings.apply.max_plan_age_h
    return Plan(plan.as_of_s, tuple(sorted(steps, key=lambda one: one.apply_at_s)), expires_s=expires_s)


def _limit_single(
    decision: ReactiveDecision, view: JobView, running: Mapping[str, int], settings: Settings
) -> ReactiveDecision:
    """Return a decision of which a single window's figures move the job by no more than a share of what runs.

    A step of a plan stays as it was planned.
    """
    graph, observed = (view.seen.graph if view.seen is not None else None) or view.graph, view.observations
    if decision.due is not None or decision.wanted is None:
        return decision
    if (
        graph is not None
        and observed is not None
        and observed.parallelism.shape[1] == len(graph.operators)
        and agree(observed, [graph.position(name) for name in graph.sources])
    ):
        return decision
    levels = (settings.limits, settings.cluster(view.cluster).limits, settings.job_limits(view.cluster, view.job))
    shares = [level.steps.up_max_share for level in levels if level.steps.up_max_share is not None]
    share = min(shares, default=SINGLE_WINDOW_UP_SHARE)
    limited = limit_rise(decision.wanted, running, share)
    if limited == dict(decision.wanted):
        return decision
    reason = f"at most {share:g} x what runs more until two windows agree; in full {decision.reason}"
    return replace(decision, wanted=limited, reason=reason)


def _stand(
    view: JobView, decision: ReactiveDecision, running: Mapping[str, int], valid_until_s: float, *, has_band: bool
) -> ActiveTarget | None:
    """Return what a decision wants; what no plan has is valid until the next evaluation."""
    behind = decision.falls_behind
    if decision.due is not None:
        step_id, until_s = _id_of(view, decision.due), float(decision.due.valid_until_s)
        wanted, why = dict(decision.due.parallelism), (decision.reason, until_s, decision.held_back)
        return ActiveTarget(wanted, Origin.PLAN, step_id, *why, has_band=has_band, falls_behind=behind)
    if decision.wanted is None or dict(decision.wanted) == dict(running):
        return None
    step_id = name_step(view, running, decision.wanted)
    wanted = dict(decision.wanted)
    return ActiveTarget(wanted, Origin.REACTIVE, step_id, decision.reason, valid_until_s, falls_behind=behind)


def _id_of(view: JobView, due: PendingStep) -> str:
    """Return the id under which the newest plan has a step; one of its own for a step of an earlier plan."""
    for step in view.plan.steps if view.plan is not None else ():
        if (
            step.apply_at_s is not None
            and round(step.apply_at_s) == due.apply_at_s
            and dict(step.parallelism_to) == dict(due.parallelism)
        ):
            return step.step_id
    return name_step(view, {}, due.parallelism)
