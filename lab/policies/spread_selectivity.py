"""Ratios of edges where only the selectivity of operators is known."""

from __future__ import annotations

from collections.abc import Mapping

from include.domain.graph import JobGraph
from models.topology.edges import Edge, _never_observed, list_edges


def spread_selectivity(graph: JobGraph, selectivity: Mapping[str, float]) -> dict[Edge, float]:
    """Return ratios by which an operator's whole output goes to EVERY successor, as Eq. 8 of DS2 has it.

    Args:
        graph: the job.
        selectivity: operator -> records out per record in; 1 for a source that is not named.

    Raises:
        GraphError: an operator that feeds others has none.

    >>> from include.domain.graph import Operator
    >>> graph = JobGraph((Operator("source"), Operator("split", ("source",)), Operator("sink", ("split",))))
    >>> spread_selectivity(graph, {"split": 7.5})
    {('source', 'split'): 1.0, ('split', 'sink'): 7.5}
    """
    sources = set(graph.sources)
    ratios = {}
    for up, down in list_edges(graph):
        if up not in selectivity and up not in sources:
            raise _never_observed(up)
        ratios[up, down] = float(selectivity.get(up, 1.0))
    return ratios
