"""The controller's log in ``ops.control_log``: appended in one commit per tick, last entries of all jobs in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from controller.control_log import EntryRefusedError, LogEntry
from controller.log_codec import RowStamp, entry_of, row_of
from include.lake_table import LakeTable, arrow_rows, date_of, is_in
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
    def first_number(self) -> int:
        """Changes whenever another controller may have written in between."""

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
    """Return one row for each job: first all keys are read, then the days on which last rows lie."""
    today = date_of(now_s)
    since, until = today - timedelta(days=HISTORY_DAYS), today + timedelta(days=1)  # a clock may have been ahead
    last = _newest_by_job(table.read([*_NEWEST, "date"], since, until, where))
    days = sorted(set(last.column("date").to_pylist()))
    kept = table.read(_DECODED, today, today, "false")
    for day in days:
        wanted = last.filter(pc.equal(last.column("date"), day))
        for rows in table.read_parts(_DECODED, day, day, f"{where} AND {_reach_of(wanted)}"):
            kept = _newest_by_job(pa.concat_tables([kept, _newest_by_job(rows)]))
    return kept


def _reach_of(rows: pa.Table) -> str:
    """Return a condition that closes files before the earliest of some rows."""
    return f"at >= '{pc.min(rows.column('at')).as_py().isoformat()}'"


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
        self._known, self._known_under = known, lease.first_number

    def load(self) -> None:
        """Read the last rows again, as is done by itself when the lease was taken anew."""
        self._known_under = self._lease.first_number
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
            EntryRefusedError: an entry cannot be written down; nothing was appended.
        """
        if not entries:
            return
        known = dict(self._jobs())
        rows = self._rows_of(entries, known)
        self._lease.check()
        self._known = None  # until it is known what became of the commit
        self._table.append_arrow(rows)
        self._known = known

    def _rows_of(self, entries: Sequence[LogEntry], known: KnownJobs) -> pa.Table:
        """Return entries as rows, numbered after those that are known, and add them to those."""
        lease_number, made = self._lease.number, []
        for entry in entries:
            last = known.get(entry.job)
            known[entry.job] = KnownJob(entry=entry, number=(last.number if last else 0) + 1)
            stamp = RowStamp(lease_number, known[entry.job].number, code_version())
            try:
                made.append(row_of(entry, stamp))
            except ValueError as error:
                raise EntryRefusedError(entry.job, str(error)) from error
        try:
            return arrow_rows(CONTROL_LOG, made)
        except (ValueError, OverflowError, TypeError):
            for entry, row in zip(entries, made, strict=True):
                _require_writable(entry, row)
            raise

    def read_history(self, job: str) -> JobHistory:
        """Return the history after the last entry of a job; an empty one for a job without entries."""
        last = self.read_last(job)
        return JobHistory() if last is None else last.history

    def read_last(self, job: str) -> LogEntry | None:
        """Return the last entry of a job."""
        found = self._jobs().get(job)
        return None if found is None else found.last

    def _jobs(self) -> KnownJobs:
        if self._known is None or self._known_under != self._lease.first_number:
            self.load()
        return self._known or {}


def _require_writable(entry: LogEntry, row: Mapping[str, object]) -> None:
    try:
        arrow_rows(CONTROL_LOG, [row])
    except (ValueError, OverflowError, TypeError) as error:
        raise EntryRefusedError(entry.job, str(error)) from error


def open_control_log(lake: str) -> LakeTable:
    """Return the table of the log."""
    return LakeTable(lake, CONTROL_LOG)
