"""The source of raw lines that reads a Prometheus-compatible server: the newest samples, or those of past hours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from include.flink.client import FlinkClient
from include.flink.poller import DeliveredFiles, Poll
from include.flink.raw_format import Endpoint, RawRecord, hour_directory, write_lines
from include.metric_sources.prometheus.client import MOST_POINTS, PrometheusClient, QueryRange
from include.metric_sources.prometheus.graphs import GraphRegistry
from include.metric_sources.prometheus.job_runs import RecordedRun
from include.metric_sources.prometheus.known_runs import read_runs, run_of
from include.metric_sources.prometheus.measurements import ClusterMeasurements, fetch
from include.metric_sources.prometheus.replies import ReplyWriter
from include.settings.clusters import Cluster
from include.utc import DAY_S, HOUR_S

FILE_PREFIX = "prometheus-"
WITHOUT_SAMPLES = "does it scrape JobManager and TaskManagers, and do matchers and names fit?"
"""What to look at when a server has no samples of a cluster."""
_LONGEST_BACK_S = HOUR_S  # so far back samples are asked for again after polls without an answer


def open_graphs(cluster: Cluster, name: str) -> GraphRegistry:
    """Return the graphs that a cluster's REST API and saved replies tell of.

    Raises:
        SavedGraphError: a saved reply cannot be used.
    """
    client = None
    if cluster.rest_url is not None:
        client = FlinkClient(cluster.rest_url, cluster=name, connection=cluster.connection)
    folder = cluster.prometheus.graphs
    return GraphRegistry(client, None if folder is None else Path(folder))


class PrometheusSource:
    """Reads one cluster's server."""

    def __init__(self, client: PrometheusClient, name: str, cluster: Cluster, book: GraphRegistry) -> None:
        self._client, self._name, self._server, self._book = client, name, cluster.prometheus, book

    @classmethod
    def of(cls, name: str, cluster: Cluster) -> PrometheusSource:
        """Return the source that the settings describe.

        Raises:
            PrometheusError: the cluster has no server.
            SavedGraphError: a saved graph cannot be used.
        """
        return cls(PrometheusClient(name, cluster.prometheus), name, cluster, open_graphs(cluster, name))

    @property
    def longest_hours(self) -> int:
        """Return how many hours one query may ask for."""
        beyond_s = self._server.max_sample_age_s + 2 * self._server.step_s
        most = ((MOST_POINTS - 1) * self._server.step_s - beyond_s) // HOUR_S
        return max(1, min(self._server.chunk_h, most))

    @property
    def longest_gap_s(self) -> int:
        """Return for how long an hour may be without a step: a sample that is older is none."""
        return self._server.max_sample_age_s + self._server.step_s

    def fetch_hours(self, start: datetime, hours: int) -> ClusterMeasurements:
        """Ask for the samples of whole hours and a little more.

        Raises:
            PrometheusError: a query was not answered.
        """
        step_s = self._server.step_s
        # Multiples of the step, so that an hour has the same grid whatever is fetched with it.
        first = -(-int(start.timestamp()) // step_s)
        steps = -(-(hours * HOUR_S + self._server.max_sample_age_s + step_s) // step_s)
        return fetch(self._client, self._server, QueryRange(first * step_s, (first + steps) * step_s, step_s))

    def records_of_hour(
        self, result: ClusterMeasurements, hour: datetime, known: dict[str, tuple[RecordedRun, ...]]
    ) -> list[RawRecord]:
        """Return the lines of samples that were scraped in an hour; the same whatever else was fetched with them."""
        start_s = int(hour.timestamp())
        part = cut(result, start_s, start_s + HOUR_S + self._server.max_sample_age_s + self._server.step_s)
        writer = ReplyWriter(self._name, self._book, max_age_s=self._server.max_sample_age_s)
        return list(writer.write(part, 1000 * start_s, 1000 * (start_s + HOUR_S), known))

    def close(self) -> None:
        """Close the pooled connections."""
        self._client.close()


def cut(result: ClusterMeasurements, start_s: int, end_s: int) -> ClusterMeasurements:
    """Return the steps of a time span, both ends included; what has no sample in it is left out."""
    grid = result.grid
    first = -(-(start_s - grid.start_s) // grid.step_s)
    last = min((end_s - grid.start_s) // grid.step_s, grid.steps - 1)
    return result.steps(first, last)


class LivePrometheusSource(PrometheusSource):
    """Reads the newest samples, each once; a source of live collecting as the poller of REST is.

    Raw files may tell of runs from before this process.
    """

    def __init__(
        self,
        client: PrometheusClient,
        name: str,
        cluster: Cluster,
        book: GraphRegistry,
        *,
        clock: Callable[[], float],
        raw_root: Path | None = None,
    ) -> None:
        super().__init__(client, name, cluster, book)
        self._clock = clock
        self._writer = ReplyWriter(
            name, book, max_age_s=self._server.max_sample_age_s, hold_s=float(self._server.step_s), every_poll=True
        )
        self._last_ms: dict[tuple[str, str | None, str | None], int] = {}
        self._answered_s: float | None = None
        self._known: dict[str, tuple[RecordedRun, ...]] = {}
        if raw_root is not None:
            self._known = read_runs(raw_root, name, _hour_of(clock()) + timedelta(hours=1))
        self._from_before = frozenset(self._known)

    def poll(self) -> Poll:
        """Return the lines of the samples that are new since the last poll that brought any.

        An answer without a single sample is a fault: a server that has lost its series answers so, too.

        Raises:
            PrometheusError: a query was not answered, or not whole.
        """
        now_s = int(self._clock())
        step_s = self._server.step_s
        missed_s = 0 if self._answered_s is None else max(0, now_s - int(self._answered_s))
        wanted_s = min(2 * self._server.max_sample_age_s + missed_s, _LONGEST_BACK_S, (MOST_POINTS - 2) * step_s)
        back = -(-max(wanted_s, 2 * self._server.max_sample_age_s) // step_s) * step_s
        result = fetch(self._client, self._server, QueryRange(now_s - back, now_s, step_s))
        written = self._writer.write(result, 1000 * (now_s - back), 1000 * (now_s + 1), self._known)
        records = tuple(record for record in written if self._is_new(record))
        self._remember(records)
        if not result.jobs and not any(np.isfinite(values).any() for values in result.cluster.values()):
            return Poll(records, (f"{self._client.place}: not one sample of the last {back} s; {WITHOUT_SAMPLES}",))
        self._answered_s = now_s
        self._forget(result, 1000 * (now_s - DAY_S))
        return Poll(records)

    def write(self, poll: Poll, raw_root: Path, now_s: float) -> DeliveredFiles:
        """Write the records into the directories of the hours in which they were scraped.

        Raises:
            OSError: the disk is full, say.
        """
        now = datetime.fromtimestamp(now_s, UTC)
        by_hour: dict[datetime, list[RawRecord]] = {}
        for record in poll.records:
            by_hour.setdefault(_hour_of(record.observed_at_ms / 1000), []).append(record)
        for hour, own in sorted(by_hour.items()):
            path = hour_directory(raw_root, self._name, hour) / f"{FILE_PREFIX}{now:%Y%m%dT%H%M%S%f}.jsonl.gz"
            write_lines(path, (record.to_line() for record in own))
        return DeliveredFiles(written=len(by_hour), records=len(poll.records))

    def stop(self) -> None:
        """Give up what is under way; for another thread."""
        self._client.stop()

    def _is_new(self, record: RawRecord) -> bool:
        key = (record.kind, record.job_id, record.vertex_id)
        if record.observed_at_ms <= self._last_ms.get(key, 0):
            return False
        self._last_ms[key] = record.observed_at_ms
        return True

    def _forget(self, result: ClusterMeasurements, before_ms: float) -> None:
        """Forget jobs without a sample for a day, so that a process of months does not keep them all."""
        self._last_ms = {key: at_ms for key, at_ms in self._last_ms.items() if at_ms >= before_ms}
        known = {*result.jobs, *self._from_before, *(job_id for _, job_id, _ in self._last_ms if job_id is not None)}
        self._known = {job_id: runs for job_id, runs in self._known.items() if job_id in known}
        self._writer.forget(known)
        self._book.forget(known)

    def _remember(self, records: Iterable[RawRecord]) -> None:
        for record in records:
            if record.kind == Endpoint.JOB and record.job_id is not None:
                run = run_of(json.loads(record.body))
                if run is not None:
                    self._known[record.job_id] = (run,)


def _hour_of(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s - at_s % HOUR_S, UTC)
