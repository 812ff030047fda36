"""Source rates pushed through a job graph: Eq. 8 of DS2."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from include.domain.graph import GraphError, JobGraph
from models.arrays import Floats
from models.topology.edges import Edge, describe_edges, list_edges


def required_rates(
    graph: JobGraph, edge_ratios: Mapping[Edge, float], source_rates: Mapping[str, npt.ArrayLike]
) -> dict[str, Floats]:
    """Return the input rate of each operator that keeps up with its sources, Eq. 8 of DS2.

    Deviation: DS2 lets an operator's whole output go to every successor; here each edge has a ratio of its own, since
    side outputs and several outputs of a chain divide it. Sources take in (T,) records/s, as many as are returned; NaN
    behind an edge of unknown ratio over which anything may go.

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


def source_capacity(
    graph: JobGraph, edge_ratios: Mapping[Edge, float], mix: Mapping[str, float], capacity_per_s: Mapping[str, float]
) -> float:
    """Return the total source rate, records/s, that a configuration sustains in a mix of the sources; or infinity.

    Shares of the mix sum to 1; operators of unknown demand, or without a capacity, do not limit.
    """
    per_record = required_rates(graph, edge_ratios, mix)
    limits = [
        capacity_per_s[name] / float(need) for name, need in per_record.items() if name in capacity_per_s and need > 0
    ]
    return min(limits, default=float("inf"))
