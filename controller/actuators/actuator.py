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


class ReadinessProbe(Protocol):
    """What can be asked of a cluster about a job that a request is about."""

    def inspect(self, job: str, job_id: str) -> Readiness | None:
        """Return what the cluster says of a job right before a request; None where nothing is ever sent."""

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...] | None:
        """Return the failures of a job that the cluster remembers; None when it does not tell."""

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        """Ask for a checkpoint; that it is refused is logged and harms nothing."""


class Actuator(ReadinessProbe, Protocol):
    """What changes the parallelism of a cluster's jobs: observe, ask before a request, and request.

    A request is confirmed when :meth:`observe` shows the job at what was asked for, and withdrawn by a request for what
    was in force before it, so that both go by what Flink says and by the same checks as every other request.
    """

    def observe(self, job: str) -> ObservedJob:
        """Return what the cluster says of a job now.

        Raises:
            RequestUnknownError: the cluster does not reply.
        """

    def request(self, job: str, job_id: str, target: Parallelism) -> None:
        """Ask for a parallelism, once.

        Raises:
            RequestConflictError: what was observed has changed since; nothing was asked for.
            RequestRefusedError: the cluster has refused it.
            RequestUnknownError: nobody knows whether it arrived.
        """


class ClusterActuator(Actuator, Protocol):
    """An actuator that can ask for many jobs at once."""

    def observe_all(self, jobs: Iterable[str]) -> dict[str, ObservedJob | RequestUnknownError]:
        """Return what the cluster says of each job, or why it says nothing.

        Raises:
            RequestUnknownError: the cluster does not reply.
        """
