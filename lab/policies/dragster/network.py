"""Throughput through a job graph whose operators have limited capacity: Eq. 3 and 4 of Dragster.

Capacities are in OUTPUT units, as Eq. 8 measures them: records/s that an operator sends to all its successors
together.  An operator without successors sends to a virtual sink, and f is what arrives there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from include.domain.graph import JobGraph
from lab.policies.dragster.throughput import Linear, ThroughputFunction

SINK = ""  # no operator of a job has an empty name
Edge = tuple[str, str]
Rates = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class OperatorNetwork:
    """A job graph with its throughput functions.

    Attributes:
        graph: the job; its sources have no throughput function and no limit.
        functions: (operator, successor) -> h; the successor is :data:`SINK` for an operator that feeds no other.
        split: (operator, successor) -> alpha, the share of the operator's capacity that serves that successor; the
            shares of one operator add up to 1.
        source_ratios: (source, successor) -> records sent per record that the source takes in; 1 where it is missing.
    """

    graph: JobGraph
    functions: Mapping[Edge, ThroughputFunction]
    split: Mapping[Edge, float]
    source_ratios: Mapping[Edge, float] = field(default_factory=dict)

    @property
    def tuned(self) -> tuple[str, ...]:
        """Operators with a capacity, i > N in the paper, in topological order."""
        return tuple(one.name for one in self.graph.operators if not one.is_source)

    def successors(self, name: str) -> tuple[str, ...]:
        """Return what an operator feeds; the virtual sink if nothing else."""
        below = tuple(one.name for one in self.graph.operators if name in one.upstream)
        return below or (SINK,)


@dataclass(frozen=True, slots=True)
class SlotFlow:
    """Flows in a slot, records/s.

    Attributes:
        offered: operator -> sum over successors of h(e), what it would send with unlimited capacity of its own.
        sent: operator -> sum over successors of Eq. 4, what it sends.
        sink: f, what reaches the virtual sink.
        over: (operator, successor) -> Eq. 4, what goes over the edge.
    """

    offered: Rates
    sent: Rates
    sink: float
    over: Mapping[Edge, float] = field(default_factory=dict)


def network(graph: JobGraph, functions: Mapping[str, ThroughputFunction]) -> OperatorNetwork:
    """Return a network in which an operator treats all its successors alike.

    Args:
        graph: the job.
        functions: operator -> h towards each of its successors; k = 1 for one that is not named.
    """
    edges, split = {}, {}
    plain = OperatorNetwork(graph, {}, {})
    for name in plain.tuned:
        below = plain.successors(name)
        for successor in below:
            edges[name, successor] = functions.get(name, Linear())
            split[name, successor] = 1.0 / len(below)
    return OperatorNetwork(graph, edges, split)


def flow(net: OperatorNetwork, source_per_s: Rates, capacity_per_s: Rates) -> SlotFlow:
    """Return what flows, by applying Eq. 4 operator after operator.

    Args:
        net: the network.
        source_per_s: source -> records/s that it takes in.
        capacity_per_s: operator -> y in output units; one that is not named is unlimited.
    """
    sent: dict[Edge, float] = {}
    offered_by, sent_by = {}, {}
    for operator in net.graph.operators:
        name, below = operator.name, net.successors(operator.name)
        if operator.is_source:
            ratios = {(name, successor): net.source_ratios.get((name, successor), 1.0) for successor in below}
            sent |= {edge: ratio * source_per_s[name] for edge, ratio in ratios.items()}
            continue
        received = np.array([sent[upstream, name] for upstream in operator.upstream], float)
        capacity = capacity_per_s.get(name, np.inf)
        offered = {successor: net.functions[name, successor](received) for successor in below}
        passed = {key: min(net.split[name, key] * capacity, value) for key, value in offered.items()}
        sent |= {(name, successor): value for successor, value in passed.items()}
        offered_by[name], sent_by[name] = sum(offered.values()), sum(passed.values())
    sink = sum(value for (_, successor), value in sent.items() if successor == SINK)
    return SlotFlow(offered_by, sent_by, sink, sent)


def demand(net: OperatorNetwork, source_per_s: Rates) -> SlotFlow:
    """Return what would flow if no operator limited: the capacity that each one needs is its ``offered``."""
    return flow(net, source_per_s, {})
