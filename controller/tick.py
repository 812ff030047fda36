"""One tick: take in what was polled, evaluate the jobs, and bring each one step nearer to what is wanted.

Nothing but the log is needed to go on after a kill: what was sent is found in what Flink says it was asked for.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from controller.cluster_control import ClusterControl
from controller.evaluation.evaluate_job import answer_alarm, evaluate_job
from controller.evaluation.evaluators import Decide, Evaluators
from controller.evaluation.form_intention import form_intention
from controller.memory.stored_memories import StoredMemories
from controller.outcomes.rescale_outcomes import append_outcomes
from controller.view.champion import ChampionReader
from controller.view.fleet_view import FleetView, FleetViewer
from controller.view.job_view import EvaluationState, JobView
from controller.view.load_forecasts import NO_FORECASTS, LoadForecasts
from controller.view.plan_rows import JobKey
from controller.view.plan_tables import PlanTables
from include.flink.raw_format import RawRecord
from include.settings import Settings, SettingsError
from include.version import controller_version
from models.control.state import Intention
from models.polling.poll_history import PollHistory
from models.scheduling.figures import format_count

FORGET_AFTER_S = 6 * 3600  # a job that was not polled for so long is gone
AHEAD_S = 60.0  # a reply from further ahead is from before the clock was set back: the job is begun anew
FAULTS_LOGGED = 20  # of a tick
LEAVES_S = 30.0  # how long clusters at work are waited for at the end
T = TypeVar("T")
Turn = Callable[[], tuple[Counter[str], str | None]]
"""Deals with a cluster; returns how many jobs met each decision, and why the cluster was left alone."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TickSummary:
    """What a tick did.

    Attributes:
        jobs, seen: known, and polled lately.
        is_evaluation: whether the jobs were evaluated, or only followed.
        alarms: jobs that fell behind between two evaluations, so that another target may be wanted of them.
        decisions: how many jobs met each decision, by verb and reason.
        faults: replies that could not be used.
        problems: cluster -> why it was left alone.
    """

    jobs: int = 0
    seen: int = 0
    is_evaluation: bool = False
    alarms: int = 0
    decisions: Mapping[str, int] = field(default_factory=dict)
    faults: int = 0
    problems: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_eventful(self) -> bool:
        """Whether something happened that a person may want to read."""
        return self.is_evaluation or bool(self.alarms or self.decisions) or self.faults > 0

    def __str__(self) -> str:
        """Return a line for the log."""
        decided = ", ".join(f"{count} {name}" for name, count in sorted(self.decisions.items()))
        faults = f"; {self.faults} replies not used" if self.faults else ""
        remaining = "".join(f"; cluster {name} left alone: {why}" for name, why in sorted(self.problems.items()))
        what = "evaluated" if self.is_evaluation else f"followed, {self.alarms} behind" if self.alarms else "followed"
        done = decided or "nothing to do"
        jobs = format_count(self.jobs, "job")
        return f"{jobs} {what}, {self.seen} seen: {done}{faults}{remaining} ({self.seconds:.1f} s)"


@dataclass(frozen=True, slots=True)
class Readers:
    """What a tick reads besides the polls."""

    plans: PlanTables
    memories: StoredMemories
    champion: ChampionReader


class Ticker:
    """Makes ticks; one thread at a time calls :meth:`tick`.

    Attributes:
        view: the jobs as the last tick saw them.
        settings: by which it went.
    """

    def __init__(
        self,
        load: Callable[[], Settings],
        history: PollHistory,
        readers: Readers,
        clusters: Mapping[str, ClusterControl],
        clock: Callable[[], float],
    ) -> None:
        self._settings = load()
        self._load, self._history, self._readers, self._clock = load, history, readers, clock
        self._clusters = dict(clusters)
        poll_every_s = {name: self._settings.cluster(name).poll_every_s for name in clusters}
        self._viewer = FleetViewer(history, readers.plans, readers.champion, poll_every_s)
        self._polled: SimpleQueue[list[RawRecord]] = SimpleQueue()
        self._kept: dict[JobKey, EvaluationState] = {}
        self._evaluated_at_s = 0.0
        self._turns = ClusterTurns(len(self._clusters))
        self._evaluators = Evaluators(self._settings.apply.processes)
        self._overdue: set[str] = set()
        self.settings = self._settings
        self.view = FleetView({}, {})

    def add_records(self, records: Iterable[RawRecord]) -> None:
        """Hand over what was polled; any thread may."""
        self._polled.put(list(records))

    def tick(self, patience_s: float | None = None) -> TickSummary:
        """Do one tick.

        What cannot be read or evaluated now is a line in the log: requests in flight are followed in any case. A
        cluster that takes longer than ``patience_s`` goes on beside the next ticks; None: all are waited for.
        """
        began, now_s, settings = time.monotonic(), self._clock(), self._read_settings()
        self.settings = settings
        faults = self._take_in()
        self._history.forget(round(1000 * (now_s - FORGET_AFTER_S)), 1000 * (now_s + AHEAD_S))
        every_s = settings.planner.timing.apply_every_s
        # Another turn, not only a later one: after the clock was set back jobs are evaluated as before.
        is_evaluation = now_s // every_s != self._evaluated_at_s // every_s
        if is_evaluation:  # before the jobs are looked at: the first evaluation is to know the models as well
            self._try("the champion", self._readers.champion.refresh, None)
        self.view = self._try(
            "jobs and plans", lambda: self._viewer.take(now_s, is_evaluation=is_evaluation), self.view
        )
        decide = evaluate_job if is_evaluation else answer_alarm
        alarms = self._evaluate(self.view, settings, round(now_s), decide)
        if is_evaluation:
            self._evaluated_at_s = now_s
        decisions, problems = self._control(settings, now_s, patience_s, is_evaluation=is_evaluation)
        return TickSummary(
            jobs=len(self.view.jobs),
            seen=sum(one.seen is not None for one in self.view.jobs.values()),
            is_evaluation=is_evaluation,
            alarms=0 if is_evaluation else alarms,
            decisions=decisions,
            faults=faults,
            problems=problems,
            seconds=time.monotonic() - began,
        )

    def _try(self, what: str, read: Callable[[], T], instead: T) -> T:
        """Return what is read; where that fails, what is known instead."""
        try:
            return read()
        except Exception:
            log.exception("%s cannot be read; the tick goes on with what is known", what)
            return instead

    def _read_settings(self) -> Settings:
        """Return the settings as they are now; while they cannot be used, the last ones that could.

        What may be sent then is the limits' matter: they forbid everything, and requests in flight are followed.
        """
        try:
            self._settings = self._load()
        except SettingsError as error:
            log.error("the settings cannot be used, so nothing is sent: %s", error)
        return self._settings

    def release(self) -> None:
        """Give the leases of all clusters back, but for those that are still at work after a while."""
        _, problems = self._turns.take_ended(LEAVES_S)
        for name in self._turns.idle(self._clusters):
            self._clusters[name].release()
        for name in set(self._clusters) - set(self._turns.idle(self._clusters)):
            log.error("cluster %s: %s; its lease is left to end", name, problems[name])

    def close(self) -> None:
        """Give the leases back and begin no further tick."""
        self.release()
        self._turns.close()
        self._evaluators.close()

    def _take_in(self) -> int:
        records: list[RawRecord] = []
        while not self._polled.empty():
            records += self._polled.get()
        faults = self._history.add(records)
        for one in faults[:FAULTS_LOGGED]:
            log.info("cluster %s, job %s: a reply was not used: %s: %s", one.cluster, one.job, one.rule, one.detail)
        return len(faults)

    def _evaluate(self, view: FleetView, settings: Settings, now_s: int, decide: Decide) -> int:
        """Evaluate each job; return for how many a state came back."""
        unknown = [name for name in view.jobs if name not in self._kept]
        if unknown:
            nothing = dict[JobKey, EvaluationState]()
            self._kept |= self._try("what was kept", lambda: self._readers.memories.read(unknown, now_s), nothing)
        jobs = [(self._know(job), self._kept.get(name, EvaluationState())) for name, job in view.jobs.items()]
        decided = dict(zip(view.jobs, self._evaluators.decide(decide, jobs, settings, now_s), strict=True))
        known = {name: before for name, (_, before) in zip(view.jobs, jobs, strict=True)}
        others = {name: after for name, after in decided.items() if after is not None}
        self._kept = known | others  # of a job that has gone the table has it
        changed = {name: after for name, after in others.items() if after.is_changed_from(known[name])}
        self._try("what is kept", lambda: self._readers.memories.append(changed, now_s), None)
        return len(others)

    def _know(self, job: JobView) -> JobView:
        cluster = self._clusters.get(job.cluster)
        return replace(job, slots_wait_s=None if cluster is None else cluster.slots_wait_s)

    def _control(
        self, settings: Settings, now_s: float, patience_s: float | None, *, is_evaluation: bool
    ) -> tuple[dict[str, int], dict[str, str]]:
        forecasts = self._try("the forecasts", lambda: self._readers.plans.read_forecasts(now_s), NO_FORECASTS)
        version = self._readers.champion.model_version
        earlier, _ = self._turns.take_ended(0.0)
        idle = self._turns.idle(self._clusters)
        for name in idle:
            jobs = self.view.of_cluster(name)
            desired = {job: self._intend(view, settings, now_s, forecasts) for job, view in jobs.items()}
            is_due = is_evaluation or name in self._overdue
            self._overdue.discard(name)
            control = self._clusters[name].control
            remarks = {job: self._kept.get((name, job), EvaluationState()).remark for job in jobs}
            self._turns.begin(name, partial(control, jobs, desired, version, is_evaluation=is_due, remarks=remarks))
        if is_evaluation:  # what a cluster at work has missed is its next turn's
            self._overdue |= set(self._clusters) - set(idle)
        decisions, problems = self._turns.take_ended(patience_s)
        self._try("outcomes", lambda: self._write_outcomes(settings), None)
        return dict(earlier + decisions), problems

    def _intend(self, job: JobView, settings: Settings, now_s: float, forecasts: LoadForecasts) -> Intention | None:
        retained, plan = self._kept.get((job.cluster, job.job), EvaluationState()), job.plan
        try:
            version = None if plan is None else plan.forecast_version
            band = forecasts.load_band(job.cluster, job.job, version, now_s)
            return form_intention(job, retained, settings, now_s, band)
        except Exception:  # a job's trouble is its own: nothing is wanted of it, and its request followed
            log.exception("%s/%s: what is wanted cannot be formed", job.cluster, job.job)
            return None

    def _write_outcomes(self, settings: Settings) -> None:
        ended = [self._clusters[name] for name in self._turns.idle(self._clusters)]
        judged = [one for cluster in ended for one in cluster.outcomes]
        append_outcomes(settings.paths.lake, judged, controller_version(settings.planner.policies_in_use))
        for cluster in ended:
            cluster.outcomes.clear()


class ClusterTurns:
    """Runs the turns of clusters, each in a thread of its own: one that takes long holds no other up, nor a tick.

    One thread at a time calls it.
    """

    def __init__(self, clusters: int) -> None:
        self._pool = ThreadPoolExecutor(max(1, clusters), thread_name_prefix="cluster")
        self._at_work: dict[str, tuple[Future[tuple[Counter[str], str | None]], float]] = {}

    def begin(self, cluster: str, turn: Turn) -> None:
        """Begin the turn of a cluster, unless an earlier one is still at work."""
        if cluster not in self._at_work:
            self._at_work[cluster] = self._pool.submit(turn), time.monotonic()

    def take_ended(self, patience_s: float | None) -> tuple[Counter[str], dict[str, str]]:
        """Wait so long (None: until all have ended) for turns at work; returns decisions, and problems by cluster."""
        wait([future for future, _ in self._at_work.values()], timeout=patience_s)
        decisions, problems = Counter[str](), dict[str, str]()
        for cluster, (future, began_s) in list(self._at_work.items()):
            if not future.done():
                problems[cluster] = f"still at work since {time.monotonic() - began_s:.0f} s"
                continue
            del self._at_work[cluster]
            error = future.exception()
            counted, problem = future.result() if error is None else (Counter(), f"{type(error).__name__}: {error}")
            decisions.update(counted)
            if problem is not None:
                problems[cluster] = problem
        return decisions, problems

    def idle(self, clusters: Iterable[str]) -> list[str]:
        """Return those of some clusters whose turn has ended."""
        return [cluster for cluster in clusters if cluster not in self._at_work]

    def close(self) -> None:
        """Begin no further turn; those at work go on."""
        self._pool.shutdown(wait=False)
