"""Who decides for a contender, and what it may see: one protocol for policies, scripts and the planner's own machine.

A driver is asked at every tick for every contender that it stands for, and is as pure as a policy: what it keeps is in
its memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from include.domain.graph import JobGraph
from include.settings import Planner
from models.job_models import JobModels, LatencyModel
from models.policies.observations import Observations
from models.policies.protocol import History, Policy, Schedule, Situation
from models.recovery import UNTRAINED
from models.scheduling.demand import LEVELS, SourceForecast
from models.simulation.spec import IntArray

if TYPE_CHECKING:
    from models.evaluation.replay_run import ReplayRun

MemoryT = TypeVar("MemoryT")


class View:
    """What a contender's driver may look at, at one tick; what is not asked for costs nothing.

    Attributes:
        now_s: epoch seconds.
        plan_due: the plan DAG ran just before this tick.
    """

    def __init__(self, replay_run: ReplayRun, row: int, now_s: int, plan_due: bool) -> None:
        self._world, self._row = replay_run, row
        self.now_s, self.plan_due = now_s, plan_due

    @property
    def graph(self) -> JobGraph:
        """The job."""
        return self._world.graph

    @property
    def slots_max(self) -> int:
        """Most slots that the job may have."""
        return self._world.setting.workload.spec.slots_max

    @property
    def options(self) -> Planner:
        """The planner's settings."""
        return self._world.options

    @cached_property
    def running(self) -> Mapping[str, int]:
        """Operator -> running parallelism; of a job that comes back, what it comes back with."""
        return dict(zip(self.graph.names, self._world.engine.rows.parallelism[self._row].tolist(), strict=True))

    @property
    def up(self) -> bool:
        """Whether the job runs."""
        return bool(self._world.engine.rows.down_until[self._row] <= self._world.engine.now_s)

    @property
    def restarting(self) -> bool:
        """Whether the job failed and Flink has noticed: its adaptive scheduler takes new requirements meanwhile."""
        return self._world.engine.restarting(self._row)

    @property
    def load_per_s(self) -> Mapping[str, float]:
        """Source -> mean rate of the last window, what the REST API shows now; empty before the first window."""
        count = self._world.recorder.count
        if not count:
            return {}
        return dict(zip(self.graph.sources, self._world.arrivals_per_s[count - 1].tolist(), strict=True))

    @property
    def lag_s(self) -> float:
        """Age of the oldest unprocessed record as metrics tell: backlog over arrivals, of the worst source."""
        loads = np.array(list(self.load_per_s.values()), float)
        backlog = self._world.engine.rows.backlog[self._row]
        ages = np.divide(backlog, loads, out=np.zeros(len(backlog)), where=loads > 0) if len(loads) else np.zeros(1)
        return float(ages.max())

    @property
    def ingested_s(self) -> int:
        """Epoch seconds up to which the tables of the last plan hold windows."""
        return self._world.ingested_s(self.now_s)

    @property
    def trained_s(self) -> int | None:
        """Epoch seconds of the last nightly training; None before the first."""
        return self._world.trained_s(self.now_s)

    @property
    def models(self) -> JobModels | None:
        """As of the last training; None before the first that had anything to learn from."""
        return self._world.models(self._row, self.now_s)

    @property
    def forecast(self) -> SourceForecast | None:
        """Made from the windows up to the last full plan interval; None before there are any."""
        return self._world.forecast(self.ingested_s)

    def observations(self, hours: float, until_s: int | None = None) -> Observations:
        """Return the windows that ended within some hours before now, or before ``until_s``."""
        end_s = self.now_s if until_s is None else until_s
        recorder = self._world.recorder
        return recorder.observations(self._row, recorder.index(end_s - hours * 3600), recorder.index(end_s))

    @property
    def seed(self) -> int:
        """From the job, the seed of the run and the moment, as the plan stage makes it."""
        return zlib.crc32(f"{self._world.name_of(self._row)}/{self.now_s}".encode())

    def situation(self) -> Situation:
        """Return what the plan stage would give to a policy now: tables up to the last ingestion.

        Raises:
            LookupError: there are no models or no forecast yet, for which the plan stage refuses a job.
        """
        models, forecast = self.models, self.forecast
        if models is None or forecast is None:
            raise LookupError("there are no models or no forecast yet; look at View.models and View.forecast first")
        seen = self.observations(self.options.observed_h, self.ingested_s)
        return Situation(
            as_of_s=self.now_s,
            graph=self.graph,
            parallelism=self.running,
            models=models,
            forecast=forecast,
            slots_max=self.slots_max,
            options=self.options,
            observations=seen,
            seed=self.seed,
        )

    def live_situation(self, *, reads_models: bool = False) -> Situation:
        """Return a situation with windows up to now, for a policy that reacts; possible without models and forecast.

        The forecast holds the load of the last window, and steps come without expectations.

        Args:
            reads_models: whether the policy looks at the models; else those of an untrained job stand in.
        """
        models = self.models if reads_models else None
        loads = self.load_per_s
        held = {name: np.full((len(LEVELS), 1), loads.get(name, 0.0)) for name in self.graph.sources}
        return Situation(
            as_of_s=self.now_s,
            graph=self.graph,
            parallelism=self.running,
            models=self._world.untrained if models is None else models,
            forecast=SourceForecast(self.now_s, 3600, held),
            slots_max=self.slots_max,
            options=self.options,
            observations=self.observations(self.options.observed_h),
            seed=self.seed,
            expects=False,
        )

    def history(self) -> History:
        """Return what a policy learns from by night: the windows up to the last training.

        Raises:
            LookupError: nothing was trained yet.
        """
        models, until_s = self.models, self.trained_s
        if models is None or until_s is None:
            raise LookupError("nothing was trained yet; look at View.trained_s and View.models first")
        seen = self.observations(24.0 * self._world.training.lookback_days, until_s)
        return History(until_s, self.graph, models, self.slots_max, self.options, seen)


class Driver(Protocol[MemoryT]):
    """A contender's mind."""

    def first_memory(self) -> MemoryT:
        """Return the memory before the first tick."""
        ...

    def tick(self, view: View, memory: MemoryT) -> tuple[Mapping[str, int] | None, MemoryT]:
        """Return the parallelism wanted now, None for no wish, and the memory for the next tick."""
        ...


@dataclass(frozen=True, slots=True)
class ReactiveMemory:
    """A policy's memory, and as of which training it last learnt by night."""

    policy: Any
    learned_s: int | None = None


@dataclass(frozen=True, slots=True)
class ReactiveDriver:
    """Lets a policy decide at every tick, or with every plan, and takes its change at once.

    The plan DAG runs hourly; that a policy which reacts may do so at every tick is generous to it.

    Attributes:
        policy: the policy.
        reads_models: see :meth:`View.live_situation`.
        with_plans: decide with the plans only, by windows up to now.
    """

    policy: Policy[Any]
    reads_models: bool = False
    with_plans: bool = False

    def first_memory(self) -> ReactiveMemory:
        """Return the policy's first memory."""
        return ReactiveMemory(self.policy.first_memory())

    def tick(self, view: View, memory: ReactiveMemory) -> tuple[Mapping[str, int] | None, ReactiveMemory]:
        """Return what the policy's schedule begins with."""
        if not view.load_per_s or (self.with_plans and not view.plan_due):
            return None, memory
        known = self._learnt(view, memory)
        situation = view.live_situation(reads_models=self.reads_models)
        schedule, after = self.policy.decide(situation, known.policy)
        target = schedule.decisions[0].step.parallelism_to
        return _named(schedule, target), replace(known, policy=after)

    def _learnt(self, view: View, memory: ReactiveMemory) -> ReactiveMemory:
        """Return the memory after the last night's learning, for a policy that learns by night."""
        learn = getattr(self.policy, "learn", None)
        if learn is None or view.trained_s == memory.learned_s or view.models is None:
            return memory
        learned = learn(view.history())
        return ReactiveMemory(memory.policy if learned == self.policy.first_memory() else learned, view.trained_s)


@dataclass(frozen=True, slots=True)
class PlannedMemory:
    """A policy's memory, and the schedule in force."""

    policy: Any
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True)
class PlannedDriver:
    """Lets a policy decide when a plan is due and applies each step at the first tick at which it is."""

    policy: Policy[Any]

    def first_memory(self) -> PlannedMemory:
        """Return the policy's first memory and no schedule."""
        return PlannedMemory(self.policy.first_memory())

    def tick(self, view: View, memory: PlannedMemory) -> tuple[Mapping[str, int] | None, PlannedMemory]:
        """Return the target of the latest step that is due; a job without models is not planned for."""
        if view.plan_due and view.models is not None and view.forecast is not None:
            schedule, after = self.policy.decide(view.situation(), memory.policy)
            memory = PlannedMemory(after, schedule)
        if memory.schedule is None:
            return None, memory
        due = [one.step for one in memory.schedule.decisions if one.step.apply_at_s <= view.now_s]
        return (_named(memory.schedule, due[-1].parallelism_to) if due else None), memory


@dataclass(frozen=True, slots=True)
class ScriptedDriver:
    """Follows a script that was written beforehand.

    Attributes:
        times_s: (n,) epoch seconds, ascending.
        operators: (O,) names.
        parallelism: (n, O) from each time on.
    """

    times_s: IntArray
    operators: tuple[str, ...]
    parallelism: IntArray

    def first_memory(self) -> None:
        """Return no memory."""

    def tick(self, view: View, memory: None) -> tuple[Mapping[str, int] | None, None]:
        """Return the script's configuration of this moment."""
        at = int(np.searchsorted(self.times_s, view.now_s, side="right")) - 1
        if at < 0:
            return None, memory
        return dict(zip(self.operators, self.parallelism[at].tolist(), strict=True)), memory


def _named(schedule: Schedule, parallelism: IntArray) -> Mapping[str, int]:
    return dict(zip(schedule.operators, parallelism.tolist(), strict=True))


def untrained(graph: JobGraph) -> JobModels:
    """Return what is assumed before the first training: priors, and that records pass one for one."""
    passing = dict.fromkeys(graph.names, 1.0)
    return JobModels({}, passing, UNTRAINED, LatencyModel(np.zeros(0), np.zeros(0)))
