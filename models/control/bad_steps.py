"""Jobs whose steps go wrong again and again: back to dry-run, until a person lifts it."""

from __future__ import annotations

from dataclasses import replace

from include.utc import DAY_S
from models.control.case import Case
from models.control.limits import Limits
from models.control.state import JobHistory, Mode
from models.scheduling.figures import format_count

KEPT = 100
"""So many bad steps of a job are remembered; ``limits.bad_steps_max`` is at most this."""


def note_bad_step(history: JobHistory, now_s: float) -> JobHistory:
    """Return the history after one more step that was rolled back or has failed."""
    return replace(history, bad_steps_s=(*history.bad_steps_s, now_s)[-KEPT:])


def name_suspension(history: JobHistory, limits: Limits) -> str:
    """Return the id by which a person lifts a job's suspension; empty when it is not suspended.

    Suspended is a job of which ``limits.bad_steps_max`` steps within a day went wrong. It stays so however much time
    passes: a lift names the last of the steps, and those until then count no more.
    """
    counted, last = _without_lifted(history, limits), limits.bad_steps_max - 1
    runs = zip(counted, counted[last:], strict=False)
    # A clock that was set back makes the difference negative: then nobody knows that a day has passed.
    return name_lift(counted[-1]) if any(later - earlier < DAY_S for earlier, later in runs) else ""


def name_lift(step_s: float) -> str:
    """Return the id by which a person lifts what followed from the steps until one, epoch seconds."""
    return f"bad-steps-{step_s!r}"


def effective_mode(case: Case) -> Mode:
    """Return how far the controller may go with the job: as its limits say, dry-run at most while it is suspended."""
    mode = case.limits.mode
    return Mode.DRY_RUN if mode in {Mode.APPROVE, Mode.AUTO} and name_suspension(case.history, case.limits) else mode


def describe_suspension(case: Case) -> str:
    """Return why the job is in dry-run by itself, to be put after another reason; empty when it is not."""
    if effective_mode(case) is case.limits.mode:
        return ""
    steps = format_count(case.limits.bad_steps_max, "step")
    return f"; dry-run, since {steps} rolled back or failed within a day: a person lifts it (tidewise lift)"


def _without_lifted(history: JobHistory, limits: Limits) -> tuple[float, ...]:
    steps_s = history.bad_steps_s
    lifted = [place for place, at_s in enumerate(steps_s, 1) if name_lift(at_s) in limits.lifted_blocks]
    return steps_s[max(lifted, default=0) :]
