"""The controller's log in ``ops.control_log``: appended in one commit per tick, last entries of all jobs in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

import pyarrow as pa

from controller.control_log import LogEntry
from controller.lake_table import LakeTable, date_of, is_in
from controller.log_codec import RowStamp, entry_of, row_of
from include.tables import CONTROL_LOG
from include.version import code_version
from models.control.state import JobHistory

HISTORY_DAYS = 14
"""How far back last entries are sought. A job without a later one has no history: its state is taken over as it is."""
_ORDER = [("lease_number", "descending"), ("entry", "descending"), ("at", "descending")]
_NEWEST = ("cluster", "job", "lease_number", "entry", "at")
_DECODED = (
    *_NEWEST,
    *("verb", "reason", "detail", "answer", "is_dry_run", "decided_at_s", "observed", "desired", "limits", "outcome"),
    *("history_before", "history", "request", "operators", "plan_as_of", "model_version"),
)


class HeldLease(Protocol):
    """The lease under which a log is written."""

    @property
    def number(self) -> int:
        """Fencing number."""

    def check(self) -> None:
        """Raise LeaseLostError unless the lease is held."""


class KnownJob:
    """The last row of a job, decoded when it is first asked for."""

    def __init__(self, row: Mapping[str, object] | None = None, entry: LogEntry | None = None, number: int = 0) -> None:
        self._row, self._entry, self.number = row, entry, number

    @property
    def last(self) -> LogEntry:
        """The entry."""
        if self._entry is None and self._row is not None:
            self._entry, self._row = entry_of(self._row), None
        if self._entry is None:
            raise ValueError("neither a row nor an entry is known")
        return self._entry


KnownJobs = dict[str, KnownJob]
"""``cluster/job`` -> its last row."""


def read_known_jobs(table: LakeTable, clusters: Iterable[str], now_s: float) -> KnownJobs:
    """Return the last row of every job of the clusters.

    Rows of an older lease come before those of a newer one, whenever they were written: a controller that was slow to
    notice that it had lost the lease may have appended one.
    """
    newest = _last_rows(table, now_s, is_in("cluster", clusters))
    return {f"{row['cluster']}/{row['job']}": KnownJob(row=row, number=int(row["entry"])) for row in newest.to_pylist()}


def _last_rows(table: LakeTable, now_s: float, where: str) -> pa.Table:
    """Return one row for each job; of the others no more than a part is in memory at a time."""
    today = date_of(now_s)
    since, until = today - timedelta(days=HISTORY_DAYS), today + timedelta(days=1)  # a clock may have been ahead
    kept = table.read(_DECODED, today, today, "false")
    for rows in table.read_parts(_DECODED, since, until, where):
        kept = _newest_by_job(pa.concat_tables([kept, _newest_by_job(rows)]))
    return kept


def _newest_by_job(rows: pa.Table) -> pa.Table:
    keys = rows.select(_NEWEST).append_column("place", pa.array(range(len(rows)), pa.int64()))
    ordered = keys.sort_by(_ORDER)
    first = ordered.group_by(["cluster", "job"], use_threads=False).aggregate([("place", "first")])
    return rows.take(first.column("place_first"))


class DeltaControlLog:
    """The log of one cluster's jobs; implements :class:`controller.control_log.ControlLog`.

    Args:
        table: ``ops.control_log`` (:func:`open_control_log`); logs of several clusters may share it.
        cluster: whose jobs.
        lease: under which it is written.
        clock: epoch seconds.
        known: last rows, where they were read for several clusters at once; else they are read at first use.
    """

    def __init__(
        self,
        table: LakeTable,
        cluster: str,
        lease: HeldLease,
        clock: Callable[[], float],
        known: KnownJobs | None = None,
    ) -> None:
        self._table, self._cluster, self._lease, self._clock = table, cluster, lease, clock
        self._known = known

    def load(self) -> None:
        """Read the last rows again: after the lease was taken, another controller may have written meanwhile."""
        self._known = read_known_jobs(self._table, [self._cluster], self._clock())

    def append(self, entry: LogEntry) -> None:
        """Append an entry; it is durable when this returns.

        Raises:
            LeaseLostError: another controller may write; nothing was appended.
        """
        self.append_all([entry])

    def append_all(self, entries: Sequence[LogEntry]) -> None:
        """Append all entries or none, in one commit; they are durable when this returns.

        Raises:
            LeaseLostError: another controller may write; nothing was appended.
        """
        if not entries:
            return
        known, number = dict(self._jobs()), self._lease.number
        rows = []
        for entry in entries:
            last = known.get(entry.job)
            known[entry.job] = KnownJob(entry=entry, number=(last.number if last else 0) + 1)
            rows.append(row_of(entry, RowStamp(number, known[entry.job].number, code_version())))
        self._lease.check()
        self._known = None  # until it is known what became of the commit
        self._table.append(rows)
        self._known = known

    def read_history(self, job: str) -> JobHistory:
        """Return the history after the last entry of a job; an empty one for a job without entries."""
        last = self.read_last(job)
        return JobHistory() if last is None else last.history

    def read_last(self, job: str) -> LogEntry | None:
        """Return the last entry of a job."""
        found = self._jobs().get(job)
        return None if found is None else found.last

    def _jobs(self) -> KnownJobs:
        if self._known is None:
            self.load()
        return self._known or {}


def open_control_log(lake: str) -> LakeTable:
    """Return the table of the log."""
    return LakeTable(lake, CONTROL_LOG)
