"""A FlinkDeployment or FlinkSessionJob as the API server tells it, and whether its job can be rescaled in place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from include.flink import cluster_facts
from include.flink.job_states import ENDED_STATES
from include.kubernetes.configuration import flatten
from include.kubernetes.overrides import read_overrides

DEPLOYMENT, SESSION_JOB = "FlinkDeployment", "FlinkSessionJob"
PLURALS = {DEPLOYMENT: "flinkdeployments", SESSION_JOB: "flinksessionjobs"}
GROUP, VERSION = "flink.apache.org", "v1beta1"
IN_PLACE = "kubernetes.operator.job.upgrade.inplace-scaling.enabled"
SCHEDULER = "jobmanager.scheduler"
_OLDEST_IN_PLACE = (1, 18)


@dataclass(frozen=True, slots=True)
class BlockingCondition:
    """Why nothing is sent to a job now.

    Attributes:
        name: in snake_case.
        detail: one sentence for a person, with what to do.
    """

    name: str
    detail: str


@dataclass(frozen=True, slots=True)
class JobResource:
    """What the resource of one job says.

    Attributes:
        kind, namespace, name: of the resource.
        resource_version: of what was read; each change gives another.
        generation: counts changes of the spec.
        observed_generation: the last one that the operator has dealt with; None for none.
        configuration: ``spec.flinkConfiguration`` as it is written.
        effective: key -> value, with those of the session cluster of a FlinkSessionJob.
        flink_version: such as ``v2_1``; of the session cluster for a FlinkSessionJob; empty when not told.
        mode: ``native`` or ``standalone``.
        job_id, job_name, job_state: of ``status.jobStatus``; empty when not told.
        reconciliation: state such as ``DEPLOYED``; empty before the first.
        reconciled: overrides of the spec that the operator has dealt with last.
        uid: of the resource, which another one of the same name has not.
    """

    kind: str
    namespace: str
    name: str
    resource_version: str
    generation: int
    observed_generation: int | None
    configuration: Mapping[str, Any]
    effective: Mapping[str, str]
    flink_version: str
    mode: str
    job_id: str
    job_name: str
    job_state: str
    reconciliation: str
    reconciled: Mapping[str, int]
    uid: str = ""

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def overrides(self) -> dict[str, int]:
        """Vertex id -> parallelism of the map in the spec.

        Raises:
            OverridesError: it cannot be read.
        """
        return read_overrides(self.configuration)

    @property
    def is_pending(self) -> bool:
        """Whether the spec holds a change that the operator has not dealt with."""
        return self.observed_generation != self.generation

    @property
    def autoscaler(self) -> str | None:
        """Who else rescales the job, with the keys that end it; None for nobody.

        The operator may switch its autoscaler on for all jobs, which no resource shows; the map that it has dealt with
        is then another one than the map in the spec.
        """
        key = cluster_facts.active_autoscaler(self.effective)
        if key is None and not self.is_pending and self.reconciled != self.overrides:
            key = "job.autoscaler.enabled (of the operator's own configuration)"
        if key is None:
            return None
        write = 'job.autoscaler.enabled: "false", or job.autoscaler.scaling.enabled: "false" to keep its metrics'
        return f"the operator's autoscaler ({key}; write {write}, into spec.flinkConfiguration of {self.title})"


def read_job_resource(result: Mapping[str, Any], session: Mapping[str, Any] | None = None) -> JobResource:
    """Read a resource, of a FlinkSessionJob with the FlinkDeployment of its session cluster.

    Raises:
        OverridesError: the map that the operator has dealt with last cannot be read.
    """
    metadata, spec, status = _object(result, "metadata"), _object(result, "spec"), _object(result, "status")
    base = _object(session or {}, "spec")
    owner = base if session is not None else spec
    job, reconciliation = _object(status, "jobStatus"), _object(status, "reconciliationStatus")
    configuration = _object(spec, "flinkConfiguration")
    reconciled, dealt_with = _read_reconciled(reconciliation.get("lastReconciledSpec"))
    observed = status.get("observedGeneration", dealt_with)  # operators before 1.7 tell it in the spec only
    return JobResource(
        kind=str(result.get("kind", "")),
        namespace=str(metadata.get("namespace", "")),
        name=str(metadata.get("name", "")),
        resource_version=str(metadata.get("resourceVersion", "")),
        generation=int(metadata.get("generation") or 0),
        observed_generation=int(observed) if isinstance(observed, int) else None,
        configuration=configuration,
        effective={**flatten(base.get("flinkConfiguration")), **flatten(configuration)},
        flink_version=str(owner.get("flinkVersion") or ""),
        mode=str(owner.get("mode") or "native"),
        job_id=str(job.get("jobId") or ""),
        job_name=str(job.get("jobName") or ""),
        job_state=str(job.get("state") or ""),
        reconciliation=str(reconciliation.get("state") or ""),
        reconciled=reconciled,
        uid=str(metadata.get("uid", "")),
    )


def find_upgrade_reason(resource: JobResource, scheduler: str) -> str | None:
    """Return why the operator would not rescale the job in place but upgrade it: a stop with a savepoint and a start.

    The conditions are those of ``NativeFlinkService.supportsInPlaceScaling`` of apache/flink-kubernetes-operator. The
    scheduler that Flink itself reports counts where the resource names none.
    """
    version = re.fullmatch(r"v(\d+)_(\d+)", resource.flink_version)
    if version is None or tuple(map(int, version.groups())) < _OLDEST_IN_PLACE:
        return f"flinkVersion is {resource.flink_version or 'not told'}, below v1_18"
    if resource.mode != "native":
        return f"mode is {resource.mode}; only native rescales in place"
    named = resource.effective.get(SCHEDULER, scheduler)
    if named.lower() != "adaptive":
        return f"{SCHEDULER} is {named or 'not set'}; write {SCHEDULER}: adaptive"
    if resource.effective.get(IN_PLACE, "true").lower() == "false":
        return f'{IN_PLACE} is false; write "true"'
    return None


def find_obstacle(resource: JobResource) -> BlockingCondition | None:
    """Return why a change of the resource has to wait."""
    if resource.job_state in ENDED_STATES:
        return BlockingCondition("job_ended", f"{resource.title}: the job is {resource.job_state}")
    if resource.is_pending or resource.reconciliation != "DEPLOYED":
        detail = (
            f"{resource.title}: the operator has dealt with generation {resource.observed_generation} of "
            f"{resource.generation}, and is {resource.reconciliation or 'at its first deployment'}"
        )
        return BlockingCondition("operator_busy", detail)
    if resource.job_state == "RECONCILING":
        return BlockingCondition("operator_busy", f"{resource.title}: the operator waits for the job (RECONCILING)")
    return None


def _read_reconciled(text: object) -> tuple[dict[str, int], object]:
    """Return the overrides and the generation of ``lastReconciledSpec``, which is JSON in a text."""
    if not isinstance(text, str):
        return {}, None
    try:
        result = json.loads(text)
    except ValueError:
        return {}, None
    if not isinstance(result, dict):
        return {}, None
    metadata = _object(_object(result, "resource_metadata"), "metadata")
    return read_overrides(_object(result, "spec").get("flinkConfiguration")), metadata.get("generation")


def _object(result: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = result.get(key)
    return dict(value) if isinstance(value, Mapping) else {}
