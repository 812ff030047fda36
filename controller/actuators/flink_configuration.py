"""What the configurations of a Flink cluster and of its jobs tell; a refusal is unknown, and is asked again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from include.flink import cluster_facts
from include.flink.client import FlinkClient
from include.flink.faults import FlinkRefusedError

log = logging.getLogger(__name__)

_RETAINED_S = 30.0  # a JobManager has its configuration from its start, but may be started again with another


@dataclass(frozen=True, slots=True)
class ClusterConfiguration:
    """What a cluster's configuration tells.

    Attributes:
        is_elastic: whether it adds TaskManagers by itself; None when it does not tell.
        is_reactive: whether each job takes all slots that there are.
        autoscaler: key of another autoscaler; None where none is named.
        unknown: why nobody knows that there is none; empty where that is known.
        scheduler: empty when it does not tell.
    """

    is_elastic: bool | None = None
    is_reactive: bool = False
    autoscaler: str | None = None
    unknown: str = ""
    scheduler: str = ""
    told: Mapping[str, str] = field(default_factory=dict)


class FlinkConfiguration:
    """Asks for configurations and keeps those that were told; may be used by several threads.

    The clock is monotonic.
    """

    def __init__(self, client: FlinkClient, cluster: str, clock: Callable[[], float]) -> None:
        self._client, self._cluster, self._clock = client, cluster, clock
        self._lock = threading.Lock()
        self._facts: tuple[float, ClusterConfiguration] | None = None
        # Of a job's own configuration, by job id; an application has the same id whenever it is deployed.
        self._autoscalers: dict[str, tuple[int, str | None]] = {}

    def read_cluster(self, most_age_s: float = _RETAINED_S) -> ClusterConfiguration:
        """Return what the cluster's configuration tells, or told at most so many seconds ago.

        Raises:
            FlinkUnreachableError: it does not reply.
        """
        now_s = self._clock()
        with self._lock:
            if self._facts is not None and now_s - self._facts[0] < most_age_s:
                return self._facts[1]
        try:
            reply = self._client.job_manager_config()
        except FlinkRefusedError as error:  # a gateway may hide it: nothing is recognised then
            log.warning("cluster %s: its configuration is not told: %s", self._cluster, error)
            return ClusterConfiguration(unknown=f"the cluster's configuration is not told: {error}")
        reported = cluster_facts.read_configuration(reply)
        facts = ClusterConfiguration(
            is_elastic=cluster_facts.is_elastic(reported),
            is_reactive=cluster_facts.is_reactive(reported),
            autoscaler=cluster_facts.active_autoscaler(reported),
            unknown="" if cluster_facts.is_configuration(reply) else "the cluster's configuration cannot be read",
            scheduler=reported.get("jobmanager.scheduler", ""),
            told=reported,
        )
        if not facts.unknown:
            with self._lock:
                self._facts = (now_s, facts)
        return facts

    def find_autoscaler(self, job_id: str, submitted_ms: int | None = None) -> tuple[str | None, str]:
        """Return the key of a job's own configuration that names an autoscaler, and why nobody knows whether one does.

        What a job has told since Flink was given it (``submitted_ms``) does not change, and is asked for once; where
        that time is not known it is asked for again.

        Raises:
            FlinkUnreachableError: the cluster does not reply.
        """
        with self._lock:
            known = self._autoscalers.get(job_id)
            if known is not None and known[0] == submitted_ms:
                return known[1], ""
        try:
            reply = self._client.job_config(job_id)
        except FlinkRefusedError as error:
            return None, f"the job's configuration is not told: {error}"
        result = cluster_facts.active_autoscaler(cluster_facts.read_user_configuration(reply))
        if not cluster_facts.is_user_configuration(reply):
            return result, "the job's configuration cannot be read"
        if submitted_ms is not None:
            with self._lock:
                self._autoscalers[job_id] = (submitted_ms, result)
        return result, ""

    def forget(self, job_ids: Iterable[str]) -> None:
        """Forget all jobs but these."""
        known = set(job_ids)
        with self._lock:
            self._autoscalers = {job_id: key for job_id, key in self._autoscalers.items() if job_id in known}
