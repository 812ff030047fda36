"""Memory of the programme's policy, from plan to plan and from evaluation to evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from models.arrays import Floats
from models.policies.tidewise.planned_steps import PlannedStep
from models.policies.tidewise.slot_charges import SlotCharges
from models.policies.tidewise.tidewise_memory import ControllerMemory
from models.programme.capacity_belief import CapacityBelief
from models.programme.load_paths import AHEAD, LEAST_PER_S, STEP_S
from models.programme.packed_arrays import Layout, pack, unpack
from models.scheduling.demand import MEDIAN, SourceForecast


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """What the newest plan's forecast expects, its medians.

    Attributes:
        start_s, bin_s: its bins, epoch seconds and s.
        bins: T, their number; 0 before the first forecast.
        logs: source -> (T,) logarithms of its rates, packed.
    """

    start_s: int = 0
    bin_s: int = 0
    bins: int = 0
    logs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, forecast: SourceForecast) -> PlannedLoad:
        """Return the medians of a forecast, to a thousandth."""
        layout = _lay_out(forecast.bins)
        logs = {
            source: pack([np.log(np.maximum(values[MEDIAN], LEAST_PER_S))], layout)
            for source, values in forecast.quantiles.items()
        }
        return cls(forecast.start_s, forecast.bin_s, forecast.bins, logs)

    def read(self, at: int, steps: int = AHEAD + 1) -> dict[str, Floats]:
        """Return source -> (steps,) records/s from a step on; the ends are held."""
        first_s = np.arange(at, at + steps) * STEP_S
        place = np.clip((first_s - self.start_s) // max(self.bin_s, 1), 0, max(self.bins - 1, 0))
        layout = _lay_out(self.bins)
        return {source: np.exp(unpack(text, layout)[0][place]) for source, text in self.logs.items()}

    def total(self, at: int, steps: int = AHEAD + 1) -> Floats | None:
        """Return (steps,) records/s of all sources together; None without a forecast that reaches there."""
        if at * STEP_S >= self.start_s + self.bin_s * self.bins:
            return None
        return np.asarray(np.sum(list(self.read(at, steps).values()), axis=0))


def _lay_out(bins: int) -> Layout:
    return {"logs": ((bins,), "i2")}


@dataclass(frozen=True, slots=True)
class StepCount:
    """How many steps of plans were due, and how many of them went out as planned."""

    due: int = 0
    as_planned: int = 0


@dataclass(frozen=True, slots=True)
class ProgrammeMemory:
    """What is remembered of a job.

    Attributes:
        controller: what the windows told: capacities, shares of edges.
        law: of the load, packed; see :class:`models.programme.law_state.LawState`.
        planned: of the newest plan.
        belief: of the error of the models' capacity.
        due: steps of the newest plan that are to come, or are due and not in force yet.
        count: of the steps that were due so far, of all plans.
        charges: what the newest plan has the job pay for slots that are short.
    """

    controller: ControllerMemory = field(default_factory=ControllerMemory)
    law: str = ""
    planned: PlannedLoad = field(default_factory=PlannedLoad)
    belief: CapacityBelief = field(default_factory=CapacityBelief)
    due: tuple[PlannedStep, ...] = ()
    count: StepCount = field(default_factory=StepCount)
    charges: SlotCharges = field(default_factory=SlotCharges)
