"""What acts on one cluster: its lease, its actuator and its part of the log."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache

from controller.actuators.actuator import Actuator, RequestUnknownError
from controller.decisions.job_control import JobControl, JobTask, Observations
from controller.decisions.step_reviews import StepReviews
from controller.leases.lease import Lease, LeaseLostError
from controller.leases.lease_keeper import keep_renewed
from controller.limits.limits_of_job import LimitsReader, LimitsSnapshot
from controller.log.control_log import Provenance
from controller.log.delta_log import DeltaControlLog
from controller.outcomes.judge_rescales import RescaleEvaluator
from controller.outcomes.measure_outcome import find_lateness_s
from controller.outcomes.rescale_outcomes import RescaleOutcome
from controller.view.job_view import JobView
from controller.view.live_rows import list_live_jobs, list_live_rows
from controller.wired_settings import explain_change
from include.live_windows import LiveJob, LiveWindows
from include.settings import Settings
from models.control.limits import Limits
from models.control.reasons import Reason
from models.control.request_times import RequestTimes
from models.control.state import Intention, Mode, ObservedJob
from models.recovery.slots_wait import SLOTS_WAIT_S, Duration, learn_slots_wait

log = logging.getLogger(__name__)
NO_REMARKS: Mapping[str, str] = {}


class CachedLimits:
    """Limits of a job as they were when the tick began; every further call reads them anew, as before each request."""

    def __init__(self, known: Limits, read: Callable[[], Limits]) -> None:
        self._known: Limits | None = known
        self._read = read

    def __call__(self) -> Limits:
        """Return the limits."""
        known, self._known = self._known, None
        return self._read() if known is None else known


@dataclass(slots=True)
class ClusterControl:
    """Brings the jobs of a cluster to what is wanted of them.

    Attributes:
        late_after_s: records that wait for longer are late.
        is_rehearsal: whether nothing may be sent, whatever the mode.
        express: returns an intention in the terms of what the actuator observes.
        review: what installed reviews make of a step.
        made_with: settings that the parts were made with; None: they never change.
        delete_lifts: removes the lifts that lift nothing any more at a time, epoch seconds.
        live: takes the windows of each evaluation, for people; None: nothing does.
        slots_wait_s: until slots came that were missing, the usual one of its requests; None before any came.
    """

    name: str
    actuator: Actuator
    log: DeltaControlLog
    lease: Lease
    limits: LimitsReader
    clock: Callable[[], float]
    late_after_s: float
    is_rehearsal: bool = False
    express: Callable[[Intention, ObservedJob], Intention] = lambda intention, _: intention
    review: StepReviews = field(default_factory=StepReviews)
    made_with: Settings | None = None
    delete_lifts: Callable[[float], None] = lambda _: None
    live: LiveWindows | None = None
    _live_jobs: Mapping[str, LiveJob] = field(init=False, default_factory=dict)
    slots_wait_s: float | None = None
    _has_lease: bool = False
    _judge: RescaleEvaluator = field(init=False)

    def __post_init__(self) -> None:
        self._judge = RescaleEvaluator(self.name, self.log, self.late_after_s)

    @property
    def outcomes(self) -> list[RescaleOutcome]:
        """Rescales that were judged and are not written yet."""
        return self._judge.outcomes

    def control(
        self,
        jobs: Mapping[str, JobView],
        desired: Mapping[str, Intention | None],
        model_version: str | None,
        *,
        is_evaluation: bool,
        remarks: Mapping[str, str] = NO_REMARKS,
    ) -> tuple[Counter[str], str | None]:
        """Deal with the jobs of the cluster; returns how many met each decision, and why it was left alone.

        Between evaluations only the jobs are asked for of which something is wanted or not at its end.  ``remarks`` say
        what a person should know of jobs that are left as they are.
        """
        try:
            if not self._hold_lease():
                holder = self.lease.read_newest()
                return Counter(), f"{holder.owner if holder else 'another controller'} has its lease"
            with keep_renewed(self.lease):
                if is_evaluation or self._has_new_state(jobs):
                    self._keep_log(jobs)
                limits = self.limits.read()
                views = self._add_open(jobs)
                self._judge.forget(views)
                formed = self._form_tasks(views, desired, limits, model_version, is_evaluation=is_evaluation)
                names = {f"{self.name}/{job}": remark for job, remark in remarks.items()}
                tasks = [replace(task, remark=names.get(task.job, "")) for task in formed]
                if not tasks:
                    return Counter(), None
                control = self._open_control(len(views))
                actions = control.control_jobs(tasks, self._observe(tasks))
                # A job that was taken over as it is can be decided on at once.
                taken_over = [task for task in tasks if actions[task.job].reason == Reason.NEW_JOB_ID]
                if taken_over:
                    actions |= control.control_jobs(taken_over, self._observe(taken_over))
                for job, view in views.items():
                    self._judge.note_outcome(job, view)
        except RequestUnknownError as error:
            return Counter(), str(error)
        except LeaseLostError as error:
            self._has_lease = False
            return Counter(), str(error)
        except Exception as error:  # a cluster's trouble is its own
            log.exception("cluster %s", self.name)
            return Counter(), f"{type(error).__name__}: {error}"
        dry = {True: " (dry run)", False: ""}
        return Counter(f"{one.verb} {one.reason}{dry[one.is_dry_run]}" for one in actions.values()), None

    def _observe(self, tasks: Sequence[JobTask]) -> Observations:
        """Return what one question to the cluster tells of jobs."""
        return self.actuator.observe_all([task.job for task in tasks])

    def _open_control(self, jobs: int) -> JobControl:
        lease = self.lease
        return JobControl(
            actuator=self.actuator,
            log=self.log,
            check_lease=lease.check,
            clock=self.clock,
            express=self.express,
            may_send=lease.may_send,
            review=self.review,
            jobs=jobs,
        )

    def _keep_log(self, jobs: Mapping[str, JobView]) -> None:
        """Write down again what the log has lost, remove old lifts, add the windows to those that people see.

        Requests are followed where one of that fails.
        """
        for keep in (self.log.keep, lambda: self.delete_lifts(self.clock()), lambda: self._add_windows(jobs)):
            try:
                keep()
            except LeaseLostError:
                raise
            except Exception:
                log.exception("cluster %s: what is kept beside its decisions is not written", self.name)

    def _add_windows(self, jobs: Mapping[str, JobView]) -> None:
        if self.live is not None:
            self._live_jobs = list_live_jobs(jobs)
            self.live.add(self.name, list_live_rows(self.name, jobs), self._live_jobs, self.clock())

    def _has_new_state(self, jobs: Mapping[str, JobView]) -> bool:
        """Whether people see a state of a job that it no longer has."""
        known = {name: one.state for name, one in self._live_jobs.items()}
        return self.live is not None and known != {name: one.state for name, one in list_live_jobs(jobs).items()}

    def _add_open(self, jobs: Mapping[str, JobView]) -> dict[str, JobView]:
        """Return the jobs with those of the log whose requests have no end: they are followed whoever has seen them."""
        names = (job.partition("/")[2] for job in self.log.read_open())
        return {**jobs, **{name: JobView(self.name, name) for name in names if name not in jobs}}

    def _form_tasks(
        self,
        views: Mapping[str, JobView],
        desired: Mapping[str, Intention | None],
        limits: LimitsSnapshot,
        model_version: str | None,
        *,
        is_evaluation: bool,
    ) -> list[JobTask]:
        known = {f"{self.name}/{job}" for job in views}
        rows, tasks = self._read_times(known), []
        learn_wait = cache(lambda setting_s: learn_slots_wait(rows, setting_s))
        self.slots_wait_s = learn_wait(SLOTS_WAIT_S).median_s if rows else None
        for job, view in views.items():
            is_asked = limits.wants_undo(self.name, job) or self._is_open(job)
            if is_evaluation or desired.get(job) is not None or is_asked:
                try:
                    tasks.append(
                        self._task(
                            *(job, view, desired.get(job), limits),
                            model_version=model_version,
                            known_jobs=known,
                            learn_wait=learn_wait,
                        )
                    )
                except Exception:  # a job's trouble is its own
                    log.exception("%s/%s is left alone", self.name, job)
        return tasks

    def _read_times(self, jobs: Iterable[str]) -> list[RequestTimes]:
        """Return what requests took whose slots were missing."""
        rows: list[RequestTimes] = []
        for job in jobs:
            with suppress(Exception):  # the decision says why
                rows += [one for one in self.log.read_history(job).times_of_requests if one.slots_s is not None]
        return rows

    def release(self) -> None:
        """Give the lease back, so that the next controller need not wait for its end."""
        if self._has_lease:
            self._has_lease = False
            self.lease.release()

    def _hold_lease(self) -> bool:
        if self._has_lease:
            self.lease.renew()
            return True
        self._has_lease = self.lease.take()
        if self._has_lease:
            self.log.load()
        return self._has_lease

    def _is_open(self, job: str) -> bool:
        try:
            history = self.log.read_history(f"{self.name}/{job}")
        except Exception:  # the decision says why
            return True
        return history.in_flight is not None or history.to_judge is not None

    def _task(
        self,
        job: str,
        view: JobView,
        desired: Intention | None,
        limits: LimitsSnapshot,
        *,
        model_version: str | None,
        known_jobs: Collection[str],
        learn_wait: Callable[[float], Duration],
    ) -> JobTask:
        vertex_ids = view.seen.vertex_ids if view.seen is not None else {}

        def limits_of(result: LimitsSnapshot) -> Limits:
            limits = self._bound(result.limits_of(self.name, job, vertex_ids, known_jobs), result.state.settings)
            return replace(limits, slots_wait_s=learn_wait(limits.slots_wait_s).most_s)

        return JobTask(
            job=f"{self.name}/{job}",
            desired=desired,
            read_limits=CachedLimits(limits_of(limits), lambda: limits_of(self.limits.read())),
            outcome=self._judge.judge(job, view),
            provenance=Provenance(
                operators={vertex_id: operator for operator, vertex_id in vertex_ids.items()},
                plan_as_of_s=view.plan.as_of_s if view.plan is not None else None,
                model_version=model_version,
            ),
            priority=limits.priority_of(self.name, job),
            late_s=find_lateness_s(view, self.clock()),
        )

    def _bound(self, limits: Limits, settings: Settings | None) -> Limits:
        """Return the limits, under which a rehearsal sends nothing, nor a control whose parts are of other settings."""
        if self.made_with is not None and settings is not None:
            why = explain_change(self.made_with, settings, self.name)
            if why:
                return replace(limits, mode=Mode.OFF, mode_reason=why)
        is_harmless = not self.is_rehearsal or limits.mode in {Mode.OFF, Mode.DRY_RUN}
        return limits if is_harmless else replace(limits, mode=Mode.DRY_RUN)
