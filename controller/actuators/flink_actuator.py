"""Jobs of one Flink cluster over its REST API: what they run at and are asked for, and requests to change it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from controller.actuators.actuator import Observation, RequestConflictError, RequestRefusedError, RequestUnknownError
from controller.actuators.flink_configuration import FlinkConfiguration
from controller.actuators.flink_readiness import FlinkReadiness
from include.domain.reply_limits import is_hex_id
from include.flink.client import FlinkClient
from include.flink.faults import FlinkError, FlinkRefusedError, SentTooLateError
from include.flink.job_states import ENDING_STATES, RESTARTING_STATES, RUNNING
from include.flink.open_client import open_client
from include.flink.versions import explain_no_requirements, read_version
from include.settings import Settings
from models.control.readiness import Failure, Readiness
from models.control.state import ObservedJob, Parallelism
from models.polling import job_replies
from models.polling.faults import ReplyError, shorten
from models.polling.job_replies import JobReply, ListedJob, ResourceRequirements, TaskSlots, Vertex

log = logging.getLogger(__name__)

_FINISHED = "FINISHED"
_NO_REQUIREMENTS = "UnsupportedOperationException"  # a scheduler other than the adaptive one: 500 with it
_PASSING = frozenset({408, 409, 423, 425, 429})  # refusals of the moment: they say nothing about the request
_NOT_FOUND = 404
_AT_ONCE = 8


class FlinkActuator:
    """Implements :class:`controller.actuators.actuator.Actuator`; may be used by several threads.

    Where ``is_elastic`` is None the configuration tells whether the cluster adds TaskManagers. The clock is monotonic.
    """

    def __init__(
        self,
        client: FlinkClient,
        cluster: str,
        is_elastic: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
        name_job: Callable[[str], str] = str,
    ) -> None:
        self._client, self._cluster, self._name_job = client, cluster, name_job
        self._is_elastic = is_elastic
        self._configuration = FlinkConfiguration(client, cluster, clock)
        self._readiness = FlinkReadiness(client, cluster, self._configuration, clock)
        self._lock = threading.Lock()
        self._judged: dict[str, ResourceRequirements] = {}  # of a job when it was last observed, by job id

    def observe(self, job: str) -> ObservedJob:
        """Return what the cluster says of a job now.

        Raises:
            RequestUnknownError: the cluster does not reply.
        """
        observed = self.observe_all([job])[job]
        if isinstance(observed, RequestUnknownError):
            raise observed
        return observed

    def observe_all(self, jobs: Iterable[str]) -> dict[str, Observation]:
        """Return what the cluster says of jobs now, asked at the same time; an error for those without a reply.

        Raises:
            RequestUnknownError: the cluster does not reply.
        """
        wanted = list(dict.fromkeys(jobs))
        try:
            listed = [
                replace(one, name=self._name_job(one.name)) for one in job_replies.read_job_list(self._client.jobs())
            ]
            slots = self._slots()
        except FlinkError as error:
            raise RequestUnknownError(str(error)) from error
        except ReplyError as error:
            return dict.fromkeys(wanted, _report_problem("unreadable_reply", f"the list of jobs: {error}"))
        slots = self._reserve_restarting(slots, listed, wanted)
        known = [one.job_id for one in listed]
        self._configuration.forget(known)
        self._readiness.forget(known)
        with self._lock:
            self._judged = {job_id: one for job_id, one in self._judged.items() if job_id in known}
        if len(wanted) == 1:
            return {wanted[0]: self._observe(wanted[0], listed, slots)}
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=f"observe-{self._cluster}") as pool:
            result = pool.map(lambda job: self._observe(job, listed, slots), wanted)
            return dict(zip(wanted, result, strict=True))

    def request(self, job: str, job_id: str, target: Parallelism) -> None:
        """Ask for a parallelism of every vertex, once, if the job is asked for what it was when it was last observed.

        Flink has no conditional request: what somebody else asks for between the look right before the request and the
        request itself is overwritten. Lower bounds stay as they are.

        Raises:
            RequestConflictError: it is asked for something else by now, or that could not be read, or too much time has
                passed since it was allowed; nothing was sent.
            RequestRefusedError: the cluster has refused it.
            RequestUnknownError: nobody knows whether it arrived.
        """
        if not is_hex_id(job_id):
            raise RequestRefusedError(f"{job}: {shorten(job_id)!r} is no id of a job")
        self._readiness.end_wait(job_id)
        lower_bounds = self._compare(job, job_id)
        try:
            self._client.put_resource_requirements(job_id, target, lower_bounds)
        except FlinkRefusedError as error:
            if error.is_unknown_job:
                raise _unknown_job(job, job_id) from error
            if _is_certain(error):
                raise RequestRefusedError(str(error)) from error
            raise RequestUnknownError(str(error)) from error
        except SentTooLateError as error:
            raise RequestConflictError(str(error)) from error
        except FlinkError as error:
            raise RequestUnknownError(str(error)) from error
        except Exception as error:
            log.exception("%s: a request ended in an error of Tidewise", job)
            raise RequestUnknownError(f"{job}: {type(error).__name__}") from error

    def _compare(self, job: str, job_id: str) -> Mapping[str, int]:
        """Return a job's lower bounds if it is asked for what it was when it was last observed.

        Raises:
            RequestConflictError: it is not, or nobody knows.
            RequestRefusedError: the job is gone, or its scheduler has no bounds.
        """
        with self._lock:
            judged = self._judged.pop(job_id, None)
        try:
            result = job_replies.read_requirements(self._client.resource_requirements(job_id))
        except FlinkRefusedError as error:
            if error.is_unknown_job:
                raise _unknown_job(job, job_id) from error
            if _NO_REQUIREMENTS in error.message:
                raise RequestRefusedError(str(error)) from error
            raise RequestConflictError(str(error)) from error
        except (FlinkError, ReplyError) as error:
            raise RequestConflictError(str(error)) from error
        if judged != result:
            raise RequestConflictError(f"{job}: it is asked for something else than when it was judged")
        return result.lower_bounds

    def read_scheduler(self) -> str:
        """Return the scheduler that the cluster reports; empty when it does not tell.

        Raises:
            RequestUnknownError: the cluster does not reply.
        """
        try:
            return self._configuration.read_cluster().scheduler
        except FlinkError as error:
            raise RequestUnknownError(str(error)) from error

    def inspect(self, job: str, job_id: str) -> Readiness:  # noqa: ARG002 - Flink knows it by its id
        """Return what Flink says of a job right before a request."""
        return self._readiness.read(job_id)

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...] | None:  # noqa: ARG002 - see above
        """Return the failures that Flink remembers of a job; None when it does not tell."""
        return self._readiness.read_failures(job_id)

    def trigger_checkpoint(self, job: str, job_id: str) -> None:  # noqa: ARG002 - see above
        """Ask for a checkpoint; that it is refused is logged and harms nothing."""
        self._readiness.trigger(job_id)

    def _slots(self) -> TaskSlots | None:
        try:
            overview = self._client.transport.get_json("/overview")
            reported = overview.get("flink-version") if isinstance(overview, dict) else None
            self._readiness.note_version(read_version(reported))
            return job_replies.read_overview(overview)
        except (FlinkRefusedError, ReplyError) as error:
            log.warning("cluster %s: free slots are unknown: %s", self._cluster, error)
            return None

    def _reserve_restarting(
        self, slots: TaskSlots | None, listed: Iterable[ListedJob], wanted: list[str]
    ) -> TaskSlots | None:
        """Return the slots without those of jobs that nobody asks about and that come back, which may be shown as free.

        Where one does not tell what it is asked for, nobody knows how many are free.
        """
        if slots is None:
            return None
        taken = 0
        for one in listed:
            job = f"{self._cluster}/{one.name}"
            if one.state not in RESTARTING_STATES or job in wanted:
                continue
            observed = self._observe(job, [one], None)
            if isinstance(observed, RequestUnknownError) or observed.problem:
                log.warning("cluster %s: free slots are unknown while %s restarts", self._cluster, one.name)
                return None
            taken += observed.slots_shown_free
        return TaskSlots(slots.total, max(slots.free - taken, 0))

    def _observe(self, job: str, listed: Iterable[ListedJob], slots: TaskSlots | None) -> Observation:
        try:
            return self._ask(job, listed, slots)
        except ReplyError as error:
            return _report_problem("unreadable_reply", str(error))
        except FlinkError as error:
            return RequestUnknownError(str(error))
        except Exception as error:
            log.exception("%s: a reply ended in an error of Tidewise", job)
            return _report_problem("unreadable_reply", f"{type(error).__name__}: {shorten(str(error))}")

    def _ask(self, job: str, listed: Iterable[ListedJob], slots: TaskSlots | None) -> ObservedJob:
        cluster, _, name = job.partition("/")
        # One that is ending will not run again: a new one of its name may already have taken its place.
        alive = [one for one in listed if one.name == name and one.state not in ENDING_STATES]
        if cluster != self._cluster or not alive:
            return ObservedJob(None, "", {}, None)
        if len(alive) > 1:
            ids = ", ".join(sorted(one.job_id for one in alive))
            return _report_problem("ambiguous_name", f"jobs of this name that run: {ids}; give each its own name")
        job_id = alive[0].job_id
        if not is_hex_id(job_id):
            return _report_problem("unreadable_reply", f"{shorten(job_id)!r} is no id of a job")
        facts = self._configuration.read_cluster()
        try:
            details = self._client.job(job_id)
            reply = job_replies.read_job(details)
            self._readiness.note_time(details.get("now"))
            requested = None if facts.is_reactive else self._read_requested(job_id)
        except FlinkRefusedError as error:
            if error.is_unknown_job:  # it has ended since the list was made
                return ObservedJob(None, "", {}, None)
            raise
        asked = None if requested is None else requested.upper_bounds
        missing = [] if asked is None else [one for one in reply.vertices if one.vertex_id not in asked]
        if missing:
            named = ", ".join(shorten(f"{one.name} ({one.vertex_id})") for one in missing)
            return _report_problem("missing_requirement", f"Flink tells no resource requirement of {named}")
        obstacle, detail = ("", "") if requested is not None else self._explain_no_requirements(facts.is_reactive)
        own, own_unknown = (
            (None, "") if facts.autoscaler else self._configuration.find_autoscaler(job_id, reply.submitted_ms)
        )
        if requested is not None:
            with self._lock:
                self._judged[job_id] = requested
        return ObservedJob(
            job_id=job_id,
            state=reply.state,
            running=_running(reply),
            requested=asked,
            max_parallelism={one.vertex_id: one.max_parallelism for one in reply.vertices},
            slot_sharing_group={one.vertex_id: one.slot_sharing_group or "default" for one in reply.vertices},
            free_slots=None if slots is None else slots.free,
            cluster_slots_used=None if slots is None else slots.total - slots.free,
            is_elastic=facts.is_elastic if self._is_elastic is None else self._is_elastic,
            other_autoscaler=facts.autoscaler or own,
            autoscaler_unknown=facts.unknown or own_unknown,
            submitted_at_s=None if reply.submitted_ms is None else reply.submitted_ms / 1000,
            obstacle=obstacle,
            obstacle_detail=detail,
            told_at_s=None if reply.told_at_ms is None else reply.told_at_ms / 1000,
            lower_bounds=None if requested is None else requested.lower_bounds,
            running_since_s=None if reply.running_ms is None else reply.running_ms / 1000,
            not_at_work=_describe_not_at_work(reply),
        )

    def _read_requested(self, job_id: str) -> ResourceRequirements | None:
        """Return the bounds in force; None where the scheduler has none."""
        try:
            return job_replies.read_requirements(self._client.resource_requirements(job_id))
        except FlinkRefusedError as error:
            # Before Flink 1.18 there is no such path at all; that the job is known was seen just before.
            if error.status == _NOT_FOUND or _NO_REQUIREMENTS in error.message:
                return None
            raise

    def _explain_no_requirements(self, is_reactive: bool) -> tuple[str, str]:
        """Return why there are no requirements: the name of a reason, and a sentence for a person."""
        try:
            overview = self._client.transport.get_json("/overview")
        except FlinkRefusedError:
            overview = None
        reported = overview.get("flink-version") if isinstance(overview, dict) else None
        return explain_no_requirements(read_version(reported), is_reactive=is_reactive)


def open_actuator(settings: Settings, cluster: str, may_change: Callable[[], bool] | None = None) -> FlinkActuator:
    """Return the actuator of a cluster of the settings. ``may_change`` is asked right before a request leaves.

    Raises:
        KeyError: the cluster has no REST address.
    """
    client, own = open_client(settings, cluster, may_change), settings.cluster(cluster)
    return FlinkActuator(client, cluster, own.elastic, name_job=own.name_job)


def _report_problem(problem: str, detail: str) -> ObservedJob:
    return ObservedJob(None, "", {}, None, problem=problem, problem_detail=detail)


def _unknown_job(job: str, job_id: str) -> RequestRefusedError:
    return RequestRefusedError(f"{job}: the cluster knows no job {job_id} any more")


def _running(reply: JobReply) -> dict[str, int]:
    """Return what runs, without vertices that have finished; empty unless all others run."""
    if reply.state != RUNNING or _not_at_work(reply):
        return {}
    return {vertex.vertex_id: vertex.parallelism for vertex in reply.vertices if vertex.state != _FINISHED}


def _not_at_work(reply: JobReply) -> list[Vertex]:
    """Return the vertices that have not finished and do not run, or not at a parallelism that is told."""
    at_work = [vertex for vertex in reply.vertices if vertex.state != _FINISHED]
    return [vertex for vertex in at_work if vertex.state != RUNNING or not vertex.parallelism]


def _describe_not_at_work(reply: JobReply) -> str:
    """Return which vertex of a job in state RUNNING does not run; empty where all that have not finished do."""
    waiting = _not_at_work(reply) if reply.state == RUNNING else []
    if not waiting:
        return ""
    first, more = waiting[0], f", and {len(waiting) - 1} more do not run" if len(waiting) > 1 else ""
    state = "without a parallelism" if first.state == RUNNING else shorten(first.state or "without a state")
    return f"its vertex {shorten(first.name or first.vertex_id)} is {state}{more}"


def _is_certain(error: FlinkRefusedError) -> bool:
    """Whether a refusal tells that the request was not carried out.

    A status of the server's side may come from a gateway, or from a JobManager that carried the request out and then
    failed to say so.
    """
    return (300 <= error.status < 500 and error.status not in _PASSING) or _NO_REQUIREMENTS in error.message
