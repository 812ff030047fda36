"""The parts of a Flink autoscaler case: vertices, jobs, samples and histories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.conformance.cases import CaseError, Json, number
from lab.policies.flink_autoscaler.autoscaler_memory import Scaling
from lab.policies.flink_autoscaler.config import AutoscalerConfig
from lab.policies.flink_autoscaler.target_capacity import RequiredRates, bounds
from lab.policies.flink_autoscaler.topology import JobTopology, TopologyVertex
from lab.policies.flink_autoscaler.vertex_scaling import VertexState
from lab.policies.flink_autoscaler.window import RECORDS_IN, RECORDS_OUT, MetricWindow

ANY_PARALLELISM = 2**15  # Flink's own limit, where a case names none
_TIMES_S = {"t_s": 1.0, "t_ms": 1e-3}


def state_of(config: AutoscalerConfig, inputs: Json) -> VertexState:
    """Return a vertex as evaluated."""
    demand, backlog = demand_of(inputs), inputs.get("processing_backlog", False)
    return VertexState(
        parallelism=inputs["parallelism"],
        max_parallelism=inputs["max_parallelism"],
        demand=demand,
        true_processing_per_s=number(inputs["true_processing_rate"]),
        bounds=bounds(config, demand, restart_s=config.restart_time_s, processing_backlog=backlog),
        input_ship=inputs.get("input_ship", ()),
        source_partitions=inputs.get("num_source_partitions", 0),
    )


def demand_of(inputs: Json) -> RequiredRates:
    """Return what a vertex must process."""
    return RequiredRates(number(inputs["target_data_rate"]), number(inputs.get("catch_up_data_rate", 0)))


def history_of(rows: Sequence[Json]) -> list[Scaling]:
    """Return past scalings, oldest first."""
    return [
        Scaling(
            at_s=index,
            parallelism=row["parallelism"],
            new_parallelism=row.get("new_parallelism"),
            true_processing_per_s=number(row["true_processing_rate"]),
            expected_per_s=row.get("expected_processing_rate"),
        )
        for index, row in enumerate(rows)
    ]


def topology_of(edges: Sequence[Sequence[str]], inputs: Json) -> JobTopology:
    """Return the job of a list of edges; exchanges that a case does not name are rebalances."""
    names = dict.fromkeys(name for edge in edges for name in edge)
    shared: Any = inputs["max_parallelism"]
    highest: Mapping[str, int] = shared if isinstance(shared, Mapping) else dict.fromkeys(names, shared)
    ships: Mapping[str, Sequence[str]] = inputs.get("input_ship") or {}
    partitions: Mapping[str, int] = inputs.get("num_source_partitions") or {}
    vertices = []
    for name in names:
        feeding = [one for one, other in edges if other == name]
        ship = list(ships.get(name, ())) or ["REBALANCE"]
        ships_of = {one: ship[min(index, len(ship) - 1)] for index, one in enumerate(feeding)}
        running = inputs.get("parallelism", {}).get(name, 1)
        vertices.append(
            TopologyVertex(name, running, highest.get(name, ANY_PARALLELISM), ships_of, partitions.get(name, 0))
        )
    return JobTopology.of(vertices)


def window_of(samples: Sequence[Json]) -> MetricWindow:
    """Return samples, each with a time (``t_s`` or ``t_ms``) and the metrics of its vertices."""
    times = [sample[unit] * scale for sample in samples for unit, scale in _TIMES_S.items() if unit in sample]
    if len(times) != len(samples):
        raise CaseError("every sample needs a time, t_s or t_ms")
    names = dict.fromkeys(name for sample in samples for name in sample if name not in _TIMES_S)
    values = {}
    for name in names:
        rows = [_metrics(sample.get(name) or {}) for sample in samples]
        metrics = dict.fromkeys(metric for row in rows for metric in row)
        values[name] = {metric: np.array([number(row.get(metric)) for row in rows]) for metric in metrics}
    return MetricWindow(np.array(times, float), values)


def _metrics(of_vertex: Json | Sequence[Any]) -> Json:
    """Return a vertex's metrics by name; a list holds its counters of records in and out."""
    if isinstance(of_vertex, Mapping):
        return of_vertex
    return dict(zip((RECORDS_IN, RECORDS_OUT), of_vertex, strict=True))
