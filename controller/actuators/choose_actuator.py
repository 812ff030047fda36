"""The actuator of each cluster, as the settings say: Flink's REST API, the Kubernetes operator, or none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from controller.actuators.actuator import ClusterActuator, RequestRefusedError, RequestUnknownError
from controller.actuators.flink_actuator import open_actuator
from controller.actuators.guide_actuator import GuideActuator, express_as_least
from controller.actuators.operator_actuator import OperatorActuator
from controller.actuators.resource_directory import ResourceDirectory
from include.kubernetes.api import open_api
from include.kubernetes.events import EventRecorder
from include.kubernetes.faults import ApiError
from include.settings import Settings
from models.control.readiness import Failure, Readiness
from models.control.state import Intention, ObservedJob, Parallelism


@dataclass(frozen=True, slots=True)
class ReadOnlyActuator:
    """Observes through another actuator and sends nothing.

    Attributes:
        actuator: asks the cluster.
    """

    actuator: ClusterActuator

    def observe(self, job: str) -> ObservedJob:
        """Return what the cluster says of a job now, or raise RequestUnknownError."""
        return self.actuator.observe(job)

    def observe_all(self, jobs: Iterable[str]) -> dict[str, ObservedJob | RequestUnknownError]:
        """Return what the cluster says of jobs now, or raise RequestUnknownError."""
        return self.actuator.observe_all(jobs)

    def inspect(self, job: str, job_id: str) -> Readiness | None:
        """Return what the cluster says of a job right before a request."""
        return self.actuator.inspect(job, job_id)

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...] | None:
        """Return the failures of a job that the cluster remembers."""
        return self.actuator.read_failures(job, job_id)

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        """Do nothing: nothing is asked of the cluster."""

    def request(self, job: str, job_id: str, target: Parallelism) -> None:  # noqa: ARG002 - nothing is sent
        """Refuse.

        Raises:
            RequestRefusedError: always.
        """
        raise RequestRefusedError('nothing is sent with actuator = "none"')


class UnavailableActuator:
    """An actuator without a login: it observes nothing and sends nothing.

    Args:
        why: one sentence for a person.
    """

    def __init__(self, why: str) -> None:
        self._why = why

    def observe(self, job: str) -> ObservedJob:  # noqa: ARG002 - of no job anything is known
        """Raise RequestUnknownError: there is nobody to ask."""
        raise RequestUnknownError(self._why)

    def observe_all(self, jobs: Iterable[str]) -> dict[str, ObservedJob | RequestUnknownError]:  # noqa: ARG002
        """Raise RequestUnknownError: there is nobody to ask."""
        raise RequestUnknownError(self._why)

    def inspect(self, job: str, job_id: str) -> Readiness | None:  # noqa: ARG002 - there is nobody to ask
        """Return that nothing is known."""
        return Readiness(unknown=self._why, autoscaler_unknown=self._why)

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...] | None:  # noqa: ARG002 - see above
        """Return None: there is nobody to ask."""
        return None

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        """Do nothing: there is nobody to ask."""

    def request(self, job: str, job_id: str, target: Parallelism) -> None:  # noqa: ARG002 - nothing is sent
        """Refuse.

        Raises:
            RequestRefusedError: always.
        """
        raise RequestRefusedError(self._why)


def open_cluster_actuator(
    settings: Settings, cluster: str, may_change: Callable[[], bool] | None = None
) -> ClusterActuator:
    """Return what observes the jobs of a cluster with a REST address, and changes them as its settings say.

    Args:
        settings: of the run.
        cluster: its name.
        may_change: asked right before a request leaves; None: it always may.
    """
    flink, own = open_actuator(settings, cluster, may_change), settings.cluster(cluster)
    if own.actuator == "none":
        return ReadOnlyActuator(flink)
    if own.actuator == "rest":
        return flink
    try:
        api = open_api(own.kubernetes)
    except ApiError as error:
        return UnavailableActuator(f"cluster {cluster}: {error}")
    directory = ResourceDirectory(api, own.kubernetes)
    kind = GuideActuator if own.kubernetes.mode == "guide" else OperatorActuator
    return kind(
        *(flink, api, directory),
        allows_upgrade=own.kubernetes.full_upgrade,
        may_change=may_change,
        events=EventRecorder(api, time.time),
    )


def choose_terms(settings: Settings, cluster: str) -> Callable[[Intention, ObservedJob], Intention]:
    """Return how an intention is put for the actuator of a cluster."""
    own = settings.cluster(cluster)
    if own.actuator == "kubernetes" and own.kubernetes.mode == "guide":
        return express_as_least
    return lambda intention, _: intention
