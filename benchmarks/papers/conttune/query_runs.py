"""A query under the whole workload, tuned by any method: all permutations and all seeds as one simulated fleet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.papers.conttune.queries import Query
from lab.policies.mdp_rl.queueing import response_s
from lab.simulation.testbed import Testbed, TestbedWindow
from models.arrays import Floats, Ints

PERMUTATIONS = 6
RATES = 20  # a permutation of 1..10 units, twice
DATA_S = 600.0  # of source data per rate
# How long a configuration is observed before the next step; the paper does not say.
WATCH_S = 30.0


@dataclass(frozen=True, slots=True)
class Change:
    """A reconfiguration that a tuner wants now.

    Attributes:
        job: index in the fleet.
        parallelism: (O,) from now on.
        upward: whether the job is under-provisioned.
    """

    job: int
    parallelism: Ints
    upward: bool


class Tuner(Protocol):
    """Tunes every job of a fleet; it keeps the jobs' memories."""

    def begin(self, factor: Ints) -> None:
        """Begin a tuning of every job: (J,) its rate in workload units is another."""
        ...

    def next(self, bed: Testbed, window: TestbedWindow, rate: Floats) -> list[Change]:
        """Return what is to be changed after a window at source rates (J, O)."""
        ...

    def is_tuning(self) -> bool:
        """Return whether any job has not settled yet."""
        ...


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
        backlogged: records that waited when the job was reconfigured, over the records that arrived.
        latency_ms: mean response time of the slowest operator, an M/D/1 queue per instance, with the configuration that
            the tuning ended with and no backlog; infinite where that does not sustain the rate.
    """

    reconfigurations: Ints
    upward: Ints
    factor: Ints
    cores: Ints
    most_cores: Ints
    core_s: Floats
    backlog_s: Floats
    backlogged: Floats
    latency_ms: Floats

    @property
    def mean_per_seed(self) -> Floats:
        """(S,) mean reconfigurations per tuning, a cell of Table 4a."""
        return np.asarray(self.reconfigurations.mean(axis=(1, 2)), float)


_WHOLE = ("reconfigurations", "upward", "cores", "most_cores")
_REAL = ("core_s", "backlog_s", "backlogged", "latency_ms")


def workload(seeds: int) -> Ints:
    """Return (S, 6, 20) rates in workload units; the paper's permutations are random and not published."""
    orders = [
        np.tile(np.random.default_rng([seed, number]).permutation(10) + 1, 2)
        for seed in range(seeds)
        for number in range(PERMUTATIONS)
    ]
    return np.asarray(orders, np.int64).reshape(seeds, PERMUTATIONS, RATES)


def run_tuner(query: Query, tuner: Tuner, seeds: int) -> Outcome:
    """Tune a query through the whole workload.

    Every change of the rate is a tuning and starts from where the last one ended.  Reconfigurations take no simulated
    time: their cost is charged by the accounting of Table 4d.
    """
    factor = workload(seeds)
    flat = factor.reshape(-1, RATES)
    specs = [query.job(f"{query.name}-{number}") for number in range(len(flat))]
    operators = len(specs[0].operators)
    start = np.ones((len(flat), operators), np.int64)
    bed = Testbed(specs, start, step_s=WATCH_S, seed=1, measurement_noise=query.noise, has_buffers=False)
    unit = np.zeros(operators)
    unit[: len(query.unit_per_s)] = list(query.unit_per_s.values())
    parts = {name: np.zeros(flat.shape) for name in (*_WHOLE, *_REAL)}
    for tuning in range(RATES):
        tuner.begin(flat[:, tuning])
        _tune(bed, flat[:, tuning, None] * unit, tuner, {name: values[:, tuning] for name, values in parts.items()})
    shaped = {name: values.reshape(factor.shape) for name, values in parts.items()}
    whole: dict[str, Any] = {name: shaped[name].astype(np.int64) for name in _WHOLE}
    real: dict[str, Any] = {name: shaped[name] for name in _REAL}
    return Outcome(factor=factor, **whole, **real)


def _tune(bed: Testbed, rate: Floats, tuner: Tuner, into: dict[str, Floats]) -> None:
    """Run one rate of all jobs: watch and step until each has settled, then the rest of its 600 s."""
    remaining_s = DATA_S
    arriving = rate.sum(axis=1)
    while remaining_s > 0:
        seconds = WATCH_S if tuner.is_tuning() else remaining_s
        cores = bed.state.parallelism.max(axis=1)
        window = bed.run(rate, seconds)
        remaining_s -= seconds
        into["core_s"] += cores * seconds
        into["most_cores"][:] = np.maximum(into["most_cores"], cores)
        if remaining_s > 0:
            for change in tuner.next(bed, window, rate):
                job = change.job
                into["backlogged"][job] += bed.state.backlog[job].sum() / (arriving[job] * DATA_S)
                into["reconfigurations"][job] += 1
                into["upward"][job] += change.upward
                bed.rescale(job, change.parallelism, downtime_s=0.0)
    load, capacity = bed.fleet.network.compute_load(rate), bed.fleet.capacity(bed.state.parallelism)
    with np.errstate(divide="ignore"):
        spare = np.where(load > 0, capacity / load, np.inf).min(axis=1)
    into["backlog_s"][:] = bed.state.backlog.sum(axis=1) / (arriving * spare)
    into["cores"][:] = bed.state.parallelism.max(axis=1)
    parallelism = np.maximum(bed.state.parallelism, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        response = np.where(load > 0, response_s(load / capacity, capacity / parallelism), 0.0)
    into["latency_ms"][:] = 1000.0 * response.max(axis=1)
    for job in range(len(arriving)):
        bed.drain(job)
