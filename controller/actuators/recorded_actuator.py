"""Jobs as the raw files show them: for clusters without an address, and for a tick in the past; nothing is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from controller.actuators.actuator import Observation, RequestUnknownError, SilentActuator
from models.control.state import ObservedJob
from models.polling.job_replies import TaskSlots
from models.polling.seen_job import PolledJob


class RecordedActuator(SilentActuator):
    """Shows jobs as the last kept replies do, for dry runs.

    ``seen`` returns the jobs that have not ended, by cluster and name; ``slots`` are as last told.
    """

    def __init__(
        self,
        cluster: str,
        seen: Callable[[], Mapping[tuple[str, str], Sequence[PolledJob]]],
        slots: Mapping[str, TaskSlots],
    ) -> None:
        super().__init__("nothing is sent from recorded replies")
        self._cluster, self._seen, self._slots = cluster, seen, slots

    def observe(self, job: str) -> ObservedJob:
        """Return the job as last seen; what it was asked for is not recorded, so it is taken to be what runs.

        Raises:
            RequestUnknownError: nothing is kept of the job.
        """
        result = self._seen().get((self._cluster, job.partition("/")[2]), ())
        if not result:
            raise RequestUnknownError("no reply of it is kept")
        last = max(result, key=lambda one: one.polled_at_ms)
        running = {last.vertex_ids[name]: count for name, count in last.running.items() if name not in last.finished}
        operators = () if last.graph is None else last.graph.operators
        slots = self._slots.get(self._cluster)
        return ObservedJob(
            job_id=last.job_id,
            state=last.state,
            running=running if last.is_up else {},
            requested=running,
            max_parallelism={last.vertex_ids[one.name]: one.max_parallelism for one in operators},
            slot_sharing_group={last.vertex_ids[one.name]: one.slot_sharing_group for one in operators},
            free_slots=None if slots is None else slots.free,
        )

    def observe_all(self, jobs: Iterable[str]) -> dict[str, Observation]:
        """Return each job as last seen, or why nothing is known of it."""
        result: dict[str, Observation] = {}
        for job in jobs:
            try:
                result[job] = self.observe(job)
            except RequestUnknownError as error:
                result[job] = error
        return result
