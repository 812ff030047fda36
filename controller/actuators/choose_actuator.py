"""The actuator of each cluster, as the settings say: Flink's REST API, the Kubernetes operator, or none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from controller.actuators.actuator import Actuator, Observation, RequestUnknownError, SilentActuator
from controller.actuators.flink_actuator import open_actuator
from controller.actuators.guide_actuator import GuideActuator, express_as_least
from controller.actuators.operator_actuator import OperatorActuator
from controller.actuators.resource_directory import ResourceDirectory
from include.kubernetes.api import open_api
from include.kubernetes.events import EventRecorder
from include.kubernetes.faults import ApiError
from include.settings import Settings
from models.control.readiness import Failure, Readiness
from models.control.state import Intention, ObservedJob


class ReadOnlyActuator(SilentActuator):
    """Observes through another actuator and sends nothing."""

    def __init__(self, actuator: Actuator) -> None:
        super().__init__('nothing is sent with actuator = "none"')
        self._actuator = actuator

    def observe(self, job: str) -> ObservedJob:
        """Return what the cluster says of a job now, or raise RequestUnknownError."""
        return self._actuator.observe(job)

    def observe_all(self, jobs: Iterable[str]) -> dict[str, Observation]:
        """Return what the cluster says of jobs now, or raise RequestUnknownError."""
        return self._actuator.observe_all(jobs)

    def inspect(self, job: str, job_id: str) -> Readiness | None:
        """Return what the cluster says of a job right before a request."""
        return self._actuator.inspect(job, job_id)

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...] | None:
        """Return the failures of a job that the cluster remembers."""
        return self._actuator.read_failures(job, job_id)


class UnavailableActuator(SilentActuator):
    """An actuator without a login: there is nobody to ask."""

    def observe(self, job: str) -> ObservedJob:  # noqa: ARG002 - of no job anything is known
        """Raise RequestUnknownError."""
        raise RequestUnknownError(self._why)

    def observe_all(self, jobs: Iterable[str]) -> dict[str, Observation]:  # noqa: ARG002 - see above
        """Raise RequestUnknownError."""
        raise RequestUnknownError(self._why)

    def inspect(self, job: str, job_id: str) -> Readiness | None:  # noqa: ARG002 - see above
        """Return that nothing is known."""
        return Readiness(unknown=self._why, autoscaler_unknown=self._why)


def open_cluster_actuator(settings: Settings, cluster: str, may_change: Callable[[], bool] | None = None) -> Actuator:
    """Return what observes the jobs of a cluster with a REST address, and changes them as its settings say.

    ``may_change`` is asked right before a request leaves.
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
