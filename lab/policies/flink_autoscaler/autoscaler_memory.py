"""Memory of the autoscaler between two decisions on a job, as frozen values that can be stored as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from lab.policies.flink_autoscaler.config import AutoscalerConfig
from lab.policies.flink_autoscaler.target_capacity import Observation


@dataclass(frozen=True, slots=True)
class Scaling:
    """A vertex's past scaling, with what was expected of it.

    Attributes:
        at_s: when, epoch seconds.
        parallelism: before it.
        new_parallelism: after it; None when not recorded.
        true_processing_per_s: before it.
        expected_per_s: expected after it; None when not recorded.
    """

    at_s: float
    parallelism: int
    new_parallelism: int | None
    true_processing_per_s: float
    expected_per_s: float | None

    @property
    def observation(self) -> Observation:
        """The rate at the parallelism that was left."""
        return Observation(self.parallelism, self.true_processing_per_s)


@dataclass(frozen=True, slots=True)
class DelayedRecommendation:
    """A parallelism recommended while a scale-down waits."""

    at_s: float
    parallelism: int
    outside_bounds: bool


@dataclass(frozen=True, slots=True)
class DelayedScaleDown:
    """A scale-down of one vertex that waits.

    Attributes:
        first_s: since when it waits.
        recommended: those that can still be the maximum of a window: ascending in time, descending in parallelism.
    """

    first_s: float
    recommended: tuple[DelayedRecommendation, ...] = ()


@dataclass(frozen=True, slots=True)
class RestartTime:
    """A rescale of the job: when it was requested, and the seconds until the job ran again (None: not yet)."""

    at_s: float
    duration_s: float | None = None


EventT = TypeVar("EventT", Scaling, RestartTime)


@dataclass(frozen=True, slots=True)
class AutoscalerMemory:
    """Everything remembered of one job.

    Attributes:
        delayed: vertex -> its waiting scale-down.
        history: vertex -> its past scalings, oldest first.
        restarts: oldest first.
    """

    delayed: Mapping[str, DelayedScaleDown] = field(default_factory=dict)
    history: Mapping[str, tuple[Scaling, ...]] = field(default_factory=dict)
    restarts: tuple[RestartTime, ...] = ()

    def drop_old(self, config: AutoscalerConfig, now_s: float) -> AutoscalerMemory:
        """Return the memory without what is too old or too much; the latest scaling and restart always stay."""
        history = {vertex: _recent(past, config, now_s) for vertex, past in self.history.items()}
        return replace(self, history=history, restarts=_recent(self.restarts, config, now_s))

    def restart_s(self, config: AutoscalerConfig) -> float:
        """Return the restart time of rule 6: configured, or the longest that was measured, up to a limit."""
        measured = [restart.duration_s for restart in self.restarts if restart.duration_s is not None]
        if not config.restart_time_tracking_enabled or not measured:
            return config.restart_time_s
        return min(max(measured), config.restart_time_tracking_limit_s)

    def record_restart(self, at_s: float, parallelism: Mapping[str, int]) -> AutoscalerMemory:
        """Return the memory with the latest restart's duration, if the job runs with what was requested then."""
        if not self.restarts or self.restarts[-1].duration_s is not None or at_s < self.restarts[-1].at_s:
            return self
        latest = self.restarts[-1]
        requested = {
            vertex: scaling.new_parallelism
            for vertex, past in self.history.items()
            for scaling in past
            if scaling.at_s == latest.at_s
        }
        if any(parallelism.get(vertex) != wanted for vertex, wanted in requested.items()):
            return self
        return replace(self, restarts=(*self.restarts[:-1], RestartTime(latest.at_s, at_s - latest.at_s)))


def _recent(events: tuple[EventT, ...], config: AutoscalerConfig, now_s: float) -> tuple[EventT, ...]:
    retained = tuple(event for event in events if event.at_s >= now_s - config.history_max_age_s)
    return retained[-config.history_max_count :] if retained and config.history_max_count > 0 else events[-1:]
