"""What Flink says of the jobs' checkpoints while faults go on: whether each restart went back to the newest one."""

from __future__ import annotations

from dataclasses import dataclass, field

from include.flink.faults import FlinkError
from lab.local_flink.job_client import JobClient


@dataclass(frozen=True, slots=True)
class Restore:
    """A restart of a job from a checkpoint.

    Attributes:
        restored: id of the checkpoint.
        at_ms: when, epoch milliseconds.
        known: id of the newest completed one that was seen before.
    """

    restored: int
    at_ms: int
    known: int


@dataclass(slots=True)
class CheckpointTrail:
    """What was seen of one job id.

    Attributes:
        completed: newest id that was seen completed.
        restores: in order.
        starts_ms: times at which the job was seen to have come to RUNNING.
        first_completed_ms: when the first checkpoint was completed.
    """

    completed: int = 0
    restores: list[Restore] = field(default_factory=list)
    starts_ms: list[int] = field(default_factory=list)
    first_completed_ms: int | None = None


class CheckpointWatch:
    """Polls jobs; a cluster that does not reply is passed over."""

    def __init__(self, client: JobClient) -> None:
        self._client = client
        self.trails: dict[str, CheckpointTrail] = {}

    def poll(self, job_id: str) -> None:
        """Poll one job."""
        try:
            job, result = self._client.job(job_id), self._client.checkpoints(job_id)
        except FlinkError:
            return
        trail = self.trails.setdefault(job_id, CheckpointTrail())
        running_ms = int(job["timestamps"].get("RUNNING") or 0)
        if running_ms and (not trail.starts_ms or running_ms > trail.starts_ms[-1]):
            trail.starts_ms.append(running_ms)
        latest = result.get("latest") or {}
        restored, completed = latest.get("restored"), latest.get("completed")
        if restored and (not trail.restores or restored["restore_timestamp"] > trail.restores[-1].at_ms):
            trail.restores.append(Restore(restored["id"], restored["restore_timestamp"], trail.completed))
        if completed:
            trail.completed = max(trail.completed, completed["id"])
            if trail.first_completed_ms is None:
                trail.first_completed_ms = completed["latest_ack_timestamp"]
