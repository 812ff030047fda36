"""The schedule of a reactive policy: one change, at once, or none, clipped to the limits of slots and key groups."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from models.arrays import Ints
from models.policies.protocol import Decision, Schedule, Situation
from models.scheduling.demand import demand, resample_to_bins
from models.scheduling.expectation import Expectation, Outlook
from models.scheduling.need import job_bounds, upper_limits
from models.scheduling.rescale_timing import Step

# Expectation of a step where nobody reads it.
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
    options, graph = situation.options, situation.graph
    target = clip_to_limits(situation, wanted)
    current = np.array([situation.parallelism[name] for name in graph.names], np.int64)
    at = situation.as_of_s
    if not situation.expects:
        step = Step(at, at, at + options.horizon_h * 3600, current, target, 0, 0, NOT_EXPECTED)
        return Schedule(graph.names, (Decision(step, reason),))
    required = demand(
        graph,
        situation.models.selectivity,
        resample_to_bins(situation.forecast, situation.as_of_s, options.bin_s, options.horizon_h * 3600),
    )
    limits = upper_limits(graph, situation.slots_max)
    bounds = job_bounds(graph, situation.models.capacity, limits, options)
    outlook = Outlook(required, bounds, situation.models.recovery, options.capacity_z)
    end_s = required.bin_start_s(required.bins)
    expected = outlook.expect(target, 0, required.bins)
    step = Step(at, at, max(end_s, at), current, target, 0, required.bins, expected)
    return Schedule(graph.names, (Decision(step, reason),))


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
