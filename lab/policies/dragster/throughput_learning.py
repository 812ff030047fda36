"""Learning of throughput functions while the job runs: regression of what operators sent on what they took.

"A user who does not know the logic of an operator can provide an arbitrary concave function, e.g. hyperbolic tangent,
as a starting point and learn its parameters via regression in an online manner" (Section 4.1 of Dragster).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy.optimize import least_squares

from include.domain.graph import JobGraph
from lab.policies.dragster.dragster_memory import OperatorFlow
from lab.policies.dragster.dragster_options import ThroughputForm
from lab.policies.dragster.network import SINK, Edge, OperatorNetwork, network
from lab.policies.dragster.throughput import Linear, Share, Tanh, ThroughputFunction
from lab.policies.undisturbed_windows import NO_LOAD_PER_S, undisturbed_windows
from models.arrays import Floats
from models.policies.observations import Observations
from models.policies.window_means import mean_per_operator

# With fewer flows the two parameters of tanh are not known apart, and the straight line is taken.
_LEAST_FLOWS = 3
# tanh can bend as little as this many times the largest output; beyond, it is a straight line.
_LARGEST_CEILING = 100.0


def measure_flows(graph: JobGraph, observations: Observations) -> tuple[OperatorFlow, ...]:
    """Return what each operator but the sources took and sent in a slot's windows, of those that did anything."""
    windows = undisturbed_windows(observations)
    received = mean_per_operator(windows.processing_rate_per_s)
    sent = mean_per_operator(windows.output_rate_per_s)
    return tuple(
        OperatorFlow(one.name, float(received[at]), float(sent[at]))
        for at, one in enumerate(graph.operators)
        if not one.is_source and received[at] >= NO_LOAD_PER_S and sent[at] >= NO_LOAD_PER_S
    )


def remember_flows(
    before: Sequence[OperatorFlow], measured: Iterable[OperatorFlow], flows_max: int
) -> tuple[OperatorFlow, ...]:
    """Return the flows with new ones at the end, at most so many of each operator."""
    retained: dict[str, list[OperatorFlow]] = {}
    for flow in (*before, *measured):
        retained.setdefault(flow.operator, []).append(flow)
    return tuple(flow for name in sorted(retained) for flow in retained[name][-flows_max:])


def learn_network(
    graph: JobGraph,
    flows: Iterable[OperatorFlow],
    form: ThroughputForm,
    selectivity: Mapping[str, float],
    edge_ratios: Mapping[Edge, float],
) -> OperatorNetwork:
    """Return a network of learnt functions.

    Deviation: Flink counts what an operator took from all its inputs together, so one weight is learnt for all of them;
    min(k o e) of a join (Eq. 2b) is therefore learnt as a function of their sum.

    Args:
        graph: the job.
        flows: observed.
        form: of the functions.
        selectivity: operator -> records out per record in, for one that has no flow; 1 where this has none either.
        edge_ratios: edge -> records over it per record in; an operator with an edge of which none is known treats all
            its successors alike, as in the paper.
    """
    feeding = {upstream for operator in graph.operators for upstream in operator.upstream}
    known: dict[str, list[OperatorFlow]] = {}
    for flow in flows:
        known.setdefault(flow.operator, []).append(flow)
    functions = {}
    for name in graph.names:
        if name in feeding:  # what a last operator sends has nowhere to go; it counts by what it takes
            functions[name] = fit_throughput(known.get(name, ()), form, selectivity.get(name, 1.0))
    return _divide_outputs(network(graph, functions), known, edge_ratios)


def _divide_outputs(
    net: OperatorNetwork, flows: Mapping[str, Sequence[OperatorFlow]], edge_ratios: Mapping[Edge, float]
) -> OperatorNetwork:
    """Return the network with each operator's output divided over its edges as measured."""
    functions, split = dict(net.functions), dict(net.split)
    for name in net.tuned:
        edges = [(name, successor) for successor in net.successors(name) if successor != SINK]
        ratios = [edge_ratios.get(edge, np.nan) for edge in edges]
        received = sum(flow.received_per_s for flow in flows.get(name, ()))
        sent = sum(flow.sent_per_s for flow in flows.get(name, ()))
        if len(edges) < 2 or not np.isfinite(ratios).all() or not min(received, sent, sum(ratios)) > 0:
            continue
        for edge, ratio in zip(edges, ratios, strict=True):
            functions[edge] = Share(net.functions[edge], ratio * received / sent)
            split[edge] = ratio / sum(ratios)
    sources = set(net.graph.sources)
    of_sources = {edge: ratio for edge, ratio in edge_ratios.items() if edge[0] in sources and np.isfinite(ratio)}
    return OperatorNetwork(net.graph, functions, split, of_sources)


def fit_throughput(flows: Sequence[OperatorFlow], form: ThroughputForm, selectivity: float = 1.0) -> ThroughputFunction:
    """Return h by least squares.

    Args:
        flows: of one operator.
        form: linear, k . e, or tanh, k1 tanh(k . e).
        selectivity: the weight of a straight line where there is no flow; 1 where it is not positive.
    """
    if not flows:
        return Linear((selectivity if np.isfinite(selectivity) and selectivity > 0 else 1.0,))
    received = np.array([flow.received_per_s for flow in flows])
    sent = np.array([flow.sent_per_s for flow in flows])
    slope = float((received * sent).sum() / (received**2).sum())
    if form is ThroughputForm.LINEAR or len(np.unique(received)) < _LEAST_FLOWS:
        return Linear((slope,))
    return _fit_tanh(received, sent, slope)


def _fit_tanh(received: Floats, sent: Floats, slope: float) -> Tanh:
    """Return k1 tanh(k . e), fitted in units of the largest flows; the logarithms are free, so both stay positive."""
    most_in, most_out = float(received.max()), float(sent.max())
    x, y = received / most_in, sent / most_out

    def errors(logs: Floats) -> Floats:
        ceiling, weight = np.exp(logs)
        return np.asarray(ceiling * np.tanh(weight * x) - y, float)

    start = np.log([2.0, slope * most_in / most_out / 2.0])
    highest = np.log(_LARGEST_CEILING)
    result = least_squares(errors, start, bounds=([-highest, -2 * highest], [highest, highest]))
    ceiling, weight = np.exp(result.x)
    return Tanh(float(ceiling) * most_out, (float(weight) / most_in,))
