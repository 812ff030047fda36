"""Rules 1-7 for a whole job: its samples to each vertex's demand, rate and bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lab.policies.flink_autoscaler.config import AutoscalerConfig
from lab.policies.flink_autoscaler.target_capacity import RequiredRates, bounds
from lab.policies.flink_autoscaler.topology import JobTopology, TopologyVertex
from lab.policies.flink_autoscaler.true_rates import (
    busy_share,
    catch_up_rate,
    edge_ratio,
    job_processes_backlog,
    source_target_rate,
    true_processing_rate,
)
from lab.policies.flink_autoscaler.vertex_scaling import VertexState
from lab.policies.flink_autoscaler.window import LAG, RECORDS_IN, MetricWindow


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A job as evaluated.

    Attributes:
        vertices: vertex -> its state, in topological order.
        load: vertex -> its busy share, NaN when not known.
        processing_backlog: whether a source is far behind.
    """

    vertices: Mapping[str, VertexState]
    load: Mapping[str, float]
    processing_backlog: bool


def demands(config: AutoscalerConfig, topology: JobTopology, window: MetricWindow) -> dict[str, RequiredRates]:
    """Rules 1-3: what arrives at each vertex and what its sources' lag adds; NaN when a source's rate is not known."""
    known: dict[str, RequiredRates] = {}
    for vertex in topology.vertices:
        if not vertex.inputs:
            known[vertex.name] = _source_demand(config, window, vertex.name)
            continue
        ratios = {upstream: edge_ratio(topology, window, upstream, vertex.name) for upstream in vertex.inputs}
        known[vertex.name] = RequiredRates(
            target_per_s=sum(known[upstream].target_per_s * ratio for upstream, ratio in ratios.items()),
            catch_up_per_s=sum(known[upstream].catch_up_per_s * ratio for upstream, ratio in ratios.items()),
        )
    return known


def evaluate_vertices(
    config: AutoscalerConfig, topology: JobTopology, window: MetricWindow, *, restart_s: float
) -> Evaluation:
    """Evaluate a job over its metrics window."""
    backlog = job_processes_backlog(config, topology, window)
    wanted = demands(config, topology, window)
    states = {
        vertex.name: _state(config, window, vertex, wanted[vertex.name], restart_s=restart_s, backlog=backlog)
        for vertex in topology.vertices
    }
    load = {vertex.name: busy_share(config, window, vertex.name, vertex.parallelism) for vertex in topology.vertices}
    return Evaluation(states, load, backlog)


def _source_demand(config: AutoscalerConfig, window: MetricWindow, source: str) -> RequiredRates:
    # A source without a lag metric has no lag, so neither does it grow.
    change = window.rate_per_s(source, LAG)
    growth = 0.0 if math.isnan(change) and math.isnan(window.latest(source, LAG)) else change
    return RequiredRates(
        target_per_s=source_target_rate(window.rate_per_s(source, RECORDS_IN), growth),
        catch_up_per_s=catch_up_rate(window.latest(source, LAG, 0.0), config.catch_up_duration_s),
    )


def _state(
    config: AutoscalerConfig,
    window: MetricWindow,
    vertex: TopologyVertex,
    demand: RequiredRates,
    *,
    restart_s: float,
    backlog: bool,
) -> VertexState:
    return VertexState(
        parallelism=vertex.parallelism,
        max_parallelism=vertex.max_parallelism,
        demand=demand,
        true_processing_per_s=true_processing_rate(config, window, vertex.name, vertex.parallelism),
        bounds=bounds(config, demand, restart_s=restart_s, processing_backlog=backlog),
        input_ship=tuple(vertex.inputs.values()),
        source_partitions=vertex.source_partitions,
    )
