"""The parallelism that DS2 asks for, all operators in one traversal: Eq. 7 and Eq. 8 of DS2."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from include.domain.graph import GraphError, JobGraph
from lab.policies.ds2.adjust import MAX_PARALLELISM, whole
from lab.policies.spread_selectivity import spread_selectivity
from lab.policies.tuning.parallelism import optimal_parallelism, unrounded_parallelism
from models.topology import Edge, required_rates


@dataclass(frozen=True, slots=True)
class OperatorRates:
    """An operator's parallelism and aggregated true rates over one policy interval, Eq. 5 and 6 of DS2.

    Attributes:
        parallelism: at which the rates were measured.
        true_processing_per_s: NaN when no instance worked; not used for a source.
        true_output_per_s: of a source, the rate that must be sustained (see :func:`source_target`).
    """

    parallelism: int
    true_processing_per_s: float
    true_output_per_s: float


@dataclass(frozen=True, slots=True)
class Optimum:
    """The configuration that DS2 computes.

    Attributes:
        parallelism: operator -> instances; sources keep theirs.
        raw: operator -> instances before rounding, without sources; NaN where the rate is not known.
        target_per_s: operator -> records/s that it must process; 0 for a source, which processes nothing.
    """

    parallelism: Mapping[str, int]
    raw: Mapping[str, float]
    target_per_s: Mapping[str, float]

    @property
    def timely_workers(self) -> int:
        """Workers that a Timely job needs.

        Every worker runs every operator, so the unrounded parallelisms add up and only their sum is rounded.  Operators
        of unknown rate add nothing.
        """
        return whole(self.timely_workers_raw)

    @property
    def timely_workers_raw(self) -> float:
        """The sum of the unrounded parallelisms, infinite ones left out."""
        return sum(value for value in self.raw.values() if math.isfinite(value))


def source_target(observed_per_s: float, *, per_instance_per_s: float, instances: int) -> float:
    """Return the rate that a source must sustain.

    Args:
        observed_per_s: what it emits.
        per_instance_per_s: given rate of one instance; -1 (it feels no backpressure) stands for what it emits.
        instances: of the source.
    """
    return observed_per_s if per_instance_per_s == -1 else per_instance_per_s * instances


def selectivity(rates: OperatorRates) -> float:
    """Return records out per record in: true output rate / true processing rate; NaN where nothing was processed."""
    return rates.true_output_per_s / rates.true_processing_per_s if rates.true_processing_per_s > 0 else math.nan


def optimum(
    graph: JobGraph,
    rates: Mapping[str, OperatorRates],
    *,
    scaling_factor: float = 0.0,
    edge_ratios: Mapping[Edge, float] | None = None,
) -> Optimum:
    """Return the parallelism at which every operator keeps up with the sources.

    Args:
        graph: the job.
        rates: of every operator.
        scaling_factor: headroom, 0.2 for 20% more than needed.
        edge_ratios: of the edges as measured; None: an operator's whole output goes to every successor (Eq. 8).

    Raises:
        GraphError: an operator without rates.
    """
    missing = [name for name in graph.names if name not in rates]
    if missing:
        raise GraphError(f"no rates for {missing}; DS2 needs those of every operator")
    sources = {name: rates[name].true_output_per_s for name in graph.sources}
    inner = [name for name in graph.names if name not in sources]
    if edge_ratios is None:
        edge_ratios = spread_selectivity(graph, {name: selectivity(rates[name]) for name in inner})
    with np.errstate(all="ignore"):  # rates that are not known stay NaN all the way
        required = required_rates(graph, edge_ratios, sources)
        raw = {name: _raw(float(required[name]), rates[name]) for name in inner}
        rounded = {
            name: _to_parallelism(raw[name], float(required[name]), rates[name], scaling_factor) for name in inner
        }
    wanted = {name: rates[name].parallelism for name in sources} | rounded
    targets = {name: 0.0 if name in sources else float(required[name]) for name in graph.names}
    return Optimum(wanted, raw, targets)


def _raw(required_per_s: float, measured: OperatorRates) -> float:
    return float(unrounded_parallelism(required_per_s, measured.true_processing_per_s, measured.parallelism))


def _to_parallelism(raw: float, required_per_s: float, measured: OperatorRates, scaling_factor: float) -> int:
    if math.isfinite(raw) and raw * (1.0 + scaling_factor) > MAX_PARALLELISM:
        return MAX_PARALLELISM
    rate, running = measured.true_processing_per_s, measured.parallelism
    return int(optimal_parallelism(required_per_s, rate, running, scaling_factor=scaling_factor))
