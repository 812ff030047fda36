"""ContTune and DS2 on one query."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.papers.conttune.queries import SLOTS, Query
from benchmarks.papers.conttune.query_runs import PERMUTATIONS, Change, Outcome, run_tuner
from lab.policies.conttune.tuning_loop import big_step, largest
from lab.policies.tuning.small import OperatorProblem, propose
from lab.policies.tuning.tuning_options import ALPHA, Acquisition
from lab.simulation.testbed import Testbed, TestbedWindow
from models.arrays import Floats, Ints
from models.policies.tuning import KEEP
from models.policies.tuning.capacity_history import History, add_observations


@dataclass(frozen=True, slots=True)
class Method:
    """A variant of ContTune.

    Attributes:
        alpha: radius of the known region.
        acquisition: ``LINEAR`` is DS2.
        keep: K, samples per parallelism; 1 is no Top-K.
        big: whether the Big phase is carried out and counted, as in Algorithm 1; else the real rates are known
            without it.
    """

    alpha: int = ALPHA
    acquisition: Acquisition = Acquisition.FEASIBLE
    keep: int = KEEP
    big: bool = True


DS2 = Method(acquisition=Acquisition.LINEAR, big=False)


def run(query: Query, method: Method, seeds: int) -> Outcome:
    """Tune a query through the whole workload; histories live as long as a permutation."""
    return run_tuner(query, ContTuneTuner(method, seeds * PERMUTATIONS), seeds)


@dataclass(slots=True)
class _Job:
    histories: list[History]
    p_max: int = 1
    is_tuning: bool = True
    rates_shown: bool = False


class ContTuneTuner:
    """ContTune's two phases on every job of a fleet.

    Args:
        method: its variant.
        jobs: J.
    """

    def __init__(self, method: Method, jobs: int) -> None:
        self._method = method
        self._jobs = [_Job([]) for _ in range(jobs)]

    def begin(self, _factor: Ints) -> None:
        """Begin a tuning of every job."""
        for job in self._jobs:
            job.is_tuning, job.rates_shown = True, not self._method.big

    def is_tuning(self) -> bool:
        """Return whether any job has not settled yet."""
        return any(job.is_tuning for job in self._jobs)

    def next(self, bed: Testbed, window: TestbedWindow, rate: Floats) -> list[Change]:
        """Let every job that has not settled observe and take one step."""
        required = bed.fleet.network.compute_load(rate)
        changes: list[Change] = []
        requested: list[int] = []
        problems: list[OperatorProblem] = []
        for job, state in enumerate(self._jobs):
            if not state.is_tuning:
                continue
            running = [int(count) for count in window.parallelism[job]]
            capacity = [float(value) for value in window.true_in_per_s[job]]
            state.histories = [
                add_observations(history, [(count, value, math.nan, 0.0, False)], self._method.keep)
                for history, count, value in zip(state.histories or [()] * len(running), running, capacity, strict=True)
            ]
            state.p_max = max(state.p_max, largest(state.histories))
            if not state.rates_shown and (required[job] > capacity).any():
                big, state.p_max = big_step(_by_name(running), state.p_max, limit=SLOTS)
                changes.append(Change(job, np.array(list(big.values()), np.int64), upward=True))
                continue
            state.rates_shown = True
            requested.append(job)
            problems += [
                OperatorProblem(*values, state.p_max)
                for values in zip(state.histories, map(float, required[job]), running, capacity, strict=True)
            ]
        return changes + self._small(window, required, requested, problems)

    def _small(
        self, window: TestbedWindow, required: Floats, requested: list[int], problems: list[OperatorProblem]
    ) -> list[Change]:
        """Return the steps of the Small phase of some jobs; one that would change nothing ends the tuning."""
        suggestions = iter(propose(problems, alpha=self._method.alpha, acquisition=self._method.acquisition))
        changes = []
        for job in requested:
            running = [int(count) for count in window.parallelism[job]]
            wanted = [min(next(suggestions).parallelism, SLOTS) for _ in running]
            if wanted == running:
                self._jobs[job].is_tuning = False
            else:
                short = bool((required[job] > window.true_in_per_s[job]).any())
                changes.append(Change(job, np.array(wanted, np.int64), upward=short))
        return changes


def _by_name(running: list[int]) -> dict[str, int]:
    return {str(place): count for place, count in enumerate(running)}
