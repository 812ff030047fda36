"""Records in = records out + state, exactly: the counts of source, aggregate and sink as they stand in one checkpoint.

All records before a checkpoint's barrier, and none behind it, are in each of its counts; so they agree to the last
record, while counts that are read at work differ by what is on its way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from include.flink.endpoints import available, vertex_metric_names_path, vertex_metrics_path
from include.flink.faults import FlinkError
from lab.local_flink.job_client import JobClient
from lab.local_flink.load import AGGREGATE, COUNTED_SINK, SOURCE

_ID = "snapshotId"
_COUNTS = {
    SOURCE: ("emittedAtSnapshot",),
    AGGREGATE: ("countedAtSnapshot", "heldAtSnapshot"),
    COUNTED_SINK: ("receivedAtSnapshot",),
}


@dataclass(frozen=True, slots=True)
class SnapshotCounts:
    """Records of a job since it was submitted, in one checkpoint.

    Attributes:
        snapshot_id: of the checkpoint.
        emitted: by the source.
        counted: by the operator behind it.
        held: counted, and no record was emitted for them yet.
        received: by the sink; each stands for so many as the operator emits one record for.
    """

    snapshot_id: int
    emitted: int
    counted: int
    held: int
    received: int


def find_difference(counts: SnapshotCounts, emit_every: int) -> str:
    """Return what does not add up; empty when nothing is lost and nothing repeated."""
    out = counts.received * emit_every
    if counts.emitted == counts.counted == out + counts.held:
        return ""
    return (
        f"in checkpoint {counts.snapshot_id} the source has emitted {counts.emitted} records, {counts.counted} were "
        f"counted, {out} have come to the sink and {counts.held} are held"
    )


class SnapshotWatch:
    """Reads the counts of jobs' checkpoints, all through a run; a cluster that does not reply is passed over.

    Attributes:
        seen: job id -> id of a checkpoint -> its counts.
    """

    def __init__(self, client: JobClient) -> None:
        self._client = client
        self._paths: dict[str, list[str]] = {}
        self.seen: dict[str, dict[int, SnapshotCounts]] = {}

    def poll(self, job_id: str) -> None:
        """Read the counts of a job's newest checkpoint, where all of its subtasks show the same one."""
        try:
            if job_id not in self._paths:
                self._paths[job_id] = self._list_paths(job_id)
            result = read_counts([one for path in self._paths[job_id] for one in self._client.transport.get_json(path)])
        except (FlinkError, KeyError):
            self._paths.pop(job_id, None)
            return
        if result is not None:
            self.seen.setdefault(job_id, {})[result.snapshot_id] = result

    def find_differences(self, emit_every: Mapping[str, int]) -> Iterator[str]:
        """Yield the checkpoints in which the records of a job do not add up, nor in the next one that was read.

        The counts are of all records since the job was submitted, so what is lost is missing in every later checkpoint;
        a difference in one alone was read while its counts were being reported one after the other.

        Args:
            emit_every: job id -> for how many records the operator behind the source emits one.
        """
        for job_id, counts in self.seen.items():
            in_order = [counts[number] for number in sorted(counts)]
            differences = [find_difference(one, emit_every[job_id]) for one in in_order]
            for difference, following in zip(differences, [*differences[1:], "the newest"], strict=True):
                if difference and following:
                    yield f"{job_id}: {difference}"

    def _list_paths(self, job_id: str) -> list[str]:
        """Return the paths of the metrics; raises KeyError while not all of them are there."""
        vertices = {vertex["name"]: vertex["id"] for vertex in self._client.job(job_id)["vertices"]}
        paths = []
        for name, counts in _COUNTS.items():
            listed = self._client.transport.get_json(vertex_metric_names_path(job_id, vertices[name]))
            names = available((*counts, _ID), [one["id"] for one in listed])
            if len(names) != len(counts) + 1:
                raise KeyError(name)
            paths.append(vertex_metrics_path(job_id, vertices[name], names))
        return paths


def read_counts(metrics: Iterable[Mapping[str, Any]]) -> SnapshotCounts | None:
    """Return the counts of one checkpoint from aggregated metrics; None while subtasks show several, or none."""
    sums: dict[str, int] = {}
    ids: set[int] = set()
    for one in metrics:
        name = str(one["id"]).rpartition(".")[2]
        if name == _ID:
            ids |= {round(float(one["min"])), round(float(one["max"]))}
        else:
            sums[name] = round(float(one["sum"]))
    if len(ids) != 1 or 0 in ids:
        return None
    counted, held = sums["countedAtSnapshot"], sums["heldAtSnapshot"]
    return SnapshotCounts(ids.pop(), sums["emittedAtSnapshot"], counted, held, sums["receivedAtSnapshot"])
