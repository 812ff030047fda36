"""The decision of one cycle for a whole job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lab.policies.flink_autoscaler.autoscaler_memory import AutoscalerMemory, DelayedScaleDown, RestartTime, Scaling
from lab.policies.flink_autoscaler.config import AutoscalerConfig
from lab.policies.flink_autoscaler.evaluate import Evaluation, evaluate_vertices
from lab.policies.flink_autoscaler.gates import Resources, disabled_reason, exceeds_quota, memory_pressure
from lab.policies.flink_autoscaler.topology import JobTopology
from lab.policies.flink_autoscaler.vertex_scaling import VertexChange, VertexState, scale_vertex
from lab.policies.flink_autoscaler.window import MetricWindow

NO_RESOURCES = Resources()


@dataclass(frozen=True, slots=True)
class ScalingPlan:
    """The vertices to rescale.

    Attributes:
        changes: vertex -> its change; empty when the job stays as it is.
        reason: why it stays although a vertex needs a change; None otherwise.
    """

    changes: Mapping[str, VertexChange]
    reason: str | None = None

    def parallelism(self, topology: JobTopology) -> dict[str, int]:
        """Return vertex -> parallelism afterwards."""
        return {
            vertex.name: self.changes[vertex.name].parallelism if vertex.name in self.changes else vertex.parallelism
            for vertex in topology.vertices
        }


def vertex_changes(
    config: AutoscalerConfig,
    vertices: Mapping[str, VertexState],
    memory: AutoscalerMemory,
    *,
    restart_s: float,
    now_s: float,
) -> tuple[dict[str, VertexChange], AutoscalerMemory]:
    """Return the vertices that would change, without the job's gates, and the memory with their waiting scale-downs."""
    changes: dict[str, VertexChange] = {}
    delayed: dict[str, DelayedScaleDown] = dict(memory.delayed)
    for name, state in vertices.items():
        if name in config.vertex_exclude_ids:
            continue
        past, waiting = memory.history.get(name, ()), delayed.pop(name, None)
        change, waiting = scale_vertex(config, state, restart_s=restart_s, now_s=now_s, history=past, delayed=waiting)
        if waiting is not None:
            delayed[name] = waiting
        if change.changes:
            changes[name] = change
    return changes, replace(memory, delayed=delayed)


def decide(
    config: AutoscalerConfig,
    topology: JobTopology,
    evaluation: Evaluation,
    memory: AutoscalerMemory,
    *,
    now_s: float,
    resources: Resources = NO_RESOURCES,
    is_latest: bool = True,
) -> tuple[ScalingPlan, AutoscalerMemory]:
    """Rule 12 over all others: scale what asks for it, if any of that is outside its bounds and nothing forbids it.

    A cycle that is read later, with others after it, is not the latest: it only lets scale-downs wait (rule 11).
    """
    known = memory.drop_old(config, now_s)
    pressure = memory_pressure(config, resources)
    if pressure is not None:
        return ScalingPlan({}, pressure), known
    restart_s = known.restart_s(config)
    changes, known = vertex_changes(config, evaluation.vertices, known, restart_s=restart_s, now_s=now_s)
    if not is_latest:
        return ScalingPlan({}, "the cycle lies in the past"), known
    if not changes:
        return ScalingPlan({}), known
    if not any(change.outside_bounds for change in changes.values()):
        return ScalingPlan({}, "every vertex that would change is inside its utilisation bounds"), known
    reason = disabled_reason(config, now_s) or exceeds_quota(config, topology, changes, resources)
    if reason is not None:
        return ScalingPlan({}, reason), known
    return ScalingPlan(changes), _record_scaling(known, evaluation, changes, now_s)


def decide_from_samples(
    config: AutoscalerConfig,
    topology: JobTopology,
    window: MetricWindow,
    memory: AutoscalerMemory,
    *,
    running_since_s: float,
    resources: Resources = NO_RESOURCES,
    is_latest: bool = True,
) -> tuple[ScalingPlan, AutoscalerMemory]:
    """Run a whole cycle at the time of the last sample; nothing is scaled before the metrics window is full."""
    now_s = float(window.times_s[-1])
    running = {vertex.name: vertex.parallelism for vertex in topology.vertices}
    known = memory.drop_old(config, now_s).record_restart(running_since_s, running)
    usable = window.recent(config, running_since_s)
    if usable is None or not window.is_full(config, running_since_s):
        return ScalingPlan({}, "the metrics window is not full yet"), known
    evaluation = evaluate_vertices(config, topology, usable, restart_s=known.restart_s(config))
    return decide(config, topology, evaluation, known, now_s=now_s, resources=resources, is_latest=is_latest)


def _record_scaling(
    memory: AutoscalerMemory, evaluation: Evaluation, changes: Mapping[str, VertexChange], now_s: float
) -> AutoscalerMemory:
    """Return the memory after a scaling: expectations recorded, without waiting scale-downs."""
    history = dict(memory.history)
    for name, change in changes.items():
        rate = evaluation.vertices[name].true_processing_per_s
        done = Scaling(now_s, change.current, change.parallelism, rate, change.expected_per_s)
        history[name] = (*history.get(name, ()), done)
    return AutoscalerMemory({}, history, (*memory.restarts, RestartTime(now_s)))
