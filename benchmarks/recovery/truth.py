"""What really happened in a restart of the simulated history: no poll shows it, the simulator's draws do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab.commands.history import STEP_S, HistoryRequest, draw_rates
from lab.simulation.catalogue import CatalogueJob
from lab.simulation.fleet import Fleet
from lab.simulation.history import SimulatedHistory
from lab.simulation.queueing import fetch_wait_s
from lab.simulation.randomness import capacity_noise
from lab.simulation.state import Restart, compute_downtime
from models.arrays import Floats, Ints

LONGEST_STEPS = 60


@dataclass(frozen=True, slots=True)
class Truth:
    """One restart.

    Attributes:
        recovery_s: from the stop until the backlog was ``lag_s`` of input; NaN if it was not within an hour.
        load_per_s, capacity_per_s: of all sources, means over the downtime and the catch-up, and over the catch-up.
        replayed: records that were to be processed besides those that arrived.
        expected_downtime_s, expected_capacity_per_s: with the simulator's parameters, without its draws.
    """

    recovery_s: float
    load_per_s: float
    capacity_per_s: float
    replayed: float
    expected_downtime_s: float
    expected_capacity_per_s: float


class Simulator:
    """The draws of a history, made again.

    Args:
        request: a history with a sample in every step.
        jobs: of it.
        fleet: of the jobs.
        history: the run.
    """

    def __init__(
        self, request: HistoryRequest, jobs: Sequence[CatalogueJob], fleet: Fleet, history: SimulatedHistory
    ) -> None:
        self._fleet, self._samples = fleet, history.samples
        self._rates = draw_rates(request, jobs, fleet)
        steps, width = len(self._rates), fleet.shape[1]
        self._noise = np.stack(
            [capacity_noise(spec, width, steps, STEP_S, request.seed) for spec in fleet.specs], axis=1
        )

    def tell(self, restart: Restart, end_s: float, lag_s: float) -> Truth:
        """Return the truth about a restart; ``end_s``: of what is known, or the next stop."""
        job, stop_s, running_s = restart.job, restart.down_from_s, restart.down_until_s
        first = int(running_s // STEP_S)
        steps = np.arange(first, min(first + LONGEST_STEPS, len(self._rates)))
        load, capacity = self._rates[steps, job].sum(axis=1), self._find_capacity(job, restart.after, steps)
        arrived = self._sum_arrived(job, stop_s, running_s)
        backlog = self._backlog(job, first) - load[0] * (STEP_S * (first + 1) - running_s)
        replayed = backlog - arrived
        at_s, drained_s = running_s, np.zeros(len(steps))
        for index, step in enumerate(steps.tolist()):
            until_s = min(STEP_S * (step + 1), end_s)
            fall = capacity[index] - load[index]
            rest = backlog - lag_s * load[index]
            needed_s = 0.0 if rest <= 0 else rest / fall if fall > 0 else np.inf
            drained_s[index] = min(needed_s, until_s - at_s)
            if at_s + needed_s <= until_s or until_s == end_s:
                at_s = at_s + needed_s if at_s + needed_s <= until_s else np.nan
                break
            backlog, at_s = backlog - fall * (until_s - at_s), until_s
        else:
            at_s = np.nan
        span_s = drained_s.sum()
        weights = drained_s / span_s if span_s > 0 else np.eye(1, len(steps))[0]
        nothing = np.ones((1, self._fleet.shape[1]))
        return Truth(
            recovery_s=at_s - stop_s,
            load_per_s=float((arrived + load @ drained_s) / (running_s - stop_s + span_s)),
            capacity_per_s=float(capacity @ weights),
            replayed=float(replayed),
            expected_downtime_s=compute_downtime(self._fleet, job, restart.state_bytes, restart.kind, 0.0),
            expected_capacity_per_s=float(self._highest(job, restart.after, nothing, self._rates[[first], job])[0]),
        )

    def _sum_arrived(self, job: int, start_s: float, end_s: float) -> float:
        steps = np.arange(int(start_s // STEP_S), int(end_s // STEP_S) + 1)
        span_s = np.minimum(STEP_S * (steps + 1), end_s) - np.maximum(STEP_S * steps, start_s)
        return float(self._rates[steps, job].sum(axis=1) @ span_s)

    def _backlog(self, job: int, step: int) -> float:
        """Return what the job emitted by the end of the step in which it came to run, and what waits then."""
        samples, sources = self._samples, self._fleet.is_source[job]
        wait_s = fetch_wait_s(self._fleet.fetch_delay_s[[job]], samples.busy[step, job][None])[0]
        waits = samples.pending[step, job] - samples.out_per_s[step, job] * wait_s
        return float((samples.records_out[step, job] + waits)[sources].sum())

    def _find_capacity(self, job: int, parallelism: Ints, steps: Ints) -> Floats:
        return self._highest(job, parallelism, self._noise[steps, job], self._rates[steps, job])

    def _highest(self, job: int, parallelism: Ints, noise: Floats, rates: Floats) -> Floats:
        """Return (K,) records/s that all sources can emit at the mix of some rates (K, O)."""
        p = np.maximum(parallelism, 0)
        capacity = self._fleet.curves[job, np.arange(len(p)), p] * noise
        need = (rates / rates.sum(axis=1, keepdims=True)) @ self._fleet.mean_gain[job].T
        with np.errstate(divide="ignore", invalid="ignore"):
            limit = np.where(self._fleet.present[job] & (need > 0), capacity / need, np.inf)
        return np.asarray(limit.min(axis=1))
