"""What is known of every job at a tick: its last polls, its windows, its newest plan and its graph."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from controller.view.champion import ChampionReader
from controller.view.job_view import JobView
from controller.view.plan_rows import JobKey
from controller.view.plan_tables import PlanTables
from controller.view.present_names import follow_plan
from include.flink.job_states import FAILED, TERMINAL_STATES
from models.polling.poll_history import PollHistory
from models.polling.seen_job import PolledJob

MISSED_POLLS = 3  # a job id that missed so many polls is gone once another one of the same name is polled
LOOK_S = 60  # for so long a look at a job goes back to the one before, where polls come more often
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FleetView:
    """All jobs at a tick.

    Attributes:
        jobs: what an evaluation starts from, by name.
        seen: the jobs that have not ended, by name; several where running jobs share one.
    """

    jobs: Mapping[JobKey, JobView]
    seen: Mapping[JobKey, Sequence[PolledJob]]

    def of_cluster(self, cluster: str) -> dict[str, JobView]:
        """Return the jobs of a cluster by name."""
        return {name: view for (where, name), view in self.jobs.items() if where == cluster}


class FleetViewer:
    """Puts together what is known of the jobs of some clusters, by the seconds between two polls of each."""

    def __init__(
        self, history: PollHistory, plans: PlanTables, champion: ChampionReader, poll_every_s: Mapping[str, float]
    ) -> None:
        self._history, self._plans, self._champion = history, plans, champion
        self._poll_every_s = dict(poll_every_s)
        self._look_s = {name: max(LOOK_S, math.ceil(every_s)) for name, every_s in poll_every_s.items()}

    def take(self, now_s: float, *, is_evaluation: bool = True) -> FleetView:
        """Return what is known now; between two evaluations also the last minutes of each job.

        Of running jobs that share a name none is evaluated: nobody can say whose plan it is.
        """
        plans = self._plans.read_plans(now_s)
        left, graphs = self._plans.read_memories(now_s), self._plans.read_graphs(now_s)
        versions = self._plans.read_versions(now_s)
        listed, windows = self._history.jobs(), self._history.windows(now_s)
        looks = None if is_evaluation else self._history.windows(now_s, self._look_s)
        unended: dict[JobKey, list[int]] = defaultdict(list)
        for number, job in enumerate(listed):
            if job.state not in TERMINAL_STATES and job.cluster in self._poll_every_s:
                unended[job.cluster, job.job].append(number)
        numbers = {name: self._drop_gone(name[0], result, listed) for name, result in unended.items()}
        failed, views = _find_failed(listed) - unended.keys(), {}
        for name in sorted({*numbers, *plans, *failed}):
            if name[0] not in self._poll_every_s:
                continue
            result = numbers.get(name, [])
            one = result[0] if len(result) == 1 else None
            present, before = () if one is None else listed[one].placed, versions.get(name, ())
            plan = plans.get(name)
            observed = JobView(
                *name,
                seen=None if one is None else listed[one],
                graph=graphs.get(name),
                has_failed=name in failed,
            )
            try:
                models = self._champion.models_of(*name, present or (before[-1] if before else ()))
                views[name] = replace(
                    observed,
                    observations=None if one is None else windows.observations(one),
                    looks=None if one is None or looks is None else looks.observations(one),
                    plan=None if plan is None else follow_plan(plan, before, present),
                    models=models,
                    left=left.get(name),
                )
            except Exception:  # a job's trouble is its own: it is seen, and its request followed
                log.exception("%s/%s: neither its plan nor its models can be used", *name)
                views[name] = observed
        return FleetView(views, {name: [listed[number] for number in result] for name, result in numbers.items()})

    def _drop_gone(self, cluster: str, numbers: Sequence[int], listed: Sequence[PolledJob]) -> list[int]:
        """Return those of one name that are still polled.

        A JobManager that was lost takes its jobs with it: no reply ever says that they have ended.
        """
        newest_ms = max(listed[number].polled_at_ms for number in numbers)
        missed_ms = 1000 * MISSED_POLLS * self._poll_every_s[cluster]
        return [number for number in numbers if newest_ms - listed[number].polled_at_ms <= missed_ms]


def _find_failed(listed: Iterable[PolledJob]) -> set[JobKey]:
    """Return the names of jobs whose last one has ended by a failure."""
    newest = {(job.cluster, job.job): job.state for job in sorted(listed, key=lambda job: job.polled_at_ms)}
    return {name for name, state in newest.items() if state == FAILED}
