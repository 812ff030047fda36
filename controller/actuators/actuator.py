"""What every actuator can do: observe the jobs of a cluster, ask about one before a request, and request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from models.control.readiness import Failure, Readiness
from models.control.state import ObservedJob, Parallelism


class RequestRefusedError(Exception):
    """Flink has refused a request; the message has its reason."""


class RequestConflictError(RequestRefusedError):
    """Nothing was changed, since what the request was judged by has changed: it may be judged and sent once more."""


class RequestUnknownError(Exception):
    """No reply: the request may have arrived or not."""


Observation = ObservedJob | RequestUnknownError
"""What a cluster says of a job, or why it says nothing."""


class Actuator(Protocol):
    """What changes the parallelism of a cluster's jobs: observe, ask before a request, and request.

    A request is confirmed when :meth:`observe` shows the job at what was asked for, and withdrawn by a request for what
    was in force before it, so that both go by what Flink says and by the same checks as every other request.
    """

    def observe(self, job: str) -> ObservedJob:
        """Return what the cluster says of a job now.

        Raises:
            RequestUnknownError: the cluster does not reply.
        """

    def observe_all(self, jobs: Iterable[str]) -> dict[str, Observation]:
        """Return what the cluster says of each job, or why it says nothing.

        Raises:
            RequestUnknownError: the cluster does not reply.
        """

    def inspect(self, job: str, job_id: str) -> Readiness | None:
        """Return what the cluster says of a job right before a request; None where nothing is ever sent."""

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...] | None:
        """Return the failures of a job that the cluster remembers; None when it does not tell."""

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        """Ask for a checkpoint; that it is refused is logged and harms nothing."""

    def request(self, job: str, job_id: str, target: Parallelism) -> None:
        """Ask for a parallelism, once.

        Raises:
            RequestConflictError: what was observed has changed since; nothing was asked for.
            RequestRefusedError: the cluster has refused it.
            RequestUnknownError: nobody knows whether it arrived.
        """


class SilentActuator:
    """What an actuator does that sends nothing, and says why."""

    def __init__(self, why: str) -> None:
        self._why = why

    def inspect(self, job: str, job_id: str) -> Readiness | None:  # noqa: ARG002 - nothing is asked
        """Return None: nothing is ever sent."""
        return None

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...] | None:  # noqa: ARG002 - see above
        """Return None: nothing was sent that could have failed."""
        return None

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        """Do nothing."""

    def request(self, job: str, job_id: str, target: Parallelism) -> None:  # noqa: ARG002 - see above
        """Refuse.

        Raises:
            RequestRefusedError: always.
        """
        raise RequestRefusedError(self._why)
