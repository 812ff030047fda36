"""What was observed of all jobs at once serves the first question about each; the next ones are asked anew."""

from __future__ import annotations

from collections.abc import Mapping

from controller.actuators.actuator import Actuator, RequestUnknownError
from models.control.readiness import Failure, Readiness
from models.control.state import ObservedJob, Parallelism


class ObservedOnce:
    """An actuator that gives what was observed of a job already the first time, and asks anew from then on.

    A decision takes what one question to the cluster has told of all jobs; a request is judged on what the cluster
    says immediately before it.

    Args:
        actuator: asks and sends.
        observations: of the jobs, by name.
    """

    def __init__(self, actuator: Actuator, observations: Mapping[str, ObservedJob | RequestUnknownError]) -> None:
        self._actuator = actuator
        self._left = dict(observations)

    def observe(self, job: str) -> ObservedJob:
        """Return what the cluster says of a job.

        Raises:
            RequestUnknownError: the cluster does not reply, or did not.
        """
        observed = self._left.pop(job, None)
        if observed is None:
            return self._actuator.observe(job)
        if isinstance(observed, RequestUnknownError):
            raise observed
        return observed

    def inspect(self, job: str, job_id: str) -> Readiness | None:
        """Return what the cluster says of a job right before a request."""
        return self._actuator.inspect(job, job_id)

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...] | None:
        """Return the failures of a job that the cluster remembers; one that does not reply is not asked again."""
        if isinstance(self._left.get(job), RequestUnknownError):
            return None
        return self._actuator.read_failures(job, job_id)

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        """Ask for a checkpoint."""
        self._actuator.trigger_checkpoint(job, job_id)

    def request(self, job: str, job_id: str, parallelism: Parallelism) -> None:
        """Ask for a parallelism, once.

        Raises:
            RequestRefusedError: the cluster has refused it.
            RequestUnknownError: nobody knows whether it arrived.
        """
        self._actuator.request(job, job_id, parallelism)
