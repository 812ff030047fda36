"""A schedule by hand, as teams write it: last week's highest load of the hour and some headroom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.replay.rivals.capacity_notes import CapacityNotes
from benchmarks.replay.rivals.rival_options import WeeklyScheduleOptions
from include.utc import DAY_S, HOUR_S
from lab.replay.tick_snapshot import TickSnapshot
from models.scheduling.need import upper_limits

WEEK_S = 7 * DAY_S
_OBSERVED_H = 0.5


@dataclass(frozen=True, slots=True)
class ScheduleMemory:
    """What is kept between ticks.

    Attributes:
        notes: of the job's capacities.
        highest_per_s: hour since 1970 -> highest load of a window in it.
        begun_s: epoch seconds of the first tick.
    """

    notes: CapacityNotes = field(default_factory=CapacityNotes)
    highest_per_s: Mapping[int, float] = field(default_factory=dict)
    begun_s: int | None = None


def find_scheduled_load(highest_per_s: Mapping[int, float], hour: int) -> float | None:
    """Return the highest load of the same hour a week before, else of the latest day that has it; None without any."""
    hours = [hour - WEEK_S // HOUR_S, *(hour - 24 * days for days in range(1, 8))]
    return next((highest_per_s[one] for one in hours if one in highest_per_s), None)


class WeeklySchedule:
    """Follows last week's hours; on the first day, of which nothing is known, it runs all that the job may have.

    Args:
        options: the settings.
    """

    def __init__(self, options: WeeklyScheduleOptions | None = None) -> None:
        self._options = options or WeeklyScheduleOptions()

    def first_memory(self) -> ScheduleMemory:
        """Return the memory before the first tick."""
        return ScheduleMemory()

    def tick(self, snapshot: TickSnapshot, memory: ScheduleMemory) -> tuple[Mapping[str, int] | None, ScheduleMemory]:
        """Return the configuration of this hour."""
        observations, graph = snapshot.observations(_OBSERVED_H), snapshot.graph
        known = replace(
            memory,
            notes=memory.notes.learn(graph, observations),
            highest_per_s=self._add_load(snapshot, memory),
            begun_s=snapshot.now_s if memory.begun_s is None else memory.begun_s,
        )
        limits = upper_limits(graph, snapshot.slots_max)
        scheduled = find_scheduled_load(known.highest_per_s, snapshot.now_s // HOUR_S)
        sized = (
            None
            if scheduled is None
            else known.notes.size_job(graph, scheduled * (1.0 + self._options.headroom), limits)
        )
        return (dict(zip(graph.names, limits.tolist(), strict=True)) if sized is None else sized), known

    def _add_load(self, snapshot: TickSnapshot, memory: ScheduleMemory) -> Mapping[int, float]:
        load = float(np.sum(list(snapshot.load_per_s.values())))
        hour = (snapshot.now_s - 1) // HOUR_S
        oldest = hour - WEEK_S // HOUR_S - 24
        retained = {at: value for at, value in memory.highest_per_s.items() if at >= oldest}
        return {**retained, hour: max(retained.get(hour, 0.0), load)} if snapshot.load_per_s else retained
