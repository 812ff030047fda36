"""Judges rescales of a cluster's jobs by what was measured before and after them."""

from __future__ import annotations

import logging
from collections.abc import Container
from dataclasses import replace

from controller.log.delta_log import DeltaControlLog
from controller.outcomes.measure_outcome import measure_outcome
from controller.outcomes.rescale_outcomes import RescaleOutcome, judged_request
from controller.view.job_view import JobView
from models.control.case import OutcomeCheck
from models.control.failing_rescale import FAILS
from models.control.outcome import Measurements, find_caught_up_s, judge_outcome
from models.control.state import Origin, Request

log = logging.getLogger(__name__)


class RescaleEvaluator:
    """Judges the last rescale of each job, and keeps the measurements before it for longer than the windows are kept.

    Attributes:
        outcomes: rescales that were judged and are not written yet.
    """

    def __init__(self, cluster: str, decisions: DeltaControlLog, late_after_s: float) -> None:
        self._cluster, self._log, self._late_after_s = cluster, decisions, late_after_s
        self._before: dict[str, tuple[str, Measurements]] = {}
        self.outcomes: list[RescaleOutcome] = []

    def forget(self, jobs: Container[str]) -> None:
        """Forget all jobs but these."""
        self._before = {job: one for job, one in self._before.items() if job in jobs}

    def judge(self, job: str, view: JobView) -> OutcomeCheck:
        """Return what became of the last confirmed rescale of a job; nothing where that cannot be told."""
        try:
            return self._judge_last(job, view)
        except Exception:  # a job's trouble is its own: it is decided on, and its request followed
            log.exception("%s/%s is not judged", self._cluster, job)
            return OutcomeCheck()

    def _judge_last(self, job: str, view: JobView) -> OutcomeCheck:
        """Return what became of the last confirmed rescale of a job."""
        history = self._log.read_history(f"{self._cluster}/{job}")
        request = history.in_flight or history.to_judge
        if request is None or view.seen is None:
            self._before.pop(job, None)
            return OutcomeCheck()
        before = self._measure_before(job, view, request)
        if history.confirmed_at_s is None:
            return OutcomeCheck()
        after = measure_outcome(view.seen, view.observations, float("inf"), history.confirmed_at_s)
        outcome = judge_outcome(history.to_judge, history.confirmed_at_s, before, after, self._late_after_s)
        return replace(outcome, caught_up_at_s=find_caught_up_s(after, self._late_after_s))

    def note_outcome(self, job: str, view: JobView) -> None:
        """Keep the outcome of a rescale, once, where the last decision has judged it."""
        try:
            self._keep_outcome(job, view)
        except Exception:  # a job's trouble is its own
            log.exception("%s/%s: its outcome is not kept", self._cluster, job)

    def _keep_outcome(self, job: str, view: JobView) -> None:
        entry = self._log.read_last(f"{self._cluster}/{job}")
        request = None if entry is None else judged_request(entry)
        if entry is None or request is None or view.seen is None:
            return
        known, fails = self._before.get(job), entry.action.reason == FAILS
        after = None
        if not fails:
            after = measure_outcome(
                view.seen, view.observations, float("inf"), entry.case.history.confirmed_at_s or 0.0
            )
        if known is None or known[0] != request.step_id or (after is None and not fails):
            return
        del self._before[job]
        steps = view.plan.steps if view.plan is not None else ()
        promised = next((step for step in steps if step.step_id == request.step_id), None)
        origin = Origin.REACTIVE if promised is None else Origin.PLAN
        of_settings = {str(one): one for one in (Origin.PIN, Origin.SCHEDULE)}
        origin = of_settings.get(request.step_id, origin)
        self.outcomes.append(RescaleOutcome(entry, known[1], after, promised, origin))

    def _measure_before(self, job: str, view: JobView, request: Request) -> Measurements | None:
        """Return the measurements before a request; kept for longer than the windows."""
        known = self._before.get(job)
        if known is not None and known[0] == request.step_id:
            return known[1]
        if view.seen is None:
            return None
        result = measure_outcome(view.seen, view.observations, request.sent_at_s)
        if result is not None:
            self._before[job] = (request.step_id, result)
        return result
