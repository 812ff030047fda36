"""Which of a vertex's metrics are read, and as what: the columns of a sample."""

from __future__ import annotations

from include.flink.endpoints import INPUT_WATERMARK
from include.flink.source_counters import PENDING_RECORDS

TASK_METRICS = {
    "in_total": ("numRecordsIn", "sum"),
    "out_total": ("numRecordsOut", "sum"),
    "busy_total_ms": ("accumulateBusyTimeMs", "avg"),
    "busy_max_total_ms": ("accumulateBusyTimeMs", "max"),
    "idle_total_ms": ("accumulateIdleTimeMs", "avg"),
    "backpressured_total_ms": ("accumulateBackPressuredTimeMs", "avg"),
    "in_gauge_per_s": ("numRecordsInPerSecond", "sum"),
    "out_gauge_per_s": ("numRecordsOutPerSecond", "sum"),
    "busy_gauge_ms": ("busyTimeMsPerSecond", "avg"),
    "busy_gauge_max_ms": ("busyTimeMsPerSecond", "max"),
    "idle_gauge_ms": ("idleTimeMsPerSecond", "avg"),
    "backpressured_gauge_ms": ("backPressuredTimeMsPerSecond", "avg"),
    "watermark_ms": (INPUT_WATERMARK, "min"),
}
"""column -> (metric of the task, aggregation over the subtasks)."""
SOURCE_METRICS = {
    "source_in_total": ("numRecordsIn", "sum"),
    "source_out_total": ("numRecordsOut", "sum"),
    "pending": (PENDING_RECORDS, "sum"),
}
"""column -> (metric of a source's operators, so that Flink puts their names in front, aggregation)."""
RUN_TIMES = ("busy_total_ms", "idle_total_ms", "backpressured_total_ms")
"""Together, the time that the tasks have run: it moves without load, too."""
COUNTERS = (
    "in_total",
    "out_total",
    "source_in_total",
    "source_out_total",
    "idle_total_ms",
    "backpressured_total_ms",
)
"""Columns that only grow while a task runs."""
BUSY_TIMES = ("busy_total_ms", "busy_max_total_ms")
"""What idle and backpressured time leave of a run, by Flink: they may fall by some ms while a task is idle."""
TOTALS = (*COUNTERS, *BUSY_TIMES)
GAUGES = tuple(column for column in TASK_METRICS if column not in TOTALS)
COLUMNS = (*TOTALS, "pending", *GAUGES)
"""Of a sample, in order."""
PLACE = {column: place for place, column in enumerate(COLUMNS)}
SUBTASK_COUNTERS = tuple(dict.fromkeys(TASK_METRICS[column][0] for column in TOTALS if column in TASK_METRICS))
"""Metrics that are counted by each subtask."""
TELLING_MEAN = 100.0
"""Least mean of a counter over its subtasks that tells how many they are: below, rounding may hide it."""
