"""The source of raw lines: running clusters, polled over REST (for files see ``cli/raw_import.py``)."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from include.flink import endpoints
from include.flink.client import FlinkClient
from include.flink.raw_format import Kind, RawRecord, hour_directory, write_lines
from include.flink.transport import Reply

log = logging.getLogger(__name__)
Clock = Callable[[], float]  # epoch seconds


@dataclass(frozen=True, slots=True)
class Delivery:
    """Files that a source put below the raw root.

    Attributes:
        written: files that are new.
        kept: files that were there already with the same content.
        refused: what was not taken, with the reason.
        records: replies in the files written (0 when the files were copied unread).
    """

    written: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    records: int = 0

    def __add__(self, other: Delivery) -> Delivery:
        return Delivery(
            self.written + other.written,
            self.kept + other.kept,
            {**self.refused, **other.refused},
            self.records + other.records,
        )


class RestSource:
    """Polls one cluster; the replies are kept as received, errors included.

    The plan of a job is requested at the first poll of each hour and when the job's start changed; everything else at
    every poll.  Only metrics that a vertex has are requested, because Flink answers ``[]`` when one name is unknown.

    The JobManager fetches metrics from the TaskManagers only on request, in the background, and answers with what it
    had before: a lone request sees values as old as the request before it.  So every poll begins with a request whose
    reply is thrown away, and waits ``settle_s`` for the fetch.
    """

    def __init__(
        self,
        client: FlinkClient,
        cluster: str,
        clock: Clock,
        *,
        settle_s: float = 0.5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._clock = clock
        self._settle_s = settle_s
        self._sleep = sleep
        self._planned: dict[str, tuple[int, int]] = {}  # job id -> (hour, start) of the last plan
        self._names: dict[tuple[str, str], list[str]] = {}  # (job id, vertex id) -> metrics to ask for

    def poll(self) -> Iterator[RawRecord]:
        """Yield one record per endpoint: cluster, then each job that has not ended.

        Raises:
            FlinkUnreachable: the cluster does not reply (records yielded before stay valid).
        """
        self._client.transport.get("/jobs/metrics")
        self._sleep(self._settle_s)
        yield self._record(Kind.OVERVIEW, self._client.transport.get("/overview"))
        jobs = self._client.transport.get("/jobs/overview")  # the list of jobs; each job's own reply has the details
        for job in _parse_or(jobs, {}).get("jobs", []):
            if job["state"] not in endpoints.TERMINAL_STATES:
                yield from self._poll_job(str(job["jid"]))

    def deliver(self, raw_root: Path) -> Delivery:
        """Poll once and write the records as one file into the directory of the present hour."""
        records = list(self.poll())
        now = datetime.fromtimestamp(self._clock(), UTC)
        path = hour_directory(raw_root, self._cluster, now) / f"poll-{now:%Y%m%dT%H%M%S%f}.jsonl.gz"
        count = write_lines(path, (record.to_line() for record in records))
        return Delivery(written=(path,), records=count)

    def _poll_job(self, job_id: str) -> Iterator[RawRecord]:
        reply = self._client.transport.get(endpoints.job_path(job_id))
        yield self._record(Kind.JOB, reply, job_id)
        job = _parse_or(reply, {})
        period = (int(self._clock() // 3600), int(job.get("start-time", -1)))
        if self._planned.get(job_id) != period:
            plan = self._client.transport.get(endpoints.job_path(job_id, "plan"))
            yield self._record(Kind.PLAN, plan, job_id)
            if plan.ok:
                self._planned[job_id] = period
        for kind, path in (
            (Kind.JOB_METRICS, endpoints.job_metrics_path(job_id)),
            (Kind.CHECKPOINTS, endpoints.job_path(job_id, "checkpoints")),
            (Kind.EXCEPTIONS, endpoints.job_path(job_id, "exceptions")),
        ):
            yield self._record(kind, self._client.transport.get(path), job_id)
        sources = endpoints.sources_of(job)
        for vertex in job.get("vertices", []):
            vertex_id = str(vertex["id"])
            names = self._metric_names(job_id, vertex_id, is_source=vertex_id in sources)
            found = self._client.transport.get(endpoints.vertex_metrics_path(job_id, vertex_id, names))
            yield self._record(Kind.VERTEX_METRICS, found, job_id, vertex_id)

    def _metric_names(self, job_id: str, vertex_id: str, *, is_source: bool) -> list[str]:
        key = (job_id, vertex_id)
        if key in self._names:
            return self._names[key]
        wanted = endpoints.VERTEX_METRICS + (endpoints.SOURCE_METRICS if is_source else ())
        listing = self._client.transport.get(endpoints.vertex_metric_names_path(job_id, vertex_id))
        found = endpoints.available(wanted, [str(entry["id"]) for entry in _parse_or(listing, [])])
        if len(found) == len(wanted):  # an incomplete list: a task may still be starting
            self._names[key] = found
        return found or list(endpoints.VERTEX_METRICS)

    def _record(self, kind: Kind, reply: Reply, job_id: str | None = None, vertex_id: str | None = None) -> RawRecord:
        at_ms = round(self._clock() * 1000)
        return RawRecord(at_ms, self._cluster, str(kind), reply.path, job_id, vertex_id, reply.status, reply.body)


def _parse_or(reply: Reply, otherwise: Any) -> Any:
    """Parse a reply for finding the way on; what cannot be parsed is still recorded as received."""
    try:
        return json.loads(reply.body) if reply.ok else otherwise
    except ValueError:
        return otherwise
