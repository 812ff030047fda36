"""Rule 12: when a job is not scaled although its vertices ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from lab.policies.flink_autoscaler.config import AutoscalerConfig
from lab.policies.flink_autoscaler.excluded_periods import in_period
from lab.policies.flink_autoscaler.topology import JobTopology
from lab.policies.flink_autoscaler.vertex_scaling import VertexChange


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources and memory pressure of a job's task managers.

    Attributes:
        gc_pressure: share of time in garbage collection, worst task manager; NaN if unknown.
        heap_usage: used / maximum heap, worst task manager, mean over the window; NaN if unknown.
        cpu, memory_bytes, slots: of one task manager.
    """

    gc_pressure: float = float("nan")
    heap_usage: float = float("nan")
    cpu: float = 0.0
    memory_bytes: int = 0
    slots: int = 1


def memory_pressure(config: AutoscalerConfig, resources: Resources) -> str | None:
    """Return why memory forbids a scaling, None if it does not."""
    if resources.gc_pressure > config.memory_gc_pressure_threshold:
        return f"GC pressure {resources.gc_pressure:.2f} is above {config.memory_gc_pressure_threshold:.2f}"
    if resources.heap_usage > config.memory_heap_usage_threshold:
        return f"heap usage {resources.heap_usage:.2f} is above {config.memory_heap_usage_threshold:.2f}"
    return None


def disabled_reason(config: AutoscalerConfig, now_s: float) -> str | None:
    """Return why no scaling is executed now, None if it is."""
    if not config.scaling_enabled:
        return "scaling.enabled is false"
    at = datetime.fromtimestamp(now_s, UTC)
    result = next((period for period in config.excluded_periods if in_period(period, at)), None)
    return None if result is None else f"in the excluded period {result!r}"


def exceeds_quota(
    config: AutoscalerConfig, topology: JobTopology, changes: Mapping[str, VertexChange], resources: Resources
) -> str | None:
    """Return which quota a scaling would break, None if none.

    As the peer does, only vertices that change are counted, and whole task managers (rounded down).
    """
    now, then = _task_managers(topology, changes, resources.slots)
    if then <= now:
        return None
    if config.quota_cpu is not None and resources.cpu * then > config.quota_cpu:
        return f"{resources.cpu * then:g} CPUs would exceed the quota of {config.quota_cpu:g}"
    if config.quota_memory is not None and resources.memory_bytes * then > config.quota_memory:
        return f"{resources.memory_bytes * then} bytes would exceed the quota of {config.quota_memory}"
    return None


def _task_managers(topology: JobTopology, changes: Mapping[str, VertexChange], slots: int) -> tuple[int, int]:
    """Return whole task managers before and after: the slots of a sharing group are its highest parallelism."""
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    for name, change in changes.items():
        group = topology.vertex(name).slot_sharing_group
        before[group] = max(before.get(group, 0), change.current)
        after[group] = max(after.get(group, 0), change.parallelism)
    return sum(before.values()) // slots, sum(after.values()) // slots
