"""Common part of Phoebe and TWRES: they leave a job alone until it has run undisturbed for an evaluation interval."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from lab.policies.phoebe import phoebe_inputs
from lab.policies.phoebe.phoebe_options import EVALUATION_INTERVAL_S
from lab.profiling.rows import Profile
from models.policies.immediate_change import hold, rescale_now
from models.policies.observations import Observations
from models.policies.protocol import Schedule, Situation


@dataclass(frozen=True, slots=True)
class Uptime:
    """Memory of a job's interruptions.

    Attributes:
        seen_until_s: end of the last window that was read; None before the first.
        interrupted_s: when the last interruption began; None when none is known.
        interrupted: whether the last window that was read was part of one.
    """

    seen_until_s: int | None = None
    interrupted_s: int | None = None
    interrupted: bool = False

    def add_windows(self, observations: Observations) -> Uptime:
        """Return the memory after the windows that it has not read yet."""
        new = observations if self.seen_until_s is None else observations.since(self.seen_until_s)
        uptime = self
        for start, disturbed in zip(new.window_start_s.tolist(), new.disturbed.tolist(), strict=True):
            began = start if disturbed and not uptime.interrupted else uptime.interrupted_s
            # A rescale shows in the windows after it, and is no further interruption.
            if uptime.interrupted_s is not None and began is not None:
                began = max(began, uptime.interrupted_s)
            uptime = replace(
                uptime, seen_until_s=start + observations.window_s, interrupted_s=began, interrupted=bool(disturbed)
            )
        return uptime

    def add_rescale(self, at_s: int) -> Uptime:
        """Return the memory after a change of parallelism at a time."""
        return replace(self, interrupted_s=at_s, interrupted=True)

    def is_settled(self, at_s: int, interval_s: int = EVALUATION_INTERVAL_S) -> bool:
        """Return whether the job has run undisturbed for an evaluation interval.

        As in the prototype it counts from the beginning of the interruption (the paper: from the job's restart).
        """
        return self.interrupted_s is None or at_s - self.interrupted_s >= interval_s


@dataclass(frozen=True, slots=True)
class SettlingMemory:
    """Memory of a job that both policies need.

    Attributes:
        uptime: since when the job runs undisturbed.
        profile: of the profiling phase; empty when there was none.
    """

    uptime: Uptime = field(default_factory=Uptime)
    profile: Profile = field(default_factory=Profile)


MemoryT = TypeVar("MemoryT", bound=SettlingMemory)


class SettlingPolicy(ABC, Generic[MemoryT]):
    """A policy that chooses one scale-out for the whole job, once the job has settled.

    Args:
        profile: of the job; without one the pipeline's models are used.
        evaluation_interval_s: so long a job has to run undisturbed.
    """

    def __init__(self, profile: Profile | None, evaluation_interval_s: int) -> None:
        self._profile = profile or Profile()
        self._evaluation_interval_s = evaluation_interval_s

    @abstractmethod
    def first_memory(self) -> MemoryT:
        """Return the memory of a job that was never decided on: it holds the profile."""

    @abstractmethod
    def _choose(self, situation: Situation, memory: MemoryT) -> tuple[int | None, str, MemoryT]:
        """Return workers (None: unknown, the job is left alone), the reason and the memory after the choice."""

    def decide(self, situation: Situation, memory: MemoryT) -> tuple[Schedule, MemoryT]:
        """Return a change now or none.

        Raises:
            DemandError: the forecast cannot be used.
        """
        at, interval_s = situation.as_of_s, self._evaluation_interval_s
        memory = replace(memory, uptime=memory.uptime.add_windows(situation.observations))
        if not memory.uptime.is_settled(at, interval_s):
            waiting = f"the job was interrupted less than {interval_s} s ago, so its metrics say little"
            return hold(situation, waiting), memory
        workers, reason, memory = self._choose(situation, memory)
        if workers is None or workers == phoebe_inputs.scale_out(situation):
            return hold(situation, reason), memory
        memory = replace(memory, uptime=memory.uptime.add_rescale(at))
        return rescale_now(situation, phoebe_inputs.same_for_all(situation, workers), reason), memory
