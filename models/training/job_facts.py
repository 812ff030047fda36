"""What a job's windows tell: points of its capacities, ratios of its edges, latency, how load divides over sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from include.domain.graph import JobGraph
from include.settings import Training
from include.utc import DAY_S
from models.arrays import Bools, Floats
from models.bundle.fleet_bundle import JobKey
from models.bundle.job_models import LatencyModel
from models.recovery.latency import fit_windows
from models.topology import Edge, learn_edge_ratios
from models.training.busy_choice import choose_busy
from models.training.held_out import find_held
from models.training.job_windows import KnownOperator, TrainingHistory, TrainingWindows, find_kinds
from models.training.operator_fits import OperatorPoints, list_points

EDGE_DAYS: Final = 7
"""Ratios of edges follow what a job does now."""


@dataclass(frozen=True, slots=True)
class JobEstimates:
    """What is learnt of one job alone.

    Attributes:
        job: cluster and name.
        kinds: operator -> kind, of the latest graph.
        points: of the operators that show a capacity.
        selectivity: operator -> records out per record in, of those that took any.
        edges: edge of the latest graph -> ratio.
        latency: without knots where none was measured.
        source_rates: source -> mean rate, by which load divides over the sources.
        resolution_s: length of a window; NaN without a source.
    """

    job: JobKey
    kinds: Mapping[str, str]
    points: tuple[OperatorPoints, ...]
    selectivity: Mapping[str, float]
    edges: Mapping[Edge, float]
    latency: LatencyModel
    source_rates: Mapping[str, float]
    resolution_s: float

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of all operators that are known of the job, in their order."""
        return tuple(sorted({*self.kinds, *self.selectivity, *(one.operator for one in self.points)}))


def learn_facts(
    history: TrainingHistory, options: Training, as_of_s: float, *, usable: Bools | None = None
) -> JobEstimates:
    """Return what is learnt of a job as of an epoch second, from (W,) usable windows; from all without any choice.

    Ratios of edges are those of the EDGE_DAYS before.
    """
    windows = history.windows
    usable = np.ones(len(windows.start_s), bool) if usable is None else usable
    used = usable & ~find_held(history.job, windows.start_s, options.holdout_share)
    rates, resolution_s = _measure_sources(windows, usable)
    return JobEstimates(
        history.job,
        kinds=find_kinds(history.operators),
        points=list_points(history, choose_busy(windows, used, options), options),
        selectivity=_measure_selectivity(windows, used),
        edges=_learn_edges(windows, history.graph, used & (windows.start_s >= as_of_s - EDGE_DAYS * DAY_S)),
        latency=_fit_latency(windows, used),
        source_rates=rates,
        resolution_s=resolution_s,
    )


def learn_nothing(job: JobKey, operators: tuple[KnownOperator, ...]) -> JobEstimates:
    """Return what is known of a job by its graph alone."""
    nothing = LatencyModel(np.zeros(0), np.zeros(0))
    return JobEstimates(job, find_kinds(operators), (), {}, {}, nothing, {}, float("nan"))


def _measure_selectivity(windows: TrainingWindows, used: Bools) -> dict[str, float]:
    """Return records out per record in; of a source per record that it takes in."""
    with np.errstate(invalid="ignore"):
        known = used[:, None] & windows.is_measured & (windows.rate_per_s > 0) & np.isfinite(windows.output_per_s)
    result = {}
    for place, name in enumerate(windows.operators):
        rows = known[:, place]
        if rows.any():
            result[name] = float(windows.output_per_s[rows, place].sum() / windows.rate_per_s[rows, place].sum())
    return result


def _learn_edges(windows: TrainingWindows, graph: JobGraph | None, used: Bools) -> dict[Edge, float]:
    if graph is None:
        return {}
    taken, sent, idle = (np.full((int(used.sum()), len(graph.names)), np.nan) for _ in range(3))
    places = {name: place for place, name in enumerate(windows.operators)}
    for column, name in enumerate(graph.names):
        if name in places:
            place = places[name]
            is_measured = windows.is_measured[used, place]
            taken[:, column] = np.where(is_measured, windows.rate_per_s[used, place], np.nan)
            sent[:, column] = np.where(is_measured, windows.output_per_s[used, place], np.nan)
            if windows.idle_share is not None:
                idle[:, column] = windows.idle_share[used, place]
    return learn_edge_ratios(graph, _drop_sent_as_taken(graph, taken, sent), sent, idle)


def _drop_sent_as_taken(graph: JobGraph, taken_per_s: Floats, sent_per_s: Floats) -> Floats:
    """Return what operators took, (W, O), NaN where an earlier release had what a source sent in its place.

    Those windows have one number twice. They tell of a ratio of one, which is none of a source that other windows show
    to send more or less than it takes.
    """
    taken = taken_per_s.copy()
    for at in map(graph.position, graph.sources):
        is_twice = taken[:, at] == sent_per_s[:, at]
        if (np.isfinite(taken[:, at]) & np.isfinite(sent_per_s[:, at]) & ~is_twice).any():
            taken[is_twice & (taken[:, at] > 0), at] = np.nan
    return taken


def measure_utilisation(windows: TrainingWindows) -> tuple[Floats, Floats]:
    """Return the busy share of the busiest operator and the worst latency of the sources in each window, (W,).

    Both are NaN in a window that lacks one of them.
    """
    busiest, worst = (
        np.where(windows.is_measured & np.isfinite(values), values, -np.inf).max(axis=1, initial=-np.inf)
        for values in (windows.busy_share, windows.latency_ms)
    )
    known = np.isfinite(busiest) & np.isfinite(worst)
    return np.where(known, busiest, np.nan), np.where(known, worst, np.nan)


def _fit_latency(windows: TrainingWindows, used: Bools) -> LatencyModel:
    utilisation, latency_ms = measure_utilisation(windows)
    known = used & np.isfinite(latency_ms)
    return fit_windows(utilisation[known], latency_ms[known])


def _measure_sources(windows: TrainingWindows, used: Bools) -> tuple[dict[str, float], float]:
    """Return the mean rate of each source and the length of a window.

    Windows in which a source was held up by backpressure do not tell its share, unless there are no others.
    """
    with np.errstate(invalid="ignore"):
        known = used[:, None] & windows.is_measured & windows.is_source & (windows.rate_per_s > 0)
    rates, lengths_s = {}, []
    for place in np.flatnonzero(known.any(axis=0)).tolist():
        demanded = known[:, place] & windows.is_demand[:, place]
        rows = demanded if demanded.any() else known[:, place]
        rates[windows.operators[place]] = float(windows.rate_per_s[rows, place].mean())
        lengths_s.append(float(windows.window_s[rows].max()))
    return rates, max(lengths_s, default=float("nan"))
