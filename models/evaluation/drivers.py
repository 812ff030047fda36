"""Who decides for a candidate policy in a replay: one protocol for policies, schedules and the planner.

A driver is asked at every tick for every row that it stands for, and is as pure as a policy: what it keeps is in its
memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from models.arrays import Ints
from models.evaluation.tick_snapshot import TickSnapshot
from models.policies.protocol import Policy, Schedule

MemoryT = TypeVar("MemoryT")


class Driver(Protocol[MemoryT]):
    """Decides for one candidate policy."""

    def first_memory(self) -> MemoryT:
        """Return the memory before the first tick."""
        ...

    def tick(self, snapshot: TickSnapshot, memory: MemoryT) -> tuple[Mapping[str, int] | None, MemoryT]:
        """Return the parallelism wanted now, None for no change, and the memory for the next tick."""
        ...


@dataclass(frozen=True, slots=True)
class ReactiveMemory:
    """A policy's memory, and as of which training it last learned by night."""

    policy: Any
    learned_s: int | None = None


@dataclass(frozen=True, slots=True)
class ReactiveDriver:
    """Lets a policy decide at every tick, or with every plan, and takes its change at once.

    A job that does not run is not asked about, as in the controller.

    Attributes:
        policy: the policy.
        reads_models: see :meth:`TickSnapshot.live_situation`.
        with_plans: decide with the plans only, by the windows that the plan stage has.
    """

    policy: Policy[Any]
    reads_models: bool = False
    with_plans: bool = False

    def first_memory(self) -> ReactiveMemory:
        """Return the policy's first memory."""
        return ReactiveMemory(self.policy.first_memory())

    def tick(self, snapshot: TickSnapshot, memory: ReactiveMemory) -> tuple[Mapping[str, int] | None, ReactiveMemory]:
        """Return what the policy's schedule begins with."""
        if not snapshot.load_per_s or (self.with_plans and not snapshot.plan_due) or not snapshot.is_up:
            return None, memory
        until_s = snapshot.ingested_s if self.with_plans else snapshot.now_s
        if not len(snapshot.observations(snapshot.options.observed_h, until_s)):
            return None, memory
        known = self._learn_nightly(snapshot, memory)
        situation = snapshot.live_situation(reads_models=self.reads_models, until_s=until_s)
        schedule, after = self.policy.decide(situation, known.policy)
        target = schedule.decisions[0].step.parallelism_to
        return _name_operators(schedule, target), replace(known, policy=after)

    def _learn_nightly(self, snapshot: TickSnapshot, memory: ReactiveMemory) -> ReactiveMemory:
        """Return the memory after the last night's learning, for a policy that learns by night."""
        learn = getattr(self.policy, "learn", None)
        if learn is None or snapshot.trained_s == memory.learned_s or snapshot.models is None:
            return memory
        learned = learn(snapshot.history())
        return ReactiveMemory(memory.policy if learned == self.policy.first_memory() else learned, snapshot.trained_s)


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

    def tick(self, snapshot: TickSnapshot, memory: PlannedMemory) -> tuple[Mapping[str, int] | None, PlannedMemory]:
        """Return the target of the latest step that is due; a job without models is not planned for."""
        if snapshot.plan_due and snapshot.models is not None and snapshot.forecast is not None:
            schedule, after = self.policy.decide(snapshot.situation(), memory.policy)
            memory = PlannedMemory(after, schedule)
        if memory.schedule is None:
            return None, memory
        due = [one.step for one in memory.schedule.decisions if one.step.apply_at_s <= snapshot.now_s]
        return (_name_operators(memory.schedule, due[-1].parallelism_to) if due else None), memory


@dataclass(frozen=True, slots=True)
class ScheduleDriver:
    """Follows a schedule that was computed beforehand.

    Attributes:
        times_s: (n,) epoch seconds, ascending.
        operators: (O,) names.
        parallelism: (n, O) from each time on.
    """

    times_s: Ints
    operators: tuple[str, ...]
    parallelism: Ints

    def first_memory(self) -> None:
        """Return no memory."""

    def tick(self, snapshot: TickSnapshot, memory: None) -> tuple[Mapping[str, int] | None, None]:
        """Return the configuration of this time."""
        at = int(np.searchsorted(self.times_s, snapshot.now_s, side="right")) - 1
        if at < 0:
            return None, memory
        return dict(zip(self.operators, self.parallelism[at].tolist(), strict=True)), memory


def _name_operators(schedule: Schedule, parallelism: Ints) -> Mapping[str, int]:
    return dict(zip(schedule.operators, parallelism.tolist(), strict=True))
