"""Inputs of tuning steps from a job's windows: capacities, real rates and the load of the job."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from include.domain.graph import JobGraph
from models.arrays import Floats, Ints
from models.capacity.held_up import CLEAR, SATURATED, find_held_up_share
from models.policies.observations import Observations
from models.policies.tuning.capacity_history import History, add_observations
from models.policies.window_means import hides_demand
from models.topology import measure_edge_ratios, required_rates

NO_RATES: Mapping[str, float] = {}
SPAN_S = 60
"""Shorter windows are taken together: records come in bursts, and wait in buffers between operators."""


@dataclass(frozen=True, slots=True)
class MeanMetrics:
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
    is_new = True if since_s is None else observations.window_start_s >= since_s
    return observations.rows(np.flatnonzero(is_new & ~observations.disturbed))


def learn_histories(
    histories: Mapping[str, History], graph: JobGraph, fresh: Observations, keep: int
) -> dict[str, History]:
    """Return operator -> history with the capacities of the windows that are busy enough to tell, oldest first.

    Windows shorter than a minute count together, as far as they follow each other at one parallelism.
    """
    learned = {name: histories.get(name, ()) for name in graph.names}
    if not len(fresh):
        return learned
    # All spans at once: one by one, NumPy's calls for a job's two hours of minutes take 20 ms, so they take 1.
    capacity, busy, held_up = _read_spans(fresh, graph, firsts := _list_spans(fresh))
    is_limit = (held_up >= SATURATED) & (held_up > busy + CLEAR)
    busy = np.where(is_limit, held_up, busy)
    at, at_s = fresh.parallelism[firsts], fresh.window_start_s[firsts].astype(float).tolist()
    for place, name in enumerate(graph.names):
        counts, capacities, shares, limits = (one[:, place].tolist() for one in (at, capacity, busy, is_limit))
        observed = zip(counts, capacities, shares, at_s, limits, strict=True)
        learned[name] = add_observations(learned[name], observed, keep)
    return learned


def _read_spans(windows: Observations, graph: JobGraph, firsts: Ints) -> tuple[Floats, Floats, Floats]:
    """Return (S, O) capacity, mean busy share and mean share of holding up in spans, by their (S,) first rows."""
    held_up = _measure_held_up(windows, graph)
    lengths, shape = np.diff([*firsts.tolist(), len(windows)]), (len(firsts), len(graph.names))
    capacity, busy, held = np.empty(shape), np.empty(shape), np.empty(shape)
    for length in np.unique(lengths).tolist():
        own = np.flatnonzero(lengths == length)
        rows = firsts[own][:, None] + np.arange(length)
        capacity[own] = _divide_by_useful_time(windows, held_up, rows)
        busy[own], held[own] = _mean(windows.busy_share[rows]), _mean(held_up[rows])
    return capacity, busy, held


def measure_capacity(windows: Observations, graph: JobGraph) -> Floats:
    """Return (O,) the capacity over W windows of one parallelism: Eq. 1 of ContTune over their time, NaN without work.

    Records by useful time, each summed: an operator that takes its records in bursts, as behind a window or a full
    buffer, works in windows in which it takes none.  Those count as busy time, where the mean of the windows'
    capacities would leave them out and be too high.  Time in which it held up what feeds it is useful, too.
    """
    return np.asarray(
        _divide_by_useful_time(windows, _measure_held_up(windows, graph), np.arange(len(windows))[None])[0]
    )


def _divide_by_useful_time(windows: Observations, held_up: Floats, rows: Ints) -> Floats:
    """Return (S, O) the capacities over spans of windows, each a row of (S, N) rows of windows."""
    rate, true = windows.processing_rate_per_s, windows.true_processing_rate_per_s
    is_reported = np.isfinite(true) & (true > 0) & (rate > 0)
    only_works = (rate == 0) & np.isfinite(windows.busy_share)
    with np.errstate(divide="ignore", invalid="ignore"):
        useful = np.where(is_reported, rate / true, np.where(only_works, windows.busy_share, 0.0))
        useful = np.where((is_reported | only_works) & (held_up > useful + CLEAR), held_up, useful)[rows].sum(axis=-2)
        processed = np.where(is_reported, rate, 0.0)[rows].sum(axis=-2)
        return np.asarray(np.where(is_reported[rows].any(axis=-2), processed / useful, np.nan))


def _measure_held_up(windows: Observations, graph: JobGraph) -> Floats:
    return find_held_up_share(graph.list_feeders(), windows.busy_share, windows.backpressured_share)


def _list_spans(windows: Observations) -> Ints:
    """Return the first rows of spans of at least a minute, or as long as they are of one parallelism."""
    if windows.window_s >= SPAN_S:
        return np.arange(len(windows))
    firsts = [0]
    for row in range(1, len(windows)):
        is_long = (row - firsts[-1]) * windows.window_s >= SPAN_S
        if is_long or (windows.parallelism[row] != windows.parallelism[firsts[-1]]).any():
            firsts.append(row)
    return np.array(firsts, np.int64)


def read_windows(
    graph: JobGraph,
    fresh: Observations,
    running: Mapping[str, int],
    *,
    headroom: float = 0.0,
    catch_up_s: float | None = None,
    at_least_per_s: Mapping[str, float] = NO_RATES,
    of_edges: Observations | None = None,
) -> MeanMetrics | None:
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
        of_edges: windows from which the ratios of the edges are measured; ``fresh`` when None.
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
    waiting = now.waiting_records[-1]
    backlog = {graph.names[place]: _finite_or_zero(waiting[place]) for place in sources}
    rates = {
        graph.names[place]: (1.0 + headroom)
        * float(np.fmax((arriving if known else taken)[place], at_least_per_s.get(graph.names[place], math.nan)))
        + (backlog[graph.names[place]] / catch_up_s if catch_up_s else 0.0)
        for place in sources
    }
    reported = now if of_edges is None else of_edges
    ratios = measure_edge_ratios(graph, reported.processing_rate_per_s, reported.output_rate_per_s, reported.idle_share)
    required = required_rates(graph, ratios, rates)
    capacity = measure_capacity(now, graph)
    return MeanMetrics(
        capacity_per_s=dict(zip(graph.names, map(float, capacity), strict=True)),
        required_per_s={name: float(required[name]) for name in graph.names},
        arrivals_known=known,
        backpressured=max(shares),
        cpu_usage=max(map(_finite_or_zero, busy)),
        taken_per_s={graph.names[place]: _finite_or_zero(taken[place]) for place in sources},
        backlog=backlog,
    )


def backpressure_share(backpressured: float, idle: float, busy: float) -> float:
    """Return backPressurePer, backpressured / (backpressured + idle + busy); 0 when nothing was measured."""
    total = backpressured + idle + busy
    return backpressured / total if total > 0 else 0.0


def _mean(values: Floats) -> Floats:
    """Return (..., O) the mean over (..., W, O) windows without the ones that are not known, NaN where none is."""
    known = np.isfinite(values)
    count = known.sum(axis=-2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(count > 0, np.where(known, values, 0.0).sum(axis=-2) / count, np.nan), float)


def _finite_or_zero(value: float) -> float:
    return float(value) if math.isfinite(value) else 0.0
