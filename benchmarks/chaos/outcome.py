"""How a fault ended for the job that it met: read from the controller's log and from Flink."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.chaos.log_rows import LogRow

HELD = frozenset({"held", "on_hold", "foreign_change", "mode_off", "settings_changed"})
# Decisions after which the same step is tried again.
PASSING = frozenset(
    {
        *("not_received", "withdrawn_before_sending", "refused_by_flink", "late_request", "no_reply"),
        *("checkpoints_unknown", "checkpoints_failing", "no_checkpoint", "checkpoint_first", "autoscaler_unknown"),
        *("memory_unknown", "heap_full", "gc_pressure"),
    }
)
STANDS_TICKS, PASSES_TICKS = 5, 16  # without another decision: then a refusal stands


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a fault ended.

    Attributes:
        verdict: confirmed, rolled back, refused, held, not touched (the step had expired before anybody looked at it),
            or unsettled.
        reason: named reason of a refusal or a hold.
    """

    verdict: str
    reason: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the fault ended as it may."""
        return self.verdict != "unsettled"

    def __str__(self) -> str:
        """Return it for a table."""
        return f"{self.verdict}: {self.reason}" if self.reason else self.verdict


NOT_TOUCHED = Outcome("not touched")


@dataclass(frozen=True, slots=True)
class JobState:
    """What Flink says of a job, by operator; empty when it does not run, or does not reply."""

    running: Mapping[str, int]
    requested: Mapping[str, int]

    def is_at(self, target: Mapping[str, int]) -> bool:
        """Whether the job was asked for a parallelism and runs at it."""
        return dict(self.running) == dict(target) == dict(self.requested)


def judge(
    rows: Sequence[LogRow], step_id: str, target: Mapping[str, int], observe: Callable[[], JobState], ticks: int
) -> Outcome | None:
    """Return how it ended; None while it has not.

    Args:
        rows: of the job since the fault began, in their order.
        step_id: of the step that was planned for it.
        target: of that step, by operator.
        observe: asks Flink.
        ticks: that controllers have made since the last of the rows.
    """
    last = rows[-1] if rows else None
    if last is None or last.history["in_flight"] is not None or last.history["unfilled"] is not None:
        return None
    state = observe()
    if not state.running or state.running != state.requested:
        # Flink may lack slots: what was asked for stands, and the controller has said why nothing follows.
        return _stand(last, ticks)
    if state.is_at(target) and any(row.verb == "confirm" and row.step_id == step_id for row in rows):
        return Outcome("confirmed")  # whatever was said of the job since
    if last.verb == "confirm":
        return Outcome("rolled back") if last.request is not None and last.request["is_rollback"] else None
    if last.verb == "wait" and last.reason not in HELD:
        # Taken over as it is: after a restart with the same parallelism, or with a request that arrived late.
        return Outcome("confirmed", last.reason) if state.is_at(target) and ticks >= STANDS_TICKS else None
    return _stand(last, ticks)


def _stand(last: LogRow, ticks: int) -> Outcome | None:
    """Return the refusal or hold that a last row says, when nothing has followed it for long enough."""
    is_passing = last.reason in PASSING or last.answer != ""
    if ticks < (PASSES_TICKS if is_passing else STANDS_TICKS):
        return None
    if last.reason in HELD and not last.is_left_alone:
        return Outcome("held", last.reason)
    if last.answer:
        return Outcome("refused", last.answer.partition(":")[0])
    is_refused = last.verb == "refuse" and not last.is_left_alone
    return Outcome("refused", last.reason) if is_refused else None
