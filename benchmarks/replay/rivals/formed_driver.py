"""A candidate in a form of its own: with headroom, falls that wait, and a slower cadence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.replay.rivals.fall_delay import FallDelay, delay_fall
from benchmarks.replay.rivals.rival_options import CandidateForm
from lab.replay.drivers import PolicyDriver
from lab.replay.tick_snapshot import TickSnapshot
from models.policies.observations import Observations
from models.policies.protocol import History, Policy, Schedule, Situation


@dataclass(frozen=True, slots=True)
class FormMemory:
    """Memory of the driver inside, and the falls that wait."""

    inner: Any
    falls: FallDelay = field(default_factory=FallDelay)


@dataclass(frozen=True, slots=True)
class FormedDriver:
    """Asks another driver at its cadence and lets its falls wait.

    Attributes:
        inner: the driver.
        form: how.
    """

    inner: PolicyDriver[Any]
    form: CandidateForm

    def first_memory(self) -> FormMemory:
        """Return the memory before the first tick."""
        return FormMemory(self.inner.first_memory())

    def tick(self, snapshot: TickSnapshot, memory: FormMemory) -> tuple[Mapping[str, int] | None, FormMemory]:
        """Return what is wanted now."""
        if self.form.cadence_s and snapshot.now_s % self.form.cadence_s:
            return None, memory
        wanted, inner = self.inner.tick(snapshot, memory.inner)
        known = replace(memory, inner=inner)
        if wanted is None or not self.form.scale_down_delay_s:
            return wanted, known
        target, falls = delay_fall(known.falls, wanted, snapshot.running, snapshot.now_s, self.form.scale_down_delay_s)
        return target, replace(known, falls=falls)


class WithHeadroom:
    """A policy that is shown larger loads than there are: rates at the sources and their forecast.

    Args:
        inner: the policy.
        headroom: share by which they are larger.
    """

    def __init__(self, inner: Policy[Any], headroom: float) -> None:
        self._inner, self._factor = inner, 1.0 + headroom
        # Drivers ask whether a policy learns by night.
        if hasattr(inner, "learn"):
            self.learn = self._learn

    def first_memory(self) -> Any:
        """Return the policy's first memory."""
        return self._inner.first_memory()

    def decide(self, situation: Situation, memory: Any) -> tuple[Schedule, Any]:
        """Return what the policy decides on the larger loads."""
        forecast = situation.forecast
        larger = {name: values * self._factor for name, values in forecast.quantiles.items()}
        job = replace(situation.job, observations=scale_arrivals(situation.observations, self._factor))
        shown = replace(situation, job=job, forecast=replace(forecast, quantiles=larger))
        return self._inner.decide(shown, memory)

    def _learn(self, history: History) -> Any:
        inner: Any = self._inner
        return inner.learn(replace(history, observations=scale_arrivals(history.observations, self._factor)))


def scale_arrivals(observations: Observations, factor: float) -> Observations:
    """Return windows whose sources get ``factor`` times the records that arrive."""
    return replace(observations, target_data_rate_per_s=observations.target_data_rate_per_s * factor)
