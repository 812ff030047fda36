"""The raw format: one JSON line per REST reply, kept as received, in compressed files by hour.

Both sources of metrics (the poller of a running cluster and files handed in) write this format, and
ingestion reads nothing else.  Layout below the raw root::

    cluster=<name>/date=YYYY-MM-DD/hour=HH/<anything>.jsonl.gz

The hour directory is the hour in which the file was written; a line in it may have been observed earlier (late data).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path

from include.atomic_write import replace_atomically


class Endpoint(StrEnum):
    """Which endpoint of Flink's REST API a reply came from, or that it came from Kafka's brokers."""

    OVERVIEW = "overview"  # /overview
    JOB = "job"  # /jobs/:jobid
    PLAN = "plan"  # /jobs/:jobid/plan
    JOB_METRICS = "job_metrics"  # /jobs/:jobid/metrics?get=...
    CHECKPOINTS = "checkpoints"  # /jobs/:jobid/checkpoints
    EXCEPTIONS = "exceptions"  # /jobs/:jobid/exceptions
    RESCALE = "rescale"  # /jobs/:jobid/rescales/details/:uuid, from Flink 2.3 on
    VERTEX_METRICS = "vertex_metrics"  # /jobs/:jobid/vertices/:vertexid/subtasks/metrics?get=...&agg=...
    KAFKA_OFFSETS = "kafka_offsets"  # end offsets of topics (include/metric_sources/kafka), of no job


CLUSTER_WIDE = frozenset({Endpoint.OVERVIEW, Endpoint.KAFKA_OFFSETS})


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One REST reply.

    Attributes:
        observed_at_ms: epoch milliseconds (UTC) at which the reply arrived.
        cluster: name of the cluster in the settings.
        kind: which endpoint.
        endpoint: path and query as requested.
        job_id: Flink's job id (32 hex digits); None for cluster-wide endpoints.
        vertex_id: Flink's vertex id (32 hex digits); None for job-wide endpoints.
        status: HTTP status.
        body: the reply's text, unchanged (so that a truncated or corrupt reply is kept too).
    """

    observed_at_ms: int
    cluster: str
    kind: str
    endpoint: str
    job_id: str | None
    vertex_id: str | None
    status: int
    body: str

    def to_line(self) -> str:
        """Return the record as one JSON line without the newline."""
        content = {name: getattr(self, name) for name in _FIELDS}
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


_FIELDS = tuple(field.name for field in fields(RawRecord))


def hour_directory(raw_root: Path, cluster: str, hour: datetime) -> Path:
    """Return the directory for files of one cluster written in one hour."""
    return raw_root / f"cluster={cluster}" / f"date={hour:%Y-%m-%d}" / f"hour={hour:%H}"


_LINES_AT_ONCE = 64


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write lines to a gzip file under a temporary name and rename it, so that no reader sees half a file.

    The gzip header carries no time stamp: the same lines give the same bytes.  Returns the number of lines.
    """
    count = 0
    with (
        replace_atomically(path) as temporary,
        temporary.open("wb") as binary,
        gzip.GzipFile("", "wb", compresslevel=3, fileobj=binary, mtime=0) as packed,
    ):
        rest = iter(lines)
        while some := list(islice(rest, _LINES_AT_ONCE)):
            packed.write("".join(f"{line}\n" for line in some).encode())
            count += len(some)
    return count
