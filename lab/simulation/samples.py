"""What a poller of Flink's REST API observes of a fleet, and the recorder that collects it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from lab.simulation.fleet import Fleet
from lab.simulation.queueing import fetch_wait_s
from lab.simulation.state import RETAINED_CHECKPOINTS, FleetState
from lab.simulation.step import StepFlow
from models.arrays import Bools, Floats, Ints

GAUGE_S = 60.0  # Flink's meters and time gauges are means over the last minute


@dataclass(frozen=True, slots=True)
class SampledMetrics:
    """What was observed at K polls; leading axis K, then (J, O) or (J,).

    Attributes:
        at_s: (K,) time of the poll.
        parallelism: (K, J, O).
        records_in, records_out, busy_s, backpressured_s, idle_s: (K, J, O) Flink's counters since the last start.
        records_taken: (K, J, O) records that were taken in since then, whatever counts them.
        in_per_s, out_per_s, busy, backpressured, idle: (K, J, O) Flink's meters and gauges, means over the last minute.
        taken_per_s: (K, J, O) records that were taken in, likewise.
        pending: (K, J, O) records that wait at sources, as these take them in.
        down_from, down_until: (K, J) last downtime, far in the past before the first.
        checkpoints: (K, J, 10, 3) the last completed ones, newest first: trigger, duration, bytes.
        completed, restarts, failures: (K, J).
    """

    at_s: Floats
    parallelism: Ints
    records_in: Floats
    records_out: Floats
    records_taken: Floats
    busy_s: Floats
    backpressured_s: Floats
    idle_s: Floats
    in_per_s: Floats
    out_per_s: Floats
    taken_per_s: Floats
    busy: Floats
    backpressured: Floats
    idle: Floats
    pending: Floats
    down_from: Floats
    down_until: Floats
    checkpoints: Floats
    completed: Ints
    restarts: Ints
    failures: Ints

    @classmethod
    def empty(cls, polls: int, fleet: Fleet) -> SampledMetrics:
        """Return zeros for a number of polls."""
        shapes: dict[str, tuple[int, ...]] = {"at_s": (polls,)}
        shapes |= {"checkpoints": (polls, fleet.shape[0], RETAINED_CHECKPOINTS, 3)} | dict.fromkeys(
            _ROWS, (polls, fleet.shape[0])
        )

        def zeros(name: str) -> Any:
            return np.zeros(shapes.get(name, (polls, *fleet.shape)), np.int64 if name in _WHOLE else np.float64)

        return cls(**{field.name: zeros(field.name) for field in fields(cls)})

    def cut(self, polls: slice, jobs: slice) -> SampledMetrics:
        """Return the polls and jobs of two slices."""
        cut = {field.name: getattr(self, field.name)[polls] for field in fields(self)}
        return SampledMetrics(**{name: values if name == "at_s" else values[:, jobs] for name, values in cut.items()})

    @property
    def down(self) -> Bools:
        """(K, J): whether the job is down at the poll."""
        at = self.at_s[:, None]
        return (at >= self.down_from) & (at < self.down_until)


_WHOLE = frozenset({"parallelism", "completed", "restarts", "failures"})
_ROWS = (
    "down_from",
    "down_until",
    "completed",
    "restarts",
    "failures",
)
_FROM_STATE = {  # field of a sample -> field of the state
    "parallelism": "parallelism",
    "records_in": "records_in",
    "records_out": "records_out",
    "records_taken": "records_taken",
    "busy_s": "busy_s",
    "backpressured_s": "backpressured_s",
    "idle_s": "idle_s",
    "down_from": "down_from",
    "down_until": "down_until",
    "checkpoints": "checkpoints",
    "completed": "completed",
    "restarts": "restarts",
    "failures": "failures",
}


class SampleRecorder:
    """Collects gauges between polls and samples at polls."""

    def __init__(self, fleet: Fleet, polls: int) -> None:
        self._fleet = fleet
        self.samples = SampledMetrics.empty(polls, fleet)
        self._sums = np.zeros((6, *fleet.shape))
        self._steps = 0

    def add(self, time_s: float, flow: StepFlow) -> None:
        """Add one step that began at ``time_s``; the gauges begin again every minute."""
        if time_s % GAUGE_S == 0.0:
            self._sums[:], self._steps = 0.0, 0
        self._sums += (flow.in_per_s, flow.through_per_s, flow.working, flow.busy, flow.backpressured, flow.idle)
        self._steps += 1

    def poll(self, index: int, state: FleetState) -> None:
        """Keep what a poll at the state's time observes."""
        rate, through, working, busy, backpressured, idle = self._sums / self._steps
        retained, fleet = self.samples, self._fleet
        fetching_s = fetch_wait_s(fleet.fetch_delay_s, working)[:, None]
        retained.at_s[index] = state.time_s
        for name, origin in _FROM_STATE.items():
            getattr(retained, name)[index] = getattr(state, origin)
        retained.in_per_s[index], retained.taken_per_s[index] = rate * fleet.counted_in, rate
        retained.out_per_s[index] = through * fleet.output_ratio
        retained.busy[index], retained.backpressured[index], retained.idle[index] = busy, backpressured, idle
        waiting = state.backlog - state.buffered
        retained.pending[index] = waiting + np.where(fleet.is_source, rate, 0.0) * fetching_s
