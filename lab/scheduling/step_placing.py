"""Placing configurations in time: a rise ahead of its need by the time the rescale itself takes, a fall after it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from include.domain.graph import Operator
from lab.scheduling.planner_settings import PlannerSettings
from lab.scheduling.quantiles import quantile_at_level
from lab.scheduling.segments import Segment
from models.arrays import Bools, Ints
from models.scheduling.expectation import Outlook
from models.scheduling.rescale_timing import ScheduleStep, expect_checkpoint_s
from models.scheduling.shortage import CapacityMismatch
from models.scheduling.slot_counts import count_slots_of_rows


@dataclass(frozen=True, slots=True)
class Need:
    """Needs of every bin.

    Attributes:
        parallelism: (O, T) smallest admissible parallelism, clipped to the operator's maximum.
        short: (O, T) whether even the maximum does not cover the bin.
        unmodelled: operators without a capacity model, which keep their parallelism.
        unknown: operators whose demand is not known, which keep it too.
    """

    parallelism: Ints
    short: Bools
    unmodelled: tuple[str, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobConditions:
    """Conditions of a job for placing its steps.

    Attributes:
        current: (O,) running parallelism.
        limits: (O,) highest admissible parallelism.
        need: of every bin.
        outlook: demand, capacity and recovery.
        as_of_s: time of planning, epoch seconds: no step is placed before it.
        options: the planner's settings.
        grid_s: steps are sent on this grid; a rise is placed on the last point that is early enough. 0: at any time.
        operators: of the job's graph, (O,), for what limits them and which slots they share; none where nobody asks.
        doubts: operators whose capacity model cannot be right.
    """

    current: Ints
    limits: Ints
    need: Need
    outlook: Outlook
    as_of_s: int
    options: PlannerSettings
    grid_s: int = 0
    operators: tuple[Operator, ...] = ()
    doubts: tuple[CapacityMismatch, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """Slot-sharing group of each operator."""
        return tuple(operator.slot_sharing_group for operator in self.operators)

    def slots_of(self, parallelism: Ints) -> int:
        """Return the slots that a configuration, (O,), takes."""
        return int(count_slots_of_rows(parallelism, self.groups))


def place_steps(segments: list[Segment], job: JobConditions) -> list[ScheduleStep]:
    """Turn the segments of a whole horizon into steps; without any change it is one step that holds."""
    demand = job.outlook.demand
    steps: list[ScheduleStep] = []
    before = job.current
    for segment in segments:
        if segment.held:
            continue
        effective_s = max(demand.bin_start_s(segment.begin), job.as_of_s)
        earliest_s = steps[-1].effective_at_s if steps else job.as_of_s
        wanted, lead_s = _add_lead(segment, before, job, effective_s - earliest_s)
        if (wanted == before).all():
            continue
        end_s = max(demand.bin_start_s(segment.end), effective_s)
        expected = job.outlook.expect(wanted, segment.begin, segment.end)
        steps.append(
            ScheduleStep(
                *(effective_s - lead_s, effective_s, end_s, before, wanted, segment.begin, segment.end, expected),
                groups=job.groups,
            )
        )
        before = wanted
    return _end_at_next_step(steps) if steps else [_hold_step(job)]


def expect_rescale_s(outlook: Outlook, parallelism: Ints, index: int, level: float) -> float:
    """Return downtime + catch-up of a planned rescale to a configuration at the load of one bin, s."""
    index = min(index, outlook.demand.bins - 1)
    load = quantile_at_level(outlook.demand.load_per_s[:, index], level)
    capacity = outlook.capacity_per_s(parallelism, slice(index, index + 1))[0]
    return float(outlook.recovery.recovery_s(load, capacity, kind="rescale"))


def _add_lead(segment: Segment, before: Ints, job: JobConditions, available_s: int) -> tuple[Ints, int]:
    """Return the configuration and how many seconds ahead it is sent, at most ``available_s``.

    Only a rise is sent ahead.  While it runs ahead it must also cover what the bins before it need: an operator that
    falls with the same step waits for the next one, at no cost, since slots do not fall.
    """
    rises = bool((segment.parallelism > before).any()) and job.slots_of(segment.parallelism) >= job.slots_of(before)
    if not rises or available_s <= 0:
        return segment.parallelism, 0
    rescale_s = expect_rescale_s(job.outlook, segment.parallelism, segment.begin, job.options.load_quantile)
    rescale_s += expect_checkpoint_s(job.outlook.recovery, job.options.timing) + job.options.timing.slots_wait_s
    most_s = job.options.timing.max_lead_s
    lead_s = int(min(np.ceil(min(rescale_s, most_s) + job.options.timing.lead_margin_s), most_s))
    if job.grid_s and lead_s:
        effective_s = job.outlook.demand.bin_start_s(segment.begin)
        lead_s += (effective_s - lead_s) % job.grid_s
    lead_s = min(lead_s, available_s)
    bins = int(np.ceil(lead_s / job.outlook.demand.bin_s))
    ahead = job.need.parallelism[:, max(segment.begin - bins, 0) : segment.begin]
    return np.maximum(segment.parallelism, ahead.max(axis=1, initial=1)), lead_s


def _end_at_next_step(steps: list[ScheduleStep]) -> list[ScheduleStep]:
    """End each step's validity when the next one is due."""
    ends = [step.apply_at_s for step in steps[1:]] + [steps[-1].valid_until_s]
    return [replace(step, valid_until_s=max(end_s, step.apply_at_s)) for step, end_s in zip(steps, ends, strict=True)]


def _hold_step(job: JobConditions) -> ScheduleStep:
    demand = job.outlook.demand
    expected = job.outlook.expect(job.current, 0, demand.bins)
    end_s = demand.bin_start_s(demand.bins)
    return ScheduleStep(job.as_of_s, job.as_of_s, end_s, job.current, job.current, 0, demand.bins, expected, job.groups)
