"""A history of two made-up vertices as Flink's reporter would have given it, for promtool; the truth is at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE_ID, WORK_ID = "1" * 32, "2" * 32
VERTICES = {SOURCE_ID: "Source:_orders", WORK_ID: "enrich"}


@dataclass(frozen=True)
class Run:
    """A time in which the job ran: from ``start_s`` to ``end_s``, epoch seconds, vertex id -> parallelism.

    ``capacity_per_s``: vertex id -> what a busy subtask processes, and the source tells its backlog, which is empty;
    without it each is busy a quarter of its time, and no backlog is told.
    """

    job_id: str
    start_s: int
    end_s: int
    parallelism: dict[str, int]
    taskmanager: str
    capacity_per_s: Mapping[str, float] | None = None


def rate_per_s(at_s: int) -> int:
    """Records per second and subtask of the source: constant within an hour."""
    return 100 + (at_s // 3600 % 24) * 10


def count_records(since_s: int, until_s: int) -> int:
    """Records that one subtask of the source has emitted."""
    total, at_s = 0, since_s
    while at_s < until_s:
        end_s = min(until_s, (at_s // 3600 + 1) * 3600)
        total += rate_per_s(at_s) * (end_s - at_s)
        at_s = end_s
    return total


def _labels(run: Run, vertex: str, subtask: int) -> str:
    attempt = f"{run.start_s:032d}_{vertex}_{subtask}_0"
    named = {
        "job_id": run.job_id,
        "job_name": "orders",
        "task_id": vertex,
        "task_name": VERTICES[vertex],
        "task_attempt_id": attempt,
        "task_attempt_num": "0",
        "subtask_index": str(subtask),
        "tm_id": run.taskmanager,
        "host": "h",
    }
    return ",".join(f'{name}="{value}"' for name, value in named.items())


def _samples(run: Run, every_s: int) -> list[int]:
    first = run.start_s + every_s
    return list(range(first - first % every_s, run.end_s, every_s))


def _task_lines(run: Run, metric: str, every_s: int) -> Iterator[str]:
    for vertex, parallelism in run.parallelism.items():
        shared = run.parallelism[SOURCE_ID] / parallelism  # what one subtask of the source emits is spread
        for subtask in range(parallelism):
            labels = _labels(run, vertex, subtask)
            emitted = 0
            before_s = run.start_s
            for at_s in _samples(run, every_s):
                emitted += count_records(before_s, at_s)
                before_s = at_s
                ran_ms = 1000 * (at_s - run.start_s)
                busy_ms = ran_ms // 4
                if run.capacity_per_s is not None:
                    busy_ms = int(1000 * emitted * shared / run.capacity_per_s[vertex])
                value = {
                    "numRecordsIn": 0 if vertex == SOURCE_ID else int(emitted * shared),
                    "numRecordsOut": emitted if vertex == SOURCE_ID else 0,
                    "accumulateBusyTimeMs": busy_ms,
                    "accumulateIdleTimeMs": ran_ms - busy_ms,
                    "accumulateBackPressuredTimeMs": 0,
                    "busyTimeMsPerSecond": 1000 * busy_ms // ran_ms,
                }[metric]
                yield f"flink_taskmanager_job_task_{metric}{{{labels}}} {value} {at_s}"


def _pending_lines(run: Run, every_s: int) -> Iterator[str]:
    """Yield an empty backlog of the source's operator."""
    if run.capacity_per_s is None:
        return
    for subtask in range(run.parallelism[SOURCE_ID]):
        labels = f'{_labels(run, SOURCE_ID, subtask)},operator_id="{SOURCE_ID}",operator_name="Source:_orders"'
        for at_s in _samples(run, every_s):
            yield f"flink_taskmanager_job_task_operator_pendingRecords{{{labels}}} 0 {at_s}"


def _job_lines(runs: list[Run], metric: str, every_s: int) -> Iterator[str]:
    for number, run in enumerate(runs):
        labels = f'job_id="{run.job_id}",job_name="orders",host="h"'
        same_id = sum(one.job_id == run.job_id for one in runs[:number])
        for at_s in _samples(run, every_s):
            value = {"runningTime": 1000 * (at_s - run.start_s) + 3, "numRestarts": same_id}[metric]
            yield f"flink_jobmanager_job_{metric}{{{labels}}} {value} {at_s}"


def graph_reply(job_id: str) -> dict[str, Any]:
    """Return what Flink's ``/jobs/:jobid`` says of the graph: the source feeds the other vertex."""
    names = {SOURCE_ID: "Source: orders", WORK_ID: "enrich"}
    edge = [{"num": 0, "id": SOURCE_ID, "ship_strategy": "HASH", "exchange": "pipelined_bounded"}]
    inputs = {SOURCE_ID: {}, WORK_ID: {"inputs": edge}}
    return {
        "jid": job_id,
        "name": "orders",
        "vertices": [{"id": vertex, "name": name, "maxParallelism": 128} for vertex, name in names.items()],
        "plan": {"nodes": [{"id": vertex, "description": name} | inputs[vertex] for vertex, name in names.items()]},
    }


TASK_METRICS = (
    "numRecordsIn",
    "numRecordsOut",
    "accumulateBusyTimeMs",
    "accumulateIdleTimeMs",
    "accumulateBackPressuredTimeMs",
    "busyTimeMsPerSecond",
)


def write_history(path: Path, runs: list[Run], every_s: int) -> None:
    """Write all series in OpenMetrics, each metric in one block."""
    with path.open("w") as out:
        for metric in TASK_METRICS:
            out.write(f"# TYPE flink_taskmanager_job_task_{metric} gauge\n")
            for run in runs:
                out.writelines(f"{line}\n" for line in _task_lines(run, metric, every_s))
        out.write("# TYPE flink_taskmanager_job_task_operator_pendingRecords gauge\n")
        for run in runs:
            out.writelines(f"{line}\n" for line in _pending_lines(run, every_s))
        for metric in ("runningTime", "numRestarts"):
            out.write(f"# TYPE flink_jobmanager_job_{metric} gauge\n")
            out.writelines(f"{line}\n" for line in _job_lines(runs, metric, every_s))
        out.write("# EOF\n")
