"""The schedule of a reactive policy: one change, at once, or none, clipped to the limits of slots and key groups."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from include.utc import HOUR_S
from models.arrays import Ints
from models.policies.job_outlook import build_outlook
from models.policies.protocol import Decision, Schedule, Situation
from models.scheduling.expectation import Expectation
from models.scheduling.need import upper_limits
from models.scheduling.rescale_timing import Step

# Expectation of a step where it is not needed.
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

    Raises:
        DemandError: the forecast, from which the expectation is made, cannot be used.
    """
    names, at, groups = situation.graph.names, situation.as_of_s, situation.graph.slot_sharing_groups
    target = clip_to_limits(situation, wanted)
    if not situation.expects:
        current = np.array([situation.parallelism[name] for name in names], np.int64)
        until_s = at + situation.options.horizon_h * HOUR_S
        step = Step(at, at, until_s, current, target, 0, 0, NOT_EXPECTED, groups)
        return Schedule(names, (Decision(step, reason),))
    job = build_outlook(situation)
    bins = job.outlook.demand.bins
    end_s = max(job.outlook.demand.bin_start_s(bins), at)
    step = Step(at, at, end_s, job.current, target, 0, bins, job.outlook.expect(target, 0, bins), groups)
    return Schedule(names, (Decision(step, reason),))


def describe_changes(situation: Situation, wanted: Mapping[str, float]) -> str:
    """Return the changes to a configuration as text: "map 2 -> 4, sink 1 -> 2"."""
    pairs = zip(situation.graph.names, clip_to_limits(situation, wanted).tolist(), strict=True)
    return ", ".join(
        f"{name} {situation.parallelism[name]} -> {count}"
        for name, count in pairs
        if count != situation.parallelism[name]
    )


def hold(situation: Situation, reason: str) -> Schedule:
    """Return the schedule without any change."""
    return rescale_now(situation, {}, reason)
