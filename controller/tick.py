"""One tick: take in what was polled, evaluate the jobs, and bring each one step nearer to what is wanted.

Nothing but the log is needed to go on after a kill: what was sent is found in what Flink says it was asked for.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue

from controller.champion import ChampionReader
from controller.cluster_control import ClusterControl
from controller.evaluation import evaluate, form_intention
from controller.fleet_view import FleetView, FleetViewer, JobName
from controller.job_view import JobView, Kept
from controller.kept_memories import KeptMemories
from controller.load_forecasts import LoadForecasts
from controller.plan_tables import PlanTables
from controller.rescale_outcomes import append_outcomes
from include.flink.raw_format import RawRecord
from include.settings import Settings, SettingsError
from models.control.state import Intention
from models.live.poll_history import PollHistory

FORGET_AFTER_S = 6 * 3600  # a job that was not polled for so long is gone
AHEAD_S = 60.0  # a reply from further ahead is from before the clock was set back: the job is begun anew
FAULTS_LOGGED = 20  # of a tick
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TickSummary:
    """What a tick did.

    Attributes:
        jobs, seen: known, and polled lately.
        is_evaluation: whether the jobs were evaluated, or only followed.
        decisions: how many jobs met each decision, by verb and reason.
        faults: replies that could not be used.
        problems: cluster -> why it was left alone.
        seconds: that it took.
    """

    jobs: int = 0
    seen: int = 0
    is_evaluation: bool = False
    decisions: Mapping[str, int] = field(default_factory=dict)
    faults: int = 0
    problems: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_eventful(self) -> bool:
        """Whether something happened that a person may want to read."""
        return self.is_evaluation or bool(self.decisions) or self.faults > 0

    def __str__(self) -> str:
        """Return a line for the log."""
        decided = ", ".join(f"{count} {name}" for name, count in sorted(self.decisions.items()))
        faults = f"; {self.faults} replies not used" if self.faults else ""
        left = "".join(f"; cluster {name} left alone: {why}" for name, why in sorted(self.problems.items()))
        what = "evaluated" if self.is_evaluation else "followed"
        done = decided or "nothing to do"
        return f"{self.jobs} jobs {what}, {self.seen} seen: {done}{faults}{left} ({self.seconds:.1f} s)"


@dataclass(frozen=True, slots=True)
class Readers:
    """What a tick reads besides the polls."""

    plans: PlanTables
    memories: KeptMemories
    champion: ChampionReader


class Ticker:
    """Makes ticks; one thread at a time calls :meth:`tick`.

    Args:
        load: returns the settings as they are now.
        history: of the polls.
        readers: of plans, memories and models.
        clusters: name -> what acts on it.
        clock: epoch seconds.
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
        self._kept: dict[JobName, Kept] = {}
        self._evaluated_at_s = 0.0
        self.view = FleetView({}, {})

    def add_records(self, records: Iterable[RawRecord]) -> None:
        """Hand over what was polled; any thread may."""
        self._polled.put(list(records))

    def tick(self) -> TickSummary:
        """Do one tick."""
        began, now_s, settings = time.monotonic(), self._clock(), self._read_settings()
        faults = self._take_in()
        self._history.forget(round(1000 * (now_s - FORGET_AFTER_S)), 1000 * (now_s + AHEAD_S))
        self.view = self._viewer.take(now_s)
        every_s = settings.planner.timing.apply_every_s
        # Another turn, not only a later one: after the clock was set back jobs are evaluated as before.
        is_evaluation = now_s // every_s != self._evaluated_at_s // every_s
        if is_evaluation:
            self._readers.champion.refresh()
            self._evaluate(self.view, settings, round(now_s))
            self._evaluated_at_s = now_s
        decisions, problems = self._control(settings, now_s, is_evaluation)
        return TickSummary(
            jobs=len(self.view.jobs),
            seen=sum(one.seen is not None for one in self.view.jobs.values()),
            is_evaluation=is_evaluation,
            decisions=decisions,
            faults=faults,
            problems=problems,
            seconds=time.monotonic() - began,
        )

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
        """Give the leases of all clusters back."""
        for cluster in self._clusters.values():
            cluster.release()

    def _take_in(self) -> int:
        records: list[RawRecord] = []
        while not self._polled.empty():
            records += self._polled.get()
        faults = self._history.add(records)
        for one in faults[:FAULTS_LOGGED]:
            log.info("cluster %s, job %s: a reply was not used: %s: %s", one.cluster, one.job, one.rule, one.detail)
        return len(faults)

    def _evaluate(self, view: FleetView, settings: Settings, now_s: int) -> None:
        unknown = [name for name in view.jobs if name not in self._kept]
        if unknown:
            self._kept |= self._readers.memories.read(unknown, now_s)
        changed = {}
        for name, job in view.jobs.items():
            before = self._kept.get(name, Kept())
            after = evaluate(job, before, settings, now_s)
            self._kept[name] = after
            if after.is_changed_from(before):
                changed[name] = after
        self._readers.memories.append(changed, now_s)

    def _control(self, settings: Settings, now_s: float, is_evaluation: bool) -> tuple[dict[str, int], dict[str, str]]:
        """Deal with every cluster in a thread of its own: one that does not reply holds none up."""
        forecasts = self._readers.plans.read_forecasts(now_s)
        version = self._readers.champion.model_version

        def control(cluster: str) -> tuple[Counter[str], str | None]:
            jobs = self.view.of_cluster(cluster)
            wanted = {name: self._intend(job, settings, now_s, forecasts) for name, job in jobs.items()}
            remarks = {name: self._kept.get((cluster, name), Kept()).remark for name in jobs}
            return self._clusters[cluster].control(jobs, wanted, version, is_evaluation=is_evaluation, remarks=remarks)

        decisions: Counter[str] = Counter()
        problems: dict[str, str] = {}
        with ThreadPoolExecutor(max_workers=max(1, min(32, len(self._clusters)))) as pool:
            for cluster, (counted, problem) in zip(self._clusters, pool.map(control, self._clusters), strict=True):
                decisions.update(counted)
                if problem is not None:
                    problems[cluster] = problem
        self._write_outcomes(settings)
        return dict(decisions), problems

    def _intend(self, job: JobView, settings: Settings, now_s: float, forecasts: LoadForecasts) -> Intention | None:
        kept = self._kept.get((job.cluster, job.job), Kept())
        band = None
        if kept.standing is not None and job.plan is not None and job.plan.forecast_version is not None:
            band = forecasts.load_band(job.cluster, job.job, job.plan.forecast_version, now_s)
        return form_intention(job, kept, settings, now_s, band)

    def _write_outcomes(self, settings: Settings) -> None:
        judged = [one for cluster in self._clusters.values() for one in cluster.outcomes]
        if not judged:
            return
        append_outcomes(settings.paths.lake, judged)
        for cluster in self._clusters.values():
            cluster.outcomes.clear()
