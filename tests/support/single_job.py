"""One job brought a step nearer to what is desired."""

from __future__ import annotations

from collections.abc import Callable

from controller.decisions.job_control import NOT_JUDGED, JobControl, JobTask
from models.control.case import Action, OutcomeCheck
from models.control.limits import Limits
from models.control.state import Intention


def control_job(
    control: JobControl,
    job: str,
    desired: Intention | None,
    read_limits: Callable[[], Limits],
    outcome: OutcomeCheck = NOT_JUDGED,
    late_s: float | None = None,
) -> Action:
    """Return what is decided on a job of which a control has this task alone."""
    return control.control_jobs([JobTask(job, desired, read_limits, outcome, late_s=late_s)])[job]
