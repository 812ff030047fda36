"""Inputs of ContTune from a job's windows: capacities, real rates and the load of the job."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from include.domain.graph import JobGraph
from models.arrays import Floats, Ints
from models.policies.conttune.capacity_history import History, add_observation
from models.policies.conttune.controller import backpressure_share
from models.policies.observations import Observations
from models.policies.window_means import hides_demand
from models.topology import measure_edge_ratios, required_rates

NO_RATES: Mapping[str, float] = {}


@dataclass(frozen=True, slots=True)
class Reading:
    """A job at its running parallelism, means over windows.

    Attributes:
        capacity_per_s: operator -> PA, records/s; NaN when it did not work.
        required_per_s: operator -> lambda; NaN when it is not known.
        arrivals_known: whether lambda comes from the rates at which records arrive; else from what was processed,
            which is the real rate only without backpressure.
        taken_per_s: source -> records/s that it took in.
        backlog: source -> records that wait there at the end of the last window; 0 where that is not measured.
        backpressured: largest share of backpressure of the operators.
        cpu_usage: 0..1.
    """

    capacity_per_s: Mapping[str, float]
    required_per_s: Mapping[str, float]
    arrivals_known: bool
    backpressured: float
    cpu_usage: float
    taken_per_s: Mapping[str, float] = field(default_factory=dict)
    backlog: Mapping[str, float] = field(default_factory=dict)

    @property
    def short(self) -> bool:
        """Whether an operator is known to process less than it has to."""
        return any(need > self.capacity_per_s[name] for name, need in self.required_per_s.items())


def select_new_windows(observations: Observations, since_s: float | None) -> Observations:
    """Return the windows that were not read before and that no restart disturbed."""
    newer = observations if since_s is None else observations.since(since_s)
    return newer.rows(np.flatnonzero(~newer.disturbed)) if len(newer) else newer


def learn_histories(
    histories: Mapping[str, History], graph: JobGraph, fresh: Observations, keep: int
) -> dict[str, History]:
    """Return operator -> history with the capacities of the windows that are busy enough to tell, oldest first."""
    learned = {name: histories.get(name, ()) for name in graph.names}
    for row in range(len(fresh)):
        for place, name in enumerate(graph.names):
            at, capacity = int(fresh.parallelism[row, place]), float(fresh.true_processing_rate_per_s[row, place])
            busy, at_s = float(fresh.busy_share[row, place]), float(fresh.window_start_s[row])
            learned[name] = add_observation(learned[name], at, capacity, keep=keep, busy=busy, at_s=at_s)
    return learned


def read_windows(
    graph: JobGraph,
    fresh: Observations,
    running: Mapping[str, int],
    *,
    headroom: float = 0.0,
    catch_up_s: float | None = None,
    at_least_per_s: Mapping[str, float] = NO_RATES,
) -> Reading | None:
    """Return the means over the windows of the running configuration; None when there is none.

    Rates at which records arrive count as known only if the last window shows them: one before it in which nothing was
    held up says nothing of what arrives now.

    Deviation: the CPU usage of machines is not measured; the share of its time that the busiest operator works stands
    for it.

    Args:
        graph: the job, in whose order the windows are.
        fresh: undisturbed windows.
        running: operator -> parallelism.
        headroom: by which share the rates of the sources count as higher.
        catch_up_s: within which the backlogs are to be worked off, which counts as demand; None for no such demand.
        at_least_per_s: source -> records/s that are known to arrive at least.
    """
    if not len(fresh):
        return None
    counts = np.array([running[name] for name in graph.names], np.int64)
    as_now: Ints = np.flatnonzero(((fresh.parallelism == counts) | (fresh.parallelism < 1)).all(axis=1))
    if not as_now.size:
        return None
    now = fresh.rows(as_now)
    busy, idle, backpressured = (_mean(values) for values in (now.busy_share, now.idle_share, now.backpressured_share))
    shares = [backpressure_share(*map(_finite_or_zero, share)) for share in zip(backpressured, idle, busy, strict=True)]
    arriving = _mean(now.target_data_rate_per_s)
    taken = _mean(now.processing_rate_per_s)
    sources = [graph.position(name) for name in graph.sources]
    known = all(math.isfinite(arriving[place]) for place in sources) and not hides_demand(now, graph)[-1]
    backlog = {graph.names[place]: _finite_or_zero(now.pending_records[-1, place]) for place in sources}
    rates = {
        graph.names[place]: (1.0 + headroom)
        * float(np.fmax((arriving if known else taken)[place], at_least_per_s.get(graph.names[place], math.nan)))
        + (backlog[graph.names[place]] / catch_up_s if catch_up_s else 0.0)
        for place in sources
    }
    ratios = measure_edge_ratios(graph, now.processing_rate_per_s, now.output_rate_per_s)
    required = required_rates(graph, ratios, rates)
    capacity = _mean(now.true_processing_rate_per_s)
    return Reading(
        capacity_per_s=dict(zip(graph.names, map(float, capacity), strict=True)),
        required_per_s={name: float(required[name]) for name in graph.names},
        arrivals_known=known,
        backpressured=max(shares),
        cpu_usage=max(map(_finite_or_zero, busy)),
        taken_per_s={graph.names[place]: _finite_or_zero(taken[place]) for place in sources},
        backlog=backlog,
    )


def _mean(values: Floats) -> Floats:
    """Return the mean over windows without the ones that are not known, NaN where none is."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(count > 0, np.where(known, values, 0.0).sum(axis=0) / count, np.nan), float)


def _finite_or_zero(value: float) -> float:
    return float(value) if math.isfinite(value) else 0.0
