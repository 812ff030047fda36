"""One decision on one job: what is desired against what is observed.

Level-triggered: the decision does not depend on which events were seen.  What was sent is found in the bounds that
Flink says it was asked for, so a controller that was killed at any moment starts again from the observed state and its
log.  The rules stand in the order in which they are asked; the first that has an answer gives it.
"""

from __future__ import annotations

from collections.abc import Callable

from models.control import checks, requests
from models.control.bad_steps import describe_suspension, effective_mode
from models.control.case import Action, Case, Verb, form_request
from models.control.checkpoints import describe_doubt
from models.control.checks import find_desired
from models.control.clock_steps import check_clock
from models.control.reasons import Reason
from models.control.resubmission import is_resubmitted
from models.control.state import Mode, Origin


def reconcile(case: Case) -> Action:
    """Return what to do with the job now.

    >>> from models.control.limits import Limits
    >>> from models.control.state import JobHistory, ObservedJob
    >>> observed = ObservedJob("j", "RUNNING", running={"map": 4}, requested={"map": 4})
    >>> history = JobHistory(job_id="j", known_requested={"map": 2})
    >>> action = reconcile(Case(0.0, None, observed, history, Limits()))
    >>> str(action.verb), str(action.reason)
    ('refuse', 'foreign_change')
    """
    for rule in _RULES:
        action = rule(case)
        if action is not None:
            return action
    return _form_action(case)


def _check_job(case: Case) -> Action | None:
    observed, history = case.observed, case.history
    if observed.problem:
        return Action(Verb.REFUSE, Reason(observed.problem), observed.problem_detail)
    if observed.job_id is None:
        return Action(Verb.REFUSE, Reason.UNKNOWN_JOB, "the cluster has no such job")
    if history.job_id != observed.job_id:
        was = f"was {history.job_id}, is {observed.job_id}" if history.job_id else f"is {observed.job_id}"
        return Action(Verb.WAIT, Reason.NEW_JOB_ID, f"the job {was}; its state is taken over as it is")
    if is_resubmitted(case):
        return Action(
            Verb.WAIT,
            Reason.NEW_JOB_ID,
            "the job was submitted again, or has a new JobManager; its state is taken over as it is",
        )
    if observed.requested is None:
        detail = observed.obstacle_detail or "without the adaptive scheduler nothing can be sent"
        return Action(Verb.REFUSE, Reason(observed.obstacle or Reason.NO_REQUIREMENTS), detail)
    return None


def _form_action(case: Case) -> Action:
    desired = find_desired(case)
    if desired is None:  # the rules before have answered this
        return Action(Verb.WAIT, Reason.AS_DESIRED, "nothing to change")
    approvals = checks.find_approvals(case, desired)
    is_undo = desired.origin is Origin.UNDO
    request = form_request(
        case, desired.step_id, desired.parallelism, desired.settle_s, is_rollback=is_undo, approvals=approvals
    )
    upgrade = case.observed.upgrade_reason
    why = f"{desired.reason}; the job is stopped and started for it: {upgrade}" if upgrade else desired.reason
    why += describe_doubt(case, desired) + describe_suspension(case)
    if request.wait_detail:
        why += f"; it has {request.deadline_s - case.now_s:.0f} s, of which Flink may wait: {request.wait_detail}"
    mode = case.limits.mode if is_undo else effective_mode(case)  # what goes wrong is taken back in a suspension too
    verb = Verb.ROLL_BACK if is_undo else Verb.RESCALE
    return Action(verb, Reason(str(desired.origin)), why, request, mode is Mode.DRY_RUN)


_RULES: tuple[Callable[[Case], Action | None], ...] = (
    _check_job,
    requests.take_back_failing,
    requests.follow_request,
    requests.notice_foreign_change,
    requests.withdraw_unfilled,
    checks.check_permission,
    requests.check_outcome,
    check_clock,
    checks.check_objection,
    checks.check_state,
    checks.check_intention,
    checks.check_obstacle,
    checks.check_slots,
    checks.check_pace,
    checks.check_neighbours,
    checks.check_approval,
    checks.check_readiness,
)
