"""The planner through ContTune's schedule: all permutations of a query and all seeds as one simulated fleet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from benchmarks.announced.learning import models_of
from benchmarks.papers.conttune.conttune_experiments import Method
from benchmarks.papers.conttune.conttune_experiments import run as tune
from benchmarks.papers.conttune.queries import SLOTS, Query
from benchmarks.papers.conttune.query_runs import DATA_S, PERMUTATIONS, RATES, WATCH_S, workload
from include.settings import Planner as Settings
from models.arrays import Bools, Floats, Ints
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import Situation
from models.policies.tidewise.reactive_controller import evaluate_job
from models.policies.tidewise.tidewise_memory import ControllerMemory
from models.policies.tidewise.tidewise_policy import Planner
from models.policies.tuning.capacity_history import History
from models.policies.tuning.reading import learn_histories, select_new_windows
from models.scheduling.demand import LEVELS, SourceForecast
from models.simulation.testbed import Testbed, Window, observations

# What the planner is told of the experiment.  It knows neither downtimes nor failures, so nothing is sent ahead and
# nothing is kept for them.  The prices are the exchange rate between its two figures: with 0.03, a reconfiguration is
# worth 1.35 slots of 90 for the 600 s of a rate; a rate that is not sustained costs 4, that is 133 of them.
SETTINGS: Final = {
    "costs.failures_per_day": 0.0,
    "timing.lead_margin_s": 0.0,
    "timing.max_lead_s": 0,
    "timing.apply_every_s": round(WATCH_S),
    "costs.rescale_weight": 0.03,
    "costs.rescale_margin": 1.0,  # the rates are certain
    "costs.late_weight": 0.4,
    "costs.overload_tolerance": 0.0,  # every rate is to be sustained
    "costs.overload_slots_share": 0.0,  # what the reactive controller adds is what is needed
    "reactive.overload": 10.0,  # abilities are measured with up to 19% noise: only records that wait prove a shortage
    "reactive.utilisation_target": 0.85,
}
KEPT = 20  # K, abilities kept per parallelism: the windows of one rate
SHOWN = 4  # windows that an evaluation is shown; those that it has learnt from already it passes over
_EVALUATIONS = round(DATA_S / WATCH_S)
_ROUNDING = 1e-9  # relative: a load that equals the ability is sustained


@dataclass(frozen=True, slots=True)
class Announced:
    """How the rates are known beforehand.

    Attributes:
        error: an announced rate is the true one times a factor drawn evenly from 1 -+ this.
        settings: of the planner.
    """

    error: float = 0.0
    settings: Settings = field(default_factory=lambda: Settings().with_values(SETTINGS))


@dataclass(frozen=True, slots=True)
class Course:
    """What a candidate policy did; S seeds, six permutations, 20 rates; all (S, 6, 20).

    Attributes:
        reconfigurations: while each rate lasted, the one with which it began included.
        core_s: integral of the largest parallelism over the 600 s.
        sustained: whether the configuration at the end can process the rate.
    """

    reconfigurations: Ints
    core_s: Floats
    sustained: Bools


def can_sustain(query: Query, parallelism: Ints, factor: Ints) -> Bools:
    """Return whether the tuned operator can process a rate, (...) for parallelism and workload units of that shape."""
    capacity = query.capacity_per_s[np.minimum(parallelism, len(query.capacity_per_s)) - 1]
    return np.asarray(capacity >= factor * sum(query.unit_per_s.values()) * (1 - _ROUNDING))


def least_cores(query: Query, seeds: int) -> Floats:
    """Return (S, 6, 20) the fewest cores that sustain each rate, which nobody knows beforehand."""
    needed = workload(seeds)[..., None] * sum(query.unit_per_s.values()) * (1 - _ROUNDING)
    return np.asarray((query.capacity_per_s >= needed).argmax(axis=-1) + 1, float)


def reactive(query: Query, method: Method, seeds: int) -> Course:
    """Run ContTune or DS2, which learn a rate when it is there."""
    result = tune(query, method, seeds)
    return Course(result.reconfigurations, result.core_s, can_sustain(query, result.cores, result.factor))


def announcements(seeds: int, error: float) -> Floats:
    """Return (S, 6, 20) announced rates in workload units."""
    true = workload(seeds).astype(float)
    draws = [np.random.default_rng([seed, PERMUTATIONS]) for seed in range(seeds)]
    return true * np.stack([draw.uniform(1.0 - error, 1.0 + error, true.shape[1:]) for draw in draws])


def forecast_of(query: Query, factor: Floats, tuning: int, error: float) -> SourceForecast:
    """Return the announced rates from one tuning on, to the end of the schedule.

    With a factor drawn evenly from 1 -+ error the rate that comes is announced / factor, whose quantile at level q is
    announced / (1 + error (1 - 2 q)).

    Args:
        query: gives the rates of a unit.
        factor: (20,) announced, in workload units.
        tuning: the one that is under way.
        error: of :class:`Announced`.
    """
    spread = 1.0 / (1.0 + error * (1.0 - 2.0 * np.array(LEVELS)))
    units = spread[:, None] * factor[None, tuning:]
    quantiles = {source: unit * units for source, unit in query.unit_per_s.items()}
    return SourceForecast(round(tuning * DATA_S), round(DATA_S), quantiles)


@dataclass(slots=True)
class _Job:
    memory: ControllerMemory
    histories: dict[str, History] = field(default_factory=dict)
    learned_until_s: float | None = None
    windows: list[Window] = field(default_factory=list)


def run_planner(query: Query, how: Announced, seeds: int, permutations: int = PERMUTATIONS) -> Course:
    """Run the planner: what it knows of the job is what it has observed since the permutation began.

    It plans 30 s before a rate ends, from all that is announced; the first time as soon as it has seen a window.  The
    reactive controller evaluates every 30 s, as ContTune's steps come.  As there, reconfigurations take no time and
    what is left when a rate ends is dropped.

    Args:
        query: the job.
        how: the announcement.
        seeds: S.
        permutations: only so many of the six.
    """
    factor, reported = workload(seeds)[:, :permutations], announcements(seeds, how.error)[:, :permutations]
    flat, flat_reported = factor.reshape(-1, RATES), reported.reshape(-1, RATES)
    specs = [query.job(f"{query.name}-{number}") for number in range(len(flat))]
    start = np.ones((len(flat), len(specs[0].operators)), np.int64)
    bed = Testbed(specs, start, step_s=WATCH_S, seed=1, measurement_noise=query.noise)
    unit = np.zeros(start.shape[1])
    unit[: len(query.unit_per_s)] = list(query.unit_per_s.values())
    states = [_Job(Planner().first_memory()) for _ in flat]
    counts, core_s = np.zeros(flat.shape, np.int64), np.zeros(flat.shape)
    cores = np.zeros(flat.shape, np.int64)
    for tuning in range(RATES):
        rate = flat[:, tuning, None] * unit
        for number in range(_EVALUATIONS):
            ends = number == _EVALUATIONS - 1
            for job, state in enumerate(states):
                forecast = forecast_of(query, flat_reported[job], tuning, how.error)
                counts[job, tuning] += _decide(bed, job, state, forecast, how.settings, plans=ends)
            cores[:, tuning] = bed.state.parallelism.max(axis=1)
            core_s[:, tuning] += cores[:, tuning] * WATCH_S
            window = bed.run(rate, WATCH_S)
            for state in states:
                state.windows = [*state.windows, window][-SHOWN:]
        for job in range(len(states)):
            bed.drain(job)
    shape = factor.shape
    held = can_sustain(query, cores.reshape(shape), factor)
    return Course(counts.reshape(shape), core_s.reshape(shape), held)


def _decide(bed: Testbed, job: int, state: _Job, forecast: SourceForecast, settings: Settings, *, plans: bool) -> int:
    """Plan if a plan is due, evaluate, and carry out what that wants; return the number of reconfigurations."""
    graph, now_s = bed.fleet.specs[job].graph(), round(bed.time_s)
    if not state.windows:
        return 0
    observed = observations(state.windows, job, len(graph.names))
    state.histories = learn_histories(state.histories, graph, select_new_windows(observed, state.learned_until_s), KEPT)
    state.learned_until_s = bed.time_s
    running = dict(zip(graph.names, bed.state.parallelism[job].tolist(), strict=True))
    models = models_of(state.histories, SLOTS) if plans or not state.memory.planned else None
    if models is not None:
        situation = Situation(now_s, graph, running, models, forecast, SLOTS, settings, observed)
        _, state.memory = Planner().decide(situation, state.memory)
    reported, state.memory = evaluate_job(
        Snapshot(now_s, graph, running, True, observed, SLOTS, settings), state.memory
    )
    if reported.wanted is None or dict(reported.wanted) == running:
        return 0
    bed.rescale(job, np.array([reported.wanted[name] for name in graph.names], np.int64), downtime_s=0.0)
    return 1
