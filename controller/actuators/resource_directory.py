"""Which resource of the API server holds which job of a Flink cluster."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from include.kubernetes.api import ResourceApi
from include.kubernetes.faults import ApiRefusedError
from include.kubernetes.job_resource import DEPLOYMENT, SESSION_JOB, JobResource, read_job_resource
from include.kubernetes.overrides import OverridesError
from include.settings.kubernetes import Kubernetes
from models.control.state import ObservedJob

_FORBIDDEN = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class MatchedResource:
    """The resource of a job, or why there is none.

    Attributes:
        obstacle: name of why nothing may be sent, without a resource.
    """

    resource: JobResource | None
    obstacle: str = ""
    detail: str = ""

    def fits(self, job_id: str | None) -> bool:
        """Whether this is the resource of a job id."""
        return self.resource is not None and self.resource.job_id == job_id


class ResourceDirectory:
    """Finds resources by Flink's job id, which the operator writes into their status; names only narrow the choice."""

    def __init__(self, api: ResourceApi, settings: Kubernetes) -> None:
        self._api, self._settings = api, settings
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        self._all: list[JobResource] = []
        self._unreadable: dict[str, str] = {}
        self._forbidden = ""

    def read_all(self) -> None:
        """Read all resources that may hold jobs of the cluster.

        Raises:
            ApiError: the API server does not reply.
        """
        forbidden = ""
        try:
            readable, unreadable = read_resources(self._api, self._settings)
        except ApiRefusedError as error:
            if error.status not in _FORBIDDEN:
                raise
            readable, unreadable, forbidden = [], {}, str(error)
        with self._lock:
            self._all, self._unreadable, self._forbidden = readable, unreadable, forbidden
            names = {one.name for one in readable}.union(unreadable)
            self._names = {job: name for job, name in self._names.items() if forbidden or name in names}

    def match(self, job: str, observed: ObservedJob) -> MatchedResource:
        """Return the resource of a job among those that were read last."""
        return self._match(job, observed.job_id)

    def find(self, job: str, job_id: str | None) -> MatchedResource:
        """Read all resources and return that of a job.

        Raises:
            ApiError: the API server does not reply.
        """
        self.read_all()
        return self._match(job, job_id)

    def find_known(self, job: str) -> MatchedResource | None:
        """Read the resource that a job had last; None when that is not known.

        Raises:
            ApiError: the API server does not reply.
        """
        with self._lock:
            name = self._names.get(job)
        if name is None:
            return None
        try:
            result = self._api.read_resource(self._settings.kind, name)
            if result is None or not _is_wanted(result, name, self._settings):
                return None
            sessions = _read_sessions(self._api, [result])
            return MatchedResource(read_job_resource(result, sessions.get(_deployment_of(result))))
        except ApiRefusedError as error:
            if error.status not in _FORBIDDEN:
                raise
            return MatchedResource(None, "no_rights", _tell_rights(error))
        except OverridesError as error:
            return MatchedResource(None, "unreadable_resource", f"{self._settings.kind} {name}: {error}")

    def _match(self, job: str, job_id: str | None) -> MatchedResource:
        name, kind = job.partition("/")[2], self._settings.kind
        with self._lock:
            known, unreadable, forbidden = list(self._all), dict(self._unreadable), self._forbidden
        if forbidden:
            return MatchedResource(None, "no_rights", _tell_rights(forbidden))
        named = self._settings.resources.get(name)
        if named in unreadable:
            return MatchedResource(None, "unreadable_resource", f"{kind} {named}: {unreadable[named]}")
        fitting = [one for one in known if job_id and one.job_id == job_id and named in {None, one.name}]
        if len(fitting) > 1:  # clusters of one application each may all use the same id
            fitting = [one for one in fitting if one.job_name == name] or fitting
        if len(fitting) == 1:
            with self._lock:
                self._names[job] = fitting[0].name
            return MatchedResource(fitting[0])
        which = f"{kind} {named}" if named else f"a {kind}"
        if fitting:
            names = ", ".join(sorted(one.name for one in fitting))
            detail = f"{names} have this job's id {job_id}: write kubernetes.resources or kubernetes.deployment"
            return MatchedResource(None, "ambiguous_resource", detail)
        detail = f"namespace {self._settings.namespace} has no {which.removeprefix('a ')} with job id {job_id}"
        return MatchedResource(None, "no_resource", detail)


def read_resources(api: ResourceApi, settings: Kubernetes) -> tuple[list[JobResource], dict[str, str]]:
    """Return the resources that may hold jobs of a cluster, and by name why others cannot be read.

    Raises:
        ApiError: the API server does not reply, or refuses.
    """
    named = [(str(one.get("metadata", {}).get("name", "")), one) for one in api.list_resources(settings.kind)]
    wanted = {name: one for name, one in named if _is_wanted(one, name, settings)}
    sessions = _read_sessions(api, list(wanted.values()))
    readable, unreadable = [], {}
    for name, one in wanted.items():
        try:
            readable.append(read_job_resource(one, sessions.get(_deployment_of(one))))
        except OverridesError as error:
            unreadable[name] = str(error)
    return readable, unreadable


def _read_sessions(api: ResourceApi, result: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the FlinkDeployments of session jobs, by name; none where these are deployments themselves."""
    read = {name: api.read_resource(DEPLOYMENT, name) for name in sorted(set(map(_deployment_of, result))) if name}
    return {name: one for name, one in read.items() if one is not None}


def _is_wanted(result: Mapping[str, Any], name: str, settings: Kubernetes) -> bool:
    own = _deployment_of(result) if settings.kind == SESSION_JOB else name
    return settings.deployment is None or own == settings.deployment


def _deployment_of(result: Mapping[str, Any]) -> str:
    spec = result.get("spec")
    return str(spec.get("deploymentName") or "") if isinstance(spec, Mapping) else ""


def _tell_rights(why: object) -> str:
    return f"{why}; give the login the Role that `tidewise manifests` writes"
