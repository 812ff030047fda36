"""What an actuator sees of a job while its cluster is still on the way to it."""

from __future__ import annotations

from controller.actuators.actuator import RequestUnknownError
from controller.actuators.flink_actuator import FlinkActuator
from models.control.state import ObservedJob


def observe_running(actuator: FlinkActuator, job: str) -> ObservedJob | None:
    """Return a job that runs; None for one that does not, that is initialised, or of which no JobManager tells."""
    try:
        observed = actuator.observe(job)
    except RequestUnknownError:
        return None
    return observed if observed.running else None
