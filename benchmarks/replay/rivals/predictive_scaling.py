"""Predictive scaling in the manner of AWS Auto Scaling, with target tracking beside it.

Source: its documentation.  A forecast, renewed every six hours, sets the least capacity of each hour, some minutes
ahead; it needs 24 hours of history and never scales in.  Target tracking scales out at once, and in after a quarter of
an hour below its target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.replay.rivals.capacity_notes import CapacityNotes
from benchmarks.replay.rivals.fall_delay import FallDelay, delay_fall
from benchmarks.replay.rivals.rival_options import PredictiveScalingOptions
from include.domain.graph import JobGraph
from include.utc import HOUR_S
from lab.replay.tick_snapshot import TickSnapshot
from models.arrays import Ints
from models.scheduling.demand import MEDIAN, SourceForecast
from models.scheduling.need import upper_limits

_OBSERVED_H = 0.5


@dataclass(frozen=True, slots=True)
class PredictiveMemory:
    """What is kept between ticks.

    Attributes:
        notes: of the job's capacities.
        hourly_per_s: hour since 1970 -> forecast mean load.
        refreshed_s: epoch seconds of the last forecast; None before the first.
        begun_s: epoch seconds of the first tick.
        falls: scale-ins that wait.
    """

    notes: CapacityNotes = field(default_factory=CapacityNotes)
    hourly_per_s: Mapping[int, float] = field(default_factory=dict)
    refreshed_s: int | None = None
    begun_s: int | None = None
    falls: FallDelay = field(default_factory=FallDelay)


def average_by_hour(forecast: SourceForecast) -> dict[int, float]:
    """Return hour since 1970 -> mean of the forecast medians of all sources in it, records/s."""
    total = np.sum([values[MEDIAN] for values in forecast.quantiles.values()], axis=0)
    hours = (forecast.start_s + forecast.bin_s * np.arange(forecast.bins)) // HOUR_S
    return {int(hour): float(total[hours == hour].mean()) for hour in np.unique(hours)}


class PredictiveScaling:
    """The forecast's capacity or target tracking's, whichever is larger.

    Deviation: AWS does not publish its forecasts; those of this project's pipeline stand in.

    Args:
        options: the settings.
    """

    def __init__(self, options: PredictiveScalingOptions | None = None) -> None:
        self._options = options or PredictiveScalingOptions()

    def first_memory(self) -> PredictiveMemory:
        """Return the memory before the first tick."""
        return PredictiveMemory()

    def tick(
        self, snapshot: TickSnapshot, memory: PredictiveMemory
    ) -> tuple[Mapping[str, int] | None, PredictiveMemory]:
        """Return the capacity wanted now."""
        options, graph, now_s = self._options, snapshot.graph, snapshot.now_s
        if not snapshot.load_per_s:
            return None, memory
        known = self._refresh(snapshot, replace(memory, begun_s=now_s if memory.begun_s is None else memory.begun_s))
        known = replace(known, notes=known.notes.learn(graph, snapshot.observations(_OBSERVED_H)))
        limits = upper_limits(graph, snapshot.slots_max)
        tracked = self._size(known, graph, sum(snapshot.load_per_s.values()), limits)
        if tracked is None:
            return None, known
        ahead = {now_s // HOUR_S, (now_s + options.buffer_s) // HOUR_S}
        loads = [known.hourly_per_s[hour] for hour in ahead if hour in known.hourly_per_s]
        least = self._size(known, graph, max(loads), limits) if loads else None
        wanted = tracked if least is None else {name: max(count, least[name]) for name, count in tracked.items()}
        target, falls = delay_fall(known.falls, wanted, snapshot.running, now_s, options.scale_in_wait_s)
        return target, replace(known, falls=falls)

    def _size(self, known: PredictiveMemory, graph: JobGraph, load_per_s: float, limits: Ints) -> dict[str, int] | None:
        return known.notes.size_job(graph, load_per_s / self._options.target_utilisation, limits)

    def _refresh(self, snapshot: TickSnapshot, memory: PredictiveMemory) -> PredictiveMemory:
        """Return the memory with a new forecast, where one is due and there is history enough."""
        is_young = snapshot.now_s - (memory.begun_s or 0) < self._options.least_history_s
        is_fresh = memory.refreshed_s is not None and snapshot.now_s - memory.refreshed_s < self._options.refresh_s
        if is_young or is_fresh or not snapshot.plan_due or (forecast := snapshot.forecast) is None:
            return memory
        return replace(memory, hourly_per_s=average_by_hour(forecast), refreshed_s=snapshot.now_s)
