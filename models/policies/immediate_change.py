"""The schedule of a reactive policy: one change, at once, or none, clipped to the limits of slots and key groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from include.utc import HOUR_S
from models.arrays import Ints
from models.policies.job_outlook import build_outlook
from models.policies.protocol import Decision, Schedule, Situation
from models.scheduling.expectation import Expectation, Outlook
from models.scheduling.need import upper_limits
from models.scheduling.rescale_timing import ScheduleStep
from models.scheduling.slot_bounds import SlotBounds

# Expectation of a step that was made without looking ahead.
NOT_EXPECTED = Expectation(*[float("nan")] * 8)


def clip_to_limits(situation: Situation, wanted: Mapping[str, float]) -> Ints:
    """Return (O,) the admissible configuration nearest to the requested one.

    Bounds are 1 and the lower of slots and key groups; an operator that is missing or NaN keeps its parallelism.
    """
    limits = upper_limits(situation.graph, situation.slots_max)
    requested = np.array([wanted.get(name, np.nan) for name in situation.graph.names], float)
    current = np.array([situation.parallelism[name] for name in situation.graph.names], float)
    return np.clip(np.where(np.isnan(requested), current, requested), 1, limits).astype(np.int64)


def rescale_now(situation: Situation, wanted: Mapping[str, float], reason: str) -> Schedule:
    """Return the schedule that changes to ``wanted`` (operator -> parallelism) at once; no change if it is the same.

    Its step has no expectation: :func:`add_expectations` makes it where one is read.
    """
    names, at, groups = situation.graph.names, situation.as_of_s, situation.graph.slot_sharing_groups
    current = np.array([situation.parallelism[name] for name in names], np.int64)
    until_s = at + situation.options.horizon_h * HOUR_S
    step = ScheduleStep(at, at, until_s, current, clip_to_limits(situation, wanted), 0, 0, NOT_EXPECTED, groups)
    return Schedule(names, (Decision(step, reason),))


def add_expectations(schedule: Schedule, situation: Situation) -> Schedule:
    """Return a schedule whose steps all say what to expect of them: those that do not, until the forecast ends.

    Raises:
        DemandError: the forecast, from which expectations are made, cannot be used.
        GraphError: forecast and graph do not belong together.
    """
    if all(one.step.expected is not NOT_EXPECTED for one in schedule.decisions):
        return schedule
    outlook = build_outlook(situation).outlook
    decisions = tuple(
        one if one.step.expected is not NOT_EXPECTED else replace(one, step=_expect(one.step, outlook))
        for one in schedule.decisions
    )
    return replace(schedule, decisions=decisions)


def _expect(step: ScheduleStep, outlook: Outlook) -> ScheduleStep:
    bins = outlook.demand.bins
    until_s = max(outlook.demand.bin_start_s(bins), step.apply_at_s)
    expected = outlook.expect(step.parallelism_to, step.begin, bins)
    return replace(step, valid_until_s=until_s, end=bins, expected=expected)


def name_schedules(schedule: Schedule, bounds: SlotBounds) -> Schedule:
    """Return a schedule whose reasons name the windows that are on in the first hour of a step."""

    def name(step: ScheduleStep) -> str:
        begin_s = step.effective_at_s
        return bounds.describe(begin_s, min(begin_s + HOUR_S, max(step.valid_until_s, begin_s + 1)))

    return replace(
        schedule, decisions=tuple(replace(one, reason=one.reason + name(one.step)) for one in schedule.decisions)
    )


def hold(situation: Situation, reason: str) -> Schedule:
    """Return the schedule without any change."""
    return rescale_now(situation, {}, reason)
