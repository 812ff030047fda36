"""Windows of a job as a whole, for policies that know one scale-out, one load and one utilisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.domain.graph import JobGraph
from lab.policies.undisturbed_windows import NO_LOAD_PER_S
from models.arrays import Bools, Floats, Ints
from models.policies.observations import Observations


@dataclass(frozen=True, slots=True)
class PolicyWindows:
    """Windows of a job, oldest first; (W,) each, NaN where something was not measured.

    Attributes:
        end_s: epoch seconds.
        workers: that the job occupies: operators share slots, so the largest parallelism.
        arrived_per_s: records/s at all sources; what they took in where arrivals are not measured.
        taken_per_s: records/s that all sources took in.
        use: share of the time in which the busiest operator works, 0..1, as if it ran on all workers.
        waiting: records of the backlog at all sources.
        disturbed: the window overlaps a rescale or restart.
    """

    end_s: Ints
    workers: Ints
    arrived_per_s: Floats
    taken_per_s: Floats
    use: Floats
    waiting: Floats
    disturbed: Bools

    @classmethod
    def of(cls, graph: JobGraph, observations: Observations) -> PolicyWindows:
        """Return the windows of a job.

        Deviation: papers measure a worker's CPU.  Flink reports how busy subtasks are; what a job can process ends
        where its busiest operator works all the time, which is what utilisation stands for here.
        """
        sources = [graph.position(name) for name in graph.sources]
        workers = observations.parallelism.max(axis=1, initial=0)
        measured = np.isfinite(observations.busy_share)
        busiest = (np.where(measured, observations.busy_share, 0.0) * observations.parallelism).max(axis=1, initial=0.0)
        share = np.minimum(busiest / np.maximum(workers, 1), 1.0)
        use = np.where(measured.any(axis=1) & (workers > 0), share, np.nan)
        taken = observations.processing_rate_per_s[:, sources] if workers.size else np.zeros((0, 1))
        arrived = observations.target_data_rate_per_s[:, sources] if workers.size else taken
        waiting = observations.waiting_records[:, sources] if workers.size else taken
        return cls(
            observations.window_start_s + observations.window_s,
            workers.astype(np.int64),
            np.where(np.isfinite(arrived), arrived, taken).sum(axis=1),
            taken.sum(axis=1),
            use,
            np.nansum(waiting, axis=1),
            observations.disturbed,
        )

    def __len__(self) -> int:
        """Return W."""
        return len(self.end_s)

    @property
    def is_steady(self) -> Bools:
        """(W,) whether a window tells what a utilisation processes: undisturbed, with both of them measured."""
        known = (self.use > 0) & (self.taken_per_s >= NO_LOAD_PER_S)  # neither is NaN
        return np.asarray(known & np.isfinite(self.taken_per_s) & ~self.disturbed & (self.workers > 0))
