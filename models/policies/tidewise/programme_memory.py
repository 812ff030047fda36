"""Memory of the programme's policy, from plan to plan and from evaluation to evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from models.arrays import Floats
from models.policies.evaluation.window_memory import WindowMemory
from models.policies.tidewise.planned_steps import PlannedStep
from models.policies.tidewise.slot_charges import SlotCharges
from models.policies.tidewise.taken_back import ScaleDownRecord
from models.programme.capacity_belief import CapacityBelief
from models.programme.event_path import EventChange, EventPath
from models.programme.load_paths import AHEAD, LEAST_PER_S, STEP_S
from models.programme.packed_arrays import Layout, pack, unpack
from models.scheduling.demand import MEDIAN, SourceForecast

_CHANGED: Final = 0.1  # of the logarithm of a factor: events of a given rate have another one in every bin


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """What the newest plan's forecast expects, its medians without the events that people know of.

    Attributes:
        start_s, bin_s: its bins, epoch seconds and s.
        bins: T, their number; 0 before the first forecast.
        logs: source -> (T,) logarithms of its rates, packed.
        raised: source -> (T,) logarithms of what its events make of them, packed; empty without any.
        spread: source -> (T,) standard deviations of these logarithms, packed; empty without any.
    """

    start_s: int = 0
    bin_s: int = 0
    bins: int = 0
    logs: Mapping[str, str] = field(default_factory=dict)
    raised: Mapping[str, str] = field(default_factory=dict)
    spread: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, forecast: SourceForecast) -> PlannedLoad:
        """Return the medians of a forecast, to a thousandth."""
        layout = _lay_out(forecast.bins)

        def write(values: Floats) -> str:
            return pack([values], layout)

        usual = {name: values[MEDIAN] / forecast.factor.get(name, 1.0) for name, values in forecast.quantiles.items()}
        logs = {name: write(np.log(np.maximum(values, LEAST_PER_S))) for name, values in usual.items()}
        raised = {name: write(np.log(np.maximum(values, LEAST_PER_S))) for name, values in forecast.factor.items()}
        spread = {name: write(values) for name, values in forecast.spread.items()}
        return cls(forecast.start_s, forecast.bin_s, forecast.bins, logs, raised, spread)

    def read(self, at: int, steps: int = AHEAD + 1) -> dict[str, Floats]:
        """Return source -> (steps,) records/s from a step on, its events included; the ends are held."""
        usual, raised = self._read_usual(at, steps), self._unpack(self.raised, at, steps)
        return {name: values * np.exp(raised[name]) if name in raised else values for name, values in usual.items()}

    def read_events(self, at: int, steps: int) -> EventPath | None:
        """Return what events make of the load of all sources together from a step on; None without any."""
        if not self.raised or at * STEP_S >= self.start_s + self.bin_s * self.bins:
            return None
        return EventPath.widen(*self._weigh_events(at - 1, steps + 2))

    def find_change(self, at: int) -> EventChange:
        """Return by what events multiply the load of a step, and whether one begins or ends with it."""
        if not self.raised or at * STEP_S >= self.start_s + self.bin_s * self.bins:
            return EventChange()
        factor, _ = self._weigh_events(at - 1, 2)
        return EventChange(float(factor[1]), is_edge=bool(abs(np.log(factor[1] / factor[0])) > _CHANGED))

    def _weigh_events(self, at: int, steps: int) -> tuple[Floats, Floats]:
        """Return (steps,) factor and spread of all sources together."""
        usual = self._read_usual(at, steps)
        total = np.maximum(np.sum(list(usual.values()), axis=0), LEAST_PER_S)
        shares = {name: values / total for name, values in usual.items()}
        raised, spread = (self._unpack(one, at, steps) for one in (self.raised, self.spread))
        factor = np.sum([share * np.exp(raised[name]) for name, share in shares.items()], axis=0)
        parts = [share * np.exp(raised[name]) / factor * spread[name] for name, share in shares.items()]
        return np.maximum(factor, LEAST_PER_S), np.asarray(np.sum(parts, axis=0))

    def _read_usual(self, at: int, steps: int) -> dict[str, Floats]:
        return {source: np.exp(values) for source, values in self._unpack(self.logs, at, steps).items()}

    def _unpack(self, texts: Mapping[str, str], at: int, steps: int) -> dict[str, Floats]:
        first_s = np.arange(at, at + steps) * STEP_S
        place = np.clip((first_s - self.start_s) // max(self.bin_s, 1), 0, max(self.bins - 1, 0))
        layout = _lay_out(self.bins)
        return {source: unpack(text, layout)[0][place] for source, text in texts.items()}

    def total(self, at: int, steps: int = AHEAD + 1) -> Floats | None:
        """Return (steps,) records/s of all sources without events; None without a forecast that reaches there."""
        if at * STEP_S >= self.start_s + self.bin_s * self.bins:
            return None
        return np.asarray(np.sum(list(self._read_usual(at, steps).values()), axis=0))


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
        taken_back: what became of its falls.
        charges: what the newest plan has the job pay for slots that are short.
    """

    controller: WindowMemory = field(default_factory=WindowMemory)
    law: str = ""
    planned: PlannedLoad = field(default_factory=PlannedLoad)
    belief: CapacityBelief = field(default_factory=CapacityBelief)
    due: tuple[PlannedStep, ...] = ()
    count: StepCount = field(default_factory=StepCount)
    taken_back: ScaleDownRecord = field(default_factory=ScaleDownRecord)
    charges: SlotCharges = field(default_factory=SlotCharges)
