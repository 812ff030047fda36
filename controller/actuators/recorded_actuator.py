"""Jobs as the raw files show them: for clusters without an address, and for a tick in the past; nothing is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.actuators.actuator import RequestRefusedError, RequestUnknownError
from models.control.readiness import Failure, Readiness
from models.control.state import ObservedJob, Parallelism
from models.polling.job_replies import TaskSlots
from models.polling.seen_job import PolledJob


@dataclass(frozen=True, slots=True)
class RecordedActuator:
    """Shows jobs as the last kept replies do, for dry runs.

    Attributes:
        cluster: its name.
        seen: returns the jobs that have not ended, by cluster and name.
        slots: of the clusters, as last told.
    """

    cluster: str
    seen: Callable[[], Mapping[tuple[str, str], Sequence[PolledJob]]]
    slots: Mapping[str, TaskSlots]

    def observe(self, job: str) -> ObservedJob:
        """Return the job as last seen; what it was asked for is not recorded, so it is taken to be what runs.

        Args:
            job: ``cluster/job``.

        Raises:
            RequestUnknownError: nothing is kept of the job.
        """
        result = self.seen().get((self.cluster, job.partition("/")[2]), ())
        if not result:
            raise RequestUnknownError("no reply of it is kept")
        last = max(result, key=lambda one: one.polled_at_ms)
        running = {last.vertex_ids[name]: count for name, count in last.running.items() if name not in last.finished}
        operators = () if last.graph is None else last.graph.operators
        slots = self.slots.get(self.cluster)
        return ObservedJob(
            job_id=last.job_id,
            state=last.state,
            running=running if last.is_up else {},
            requested=running,
            max_parallelism={last.vertex_ids[one.name]: one.max_parallelism for one in operators},
            slot_sharing_group={last.vertex_ids[one.name]: one.slot_sharing_group for one in operators},
            free_slots=None if slots is None else slots.free,
        )

    def observe_all(self, jobs: Iterable[str]) -> dict[str, ObservedJob | RequestUnknownError]:
        """Return each job as last seen, or why nothing is known of it."""
        result: dict[str, ObservedJob | RequestUnknownError] = {}
        for job in jobs:
            try:
                result[job] = self.observe(job)
            except RequestUnknownError as error:
                result[job] = error
        return result

    def inspect(self, job: str, job_id: str) -> Readiness | None:  # noqa: ARG002 - there is nobody to ask
        """Return None: nothing is ever sent from recorded replies."""
        return None

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...] | None:  # noqa: ARG002 - see above
        """Return None: nothing was sent that could have failed."""
        return None

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        """Do nothing."""

    def request(self, job: str, job_id: str, target: Parallelism) -> None:  # noqa: ARG002 - nothing is sent
        """Refuse.

        Raises:
            RequestRefusedError: always.
        """
        raise RequestRefusedError("nothing is sent from recorded replies")
