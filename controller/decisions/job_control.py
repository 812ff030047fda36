"""The jobs of one cluster at one tick: observe, decide, record, check again, send.

A decision is recorded before its request leaves, so nothing is ever sent that the log does not have. Whether a request
arrived is found in what Flink says it was asked for, never in the log alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from controller.actuators.actuator import (
    Actuator,
    Observation,
    RequestConflictError,
    RequestRefusedError,
    RequestUnknownError,
)
from controller.decisions.before_request import (
    ask_after_request,
    decide_with_readiness,
    inspect,
    needs_readiness,
    observe_followed,
    wants_checkpoint,
)
from controller.decisions.open_requests import OpenRequests
from controller.decisions.priorities import SlotClaims
from controller.log.control_log import (
    NO_PROVENANCE,
    EntryRefusedError,
    LogEntry,
    Provenance,
    explain_wish,
    is_news,
)
from controller.log.delta_log import DeltaControlLog
from models.control.case import Action, Case, OutcomeCheck, Verb
from models.control.clock_steps import align_times
from models.control.history import advance_history, end_refused_request, end_unsent_request, note_seen
from models.control.limits import Limits
from models.control.reasons import Reason
from models.control.reconcile import reconcile
from models.control.state import Intention, JobHistory, ObservedJob, Request
from models.control.usable_intention import check_usable

log = logging.getLogger(__name__)

NOT_JUDGED = OutcomeCheck()
_SENDS = 2  # times that a request is sent at most, the second time judged afresh
_LATEST_SHARE = 0.5  # of apply.confirm_timeout_s: a request that waited longer to be sent could not be followed
Observations = Mapping[str, Observation]
"""``cluster/job`` -> what the cluster says of it, or why it says nothing."""
NOTHING_KNOWN: Observations = {}
Review = Callable[[str, Case, Mapping[str, str]], Case]
"""(``cluster/job``, case, vertex id -> operator) -> the case with its step as it may be sent."""


@dataclass(frozen=True, slots=True)
class JobTask:
    """A job to be brought one step nearer to what is desired.

    Attributes:
        desired: None when it is to stay as it is.
        read_limits: called before the decision and again immediately before its request leaves.
        remark: what a person should know of a job that is left as it is.
        priority: jobs with a higher one are decided first, and get slots that are short.
        late_s: how long its records wait, infinite while it is down, None where that is not known; of one priority the
            latest job is decided first.
    """

    job: str
    desired: Intention | None
    read_limits: Callable[[], Limits]
    outcome: OutcomeCheck = NOT_JUDGED
    provenance: Provenance = NO_PROVENANCE
    remark: str = ""
    priority: int = 0
    late_s: float | None = None


@dataclass(frozen=True, slots=True)
class JobControl:
    """Decides on given jobs of one cluster and sends; :class:`controller.cluster_control.ClusterControl` says which.

    Attributes:
        check_lease: raises :class:`LeaseLostError` unless this controller may write.
        express: returns an intention in the terms of what the actuator observes.
        may_send: whether a request may still leave after the last call of ``check_lease``.
        review: returns a case with its step as installed reviews leave it.
        jobs: of the cluster; 0 when nobody has counted.
    """

    actuator: Actuator
    log: DeltaControlLog
    check_lease: Callable[[], None]
    clock: Callable[[], float]
    express: Callable[[Intention, ObservedJob], Intention] = lambda intention, _: intention
    may_send: Callable[[], bool] = lambda: True
    review: Review = lambda _job, case, _operators: case
    jobs: int = 0

    def control_jobs(self, tasks: Sequence[JobTask], known: Observations = NOTHING_KNOWN) -> dict[str, Action]:
        """Bring jobs of the cluster one step nearer to what is desired; returns the decision on each.

        All are decided first and recorded in one commit. Then limits, observed state and lease are read again
        immediately before each request leaves; one that is no longer allowed is withdrawn, which a second entry says. A
        job that cannot be observed waits (``no_reply``, ``not_observed``) and keeps no other from its turn. A decision
        takes what one question to the cluster has told of jobs (``known``); a request is judged on what the cluster
        says immediately before it.

        Raises:
            LeaseLostError: another controller has the lease; nothing more is sent.
        """
        actions: dict[str, Action] = {}
        decided = self._decide(tasks, actions, known)
        self._ask_for_checkpoints(decided)
        decided = [
            (task, replace(entry, wish_changed=explain_wish(entry, last)))
            for task, entry in decided
            if is_news(entry, last := self.log.read_last(task.job))
        ]
        if not decided:
            return actions
        self.check_lease()
        for job, why in self._record([entry for _, entry in decided]).items():
            decided = [(task, entry) for task, entry in decided if task.job != job]
            actions[job] = Action(Verb.REFUSE, Reason.NOT_RECORDED, why)
        answered = []
        for task, entry in decided:
            if entry.sends and entry.action.request is not None:
                actions[task.job], answer = self._send(task, entry, entry.action.request)
                answered.append(answer)
        self._record(answered)
        return actions

    def _ask_for_checkpoints(self, decided: Sequence[tuple[JobTask, LogEntry]]) -> None:
        """Ask for the checkpoints that decisions wait for; a controller without the lease asks for none."""
        waiting = [(task.job, entry) for task, entry in decided if wants_checkpoint(entry.case, entry.action)]
        if waiting:
            self.check_lease()
        for job, entry in waiting:
            self.actuator.trigger_checkpoint(job, entry.case.observed.job_id or "")

    def _record(self, entries: Sequence[LogEntry]) -> dict[str, str]:
        """Append entries in one commit; returns the jobs whose entry cannot be written down, and why."""
        remaining, refused = list(entries), dict[str, str]()
        while remaining:
            try:
                self.log.append_all(remaining)
                break
            except EntryRefusedError as error:
                log.exception("%s is not recorded", error.job)
                refused[error.job] = str(error)
                remaining = [entry for entry in remaining if entry.job not in refused]
        return refused

    def _decide(
        self, tasks: Sequence[JobTask], actions: dict[str, Action], known: Observations
    ) -> list[tuple[JobTask, LogEntry]]:
        """Return the entry of each job that can be observed; slots that one is to take are not free for the next."""
        looked_at_s = self.clock()
        cases, decided, requests, claims = [], [], OpenRequests(max(self.jobs, len(tasks))), SlotClaims()
        requests.note_logged(self.log.read_open())
        for task in sorted(tasks, key=lambda task: (-task.priority, -(task.late_s or 0.0))):
            case = self._look_at(task, known.get(task.job), looked_at_s)
            if isinstance(case, Action):
                actions[task.job] = case
                continue
            requests.note_observed(task.job, case.observed, case.history)
            cases.append((task, case))
        for task, case in cases:
            try:
                entry = self._decide_on(task, claims.reserve(task.priority, requests.reserve(task.job, case)))
            except Exception as error:  # one job's trouble must not keep the others from their turn
                log.exception("%s is not decided on", task.job)
                actions[task.job] = Action(Verb.REFUSE, Reason.NOT_DECIDED, f"{type(error).__name__}: {error}")
                continue
            actions[task.job] = entry.action
            claims.note(task.priority, entry.case, entry.action)
            if entry.sends:
                requests.note_decision(task.job, entry.case, entry.action)
            decided.append((task, entry))
        return decided

    def _look_at(self, task: JobTask, known: Observation | None, looked_at_s: float) -> Case | Action:
        try:
            history = self.log.read_history(task.job)
        except Exception as error:  # what was promised cannot be known
            log.exception("the history of %s cannot be read", task.job)
            return Action(Verb.REFUSE, Reason.HISTORY_UNKNOWN, f"{type(error).__name__}: {error}")
        return self._observe(task, history, known, looked_at_s)

    def _decide_on(self, task: JobTask, case: Case) -> LogEntry:
        case = self.review(task.job, case, task.provenance.operators)
        case, action = decide_with_readiness(self.actuator, task.job, case, self._is_news(task, case))
        return _form_entry(task, case, action)

    def _is_news(self, task: JobTask, case: Case) -> Callable[[Action], bool]:
        return lambda action: is_news(_form_entry(task, case, action), self.log.read_last(task.job))

    def _observe(
        self, task: JobTask, history: JobHistory, known: Observation | None = None, known_at_s: float = 0.0
    ) -> Case | Action:
        """Return what a decision is made from, or why there is none now."""
        try:
            observed = replace(observe_followed(self.actuator, task.job, history, known), late_s=task.late_s)
            read_at_s = self.clock() if known is None else known_at_s
            limits = task.read_limits()
            history = align_times(history, observed.told_at_s, read_at_s, limits)
            desired = None if task.desired is None else self.express(check_usable(task.desired, observed), observed)
        except RequestUnknownError as error:
            return Action(Verb.WAIT, Reason.NO_REPLY, str(error))
        except Exception as error:  # one job's trouble must not keep the others from their turn
            log.exception("%s is not observed", task.job)
            return Action(Verb.WAIT, Reason.NOT_OBSERVED, f"{type(error).__name__}: {error}")
        return Case(self.clock(), desired, observed, history, limits, task.outcome, task.remark)

    def _send(self, task: JobTask, entry: LogEntry, request: Request) -> tuple[Action, LogEntry]:
        """Send a recorded request if everything still allows it; returns what came of it and the answer's entry.

        One whose job has changed since it was judged is judged afresh and sent once more.
        """
        changed = ""
        for _ in range(_SENDS):
            forbidden = self._check_again(task, entry, request)
            if forbidden is not None:
                return self._withdraw(entry, request, forbidden)
            self.check_lease()
            try:
                if not self.may_send():  # the process was stopped for a while: all may be otherwise now
                    raise RequestConflictError("too much time has passed since it was allowed")
                self.actuator.request(task.job, request.job_id, request.target)
            except RequestConflictError as error:
                changed = str(error)
                log.info("%s: changed since it was judged", task.job)
                continue
            except RequestRefusedError as error:
                ended = end_refused_request(entry.history, self.clock(), entry.case.limits.block_s)
                refused = Action(Verb.REFUSE, Reason.REFUSED_BY_FLINK, str(error), request)
                return refused, self._answer(entry, f"refused: {error}", ended)
            except RequestUnknownError as error:
                return entry.action, self._answer(entry, f"no reply: {error}", self._look(task.job, entry.history))
            except Exception as error:  # it may have arrived or not
                log.exception("request for %s", task.job)
                reported = f"no reply: {type(error).__name__}: {error}"
                return entry.action, self._answer(entry, reported, self._look(task.job, entry.history))
            ask_after_request(self.actuator, task.job, entry.case, request)
            return entry.action, self._answer(entry, "accepted", self._look(task.job, entry.history))
        return self._withdraw(entry, request, f"it changes all the time: {changed}")

    def _look(self, job: str, history: JobHistory) -> JobHistory:
        """Return the history after one look at what became of a request, whatever the reply to it was.

        A proxy may have replied for Flink. At the next tick a person may have taken the request back already, and then
        nothing would show that it had arrived.
        """
        try:
            return note_seen(history, self.actuator.observe(job), self.clock())
        except RequestUnknownError:
            return history
        except Exception:  # it may have arrived or not
            log.exception("%s is not observed", job)
            return history

    def _withdraw(self, entry: LogEntry, request: Request, why: str) -> tuple[Action, LogEntry]:
        """Record that nothing was sent."""
        answer = self._answer(entry, f"withdrawn before sending: {why}", end_unsent_request(entry.case))
        return Action(Verb.REFUSE, Reason.WITHDRAWN_BEFORE_SENDING, why, request), answer

    def _check_again(self, task: JobTask, entry: LogEntry, request: Request) -> str | None:
        """Return why a recorded request may not be sent any more; None when the same decision would be made again."""
        ready = inspect(self.actuator, task.job, request.job_id) if needs_readiness(entry.action) else None
        if ready is None and needs_readiness(entry.action):
            return "checkpoints_unknown: nobody can be asked for the job's checkpoints"
        case = self._observe(task, entry.case.history)  # last, with the limits: they may have changed meanwhile
        if isinstance(case, Action):
            return f"{case.reason}: {case.detail}"
        case = replace(case, observed=_keep_reserved(replace(case.observed, readiness=ready), entry.case.observed))
        case = self.review(task.job, case, task.provenance.operators)
        if case.now_s - request.sent_at_s > _LATEST_SHARE * case.limits.confirm_timeout_s:
            return f"decided {case.now_s - request.sent_at_s:.0f} s ago"
        again = reconcile(case)
        is_same = not again.is_dry_run and _asks_the_same(again.request, request)
        return None if is_same else f"{again.reason}: {again.detail}"

    def _answer(self, entry: LogEntry, answer: str, history: JobHistory) -> LogEntry:
        return replace(entry, answer=answer, answered_at_s=self.clock(), history=history, wish_changed="")


def _form_entry(task: JobTask, case: Case, action: Action) -> LogEntry:
    return LogEntry(task.job, case, action, advance_history(case, action), provenance=task.provenance)


def _keep_reserved(observed: ObservedJob, judged: ObservedJob) -> ObservedJob:
    """Return what is observed with no more free slots than the decision found: other jobs of the tick have the rest."""
    free, used = observed.free_slots, observed.cluster_slots_used
    if free is not None and judged.free_slots is not None:
        free = min(free, judged.free_slots)
    if used is not None and judged.cluster_slots_used is not None:
        used = max(used, judged.cluster_slots_used)
    return replace(
        observed,
        free_slots=free,
        cluster_slots_used=used,
        cluster_rescales=judged.cluster_rescales,
        cluster_rescaled_slots=judged.cluster_rescaled_slots,
        cluster_slots_held=judged.cluster_slots_held,
        cluster_jobs=judged.cluster_jobs,
        neighbours_rescaled=judged.neighbours_rescaled,
    )


def _asks_the_same(one: Request | None, other: Request) -> bool:
    return one is not None and (one.job_id, dict(one.target), dict(one.before), one.is_rollback) == (
        other.job_id,
        dict(other.target),
        dict(other.before),
        other.is_rollback,
    )
