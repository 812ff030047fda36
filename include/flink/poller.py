"""The source of raw lines: running clusters, polled over REST (for files see ``cli/raw_import.py``)."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from include.domain.reply_limits import is_hex_id
from include.flink import endpoints
from include.flink.client import FlinkClient
from include.flink.job_states import RUNNING, TERMINAL_STATES
from include.flink.poll_requests import MOST_SILENT, PollRequests
from include.flink.raw_format import Endpoint, RawRecord, hour_directory, write_lines
from include.flink.source_counters import list_source_counters
from include.flink.transport import Reply
from include.flink.versions import RESCALE_HISTORY_SINCE, read_version

log = logging.getLogger(__name__)

Clock = Callable[[], float]  # epoch seconds
_RESCALE_ID = re.compile(r"[0-9a-f-]{32,36}")
_SETTLE_S = 0.5  # so long a fetch of the metrics takes
_AT_ONCE = 8  # jobs that are polled at the same time
_MOST_RESCALES = 20  # in one poll, the newest
_ASKED_FOR_RESCALES = 3  # a rescale may be entered only after the job runs
_LISTED_WHILE_STARTING = 20  # a list that lacks a metric is asked for at so many polls, then once an hour


@dataclass(frozen=True, slots=True)
class DeliveredFiles:
    """What a source put below the raw root, in numbers: the sum over the polls of months is no larger than one.

    Attributes:
        written: files that are new.
        kept: files that were there already with the same content.
        refused: what was not taken, with the reason.
        records: replies in the files written (0 when the files were copied unread).
    """

    written: int = 0
    kept: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    records: int = 0

    def __add__(self, other: DeliveredFiles) -> DeliveredFiles:
        return DeliveredFiles(
            self.written + other.written,
            self.kept + other.kept,
            {**self.refused, **other.refused},
            self.records + other.records,
        )


@dataclass(frozen=True, slots=True)
class _Listed:
    """The metrics of a vertex to ask for; how often a list lacked one, and in which hour it was asked for last."""

    names: list[str] = field(default_factory=list)
    times: int = 0
    hour: int = 0


@dataclass(frozen=True, slots=True)
class Poll:
    """What one poll of a cluster brought.

    Attributes:
        records: the replies, in the order of their endpoints.
        faults: what did not come or could not be read, one sentence each.
    """

    records: tuple[RawRecord, ...] = ()
    faults: tuple[str, ...] = ()


class RestSource:
    """Polls one cluster; the replies are kept as received, errors included.

    The plan of a job is requested at the first poll of each hour and when the job's start changed, until a reply has
    one: a job that initialises has none yet. The last state of a job that has ended is kept once. Its rescales, where
    Flink keeps them (from 2.3 on), at the first poll of each hour and at two after it came to run again; everything
    else at every poll.  Only metrics that a vertex has are requested, because Flink answers ``[]`` when one name is
    unknown.  A reply that does not come is named among the poll's faults; all others are kept.

    The JobManager fetches metrics from the TaskManagers only on request, in the background, and answers with what it
    had before: a lone request sees values as old as the request before it.  So every poll begins with a request whose
    reply is thrown away, and waits for the fetch.
    """

    def __init__(
        self,
        client: FlinkClient,
        cluster: str,
        clock: Clock,
        *,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._clock = clock
        self._sleep = sleep
        self._alive: list[str] = []  # jobs that had not ended at the last poll
        self._planned: dict[str, tuple[int, int]] = {}  # job id -> (hour, start) of the last plan
        # job id -> (hour, RUNNING time), how often asked since, ids of the rescales that were listed
        self._rescales: dict[str, tuple[tuple[int, int], int, frozenset[str]]] = {}
        self._listed: dict[str, dict[str, _Listed]] = {}  # job id -> vertex id -> its metrics
        self._keeps_rescales = False

    def poll(self) -> Poll:
        """Return one record per endpoint: cluster, then each job that has not ended.

        Raises:
            FlinkError: the cluster does not reply at all.
        """
        self._client.transport.get("/jobs/metrics")
        self._sleep(_SETTLE_S)
        cluster_wide = PollRequests(self._client, self._cluster, self._clock)
        overview = _object(_parse(cluster_wide.keep(Endpoint.OVERVIEW, "/overview"), "", []))
        version = read_version(overview.get("flink-version"))
        self._keeps_rescales = version is not None and version >= RESCALE_HISTORY_SINCE
        listed = dict(_listed_jobs(cluster_wide.ask("/jobs/overview"), cluster_wide.faults))
        job_ids = [job_id for job_id, has_ended in listed.items() if not has_ended]
        for job_id in [one for one in self._alive if listed.get(one)]:
            self._keep_end(job_id, cluster_wide)
        if not cluster_wide.faults:
            self._alive = job_ids
            self._forget(job_ids)
        parts = [PollRequests(self._client, self._cluster, self._clock, cluster_wide.silent) for _ in job_ids]
        if len(job_ids) > 1:
            with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=f"poll-{self._cluster}") as pool:
                list(pool.map(self._try_job, job_ids, parts))
        else:
            list(map(self._try_job, job_ids, parts))
        records = cluster_wide.records + [record for part in parts for record in part.records]
        faults = cluster_wide.faults + [fault for part in parts for fault in part.faults]
        if len(cluster_wide.silent) >= MOST_SILENT:
            faults.insert(0, f"{len(cluster_wide.silent)} requests without a reply: the rest of this poll is left out")
        return Poll(tuple(records), tuple(dict.fromkeys(faults)))

    def _try_job(self, job_id: str, requests: PollRequests) -> None:
        """Poll a job; whatever its replies hold, the other jobs are polled as well."""
        try:
            self._poll_job(job_id, requests)
        except Exception as error:
            log.exception("cluster %s: the replies of job %s ended in an error of Tidewise", self._cluster, job_id)
            requests.faults.append(f"job {job_id}: {type(error).__name__} in its replies; the log has more")

    def _poll_job(self, job_id: str, requests: PollRequests) -> None:
        reply = requests.keep(Endpoint.JOB, endpoints.job_path(job_id), job_id)
        job = _object(_parse(reply, f"job {job_id}", requests.faults))
        start = job.get("start-time", -1)
        period = (int(self._clock() // 3600), start if isinstance(start, int) else -1)
        if self._planned.get(job_id) != period:
            plan = requests.keep(Endpoint.PLAN, endpoints.job_path(job_id, "plan"), job_id)
            if _has_nodes(plan):
                self._planned[job_id] = period
        requests.keep(Endpoint.JOB_METRICS, endpoints.job_metrics_path(job_id), job_id)
        requests.keep(Endpoint.CHECKPOINTS, endpoints.job_path(job_id, "checkpoints"), job_id)
        requests.keep(Endpoint.EXCEPTIONS, endpoints.job_path(job_id, "exceptions"), job_id)
        if self._keeps_rescales:
            self._keep_rescales(requests, job_id, job)
        sources = endpoints.sources_of(job)
        # One without an id is seen in the job's reply, and refused there by name.
        vertex_ids = [one["id"] for one in _objects(job.get("vertices")) if is_hex_id(one.get("id"))]
        if vertex_ids:  # an application that is deployed anew has the same id, and other vertices
            known = self._listed.get(job_id, {})
            self._listed[job_id] = {one: known.get(one, _Listed()) for one in vertex_ids}
        for vertex_id in vertex_ids:
            names = self._metric_names(requests, job_id, vertex_id, sources)
            path = endpoints.vertex_metrics_path(job_id, vertex_id, names)
            requests.keep(Endpoint.VERTEX_METRICS, path, job_id, vertex_id)

    def _keep_end(self, job_id: str, requests: PollRequests) -> None:
        """Keep how a job ended, and its last savepoint, while the cluster still knows."""
        requests.keep(Endpoint.JOB, endpoints.job_path(job_id), job_id)
        requests.keep(Endpoint.CHECKPOINTS, endpoints.job_path(job_id, "checkpoints"), job_id)

    def _keep_rescales(self, requests: PollRequests, job_id: str, job: dict[str, Any]) -> None:
        """Keep those rescales of a job that have ended and were not kept before; a cluster may remember none."""
        running_ms = _object(job.get("timestamps")).get(RUNNING)
        now = (int(self._clock() // 3600), running_ms if isinstance(running_ms, int) else -1)
        asked_at, asked, retained = self._rescales.get(job_id, (now, 0, frozenset[str]()))
        asked = asked if asked_at == now else 0
        if asked >= _ASKED_FOR_RESCALES:
            return
        history = requests.try_to_ask(endpoints.job_path(job_id, "rescales/history"))
        ended = [one for one in _objects(_parse(history, "", [])) if one.get("terminalState")]
        ids = [one["rescaleUuid"] for one in ended if _RESCALE_ID.fullmatch(str(one.get("rescaleUuid")))]
        for rescale_id in [one for one in ids if one not in retained][-_MOST_RESCALES:]:
            requests.keep(Endpoint.RESCALE, endpoints.job_path(job_id, f"rescales/details/{rescale_id}"), job_id)
        self._rescales[job_id] = (now, asked + 1, frozenset(ids))

    def _metric_names(self, requests: PollRequests, job_id: str, vertex_id: str, sources: frozenset[str]) -> list[str]:
        is_source = not sources or vertex_id in sources
        hour = int(self._clock() // 3600)
        known = self._listed[job_id][vertex_id]
        if known.names and (known.times == 0 or known.hour == hour):
            return known.names
        wanted = endpoints.VERTEX_METRICS + (endpoints.SOURCE_METRICS if is_source else ())
        listing = requests.ask(endpoints.vertex_metric_names_path(job_id, vertex_id))
        listed = [entry.get("id") for entry in _objects(_parse(listing, "", []))]
        named = [name for name in listed if isinstance(name, str)]
        result = endpoints.available(wanted, named) + (list_source_counters(named) if is_source else [])
        result += [name for name in named if name == endpoints.INPUT_WATERMARK]
        if not sources:  # a job that initialises has no plan yet: which vertices are sources is not known
            return result or list(endpoints.VERTEX_METRICS)
        is_whole = all(endpoints.available([want], named) for want in wanted)
        is_whole &= is_source or endpoints.INPUT_WATERMARK in named
        times = 0 if is_whole else known.times + 1
        is_last = result and (times == 0 or times >= _LISTED_WHILE_STARTING)  # a source may never have pendingRecords
        self._listed[job_id][vertex_id] = _Listed(result if is_last else known.names, times, hour)
        return result or list(endpoints.VERTEX_METRICS)

    def _forget(self, job_ids: Iterable[str]) -> None:
        """Forget jobs that have gone, so that a process of months does not keep them all."""
        known = set(job_ids)
        self._planned = {job_id: one for job_id, one in self._planned.items() if job_id in known}
        self._rescales = {job_id: one for job_id, one in self._rescales.items() if job_id in known}
        self._listed = {job_id: one for job_id, one in self._listed.items() if job_id in known}


def deliver(poll: Poll, cluster: str, raw_root: Path, now_s: float, *, prefix: str = "poll-") -> DeliveredFiles:
    """Write a poll's records as one file into the directory of the present hour; nothing for a poll without any.

    Raises:
        OSError: the disk is full, say; no part of the file stays.
    """
    if not poll.records:
        return DeliveredFiles()
    now = datetime.fromtimestamp(now_s, UTC)
    path = hour_directory(raw_root, cluster, now) / f"{prefix}{now:%Y%m%dT%H%M%S%f}.jsonl.gz"
    count = write_lines(path, (record.to_line() for record in poll.records))
    return DeliveredFiles(written=1, records=count)


def _has_nodes(plan: Reply | None) -> bool:
    """Whether a plan reply has a graph."""
    if plan is None or not plan.ok:
        return False
    return bool(_objects(_object(_object(_parse(plan, "", [])).get("plan")).get("nodes")))


def _listed_jobs(reply: Reply | None, faults: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield the id of each job, and whether it has ended."""
    result = _parse(reply, "/jobs/overview", faults)
    jobs = _object(result).get("jobs")
    if result is not None and not isinstance(jobs, list):
        faults.append(f"/jobs/overview holds no list of jobs but {str(jobs)[:80]!r}")
    for job in _objects(jobs):
        job_id = job.get("jid")
        if not is_hex_id(job_id):
            faults.append(f"/jobs/overview names a job without an id: {str(job_id)[:80]!r}")
        else:
            yield job_id, str(job.get("state")) in TERMINAL_STATES


def _parse(reply: Reply | None, what: str, faults: list[str]) -> Any:
    """Parse a reply for finding the way on; what cannot be parsed is still recorded as received."""
    if reply is None:
        return None
    if not reply.ok:
        faults.append(f"{what}: status {reply.status}")
        return None
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        faults.append(f"{what} is no JSON: {reply.body[:80]!r}")
        return None


def _object(result: Any) -> dict[str, Any]:
    return result if isinstance(result, dict) else {}


def _objects(result: Any) -> list[dict[str, Any]]:
    return [one for one in result if isinstance(one, dict)] if isinstance(result, list) else []
