"""Jobs that the Kubernetes operator's autoscaler rescales: it acts, and gets a least parallelism ahead of load.

The controller sees one number of such a job, the least parallelism of its vertices, as if that were its only vertex, so
that limits, holds, the lease and the log apply to it as to any parallelism.
"""

from __future__ import annotations

from dataclasses import replace

from controller.actuators.operator_actuator import OperatorActuator, hinder
from include.kubernetes.job_resource import JobResource, find_obstacle
from include.kubernetes.manifests import MIN_PARALLELISM
from include.kubernetes.overrides import OverridesError, form_configuration_patch
from models.control.readiness import Readiness
from models.control.state import Intention, ObservedJob, Parallelism


class GuideActuator(OperatorActuator):
    """Writes ``job.autoscaler.vertex.min-parallelism``, which the operator takes over without a restart."""

    def inspect(self, job: str, job_id: str) -> Readiness | None:
        """Return that nothing restarts the job: a least parallelism is taken over, and the autoscaler is known."""
        ready = super().inspect(job, job_id)
        if ready is None:
            return None
        return replace(ready, restarts=False, wait_s=0.0, wait_detail="", other_autoscaler=None, autoscaler_unknown="")

    def _describe(self, observed: ObservedJob, resource: JobResource) -> ObservedJob:
        """Return the least parallelism as the parallelism of one vertex; slots that the job has above it are free."""
        least, maxima = _read_least(resource), observed.max_parallelism.values()
        above = max(observed.slots - least, 0)
        free, used = observed.free_slots, observed.cluster_slots_used
        recorded = replace(
            observed,
            running={MIN_PARALLELISM: least} if observed.running and not resource.is_pending else {},
            requested={MIN_PARALLELISM: least},
            max_parallelism={MIN_PARALLELISM: max(maxima)} if maxima else {},
            free_slots=None if free is None else free + above,
            cluster_slots_used=None if used is None else used - above,
            other_autoscaler=None,
            autoscaler_unknown="",
            lower_bounds=None,  # the operator's autoscaler has its own, and restarts the job when it likes
            running_since_s=None,
        )
        if resource.autoscaler is None:
            detail = f'mode guide: {resource.title} does not set job.autoscaler.enabled: "true"'
            return hinder(recorded, "autoscaler_off", detail)
        obstacle = find_obstacle(resource)
        return recorded if obstacle is None else hinder(recorded, obstacle.name, obstacle.detail)

    def _form_patch(
        self,
        resource: JobResource,
        parallelism: Parallelism,
        vertices: frozenset[str],  # noqa: ARG002 - of all vertices at once
    ) -> dict[str, object]:
        least = {MIN_PARALLELISM: str(parallelism[MIN_PARALLELISM])}
        return form_configuration_patch(resource.configuration, least, resource.resource_version)


def express_as_least(intention: Intention, observed: ObservedJob) -> Intention:
    """Return what is wanted as the largest least parallelism that takes no slots beyond those that are wanted.

    The operator has one for all vertices of a job; vertices that share slots can all have that of the largest.
    """
    wanted = intention.parallelism
    if not wanted or MIN_PARALLELISM in wanted:
        return intention
    slots, least = observed.slots_of(wanted), max(wanted.values())
    # It ends at 1 at the latest: what is wanted of a vertex is at least that.
    while observed.slots_of({one: max(count, least) for one, count in wanted.items()}) > slots:
        least -= 1
    return replace(intention, parallelism={MIN_PARALLELISM: least})


def _read_least(resource: JobResource) -> int:
    text = resource.effective.get(MIN_PARALLELISM, "1")
    try:
        return max(int(text), 1)
    except ValueError as error:
        raise OverridesError(f"{MIN_PARALLELISM} = {text[:50]!r} is no number") from error
