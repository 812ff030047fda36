"""Memory of the programme's policy, from plan to plan and from evaluation to evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from models.arrays import Floats
from models.policies.tidewise.tidewise_memory import ControllerMemory
from models.programme.capacity_belief import CapacityBelief
from models.programme.load_paths import AHEAD, STEP_S
from models.scheduling.demand import MEDIAN, SourceForecast

_DIGITS = 5


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """What the newest plan's forecast expects, its medians.

    Attributes:
        start_s, bin_s: its bins, epoch seconds and s.
        rates_per_s: source -> (T,) records/s; empty before the first forecast.
        is_season: whether it knows a day of the load; else it holds what was seen last.
    """

    start_s: int = 0
    bin_s: int = 0
    rates_per_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    is_season: bool = False

    @classmethod
    def of(cls, forecast: SourceForecast) -> PlannedLoad:
        """Return the medians of a forecast, to five digits."""
        rates = {
            source: tuple(float(f"{value:.{_DIGITS}g}") for value in values[MEDIAN].tolist())
            for source, values in forecast.quantiles.items()
        }
        return cls(forecast.start_s, forecast.bin_s, rates, forecast.fallback is None)

    def read(self, at: int, steps: int = AHEAD + 1) -> dict[str, Floats]:
        """Return source -> (steps,) records/s from a step on; the ends are held."""
        first_s = np.arange(at, at + steps) * STEP_S
        place = (first_s - self.start_s) // max(self.bin_s, 1)
        return {
            source: np.array(values)[np.clip(place, 0, len(values) - 1)] for source, values in self.rates_per_s.items()
        }

    def total(self, at: int) -> Floats | None:
        """Return (1 + ``AHEAD``,) records/s of all sources together; None without a forecast that reaches there."""
        bins = len(next(iter(self.rates_per_s.values()), ()))
        covers = at * STEP_S < self.start_s + self.bin_s * bins
        return np.sum(list(self.read(at).values()), axis=0) if covers else None


@dataclass(frozen=True, slots=True)
class ProgrammeMemory:
    """What is remembered of a job.

    Attributes:
        controller: what the windows told: capacities, shares of edges.
        law: of the load, packed; see :class:`models.programme.law_state.LawState`.
        planned: of the newest plan.
        belief: of the error of the models' capacity.
    """

    controller: ControllerMemory = field(default_factory=ControllerMemory)
    law: str = ""
    planned: PlannedLoad = field(default_factory=PlannedLoad)
    belief: CapacityBelief = field(default_factory=CapacityBelief)
