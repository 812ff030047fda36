"""Random search, a baseline of ContTune: parallelisms in random order, without replacement, until one fits."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lab.policies.baselines.baseline_options import RandomSearchOptions
from lab.policies.tuning.parallelism import optimal_parallelism
from lab.policies.tuning_thresholds import Thresholds
from models.arrays import Ints
from models.policies.immediate_change import hold, rescale_now
from models.policies.protocol import Schedule, Situation
from models.policies.tuning.reading import MeanMetrics, read_windows, select_new_windows
from models.scheduling.need import upper_limits

_THRESHOLDS = Thresholds()


def search_order(seed: int, operator: str, bound: int) -> Ints:
    """Return (bound,) the parallelisms 1..bound in the order in which they are tried."""
    draws = np.random.default_rng([seed, zlib.crc32(operator.encode())])
    return np.asarray(draws.permutation(bound) + 1, np.int64)


@dataclass(frozen=True, slots=True)
class SearchMemory:
    """Memory of a job.

    Attributes:
        seen_until_s: end of the last window that was read; None before the first.
        seed: of the search that is under way.
        tried: operator -> how many of its parallelisms were tried in it.
    """

    seen_until_s: float | None = None
    seed: int = 0
    tried: Mapping[str, int] = field(default_factory=dict)


class RandomSearch:
    """Tries random parallelisms until each operator has the smallest one that suffices.

    Deviation: the paper's search stops at the optimum that the other methods found; a running job has no such oracle,
    so the stop is where DS2's linear rule recommends what runs.  A search that has tried everything begins again.

    Args:
        options: the settings.
    """

    def __init__(self, options: RandomSearchOptions | None = None) -> None:
        self._options = options or RandomSearchOptions()

    def first_memory(self) -> SearchMemory:
        """Return the memory of a job that was never decided on."""
        return SearchMemory()

    def decide(self, situation: Situation, memory: SearchMemory) -> tuple[Schedule, SearchMemory]:
        """Return the next random configuration, or none when the running one fits.

        Raises:
            DemandError: the forecast, from which the expectation is made, cannot be used.
        """
        graph, observations = situation.graph, situation.observations
        fresh = select_new_windows(observations, memory.seen_until_s)
        until_s = (
            float(observations.window_start_s[-1] + observations.window_s) if len(observations) else memory.seen_until_s
        )
        known = replace(memory, seen_until_s=until_s)
        running = {name: situation.parallelism[name] for name in graph.names}
        reading = read_windows(graph, fresh, running, headroom=self._options.headroom)
        if reading is None:
            return hold(situation, "Random search has no new undisturbed window of the running parallelism."), known
        misfits = [name for name in graph.names if not _is_fitting(reading, name, running[name])]
        if not misfits:
            return hold(situation, "Random search finds the running parallelism right."), replace(known, tried={})
        limits = dict(zip(graph.names, upper_limits(graph, situation.slots_max).tolist(), strict=True))
        exhausted = any(known.tried.get(name, 0) >= min(self._options.bound, limits[name]) for name in misfits)
        if not known.tried or exhausted:
            known = replace(known, seed=situation.seed, tried={})
        wanted, tried = {}, dict(known.tried)
        for name in misfits:
            order = search_order(known.seed, name, min(self._options.bound, limits[name]))
            wanted[name] = int(order[tried.get(name, 0)])
            tried[name] = tried.get(name, 0) + 1
        known = replace(known, tried=tried)
        return rescale_now(
            situation, wanted, f"Random search tries another parallelism of {', '.join(misfits)}."
        ), known


def _is_fitting(reading: MeanMetrics, name: str, running: int) -> bool:
    """Return whether an operator runs at its own linear recommendation; one that cannot be judged counts as fitting.

    Where backpressure hides how much arrives, an operator that is busy nearly all the time is too small.
    """
    need, capacity = reading.required_per_s[name], reading.capacity_per_s[name]
    if not math.isfinite(need) or not (math.isfinite(capacity) and capacity > 0):
        return True
    if not reading.arrivals_known and reading.backpressured >= _THRESHOLDS.backpressure:
        return need < _THRESHOLDS.core_max * capacity
    return int(optimal_parallelism(need, capacity, running)) == running
