"""Phoebe's profiling phase on a real Flink cluster: side deployments of the job, one per scale-out.

They are started from the job's jar with the arguments in ``[profiling.jobs]``, read over REST, and cancelled.  Nothing
but a job that this object submitted is ever cancelled, or one that an earlier run left under the very same name.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from include.flink import endpoints
from include.flink.faults import FlinkError
from include.flink.job_states import RUNNING, TERMINAL_STATES
from include.settings.profiling import ProfiledJob, Profiling
from include.utc import DAY_S
from lab.local_flink.job_client import JobClient
from lab.profiling.rows import Measurement
from lab.stages.profiling.latency_markers import find_p95_names, mean_of_slowest_ms
from models.policies.observations import Latency

log = logging.getLogger(__name__)
# So many times the highest rate replayed is due under a backlog that never ends.
_BACKLOG_FACTOR = 10.0
_POLL_S = 1.0
_LATENCY_EVERY_S = 5.0


class FlinkDeployments:
    """Deployments of one job at several scale-outs; see :class:`lab.profiling.profiling.ProfilingCluster`.

    A replay at another rate starts each deployment anew, so the rate is the job's own argument or a trace; the time to
    settle comes after it.

    Args:
        client: of the cluster; closed at the end.
        name: "cluster/job", for the deployments' names.
        job: how it is started.
        settings: of the run.
        clock, sleep: seconds.
    """

    def __init__(
        self,
        client: JobClient,
        name: str,
        job: ProfiledJob,
        settings: Profiling,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._client, self._name, self._job, self._settings = client, name, job, settings
        self._clock, self._sleep = clock, sleep
        self._jar_id: str | None = None
        self._wanted: tuple[int, ...] = ()
        self._running: dict[int, str] = {}  # scale-out -> job id
        self._highest_per_s = 0.0

    def deploy(self, scale_outs: Sequence[int]) -> None:
        """Upload the jar and end what an earlier run left; the deployments start with their first rate.

        Raises:
            FlinkError: the cluster does not reply, or has not the slots for all of them at once.
        """
        self._end_leftovers()
        needed, free = sum(scale_outs), int(self._client.overview()["slots-available"])
        if needed > free:
            raise FlinkError(f"{self._client.rest_url} has {free} free slots; {tuple(scale_outs)} need {needed}")
        if self._jar_id is None:
            self._jar_id = self._client.upload_jar(Path(self._job.jar))
        self._wanted = tuple(scale_outs)

    def replay(self, rate_per_s: float, settle_s: int, window_s: int) -> Mapping[int, Measurement]:
        """Start every deployment at a rate; return the means of the window after settling."""
        self._highest_per_s = max(self._highest_per_s, rate_per_s)
        self._start_all(self._job.arguments, rate_per_s)
        self._sleep(settle_s)
        return self._measure(window_s)

    def stop(self, scale_out: int) -> None:
        """Cancel a deployment."""
        self._wanted = tuple(one for one in self._wanted if one != scale_out)
        job_id = self._running.pop(scale_out, None)
        if job_id is not None:
            self._cancel(job_id)

    def catch_up(self, scale_outs: Sequence[int], settle_s: int, window_s: int) -> Mapping[int, float]:
        """Start the job at each scale-out with a backlog that never ends; return throughputs, records/s."""
        self._end_all()
        self.deploy(scale_outs)
        arguments = self._job.backlog_arguments or self._job.arguments
        self._start_all(arguments, _BACKLOG_FACTOR * self._highest_per_s)
        self._sleep(settle_s)
        return {scale_out: row.throughput_per_s for scale_out, row in self._measure(window_s).items()}

    def close(self) -> None:
        """Cancel every deployment that still runs."""
        try:
            self._end_all()
        finally:
            self._client.close()

    def _name_of(self, scale_out: int) -> str:
        return f"tidewise-profiling/{self._name}/{scale_out}"

    def _start_all(self, arguments: Sequence[str], rate_per_s: float) -> None:
        """Start the deployments and wait until each runs at its scale-out.

        Raises:
            FlinkError: one does not in time.
        """
        self._end_all()
        assert self._jar_id is not None, "deploy comes first"
        for scale_out in self._wanted:
            filled = self._fill(arguments, scale_out, rate_per_s)
            self._running[scale_out] = self._client.run_jar(self._jar_id, self._job.entry_class, filled)
        for scale_out, job_id in self._running.items():
            observed = self._client.wait_for_parallelism(job_id, {}, timeout_s=self._settings.start_timeout_s)
            if max(observed.parallelism.values()) != scale_out:
                raise FlinkError(f"{self._name_of(scale_out)} runs at {observed.parallelism}, not at {scale_out}")

    def _fill(self, arguments: Sequence[str], scale_out: int, rate_per_s: float) -> list[str]:
        values = {"job_name": self._name_of(scale_out), "parallelism": scale_out, "rate_per_s": f"{rate_per_s:.3f}"}
        if self._settings.trace_dir is not None:
            trace = Path(self._settings.trace_dir) / f"{self._name.replace('/', '_')}-{rate_per_s:.0f}.csv"
            trace.write_text(f"second,rate_per_s\n0,{rate_per_s:.3f}\n{DAY_S},{rate_per_s:.3f}\n")
            values["trace"] = str(trace)
        return [one.format(**values) for one in arguments]

    def _measure(self, window_s: int) -> dict[int, Measurement]:
        """Return throughput and latency of the running deployments over a window; one that ended is left out."""
        before = {scale_out: self._read_emitted(job_id) for scale_out, job_id in self._running.items()}
        observed: dict[int, list[tuple[float, Latency]]] = {scale_out: [] for scale_out in self._running}
        until = self._clock() + window_s
        while (remaining_s := until - self._clock()) > 0:
            self._sleep(min(remaining_s, _LATENCY_EVERY_S))
            for scale_out, job_id in self._running.items():
                observed[scale_out].append(self._latency(job_id))
        result = {}
        for scale_out, job_id in self._running.items():
            after, first = self._read_emitted(job_id), before[scale_out]
            if after is None or first is None:
                log.warning("%s runs no longer", self._name_of(scale_out))
                continue
            throughput = (after[0] - first[0]) / max(after[1] - first[1], 1e-9)
            known = [latency for latency in observed[scale_out] if math.isfinite(latency[0])]
            kind = known[-1][1] if known else Latency.BACKLOG_AGE
            values = [value for value, of in known if of is kind]
            result[scale_out] = Measurement(
                scale_out, throughput, sum(values) / len(values) if values else math.nan, kind
            )
        return result

    def _read_emitted(self, job_id: str) -> tuple[float, float] | None:
        """Return what the sources have emitted so far and when; None when the job does not run."""
        job = self._client.job(job_id)
        if job.get("state") != RUNNING:
            return None
        total = sum(self._source_sum(job_id, source, "numRecordsOut") for source in endpoints.sources_of(job))
        return total, self._clock()

    def _latency(self, job_id: str) -> tuple[float, Latency]:
        """Return a latency in ms and what it is of; NaN when neither markers nor a backlog are shown."""
        vertices = [str(one["id"]) for one in self._client.job(job_id)["vertices"]]
        end_to_end = mean_of_slowest_ms({name: text for one in vertices for name, text in self._markers(job_id, one)})
        if math.isfinite(end_to_end):
            return end_to_end, Latency.END_TO_END
        ages = [0.0]
        for source in endpoints.sources_of(self._client.job(job_id)):
            pending = self._source_sum(job_id, source, "pendingRecords")
            rate = self._source_sum(job_id, source, "numRecordsOutPerSecond")
            ages.append(1000.0 * pending / rate if rate > 0 else math.nan)
        return max(ages) if not any(map(math.isnan, ages)) else math.nan, Latency.BACKLOG_AGE

    def _markers(self, job_id: str, vertex_id: str) -> Iterator[tuple[str, str]]:
        """Yield name and value of a vertex's marker quantiles; each is of one subtask, so its maximum is its value."""
        get = self._client.transport.get_json
        listed = get(endpoints.vertex_metric_names_path(job_id, vertex_id))
        for names in find_p95_names(str(one.get("id")) for one in listed):
            for one in get(endpoints.vertex_metrics_path(job_id, vertex_id, names)):
                yield one["id"], str(one["max"])

    def _source_sum(self, job_id: str, vertex_id: str, metric: str) -> float:
        """Return a metric summed over a source's subtasks; NaN where it is not shown."""
        listed = self._client.transport.get_json(endpoints.vertex_metric_names_path(job_id, vertex_id))
        names = endpoints.available([metric], [str(one.get("id")) for one in listed])
        if not names:
            return math.nan
        result: list[dict[str, Any]] = self._client.transport.get_json(
            endpoints.vertex_metrics_path(job_id, vertex_id, names[:1])
        )
        return float(result[0]["sum"]) if result else math.nan

    def _end_all(self) -> None:
        """Cancel what runs and wait until it has ended, so that its slots are free."""
        ended = list(self._running.values())
        self._running = {}
        for job_id in ended:
            self._cancel(job_id)
        self._wait_for_end(ended)

    def _end_leftovers(self) -> None:
        """Cancel the deployments that a run which was killed has left."""
        prefix = self._name_of(0)[:-1]
        remaining = [
            str(job["jid"])
            for job in self._client.jobs()["jobs"]
            if str(job["name"]).startswith(prefix) and str(job["name"])[len(prefix) :].isdigit()
            if job["state"] not in TERMINAL_STATES and job["jid"] not in self._running.values()
        ]
        for job_id in remaining:
            log.warning("a deployment that an earlier run left is cancelled: %s", job_id)
            self._cancel(job_id)
        self._wait_for_end(remaining)

    def _cancel(self, job_id: str) -> None:
        try:
            self._client.cancel(job_id)
        except FlinkError as error:  # the others are to be cancelled as well
            log.warning("side deployment %s could not be cancelled: %s", job_id, error)

    def _wait_for_end(self, job_ids: Sequence[str]) -> None:
        until = self._clock() + self._settings.start_timeout_s
        for job_id in job_ids:
            while self._client.job(job_id).get("state") not in TERMINAL_STATES:
                if self._clock() >= until:
                    raise FlinkError(f"side deployment {job_id} was cancelled and still runs")
                self._sleep(_POLL_S)
