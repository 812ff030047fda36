"""What Flink's metrics tell of the memory of the TaskManagers: that of the one which has least left."""

from __future__ import annotations

import math
from collections.abc import Mapping

from include.domain.quarantine_rules import Rule
from models.control.readiness import MemoryUsage
from models.polling.faults import ReplyError, shorten

HEAP_USED, HEAP_MAX = "Status.JVM.Memory.Heap.Used", "Status.JVM.Memory.Heap.Max"
GC_TIME = "Status.JVM.GarbageCollector.All.TimeMsPerSecond"
HEAP_METRICS, GC_METRICS = (HEAP_USED, HEAP_MAX), (GC_TIME,)
"""Names that are asked for in one request each: where a TaskManager lacks one of them, Flink 1.18 tells none of all."""


def read_memory(heap: object, gc: object) -> MemoryUsage:
    """Read two ``/taskmanagers/metrics`` replies, aggregated over all TaskManagers.

    They are about ``HEAP_METRICS`` and ``GC_METRICS``. Where TaskManagers differ in size, the fullest is taken to be
    the smallest: too full rather than too empty.

    Raises:
        ReplyError: they do not tell how much of the heap is in use.
    """
    for result in (heap, gc):
        if not isinstance(result, list):
            raise ReplyError(Rule.WRONG_TYPE, f"no list of metrics: {shorten(str(result))}")
    reported = (*heap, *gc)  # type: ignore[misc]
    metrics = {str(one["id"]): one for one in reported if isinstance(one, dict) and "id" in one}
    used, most = _read(metrics, HEAP_USED, "max"), _read(metrics, HEAP_MAX, "min")
    if used is None or most is None or most <= 0:  # the JVM tells -1 where it has no maximum
        raise ReplyError(Rule.MISSING_FIELD, f"{HEAP_USED}, {HEAP_MAX}")
    gc_ms_per_s = _read(metrics, GC_TIME, "max")
    return MemoryUsage(used / most, None if gc_ms_per_s is None else gc_ms_per_s / 1000.0)


def _read(metrics: Mapping[str, Mapping[str, object]], name: str, aggregate: str) -> float | None:
    reported = metrics.get(name, {}).get(aggregate)
    if isinstance(reported, bool) or not isinstance(reported, int | float | str):
        return None
    try:
        value = float(reported)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
