"""Jobs under the Flink Kubernetes operator: observed through Flink and their resources, changed through the latter.

Flink's REST API says what runs; the map of overrides in the job's resource says what it is to run at. A request is a
merge-patch of the whole map under the resource's version, which the operator carries out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from controller.actuators.actuator import (
    Observation,
    RequestConflictError,
    RequestRefusedError,
    RequestUnknownError,
)
from controller.actuators.flink_actuator import FlinkActuator
from controller.actuators.resource_directory import MatchedResource, ResourceDirectory
from include.kubernetes.api import ResourceApi
from include.kubernetes.events import REFUSED, REQUESTED, EventRecorder, describe_change
from include.kubernetes.faults import ApiConflictError, ApiError, ApiRefusedError
from include.kubernetes.job_resource import JobResource, find_obstacle, find_upgrade_reason
from include.kubernetes.overrides import OverridesError, form_patch
from models.control.readiness import Failure, Readiness
from models.control.state import ObservedJob, Parallelism

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _ObservedResource:
    """A resource as it was when its job was last observed, and what was asked for then."""

    resource: JobResource
    vertices: frozenset[str]
    requested: Parallelism


class OperatorActuator:
    """Implements :class:`controller.actuators.actuator.Actuator`; may be used by several threads.

    ``allows_upgrade``: whether a request may be sent that stops and starts the job. ``may_change`` is asked right
    before a request leaves; ``events`` is told what was asked for and refused.
    """

    def __init__(
        self,
        flink: FlinkActuator,
        api: ResourceApi,
        directory: ResourceDirectory,
        *,
        allows_upgrade: bool = False,
        may_change: Callable[[], bool] | None = None,
        events: EventRecorder | None = None,
    ) -> None:
        self._flink, self._api, self._directory = flink, api, directory
        self._events = events
        self._may_change = may_change
        self._allows_upgrade = allows_upgrade
        self._lock = threading.Lock()
        self._judged: dict[str, _ObservedResource] = {}

    def observe(self, job: str) -> ObservedJob:
        """Return what Flink and the resource say of a job now.

        Raises:
            RequestUnknownError: Flink or the API server does not reply.
        """
        # The resource is read first: a change of it that comes in between is then met by a conflict.
        result = _ask(lambda: self._directory.find_known(job)) or MatchedResource(None)
        observed = self._flink.observe(job)
        if observed.job_id is not None and not result.fits(observed.job_id):
            result = _ask(lambda: self._directory.find(job, observed.job_id))
        return self._join(job, observed, result)

    def observe_all(self, jobs: Iterable[str]) -> dict[str, Observation]:
        """Return what Flink and the resources say of jobs now; an error for those without a reply.

        Raises:
            RequestUnknownError: Flink or the API server does not reply.
        """
        _ask(self._directory.read_all)
        with self._lock:
            self._judged.clear()  # also of jobs that have gone; a request follows a look of its own
        observed = self._flink.observe_all(jobs)
        return {
            job: one if isinstance(one, RequestUnknownError) else self._join(job, one, self._directory.match(job, one))
            for job, one in observed.items()
        }

    def inspect(self, job: str, job_id: str) -> Readiness | None:
        """Return what Flink says of a job right before a request."""
        return self._flink.inspect(job, job_id)

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...] | None:
        """Return the failures of a job that Flink remembers."""
        return self._flink.read_failures(job, job_id)

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        """Ask Flink for a checkpoint."""
        self._flink.trigger_checkpoint(job, job_id)

    def request(self, job: str, job_id: str, target: Parallelism) -> None:
        """Write a parallelism of every vertex into the resource, once, if it is as it was when it was last observed.

        Raises:
            RequestConflictError: it has changed since; nothing was written.
            RequestRefusedError: the API server has refused it, or the resource cannot hold it.
            RequestUnknownError: nobody knows whether it arrived.
        """
        with self._lock:
            judged = self._judged.pop(job, None)
        if judged is None or judged.resource.job_id != job_id:
            raise RequestRefusedError(f"{job}: no resource of job {job_id} was observed")
        resource = judged.resource
        change = describe_change(judged.requested, target)
        try:
            self._send(judged, target)
        except RequestRefusedError as error:
            self._record(resource, REFUSED, f"{change}: refused: {error}", is_warning=True)
            raise
        self._record(resource, REQUESTED, f"{change}; why: tidewise why", is_warning=False)

    def _record(self, resource: JobResource, reason: str, message: str, *, is_warning: bool) -> None:
        if self._events is not None:
            self._events.record(resource, reason, message, is_warning=is_warning)

    def _send(self, judged: _ObservedResource, parallelism: Parallelism) -> None:
        resource = judged.resource
        try:
            patch = self._form_patch(resource, parallelism, judged.vertices)
            if self._may_change is not None and not self._may_change():
                raise RequestConflictError(f"{resource.title}: too much time has passed since a patch was allowed")
            self._api.patch_resource(resource.kind, resource.name, patch)
        except OverridesError as error:
            raise RequestRefusedError(f"{resource.title}: {error}") from error
        except ApiConflictError as error:
            raise RequestConflictError(f"{resource.title} has changed since it was read") from error
        except ApiRefusedError as error:
            if 400 <= error.status < 500 and error.status not in {408, 429}:
                raise RequestRefusedError(f"{resource.title}: {error}") from error
            raise RequestUnknownError(f"{resource.title}: {error}") from error
        except ApiError as error:
            raise RequestUnknownError(f"{resource.title}: {error}") from error

    def _join(self, job: str, observed: ObservedJob, result: MatchedResource) -> ObservedJob:
        """Return what Flink says, with what the resource adds; keeps the resource for the request that may follow."""
        with self._lock:
            self._judged.pop(job, None)
        if observed.requested is None:
            return observed
        if result.resource is None:
            return hinder(observed, result.obstacle, result.detail)
        try:
            described = self._describe(observed, result.resource)
        except OverridesError as error:
            described = hinder(observed, "unreadable_resource", f"{result.resource.title}: {error}")
        with self._lock:
            asked = described.requested or {}
            self._judged[job] = _ObservedResource(result.resource, frozenset(observed.requested), asked)
        return described

    def _form_patch(
        self, resource: JobResource, parallelism: Parallelism, vertices: frozenset[str]
    ) -> dict[str, object]:
        return form_patch(resource.configuration, parallelism, resource.resource_version, vertices)

    def _describe(self, observed: ObservedJob, resource: JobResource) -> ObservedJob:
        """Return what Flink says, with what the resource adds.

        Raises:
            OverridesError: the resource cannot be read.
        """
        declared, asked = resource.overrides, dict(observed.requested or {})
        if resource.is_pending:  # the operator has not carried it out yet
            asked |= {vertex: count for vertex, count in declared.items() if vertex in asked}
        autoscaler = observed.other_autoscaler or resource.autoscaler
        foreign = _find_foreign_lower(observed)
        lower = None if observed.lower_bounds is None else {**dict.fromkeys(observed.lower_bounds, 1), **foreign}
        joined = replace(observed, requested=asked, declared=declared, other_autoscaler=autoscaler, lower_bounds=lower)
        if foreign:
            detail = f"{resource.title}: the operator would overwrite the lower bounds that somebody has set: {foreign}"
            return hinder(joined, "lower_bounds", detail)
        return self._judge(joined, resource)

    def _judge(self, observed: ObservedJob, resource: JobResource) -> ObservedJob:
        """Return the observation with why nothing may be sent, or what it costs besides a rescale."""
        obstacle = find_obstacle(resource)
        if obstacle is not None:
            return hinder(observed, obstacle.name, obstacle.detail)
        reason = find_upgrade_reason(resource, self._flink.read_scheduler())
        if reason is None:
            return observed
        if self._allows_upgrade:
            return replace(observed, upgrade_reason=reason)
        detail = f"{resource.title}: the operator would stop and start the job: {reason}; or set full_upgrade = true"
        return hinder(observed, "not_in_place", detail)


def _ask(question: Callable[[], T]) -> T:
    """Return the answer of the API server.

    Raises:
        RequestUnknownError: it gave none.
    """
    try:
        return question()
    except ApiError as error:
        raise RequestUnknownError(str(error)) from error


def _find_foreign_lower(observed: ObservedJob) -> dict[str, int]:
    """Return lower bounds that neither Flink nor the operator sets.

    Flink's own are 1; the operator sets 1 or, up to a version, the upper bound (``AbstractFlinkService.scale``).
    """
    upper = observed.requested or {}
    return {one: bound for one, bound in (observed.lower_bounds or {}).items() if bound not in {1, upper.get(one)}}


def hinder(observed: ObservedJob, name: str, detail: str) -> ObservedJob:
    """Return an observation under which nothing is sent, and why."""
    return replace(observed, obstacle=name, obstacle_detail=detail)
