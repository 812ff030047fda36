"""Records that flow over the edges of a job graph, which Flink does not count, and their ratio to what goes in.

Flink counts what a vertex takes and what it sends, each summed over its edges; where one output is copied to several
successors, or several operators of a chain send, the sum tells nothing of one edge.  So an edge is measured by what its
successor takes, as Flink's own autoscaler does (rule 3 of its vertices' target rates), and by what it has not taken yet
of what was sent to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from include.domain.graph import GraphError, JobGraph
from models.arrays import Floats
from models.topology.exchanges import group_edges

Edge = tuple[str, str]
"""Names of the operator that sends and of the one that takes."""

# By so much of its input may the other edges of an operator seem to carry more than it takes: records are under way.
_UNDER_WAY = 0.02
NO_IDLE = 0.1
"""An operator with a smaller share of idle time has records waiting before it."""


def list_edges(graph: JobGraph) -> tuple[Edge, ...]:
    """Return the edges, each once, in the topological order of the operators that take.

    >>> from include.domain.graph import Operator
    >>> graph = JobGraph((Operator("source"), Operator("map", ("source",)), Operator("sink", ("map", "source"))))
    >>> list_edges(graph)
    (('source', 'map'), ('map', 'sink'), ('source', 'sink'))
    """
    pairs = ((up, operator.name) for operator in graph.operators for up in operator.upstream)
    return tuple(dict.fromkeys(pairs))


def measure_edge_rates(graph: JobGraph, taken_per_s: Floats, sent_per_s: Floats) -> dict[Edge, Floats]:
    """Return the rate over each edge, (...) records/s, NaN if not known, by what operators take and send, (..., O).

    What an operator with one input takes; what an operator with one successor sends; what an operator takes less the
    other edges into it where those are known.  Nothing else settles an edge.
    """
    edges = list_edges(graph)
    inputs, outputs = Counter(down for _, down in edges), Counter(up for up, _ in edges)
    taken = {name: np.asarray(taken_per_s[..., graph.position(name)], float) for name in graph.names}
    sent = {name: np.asarray(sent_per_s[..., graph.position(name)], float) for name in graph.names}
    rates: dict[Edge, Floats] = {}
    for up, down in edges:
        rate = np.full(taken[up].shape, np.nan)
        if outputs[up] == 1:
            rate = sent[up]
        if inputs[down] == 1:
            rate = np.where(np.isfinite(taken[down]), taken[down], rate)
        rates[up, down] = rate
    for down in graph.names:  # an edge into an operator is settled by its other edges, never by those of another
        into = [edge for edge in edges if edge[1] == down]
        for edge in into if len(into) > 1 else ():
            others = np.sum([rates[other] for other in into if other != edge], axis=0)
            rates[edge] = np.where(np.isfinite(rates[edge]), rates[edge], _subtract(taken[down], others))
    return rates


def _subtract(whole: Floats, others: Floats) -> Floats:
    """Return what is left of a rate, NaN where the others are plainly more."""
    remaining = whole - others
    with np.errstate(invalid="ignore"):
        return np.where(remaining >= -_UNDER_WAY * whole, np.maximum(remaining, 0.0), np.nan)


def measure_edge_ratios(
    graph: JobGraph, taken_per_s: Floats, sent_per_s: Floats, idle_share: Floats | None = None
) -> dict[Edge, float]:
    """Return the records over each edge per record that the operator before it takes, over W windows.

    What was sent and not taken fills buffers before the operators that have no idle time: it went over their edges,
    too.  Before an operator with idle time nothing piles up: there the vertex counts what leaves the job. All are (W,
    O) in the order of the graph; without an idle share none is known to have any. NaN where no window tells.
    """
    rates = measure_edge_rates(graph, taken_per_s, sent_per_s)
    idle = np.zeros(taken_per_s.shape) if idle_share is None else idle_share
    piled = _measure_piling(graph, rates, taken_per_s, sent_per_s, idle)
    result = {}
    for edge, rate in rates.items():
        into = taken_per_s[..., graph.position(edge[0])]
        known = np.isfinite(rate) & np.isfinite(into)
        total = float(into[known].sum())
        # Counters are read at different moments: over several windows what that adds and takes away cancels out.
        more = max(float(piled[edge][known].sum()), 0.0)
        result[edge] = (float(rate[known].sum()) + more) / total if total > 0 else float("nan")
    return result


def _measure_piling(
    graph: JobGraph, rates: Mapping[Edge, Floats], taken_per_s: Floats, sent_per_s: Floats, idle_share: Floats
) -> dict[Edge, Floats]:
    """Return edge -> (W,) records/s by which its buffers grow, below 0 where they empty; 0 where nothing tells."""
    result: dict[Edge, Floats] = {}
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for senders, takers in group_edges(graph.list_feeders()):
            is_full = idle_share[:, takers] < NO_IDLE
            sent, taken = sent_per_s[:, senders].sum(axis=1), taken_per_s[:, takers].sum(axis=1)
            calm = np.isfinite(sent + taken) & (idle_share[:, takers] >= NO_IDLE).all(axis=1)
            leaving = sent[calm].sum() / taken[calm].sum()  # what a chained sink counts leaves the job at any time
            growth = sent / (leaving if leaving > 1.0 else 1.0) - taken
            edges = [edge for edge in rates if graph.position(edge[1]) in takers]
            full = [is_full[:, takers.index(graph.position(down))] for _, down in edges]
            shares = [np.where(at, rates[edge], 0.0) for at, edge in zip(full, edges, strict=True)]
            total = np.sum(shares, axis=0)
            per_record = np.where((total > 0) & np.isfinite(growth), growth / total, 0.0)
            result |= {
                edge: np.where(total > 0, share * per_record, 0.0) for edge, share in zip(edges, shares, strict=True)
            }
    return result


def learn_edge_ratios(
    graph: JobGraph, taken_per_s: Floats, sent_per_s: Floats, idle_share: Floats | None = None
) -> dict[Edge, float]:
    """Return the ratios that a history of W windows tells, for ``JobModels.edges``.

    One record for one is assumed behind an operator that never took any, until it is measured.  An edge that is not
    settled is NaN; it is left out where it is its operator's only one, since the operator's selectivity says the same.
    """
    outputs = Counter(up for up, _ in list_edges(graph))
    result = {}
    for edge, ratio in measure_edge_ratios(graph, taken_per_s, sent_per_s, idle_share).items():
        into = taken_per_s[..., graph.position(edge[0])]
        never_took = np.isfinite(into).any() and not np.nansum(into) > 0
        if np.isfinite(ratio) or never_took or outputs[edge[0]] > 1:
            result[edge] = 1.0 if never_took else ratio
    return result


def complete_ratios(
    graph: JobGraph, known: Mapping[Edge, float], selectivity: Mapping[str, float]
) -> dict[Edge, float]:
    """Return the ratio of each edge of a graph, NaN where it is not known.

    Where an edge is missing, its operator's selectivity stands for its only edge; 1 for a source that has none.

    Raises:
        GraphError: nothing is known of an operator that feeds others.
    """
    edges = list_edges(graph)
    outputs = Counter(up for up, _ in edges)
    assumed = {**dict.fromkeys(graph.sources, 1.0), **selectivity}
    return {edge: _complete(edge, known, assumed, outputs[edge[0]] == 1) for edge in edges}


def _complete(edge: Edge, known: Mapping[Edge, float], selectivity: Mapping[str, float], is_only: bool) -> float:
    if edge in known:
        return float(known[edge])
    if edge[0] not in selectivity:
        raise _never_observed(edge[0])
    return float(selectivity[edge[0]]) if is_only else float("nan")


def find_unknown(graph: JobGraph, ratios: Mapping[Edge, float]) -> tuple[Edge, ...]:
    """Return the edges whose ratio is not known."""
    return tuple(edge for edge in list_edges(graph) if not np.isfinite(ratios.get(edge, np.nan)))


def describe_edges(edges: Iterable[Edge]) -> str:
    """Return edges for a sentence."""
    return ", ".join(f"{up} to {down}" for up, down in edges)


def _never_observed(name: str) -> GraphError:
    return GraphError(f"no selectivity for {name!r}, which feeds others; was it ever observed?")
