"""Nexmark's queries (``flink_job/nexmark``) on a cluster: their parameters, and how they are submitted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lab.local_flink.build import FLINK_HOME, PROJECT_ROOT, build_nexmark
from lab.local_flink.job_client import JobClient
from lab.local_flink.load import write_trace

SQL_DIR = PROJECT_ROOT / "flink_job" / "nexmark" / "sql"
RUNNER_CLASS = "io.tidewise.nexmark.SqlRunner"
PROPORTIONS = "1:3:46"  # persons, auctions and bids by the benchmark's definition
FEW_BIDS = "1:3:1"  # for queries over persons and auctions: what they filter away costs processor time only


@dataclass(frozen=True, slots=True)
class NexmarkOptions:
    """Parameters of a query as a job.

    Attributes:
        query: name of its file below ``flink_job/nexmark/sql``.
        trace: (second, events/s), linear in between; the last second closes a cycle.
        work_us: microseconds that the costly operator waits per record.
        proportions: persons, auctions and bids that come in turn.
        splits: shares of the source that its readers divide.
        shows_pending: whether the source reports ``pendingRecords``.
        counts_in: whether it counts ``numRecordsIn``, as the readers of FLIP-27 do.
        waits_in_poll: whether it waits inside ``pollNext`` and so is busy at any rate.
        start_ms: epoch milliseconds of the trace's second 0; 0: when the job is submitted.
    """

    query: str
    trace: tuple[tuple[int, float], ...]
    work_us: int
    proportions: str = PROPORTIONS
    job_name: str = ""
    parallelism: int = 1
    max_parallelism: int = 128
    splits: int = 24
    shows_pending: bool = True
    counts_in: bool = True
    waits_in_poll: bool = False
    start_ms: int = 0

    @property
    def name(self) -> str:
        """Name of the job in Flink."""
        return self.job_name or self.query

    def arguments(self, trace: Path) -> list[str]:
        """Return the program arguments of ``SqlRunner``."""
        names = ["events", *(["continued"] if self.start_ms else []), self.query]
        values = {
            "sql": ",".join(str(SQL_DIR / f"{name}.sql") for name in names),
            "job-name": self.name,
            "parallelism": self.parallelism,
            "max-parallelism": self.max_parallelism,
            "trace": trace,
            "proportions": self.proportions,
            "splits": self.splits,
            "pending": str(self.shows_pending).lower(),
            "count-in": str(self.counts_in).lower(),
            "poll-wait": str(self.waits_in_poll).lower(),
            "work-us": self.work_us,
            "start-ms": self.start_ms,
        }
        return [part for key, value in values.items() for part in (f"--{key}", str(value))]


def submit_query(
    client: JobClient,
    work_dir: Path,
    options: NexmarkOptions,
    flink_home: Path = FLINK_HOME,
    jar_id: str = "",
    *,
    savepoint: str = "",
) -> str:
    """Build the runner if need be, upload it unless its id is given, start the query; returns the job id.

    The JobManager must see ``work_dir`` and the project's folder. With a savepoint the query goes on from there.
    """
    trace = work_dir.resolve() / f"trace-{options.name}.csv"
    write_trace(trace, list(options.trace))
    uploaded = jar_id or client.upload_jar(build_nexmark(flink_home))
    return client.run_jar(uploaded, RUNNER_CLASS, options.arguments(trace), savepoint)


@dataclass(frozen=True, slots=True)
class NexmarkQuery:
    """A query at a size that two cores serve.

    Attributes:
        name: of its file.
        work_us: per record of its costly operator.
        unit_per_s: events/s at which that operator is about half busy with one subtask.
        costly: with what the names of the vertices begin whose records cost something, the costliest first; several
            vertices may have the same beginning.
        proportions: of its events.
    """

    name: str
    work_us: int
    unit_per_s: float
    costly: tuple[str, ...]
    proportions: str = PROPORTIONS

    def options(self, trace: tuple[tuple[int, float], ...], job_name: str = "", parallelism: int = 1) -> NexmarkOptions:
        """Return its parameters under a load."""
        return NexmarkOptions(self.name, trace, self.work_us, self.proportions, job_name, parallelism)


QUERIES = {
    query.name: query
    for query in (
        NexmarkQuery("q1", 1000, 500.0, ("Source: events",)),
        NexmarkQuery("q2", 1000, 500.0, ("Source: events",)),
        NexmarkQuery("q3", 20_000, 400.0, ("Join",), FEW_BIDS),
        NexmarkQuery("q5", 5000, 800.0, ("GlobalWindowAggregate",)),
        NexmarkQuery("q7", 1000, 500.0, ("Source: events",)),
        NexmarkQuery("q8", 8000, 500.0, ("GlobalWindowAggregate", "WindowJoin"), FEW_BIDS),
        NexmarkQuery("q11", 1000, 500.0, ("WindowAggregate",)),
        NexmarkQuery("statements", 5000, 1000.0, ("GlobalWindowAggregate", "GroupAggregate")),
    )
}
