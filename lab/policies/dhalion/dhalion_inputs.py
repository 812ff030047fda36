"""Dhalion's readings from what Flink reports."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from include.domain.graph import JobGraph
from lab.policies.dhalion.rules import OperatorMeans
from lab.policies.undisturbed_windows import NO_LOAD_PER_S, undisturbed_windows
from models.arrays import Floats, Ints
from models.policies.observations import Observations
from models.policies.window_means import mean_per_operator, source_rates
from models.topology import measure_edge_ratios

# Sources that take in this share less than arrives fall behind; less is measurement.
_BEHIND = 0.01


def readings(
    graph: JobGraph, observations: Observations, running: Mapping[str, int], limits: Ints
) -> dict[str, OperatorMeans]:
    """Return the readings of every operator except sources, in topological order.

    Of operators that are equally far from the sources the name decides, since Flink's replies and a description of the
    job may list them in another order.

    Args:
        graph: the job.
        observations: windows, at least one, operators in the order of the graph.
        running: operator -> instances.
        limits: (O,) most instances.
    """
    undisturbed = undisturbed_windows(observations)
    shares = {
        name: mean_per_operator(getattr(undisturbed, f"{name}_share")) for name in ("busy", "idle", "backpressured")
    }
    with np.errstate(all="ignore"):
        ran = shares["busy"] + shares["idle"] + shares["backpressured"]
        busy, backpressured = shares["busy"] / ran, np.nan_to_num(shares["backpressured"] / ran)
    short = _shortfall(graph, undisturbed)
    result = {}
    for index, operator in enumerate(graph.operators):
        if not operator.is_source:
            above = max(float(backpressured[graph.position(name)]) for name in operator.upstream)
            values = float(busy[index]), float(backpressured[index]), above, float(short[index])
            result[operator.name] = OperatorMeans(running[operator.name], int(limits[index]), *values)
    depths = _depths(graph)
    return {name: result[name] for name in sorted(result, key=lambda name: (depths[name], name))}


def _depths(graph: JobGraph) -> dict[str, int]:
    """Return operator -> operators on the longest way to it from a source."""
    depths = dict[str, int]()
    for operator in graph.operators:
        depths[operator.name] = max((depths[name] + 1 for name in operator.upstream), default=0)
    return depths


def _shortfall(graph: JobGraph, observations: Observations) -> Floats:
    """Return (O,) the share of the records sent to each operator for which it has no capacity.

    Flink's buffers are short, so that a slow operator shows as a backlog at the source.  Only when the sources fall
    behind is anything short; then what arrives is pushed through the job, each operator passing on what its processing
    capacity lets through, as if it had a queue of its own.
    """
    arrived, short = source_rates(observations), np.zeros(len(graph.operators))
    taken = mean_per_operator(observations.processing_rate_per_s)
    sources = [graph.position(name) for name in graph.sources]
    if not np.nansum(taken[sources]) < (1.0 - _BEHIND) * arrived[sources].sum():
        return short
    capacity = mean_per_operator(observations.true_processing_rate_per_s)
    ratios = measure_edge_ratios(
        graph, observations.processing_rate_per_s, observations.output_rate_per_s, observations.idle_share
    )
    passed = arrived.copy()
    for index, operator in enumerate(graph.operators):
        if operator.is_source:
            continue
        over = {name: ratios[name, operator.name] for name in dict.fromkeys(operator.upstream)}
        # One record for one where nothing tells how many.
        known = {name: ratio if np.isfinite(ratio) else 1.0 for name, ratio in over.items()}
        received = sum(ratio * passed[graph.position(name)] for name, ratio in known.items())
        limit = capacity[index] if np.isfinite(capacity[index]) else np.inf
        passed[index] = min(received, limit)
        short[index] = max(1.0 - limit / received, 0.0) if received >= NO_LOAD_PER_S else 0.0
    return short
