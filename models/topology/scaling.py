"""Source rates pushed through a job graph, and the parallelism that sustains them: Eq. 7-8 of DS2."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from include.domain.graph import GraphError, JobGraph
from models.arrays import Floats
from models.topology.edges import Edge, describe_edges, list_edges

# A quotient this close above an integer is rounding error of floating point, not need for one more instance.
_CEIL_SLACK = 1e-9


def required_rates(
    graph: JobGraph, edge_ratios: Mapping[Edge, float], source_rates: Mapping[str, npt.ArrayLike]
) -> dict[str, Floats]:
    """Return the input rate of each operator that keeps up with its sources, Eq. 8 of DS2.

    Deviation: DS2 lets an operator's whole output go to every successor; here each edge has a ratio of its own, since
    side outputs and several outputs of a chain divide it.

    Args:
        graph: the job.
        edge_ratios: edge -> records over it per record that the operator before it takes; NaN where it is not known.
        source_rates: source -> (T,) records/s that it takes in.

    Returns:
        operator -> (T,) records/s in; NaN behind an edge of unknown ratio over which anything may go.

    Raises:
        GraphError: a source without a rate, or an edge without a ratio.
    """
    missing = [edge for edge in list_edges(graph) if edge not in edge_ratios]
    if missing:
        raise GraphError(f"no ratio for the edges {describe_edges(missing)}; were they ever observed?")
    required: dict[str, Floats] = {}
    for operator in graph.operators:
        if operator.is_source:
            if operator.name not in source_rates:
                raise GraphError(f"no rate for source {operator.name!r}; given are {sorted(source_rates)}")
            required[operator.name] = np.asarray(source_rates[operator.name], float)
            continue
        arriving = [_pass_on(required[up], edge_ratios[up, operator.name]) for up in dict.fromkeys(operator.upstream)]
        required[operator.name] = np.asarray(np.sum(arriving, axis=0), float)
    return required


def _pass_on(rate_per_s: Floats, ratio: float) -> Floats:
    """Return what goes over an edge: of nothing nothing, whatever the ratio."""
    with np.errstate(over="ignore"):
        return np.where(rate_per_s == 0.0, 0.0, rate_per_s * ratio)


def unrounded_parallelism(
    required_per_s: npt.ArrayLike, true_processing_per_s: npt.ArrayLike, parallelism: npt.ArrayLike
) -> Floats:
    """Return the quotient of Eq. 7 of DS2: required rate / true processing rate of one instance.

    Args:
        required_per_s: (...) records/s that must be processed.
        true_processing_per_s: (...) aggregated true rate of the operator at the parallelism.
        parallelism: (...) at which the true rate was seen.

    Returns:
        (...) instances; NaN where the true rate is not known or not positive.
    """
    rate = np.asarray(true_processing_per_s, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        raw = np.asarray(required_per_s, float) * np.asarray(parallelism, float) / rate
    return np.asarray(np.where(np.isfinite(rate) & (rate > 0), raw, np.nan), float)


def optimal_parallelism(
    required_per_s: npt.ArrayLike,
    true_processing_per_s: npt.ArrayLike,
    parallelism: npt.ArrayLike,
    *,
    scaling_factor: float = 0.0,
) -> npt.NDArray[np.int64]:
    """Return the smallest sufficient parallelism, Eq. 7 of DS2, at least 1.

    Deviation: where the true rate is not known the parallelism stays (DS2 casts the undefined quotient to an integer).

    Args:
        required_per_s: (...) records/s that must be processed.
        true_processing_per_s: (...) aggregated true rate of the operator at the parallelism.
        parallelism: (...) at which the true rate was seen.
        scaling_factor: headroom, 0.2 for 20% more than needed.
    """
    raw = unrounded_parallelism(required_per_s, true_processing_per_s, parallelism) * (1.0 + scaling_factor)
    wanted = np.where(np.isfinite(raw), np.maximum(np.ceil(raw * (1.0 - _CEIL_SLACK)), 1.0), parallelism)
    return wanted.astype(np.int64)


def source_capacity(
    graph: JobGraph, edge_ratios: Mapping[Edge, float], mix: Mapping[str, float], capacity_per_s: Mapping[str, float]
) -> float:
    """Return the total source rate that a configuration sustains when the sources keep their mix.

    Args:
        graph: the job.
        edge_ratios: as for :func:`required_rates`; an operator of unknown demand does not limit.
        mix: source -> its share of all records, summing to 1.
        capacity_per_s: operator -> its capacity at its parallelism; operators without one do not limit.

    Returns:
        records/s of all sources together; infinite when no operator limits.
    """
    per_record = required_rates(graph, edge_ratios, mix)
    limits = [
        capacity_per_s[name] / float(need) for name, need in per_record.items() if name in capacity_per_s and need > 0
    ]
    return min(limits, default=float("inf"))
