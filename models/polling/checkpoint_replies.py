"""What Flink's replies tell of a job's checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from include.domain.quarantine_rules import Rule
from models.control.readiness import Checkpoints
from models.polling.faults import ReplyError
from models.polling.reply_values import object_or_empty, read_time_ms, require_object

_NEVER_MS = 10**15  # an interval of Long.MAX_VALUE is Flink's way to say that checkpoints are off
_IN_PROGRESS, _FAILED = "IN_PROGRESS", "FAILED"


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """How a job takes checkpoints.

    Attributes:
        interval_s: between two of them, s; None where they are off.
        timeout_s: after which Flink gives one up.
        is_concurrent: whether one may be completed while another, or a savepoint, is in progress.
    """

    interval_s: float | None
    timeout_s: float = 600.0
    is_concurrent: bool = False


def read_config(result: object) -> CheckpointConfig:
    """Read a ``checkpoints/config`` reply.

    A pause between checkpoints that is longer than their interval counts as the interval.

    Raises:
        ReplyError: it does not tell the interval.
    """
    reply = require_object(result)
    interval_ms = reply.get("interval")
    if isinstance(interval_ms, bool) or not isinstance(interval_ms, int | float):
        raise ReplyError(Rule.MISSING_FIELD, "interval of checkpoints")
    if not 0 < interval_ms < _NEVER_MS:
        return CheckpointConfig(None)
    pause_ms, timeout_ms = read_time_ms(reply.get("min_pause")) or 0, read_time_ms(reply.get("timeout")) or 600_000
    is_concurrent = read_time_ms(reply.get("max_concurrent")) not in {None, 1}
    return CheckpointConfig(max(float(interval_ms), float(pause_ms)) / 1000.0, timeout_ms / 1000.0, is_concurrent)


def read_checkpoints(result: object, config: CheckpointConfig) -> Checkpoints:
    """Read a ``checkpoints`` reply.

    Raises:
        ReplyError: it does not tell counts, latest checkpoints and history.
    """
    reply = require_object(result)
    counts, latest, history = (
        require_object(reply.get("counts")),
        require_object(reply.get("latest")),
        reply.get("history"),
    )
    in_progress = counts.get("in_progress")
    if type(in_progress) is not int or not isinstance(history, list):
        raise ReplyError(Rule.MISSING_FIELD, "counts.in_progress, history")
    listed = [one for one in history if isinstance(one, dict)]
    running = [one for one in listed if one.get("status") == _IN_PROGRESS]
    savepoints = sum(map(_is_savepoint, running))
    completed, restored = object_or_empty(latest.get("completed")), object_or_empty(latest.get("restored"))
    good = [read_time_ms(completed.get("latest_ack_timestamp")), read_time_ms(restored.get("restore_timestamp"))]
    good_ms = max((at for at in good if at), default=None)
    failed = [object_or_empty(latest.get("failed")), *(one for one in listed if one.get("status") == _FAILED)]
    failed_ms, broken_ms = (
        max((_failed_ms(one) for one in failed if _is_savepoint(one) is of_savepoints), default=0)
        for of_savepoints in (False, True)
    )
    size = completed.get("state_size")
    last_id = completed.get("id")
    return Checkpoints(
        interval_s=config.interval_s,
        completed_at_s=None if good_ms is None else good_ms / 1000.0,
        is_failing=failed_ms > (good_ms or 0),
        savepoints=savepoints if len(running) >= in_progress else None,
        in_progress=len(running) - savepoints,
        state_bytes=size if type(size) is int and size >= 0 else None,
        last_id=last_id if type(last_id) is int else 0,
        timeout_s=config.timeout_s,
        savepoint_failed_at_s=broken_ms / 1000.0 if broken_ms else None,
    )


def _is_savepoint(checkpoint: Mapping[str, Any]) -> bool:
    return bool(checkpoint.get("is_savepoint")) or "SAVEPOINT" in str(checkpoint.get("checkpoint_type", ""))


def _failed_ms(checkpoint: Mapping[str, Any]) -> int:
    times = (checkpoint.get(key) for key in ("failure_timestamp", "latest_ack_timestamp", "trigger_timestamp"))
    return max((at for at in map(read_time_ms, times) if at), default=0)
