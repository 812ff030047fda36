"""The records that arrive at a job's sources during a run, counted at the broker: the same for every row."""

from __future__ import annotations

import numpy as np

from lab.replay.conditions import DecisionSchedule
from lab.replay.workload import Workload
from lab.simulation.queueing import QueueingNetwork
from models.arrays import Floats


class Arrivals:
    """Arrivals over W windows of K steps each, S sources.

    Args:
        workload: rates at the sources; steps after the last whole window are left out.
        network: of its job.
        cadence: lengths of windows and steps.

    Attributes:
        rates_per_s: (W K, S).
        total: (W K + 1, S) records that have arrived at the ends of steps, the beginning first.
        step_ends_s: (W K + 1,) seconds since the start.
        mean_load_per_s, top_load_per_s: (W, O) means and maxima of the load that they bring to operators.
    """

    def __init__(self, workload: Workload, network: QueueingNetwork, cadence: DecisionSchedule) -> None:
        steps = len(workload.rates_per_s) // cadence.steps * cadence.steps
        self.rates_per_s = workload.rates_per_s[:steps]
        self.total = np.zeros((steps + 1, self.rates_per_s.shape[1]))
        self.total[1:] = np.cumsum(self.rates_per_s * cadence.step_s, axis=0)
        self.step_ends_s = cadence.step_s * np.arange(steps + 1.0)
        loads = network.compute_load(self.rates_per_s)
        windows = loads.reshape(-1, cadence.steps, loads.shape[1])
        self.mean_load_per_s, self.top_load_per_s = windows.mean(axis=1), windows.max(axis=1)
        self._by_source = np.ascontiguousarray(self.total.T)  # np.interp copies anything else

    def find_oldest_age_s(self, backlog: Floats, first: int) -> Floats:
        """Return (n, K) how old the oldest unprocessed record is at the ends of steps; 0 without a backlog.

        Records are processed in order, so it is the one that arrived when as many had arrived as are processed now.

        Args:
            backlog: (n, K, S) at the ends of the K steps from ``first`` on.
            first: number of the first step.
        """
        oldest = np.zeros(backlog.shape[:2])
        last = first + backlog.shape[1] + 1
        for source, arrived in enumerate(self._by_source[:, :last]):
            waits = backlog[:, :, source] > 0.0
            end = first + 1 + np.nonzero(waits)[1]
            processed = arrived[end] - backlog[:, :, source][waits]
            age = self.step_ends_s[end] - np.interp(processed, arrived, self.step_ends_s[:last])
            oldest[waits] = np.maximum(oldest[waits], age)
        return oldest
