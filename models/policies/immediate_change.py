"""The schedule of a policy that reacts: one change, at once, or none; the one place where a wish is made feasible."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from models.job_models import Ints
from models.policies.protocol import Decision, Schedule, Situation
from models.scheduling.demand import demand, on_bins
from models.scheduling.expectation import Expectation, Outlook
from models.scheduling.need import job_bounds, upper_limits
from models.scheduling.rescale_timing import Step

# Of a step whose expectation nobody reads.
NOT_EXPECTED = Expectation(*[float("nan")] * 8)


def feasible(situation: Situation, wanted: Mapping[str, float]) -> Ints:
    """Return (O,) the admissible configuration nearest to a wish.

    Bounds are 1 and the lower of slots and key groups; an operator that is not named, or whose wish is no number, keeps
    its parallelism.
    """
    limits = upper_limits(situation.graph, situation.slots_max)
    asked = np.array([wanted.get(name, np.nan) for name in situation.graph.names], float)
    current = np.array([situation.parallelism[name] for name in situation.graph.names], float)
    return np.clip(np.where(np.isnan(asked), current, asked), 1, limits).astype(np.int64)


def now(situation: Situation, wanted: Mapping[str, float], reason: str) -> Schedule:
    """Return the schedule that changes to ``wanted`` (operator -> parallelism) at once; no change if it is the same.

    Raises:
        DemandError: the forecast, from which the expectation is made, cannot be used.
    """
    options, graph = situation.options, situation.graph
    target = feasible(situation, wanted)
    current = np.array([situation.parallelism[name] for name in graph.names], np.int64)
    at = situation.as_of_s
    if not situation.expects:
        step = Step(at, at, at + options.horizon_h * 3600, current, target, 0, 0, NOT_EXPECTED)
        return Schedule(graph.names, (Decision(step, reason),))
    asked = demand(
        graph,
        situation.models.selectivity,
        on_bins(situation.forecast, situation.as_of_s, options.bin_s, options.horizon_h * 3600),
    )
    limits = upper_limits(graph, situation.slots_max)
    bounds = job_bounds(graph, situation.models.capacity, limits, options)
    outlook = Outlook(asked, bounds, situation.models.recovery, options.capacity.lower_bound_z)
    end_s = asked.bin_start_s(asked.bins)
    expected = outlook.expect(target, 0, asked.bins)
    step = Step(at, at, max(end_s, at), current, target, 0, asked.bins, expected)
    return Schedule(graph.names, (Decision(step, reason),))


def stay(situation: Situation, reason: str) -> Schedule:
    """Return the schedule without any change."""
    return now(situation, {}, reason)
