"""The steps of the programme's plan, and whether what is measured when one is due is within its band.

A step goes out as planned while five figures are within its band: the load that is expected next, the age of the
backlog, what the step's size carries, how far the load may be off an hour ahead, and what the step costs more than the
evaluation's own decision.  Outside of it that decision stands, and its reason names the figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from include.domain.graph import JobGraph
from models.policies.evaluation.pending_steps import PendingStep
from models.programme.load_outlook import LoadOutlook
from models.programme.problem import CostsToGo, Sizes
from models.scheduling.figures import format_count, format_rate
from models.scheduling.step_band import StepBand

CAPACITY_BAND: Final = 0.03
"""Share by which the capacity may be another than the plan's."""
TOLERANCE: Final = 0.15
"""A step stays as planned while no other decision saves more than this share of a rescale's price."""
SPREAD_BAND: Final = 1.35
"""Factor by which the spread of the load may be another than the plan's."""
_HOUR: Final = 11  # place of an hour ahead among the steps


@dataclass(frozen=True, slots=True)
class StepMeasurement:
    """Figures of an evaluation that a planned step is held against.

    Attributes:
        load_per_s: expected next, all sources together.
        age_s: of the backlog.
        slots, log_capacity: of the sizes that were compared: slots of each, by size, and the log of what it carries.
        excess: what going to each costs more than the cheapest decision.
        spread: standard deviation of the log load an hour ahead.
        keeps_slots: the job does not work its backlog off, or its last falls were a loss, so it gives nothing up.
    """

    load_per_s: float
    age_s: float
    slots: tuple[int, ...]
    log_capacity: tuple[float, ...]
    excess: tuple[float, ...]
    spread: float
    keeps_slots: bool = False

    @classmethod
    def of(
        cls, outlook: LoadOutlook, age_s: float, sizes: Sizes, values: CostsToGo, *, keeps_slots: bool
    ) -> StepMeasurement:
        """Return the figures of an outlook, and of what the sizes carry and cost now."""
        order = np.argsort(sizes.slots, kind="stable")
        load = max(math.exp(float(outlook.mean[0])) - outlook.offset, 0.0)
        logs = np.maximum.accumulate(sizes.log_capacity[order, 0])
        excess = values.go[order] - min(values.stay, float(values.go[1:].min(initial=np.inf)))
        slots = tuple(np.rint(sizes.slots[order]).astype(int).tolist())
        return cls(load, age_s, slots, tuple(logs.tolist()), tuple(excess.tolist()), spread_of(outlook), keeps_slots)

    def carries_per_s(self, slots: int) -> float:
        """Return what a number of slots carries, records/s."""
        return float(np.exp(np.interp(slots, self.slots, self.log_capacity)))

    def costs_more(self, slots: int) -> float:
        """Return what going to a number of slots costs more than the cheapest decision."""
        return float(np.interp(slots, self.slots, self.excess))


def spread_of(outlook: LoadOutlook) -> float:
    """Return the standard deviation of the log load an hour ahead, single steps included."""
    return float(np.hypot(outlook.sd[_HOUR], outlook.noise))


class StepProgress(StrEnum):
    """Whether a step was counted: not yet, as one that was due, or as one that went out as planned as well."""

    NOT_YET = "not_yet"
    DUE = "due"
    AS_PLANNED = "as_planned"


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step of the programme's plan.

    Attributes:
        step: when it is due, until when, and what it changes to.
        running: operator -> parallelism that it was planned from.
        slots: that it takes.
        band: of load and backlog.
        capacity_per_s: that its size was planned to carry.
        spread: of the load, as planned.
        counted: whether it was counted.
    """

    step: PendingStep
    running: Mapping[str, int]
    slots: int
    band: StepBand
    capacity_per_s: float
    spread: float
    counted: StepProgress = StepProgress.NOT_YET


def find_due(steps: tuple[PlannedStep, ...], now_s: int) -> PlannedStep | None:
    """Return the step that was due last and is still valid."""
    due = [one for one in steps if one.step.apply_at_s <= now_s < one.step.valid_until_s]
    return due[-1] if due else None


def find_outside(
    due: PlannedStep, graph: JobGraph, running: Mapping[str, int], measured: StepMeasurement, rescale_price: float
) -> str:
    """Return which figure is outside a step's band, as a sentence says it; empty where none is."""
    if not graph.frees_nothing(running, due.running):
        return "the job does not run as it was planned from"
    return next(_list_outside(due, measured, rescale_price), "")


def _list_outside(due: PlannedStep, measured: StepMeasurement, rescale_price: float) -> Iterator[str]:
    band = due.band
    if not band.load_low_per_s <= measured.load_per_s <= band.load_high_per_s:
        yield f"the load is at {format_rate(measured.load_per_s)}/s, its band is {band.describe_loads()}"
    if not band.age_low_s <= measured.age_s <= band.age_high_s:
        yield f"the backlog is {measured.age_s:.0f} s old, its band is {band.describe_ages()}"
    now_per_s = measured.carries_per_s(due.slots)
    if abs(math.log(now_per_s / due.capacity_per_s)) > math.log1p(CAPACITY_BAND):
        now, then = format_rate(now_per_s), format_rate(due.capacity_per_s)
        now = f"{now}/s with {format_count(due.slots, 'slot')}"
        yield f"it carries {now}, {then}/s were planned with, its band is {CAPACITY_BAND:.0%}"
    if abs(math.log(measured.spread / due.spread)) > math.log(SPREAD_BAND):
        yield (
            f"the load may be off by {math.expm1(measured.spread):.0%} in an hour, "
            f"{math.expm1(due.spread):.0%} was planned with, its band is a factor of {SPREAD_BAND:g}"
        )
    if (more := measured.costs_more(due.slots)) > TOLERANCE * rescale_price:
        cost = f"{more / rescale_price:.2g} times a rescale's price" if rescale_price else "something"
        yield f"it would cost {cost} more than what the load as measured asks for, its band is {TOLERANCE:g}"
    if measured.keeps_slots and any(due.step.parallelism[name] < count for name, count in due.running.items()):
        yield "the backlog does not fall, or a fall was a loss lately"
