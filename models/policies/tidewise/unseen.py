"""What the windows of a job do not tell, on which nothing rises or falls: loads, shares of edges, limits of sources."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from include.domain.graph import JobGraph
from models.observing.source_rates import SATURATED_ABOVE
from models.policies.job_snapshot import Snapshot
from models.policies.observations import Observations
from models.policies.tuning.reading import MeanMetrics
from models.policies.window_means import mean_per_operator
from models.topology import measure_edge_ratios
from models.topology.edges import describe_edges, find_unknown

_LEAST_S = 10.0  # what a source takes in within so long is not worth a word


@dataclass(frozen=True, slots=True)
class MissingMetrics:
    """What is not known of a job at an evaluation.

    Attributes:
        sources: of which no counter tells what they take in.
        busy_sources: that are always busy, without a backlog that tells whether they are short.
        operators: whose demand is not known, since nothing settles an edge before them.
        edges: those edges, as a sentence names them; empty without any.
        standing: source -> records that it reports as pending and that no size works off.
    """

    sources: tuple[str, ...] = ()
    busy_sources: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    edges: str = ""
    standing: Mapping[str, float] = field(default_factory=dict)


def find_unseen(
    snapshot: Snapshot, reading: MeanMetrics, windows: Observations, of_edges: Observations
) -> MissingMetrics:
    """Return what the windows that a reading is made from do not tell, nor those that its ratios of edges are from."""
    graph, need = snapshot.graph, reading.required_per_s
    busy = mean_per_operator(windows.busy_share)
    sources = tuple(name for name in graph.sources if math.isnan(need[name]))
    busy_sources = tuple(
        name
        for name in graph.sources
        if busy[graph.position(name)] > SATURATED_ABOVE and math.isnan(reading.capacity_per_s[name])
    )
    stuck = _find_standing(graph, windows)
    if sources:
        return MissingMetrics(sources, busy_sources, standing=stuck)
    behind = tuple(name for name in graph.names if math.isnan(need[name]))
    if not behind:
        return MissingMetrics((), busy_sources, standing=stuck)
    ratios = measure_edge_ratios(graph, of_edges.processing_rate_per_s, of_edges.output_rate_per_s, of_edges.idle_share)
    return MissingMetrics((), busy_sources, behind, describe_edges(find_unknown(graph, ratios)), stuck)


def _find_standing(graph: JobGraph, windows: Observations) -> dict[str, float]:
    """Return source -> the pending records that are not outstanding, in the last window; without those that are few."""
    stuck = windows.pending_records[-1] - windows.waiting_records[-1]
    least = _LEAST_S * windows.processing_rate_per_s[-1]
    places = {name: graph.position(name) for name in graph.sources}
    return {name: stuck[at] for name, at in places.items() if stuck[at] > least[at]}


def leave_out(reading: MeanMetrics, unseen: MissingMetrics) -> MeanMetrics:
    """Return a reading in which sources that busy time alone calls short need nothing."""
    need: Mapping[str, float] = {**reading.required_per_s, **dict.fromkeys(unseen.busy_sources, math.nan)}
    return replace(reading, required_per_s=need)


def describe_load_unseen(unseen: MissingMetrics) -> str:
    """Return why nothing is decided for a job whose load is not counted."""
    return (
        f"load_unseen: no counter tells what {', '.join(unseen.sources)} takes in, so nothing rises or falls; "
        "`tidewise doctor` lists the counters of each source"
    )


def describe_unseen(unseen: MissingMetrics) -> str:
    """Return what is not known, to follow another reason; nothing where all is."""
    parts = []
    if unseen.busy_sources:
        parts.append(
            f"source_busy_unexplained: {', '.join(unseen.busy_sources)} is always busy without a backlog that grows, "
            "which is no evidence of a limit"
        )
    if unseen.operators:
        parts.append(
            f"edge_unknown: what goes over {unseen.edges} is not counted apart, so {', '.join(unseen.operators)} "
            "neither rises nor falls"
        )
    parts += [
        f"standing_backlog: {count:,.0f} records stay pending at {name} though it has idle time: no size works them off"
        for name, count in unseen.standing.items()
    ]
    return "".join(f"; {part}" for part in parts)
