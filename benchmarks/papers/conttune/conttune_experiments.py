"""One tuning method on one query: all permutations of the workload and all seeds as one simulated fleet."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.papers.conttune.queries import SLOTS, Query
from models.arrays import Floats, Ints
from models.policies.conttune.capacity_history import History, add_observation, largest
from models.policies.conttune.conttune_options import ALPHA, KEEP, Acquisition
from models.policies.conttune.small import OperatorProblem, propose
from models.policies.conttune.tuning_loop import big_step
from models.simulation.testbed import Testbed, Window

PERMUTATIONS = 6
RATES = 20  # a permutation of 1..10 units, twice
DATA_S = 600.0  # of source data per rate
# How long a configuration is observed before the next step; the paper does not say.
WATCH_S = 30.0


@dataclass(frozen=True, slots=True)
class Method:
    """A variant of ContTune.

    Attributes:
        alpha: radius of the known region.
        acquisition: ``LINEAR`` is DS2.
        keep: K, samples per parallelism; 1 is no Top-K.
        big: whether the Big phase is carried out and counted; else the real rates are known without it.
    """

    alpha: int = ALPHA
    acquisition: Acquisition = Acquisition.FEASIBLE
    keep: int = KEEP
    big: bool = False


DS2 = Method(acquisition=Acquisition.LINEAR)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a method; S seeds, six permutations, 20 rates; all (S, 6, 20).

    Attributes:
        reconfigurations: of the tuning at each rate.
        upward: those made while the job was under-provisioned.
        factor: the rate, in workload units.
        cores: largest parallelism when the tuning ended.
        most_cores: largest parallelism during it.
        core_s: integral of the largest parallelism over the 600 s.
        backlog_s: time to process what was left after them.
    """

    reconfigurations: Ints
    upward: Ints
    factor: Ints
    cores: Ints
    most_cores: Ints
    core_s: Floats
    backlog_s: Floats

    @property
    def mean_per_seed(self) -> Floats:
        """(S,) mean reconfigurations per tuning, a cell of Table 4a."""
        return np.asarray(self.reconfigurations.mean(axis=(1, 2)), float)


@dataclass(slots=True)
class _Job:
    histories: list[History]
    p_max: int = 1
    tuning: bool = True
    rates_shown: bool = False
    counts: list[int] = field(default_factory=lambda: [0, 0])


def workload(seeds: int) -> Ints:
    """Return (S, 6, 20) rates in workload units; the paper's permutations are random and not published."""
    orders = [
        np.tile(np.random.default_rng([seed, number]).permutation(10) + 1, 2)
        for seed in range(seeds)
        for number in range(PERMUTATIONS)
    ]
    return np.asarray(orders, np.int64).reshape(seeds, PERMUTATIONS, RATES)


def run(query: Query, method: Method, seeds: int) -> Outcome:
    """Tune a query through the whole workload.

    Every change of the rate is a tuning and starts from where the last one ended; histories live as long as a
    permutation.  Reconfigurations take no simulated time: their cost is charged by the accounting of Table 4d.
    """
    factor = workload(seeds)
    flat = factor.reshape(-1, RATES)
    jobs = len(flat)
    specs = [query.job(f"{query.name}-{number}") for number in range(jobs)]
    operators = len(specs[0].operators)
    start = np.ones((jobs, operators), np.int64)
    bed = Testbed(specs, start, step_s=WATCH_S, seed=1, measurement_noise=query.noise)
    unit = np.zeros(operators)
    unit[: len(query.unit_per_s)] = list(query.unit_per_s.values())
    states = [_Job([()] * operators) for _ in range(jobs)]
    parts = {name: np.zeros((jobs, RATES)) for name in _PARTS}
    for tuning in range(RATES):
        rate = flat[:, tuning, None] * unit
        for state in states:
            state.tuning, state.rates_shown, state.counts = True, not method.big, [0, 0]
        _tune(bed, rate, states, method, {name: values[:, tuning] for name, values in parts.items()})
    shaped = {name: values.reshape(factor.shape) for name, values in parts.items()}
    whole = {name: values.astype(np.int64) for name, values in shaped.items() if not name.endswith("_s")}
    return Outcome(factor=factor, core_s=shaped["core_s"], backlog_s=shaped["backlog_s"], **whole)


_PARTS = ("reconfigurations", "upward", "cores", "most_cores", "core_s", "backlog_s")


def _tune(bed: Testbed, rate: Floats, states: list[_Job], method: Method, into: dict[str, Floats]) -> None:
    """Run one rate of all jobs: watch and step until each has settled, then the rest of its 600 s."""
    left_s = DATA_S
    while left_s > 0:
        seconds = WATCH_S if any(state.tuning for state in states) else left_s
        cores = bed.state.parallelism.max(axis=1)
        window = bed.run(rate, seconds)
        left_s -= seconds
        into["core_s"] += cores * seconds
        into["most_cores"][:] = np.maximum(into["most_cores"], cores)
        if left_s > 0:
            _step(bed, window, rate, states, method)
    load = bed.fleet.network.compute_load(rate)
    with np.errstate(divide="ignore"):
        spare = np.where(load > 0, bed.fleet.capacity(bed.state.parallelism) / load, np.inf).min(axis=1)
    into["backlog_s"][:] = bed.state.backlog.sum(axis=1) / (rate.sum(axis=1) * spare)
    into["cores"][:] = bed.state.parallelism.max(axis=1)
    into["reconfigurations"][:] = [sum(state.counts) for state in states]
    into["upward"][:] = [state.counts[0] for state in states]
    for job in range(len(states)):
        bed.drain(job)


def _step(bed: Testbed, window: Window, rate: Floats, states: list[_Job], method: Method) -> None:
    """Let every job that is not settled observe and take one step."""
    required = bed.fleet.network.compute_load(rate)
    requested: list[int] = []
    problems: list[OperatorProblem] = []
    for job, state in enumerate(states):
        if not state.tuning:
            continue
        running = [int(count) for count in window.parallelism[job]]
        capacity = [float(value) for value in window.true_in_per_s[job]]
        state.histories = [
            add_observation(history, count, value, keep=method.keep)
            for history, count, value in zip(state.histories, running, capacity, strict=True)
        ]
        state.p_max = max(state.p_max, largest(state.histories))
        if not state.rates_shown and (required[job] > capacity).any():
            big, state.p_max = big_step(_by_name(running), state.p_max, limit=SLOTS)
            _apply(bed, job, state, list(big.values()), upward=True)
            continue
        state.rates_shown = True
        requested.append(job)
        problems += [
            OperatorProblem(*values, state.p_max)
            for values in zip(state.histories, map(float, required[job]), running, capacity, strict=True)
        ]
    suggestions = iter(propose(problems, alpha=method.alpha, acquisition=method.acquisition))
    for job in requested:
        running = [int(count) for count in window.parallelism[job]]
        wanted = [min(next(suggestions).parallelism, SLOTS) for _ in running]
        if wanted == running:
            states[job].tuning = False
        else:
            short = bool((required[job] > window.true_in_per_s[job]).any())
            _apply(bed, job, states[job], wanted, upward=short)


def _by_name(running: list[int]) -> dict[str, int]:
    return {str(place): count for place, count in enumerate(running)}


def _apply(bed: Testbed, job: int, state: _Job, wanted: list[int], *, upward: bool) -> None:
    bed.rescale(job, np.array(wanted, np.int64), downtime_s=0.0)
    state.counts[0 if upward else 1] += 1
