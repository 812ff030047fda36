"""A job's windows as training reads them: arrays, whoever measured them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.domain.graph import GraphError, JobGraph, Operator
from models.arrays import Bools, Floats, Ints
from models.bundle.fleet_bundle import JobKey
from models.capacity.held_up import CLEAR
from models.capacity.kinds import kind_of

EVEN_LOAD = 1.1
"""Busy share of the busiest subtask over the mean: chance and rounding of few samples."""


@dataclass(frozen=True, slots=True)
class TrainingWindows:
    """Undisturbed windows of a job: W windows, O operators.

    Attributes:
        operators: (O,) names.
        start_s: (W,) epoch seconds, ascending.
        window_s: (W,) lengths.
        parallelism: (W, O); 0 where the operator has no undisturbed measurement, and everything else is ignored there.
        rate_per_s, output_per_s: (W, O) records taken and sent, NaN where they are not known, as in what follows.
        true_rate_per_s: (W, O) rate / mean busy share.
        busy: (W, O) mean busy share of the subtasks; busy_most: (W, O) that of the busiest, NaN throughout where single
            subtasks are not measured.
        held_up: (W, O) share of time in which the operator held up what feeds it (models.capacity.held_up), 0 where
            nothing tells so.
        latency_ms: (W, O).
        is_demand: (W, O) whether a source took in all that arrived, so that its rate is no lower bound.
        is_source: (O,).
        idle_share: (W, O) of the time of a mean subtask; None where it is not measured.
    """

    operators: tuple[str, ...]
    start_s: Ints
    window_s: Floats
    parallelism: Ints
    rate_per_s: Floats
    output_per_s: Floats
    true_rate_per_s: Floats
    busy: Floats
    busy_most: Floats
    held_up: Floats
    latency_ms: Floats
    is_demand: Bools
    is_source: Bools
    idle_share: Floats | None = None

    @property
    def is_measured(self) -> Bools:
        """(W, O) where there is a measurement."""
        return np.asarray(self.parallelism > 0)

    @property
    def busy_share(self) -> Floats:
        """(W, O) at most 1: samples of a share may be a little above it."""
        return np.minimum(self.busy, 1.0)

    @property
    def capacity_per_s(self) -> Floats:
        """(W, O) rate at which the busiest subtask would have no idle time left.

        Eq. 5 of DS2 divides by the mean busy share; where load is skewed the busiest subtask is full before, and holds
        the operator back.  Subtasks that differ by no more than EVEN_LOAD are taken as evenly loaded.  Where it held up
        what feeds it for longer than its mean subtask was busy, that time counts.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            skew = self.busy_most / self.busy / EVEN_LOAD
            reported = self.true_rate_per_s / np.where((self.busy > 0) & (skew > 1.0), skew, 1.0)
            return np.asarray(np.where(self.is_limit, np.fmin(reported, self.rate_per_s / self.held_up), reported))

    @property
    def is_limit(self) -> Bools:
        """(W, O) whether it held up what feeds it for longer than its mean subtask was busy."""
        return np.asarray(self.held_up > self.busy_share + CLEAR)

    @property
    def end_s(self) -> Floats:
        """(W,) when they end."""
        return np.asarray(self.start_s + self.window_s)


@dataclass(frozen=True, slots=True)
class KnownOperator:
    """An operator of a job's latest graph; ``max_parallelism``: None where it is not known."""

    name: str
    upstream: tuple[str, ...]
    max_parallelism: int | None


@dataclass(frozen=True, slots=True)
class TrainingHistory:
    """What is known of one job.

    Attributes:
        job: cluster and name.
        windows: of the look-back.
        operators: of the latest graph; empty where none is known.
        slots_max: most slots that the job may get.
    """

    job: JobKey
    windows: TrainingWindows
    operators: tuple[KnownOperator, ...]
    slots_max: int

    @property
    def graph(self) -> JobGraph | None:
        """The graph; None where it is not known, or cannot be worked with."""
        try:
            graph = JobGraph.from_operators([Operator(one.name, one.upstream) for one in self.operators])
        except GraphError:
            return None
        return graph if self.operators else None


def find_kinds(operators: tuple[KnownOperator, ...]) -> dict[str, str]:
    """Return the kind of each operator of a graph, by which the fleet's operators are pooled."""
    feeds = [up for one in operators for up in one.upstream]
    return {one.name: kind_of(one.name, len(one.upstream), feeds.count(one.name)) for one in operators}
