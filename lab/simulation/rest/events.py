"""The replies of ``/jobs/:jid/checkpoints``, ``/exceptions``, ``/metrics`` and ``/overview``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FLINK_VERSION = "2.1.3"
RETAINED_FAILURES = 16  # as many as Flink keeps


@dataclass(frozen=True, slots=True)
class CheckpointEvent:
    """A completed checkpoint; times in epoch milliseconds."""

    number: int
    trigger_ms: int
    duration_ms: int
    state_bytes: int


def _path(job_id: str, number: int) -> str:
    return f"s3://checkpoints/{job_id}/chk-{number}"


def _build_completed(job_id: str, one: CheckpointEvent, subtasks: int) -> dict[str, object]:
    return {
        "className": "completed",
        "id": one.number,
        "status": "COMPLETED",
        "is_savepoint": False,
        "savepointFormat": None,
        "trigger_timestamp": one.trigger_ms,
        "latest_ack_timestamp": one.trigger_ms + one.duration_ms,
        "checkpointed_size": one.state_bytes // 3,  # incremental: a third changes between two
        "state_size": one.state_bytes,
        "end_to_end_duration": one.duration_ms,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": subtasks,
        "num_acknowledged_subtasks": subtasks,
        "checkpoint_type": "CHECKPOINT",
        "tasks": {},
        "external_path": _path(job_id, one.number),
        "discarded": False,
    }


def build_checkpoints_reply(
    job_id: str, kept: Sequence[CheckpointEvent], restored: tuple[int, int] | None, subtasks: int
) -> dict[str, object]:
    """Return the reply of ``/jobs/:jid/checkpoints``.

    Args:
        job_id: Flink's.
        kept: the last completed checkpoints, newest first.
        restored: number of the one that the job last came back from, and when it did; None for never.
        subtasks: number of subtasks that take part.
    """
    restored_from = None
    if restored is not None:
        restored_from = {
            "id": restored[0],
            "restore_timestamp": restored[1],
            "is_savepoint": False,
            "external_path": _path(job_id, restored[0]),
        }
    history = [_build_completed(job_id, one, subtasks) for one in kept]
    durations = [one.duration_ms for one in kept]
    took = {"min": min(durations), "max": max(durations), "avg": sum(durations) // len(durations)}
    return {
        "counts": {
            "restored": int(restored_from is not None),
            "total": kept[0].number,
            "in_progress": 0,
            "completed": kept[0].number,
            "failed": 0,
        },
        "summary": {"end_to_end_duration": took},
        "latest": {"completed": history[0], "savepoint": None, "failed": None, "restored": restored_from},
        "history": history,
    }


@dataclass(frozen=True, slots=True)
class TaskManagerLoss:
    """One failure: a TaskManager that was lost."""

    at_ms: int
    operator: str
    subtask: int
    parallelism: int
    host: str

    def entry(self) -> dict[str, object]:
        """Return its entry in Flink's exception history."""
        name = "org.apache.flink.runtime.io.network.netty.exception.RemoteTransportException"
        trace = (
            f"{name}: Connection unexpectedly closed by remote task manager '{self.host}'. "
            "This might indicate that the remote task manager was lost.\n"
        )
        return {
            "exceptionName": name,
            "stacktrace": trace,
            "timestamp": self.at_ms,
            "failureLabels": {},
            "taskName": f"{self.operator} ({self.subtask}/{self.parallelism}) - execution #0",
            "endpoint": self.host,
            "taskManagerId": self.host,
            "concurrentExceptions": [],
        }


def build_exceptions_reply(failures: Sequence[TaskManagerLoss]) -> dict[str, object]:
    """Return the reply of ``/jobs/:jid/exceptions`` from failures in order of time: the newest stands first."""
    entries = [failure.entry() for failure in reversed(failures[-RETAINED_FAILURES:])]
    return {
        "all-exceptions": [],
        "root-exception": entries[0]["stacktrace"] if entries else None,
        "timestamp": entries[0]["timestamp"] if entries else None,
        "truncated": False,
        "exceptionHistory": {"entries": entries, "truncated": len(failures) > RETAINED_FAILURES},
    }


def build_job_metrics_reply(values: Mapping[str, int]) -> list[dict[str, str]]:
    """Return the reply of ``/jobs/:jid/metrics?get=...``: Flink gives values as strings."""
    return [{"id": name, "value": str(value)} for name, value in values.items()]


def build_overview_reply(taskmanagers: int, slots: int, free: int, running: int) -> dict[str, object]:
    """Return the reply of ``/overview``."""
    return {
        "taskmanagers": taskmanagers,
        "slots-total": slots,
        "slots-available": free,
        "jobs-running": running,
        "jobs-finished": 0,
        "jobs-cancelled": 0,
        "jobs-failed": 0,
        "flink-version": FLINK_VERSION,
        "flink-commit": "simulated",
    }
