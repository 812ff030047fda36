"""One job at one tick: observe, decide, record, send.

A decision is recorded before its request leaves, so nothing is ever sent that the log does not have. Whether a request
arrived is found in what Flink says it was asked for, never in the log alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from models.control.history import advance_history, end_refused_request
from models.control.limits import Limits
from models.control.reconcile import SENDS, Action, Case, OutcomeCheck, Verb, check_last_moment, reconcile
from models.control.state import Intention, JobHistory, ObservedJob, Parallelism

NOT_JUDGED = OutcomeCheck()


class RequestRefusedError(Exception):
    """Flink has refused a request; the message has its reason."""


class RequestUnknownError(Exception):
    """No reply: the request may have arrived or not."""


class LeaseLostError(Exception):
    """Another controller holds the cluster's lease: this one sends nothing."""


class Actuator(Protocol):
    """What changes the parallelism of a cluster's jobs."""

    def observe(self, job: str) -> ObservedJob:
        """Return what the cluster says of a job now.

        Raises:
            RequestUnknownError: the cluster does not reply.
        """

    def request(self, job: str, job_id: str, parallelism: Parallelism) -> None:
        """Ask for a parallelism, once.

        Raises:
            RequestRefusedError: the cluster has refused it.
            RequestUnknownError: nobody knows whether it arrived.
        """


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of a job's log: a decision with everything that it was made from, and the history after it.

    Attributes:
        job: ``cluster/job``.
        case: what the decision was made from; ``reconcile(case)`` gives ``action`` again.
        action: the decision.
        history: after it.
        answer: why the request has no effect: what Flink has said, or why it was held back.
    """

    job: str
    case: Case
    action: Action
    history: JobHistory
    answer: str = ""


class ControlLog(Protocol):
    """The append-only log of decisions."""

    def append(self, entry: LogEntry) -> None:
        """Append an entry; it is durable when this returns."""

    def read_history(self, job: str) -> JobHistory:
        """Return the history after the last entry of a job; an empty one for a job without entries."""


@dataclass(frozen=True, slots=True)
class Controller:
    """Decides on the jobs of one cluster.

    Attributes:
        actuator: of the cluster.
        log: of decisions.
        check_lease: raises :class:`LeaseLostError` unless this controller may write.
        clock: epoch seconds.
    """

    actuator: Actuator
    log: ControlLog
    check_lease: Callable[[], None]
    clock: Callable[[], float]

    def control_job(
        self,
        job: str,
        desired: Intention | None,
        read_limits: Callable[[], Limits],
        outcome: OutcomeCheck = NOT_JUDGED,
    ) -> Action:
        """Bring a job one step nearer to what is desired; returns the decision.

        A request is recorded first.  Immediately before it leaves, limits, the observed state and the lease are read
        again: recording takes a moment, in which a person may have stopped or changed the job.

        Raises:
            RequestUnknownError: the cluster does not reply; nothing was decided.
            LeaseLostError: another controller has the lease; nothing was sent.
        """
        case = self._take_case(job, desired, read_limits, outcome)
        action = reconcile(case)
        if action.request is None or action.verb not in SENDS or action.is_dry_run:
            self._record(job, case, action)
            return action
        self.check_lease()
        return self._send(self._record(job, case, action), read_limits)

    def _take_case(
        self, job: str, desired: Intention | None, read_limits: Callable[[], Limits], outcome: OutcomeCheck
    ) -> Case:
        history = self.log.read_history(job)
        return Case(self.clock(), desired, self.actuator.observe(job), history, read_limits(), outcome)

    def _send(self, entry: LogEntry, read_limits: Callable[[], Limits]) -> Action:
        """Send a recorded request, unless something has changed since it was decided."""
        job, case, request = entry.job, entry.case, entry.action.request
        if request is None:
            return entry.action
        try:
            now = replace(case, now_s=self.clock(), observed=self.actuator.observe(job), limits=read_limits())
            withheld = check_last_moment(now, entry.action)
        except RequestUnknownError as silent:
            withheld = Action(Verb.WAIT, "withheld", f"the cluster does not reply: {silent}")
        if withheld is not None:
            self.log.append(replace(entry, history=case.history, answer=withheld.detail))
            return withheld
        self.check_lease()
        try:
            self.actuator.request(job, request.job_id, request.target)
        except RequestRefusedError as refused:
            ended = end_refused_request(entry.history, self.clock(), case.limits.block_s)
            self.log.append(replace(entry, history=ended, answer=str(refused)))
            return Action(Verb.REFUSE, "refused_by_flink", str(refused), request)
        except RequestUnknownError:
            pass  # the next tick finds out what became of it
        return entry.action

    def _record(self, job: str, case: Case, action: Action) -> LogEntry:
        """Record a decision that changes the history or that a person should see."""
        entry = LogEntry(job, case, action, advance_history(case, action))
        if entry.history != case.history or action.verb not in {Verb.WAIT, Verb.REFUSE}:
            self.log.append(entry)
        return entry
