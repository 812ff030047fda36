"""The controller's log in ``ops.control_log``: appended in one commit per tick, last entries of all jobs in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from controller.log.control_log import EntryRefusedError, LogEntry
from controller.log.last_entries import HISTORY_DAYS, KnownJobs, LastEntry, read_known_jobs, read_older_jobs
from controller.log.log_codec import row_of
from controller.log.log_witness import LogWitness
from controller.log.unknown_jobs import describe_restore, history_without_rows, leave_alone, leave_restored
from include.arrow_rows import arrow_rows
from include.control.restores import Restore, RestoreStore
from include.lake_table import LakeTable
from include.tables import CONTROL_LOG
from include.utc import DAY_S
from include.version import controller_version
from models.control.case import Action, Verb
from models.control.reasons import Reason
from models.control.state import JobHistory

_WRITTEN_AGAIN_DAYS = HISTORY_DAYS / 2
_ROWS_MISSING = "rows of the control log are missing: was the lake restored from before, or the log removed?"
log = logging.getLogger(__name__)


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

    def skip_to(self, number: int) -> None:
        """Take a term with a number, or raise LeaseLostError."""


class DeltaControlLog:
    """The log of decisions on one cluster's jobs, to which rows are only appended.

    What was appended is known in memory for as long as the process lives, whatever becomes of the table. Logs of
    several clusters may share a table (:func:`open_control_log`).
    """

    def __init__(
        self,
        table: LakeTable,
        cluster: str,
        lease: HeldLease,
        clock: Callable[[], float],
        *,
        witness: LogWitness | None = None,
        read_code_version: Callable[[], str] = controller_version,
    ) -> None:
        self._table, self._cluster, self._lease, self._clock = table, cluster, lease, clock
        self._witness, self._read_code_version = witness, read_code_version
        self._known: KnownJobs | None = None
        self._known_under = lease.first_number
        self._written: KnownJobs = {}  # by this process, or read by it
        self._is_older_read = False
        self._version: int | None = None
        self._lost: set[str] = set()  # jobs whose last entry the table has not, or only among old rows
        self._restores = RestoreStore(table.lake)
        self._restore: Restore | None = None

    def load(self) -> None:
        """Read the last rows again, as is done by itself when the lease was taken anew."""
        self._known_under, self._is_older_read = self._lease.first_number, False
        now_s = self._clock()
        result = read_known_jobs(self._table, [self._cluster], now_s)
        old_s = now_s - _WRITTEN_AGAIN_DAYS * DAY_S
        self._lost = {job for job, one in result.items() if one.at_s < old_s}
        self._version = self._table.read_version()
        self._restore = self._restores.read()
        written = {} if self._witness is None else self._witness.read()
        if not written.keys() <= result.keys():
            self._add_older(result)
        self._add_written(result, written, now_s)
        self._leave_restored(result, now_s)
        self._known = result

    def keep(self) -> None:
        """Write last entries again that the table has lost, and those that will soon be too old to be found at once.

        Raises:
            LeaseLostError: another controller may write; nothing was appended.
        """
        known = self._jobs()
        self._notice_loss(known)
        entries = []
        for job in sorted(self._lost & set(known)):
            try:
                entries.append(_keep(known[job].last, self._clock()))
            except ValueError as error:  # the job is refused where its history is asked for
                log.error("%s: its last entry cannot be read: %s", job, error)
        if entries:
            self._append(entries, self._clock())
        self._lost = set()

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
        if entries:
            self._append(entries)

    def _append(self, entries: Sequence[LogEntry], at_s: float | None = None) -> None:
        known = dict(self._jobs())
        self._notice_loss(known)
        rows = self._rows_of(entries, known, at_s)
        self._lease.check()
        self._known = None  # until it is known what became of the commit
        self._table.append_arrow(rows)
        self._known = self._written = known
        self._version = self._table.read_version()
        self._lost -= {entry.job for entry in entries}
        if self._witness is not None:
            self._witness.write({job: one.number for job, one in known.items()})

    def _rows_of(self, entries: Sequence[LogEntry], known: KnownJobs, at_s: float | None) -> pa.Table:
        """Return entries as rows, numbered after those that are known, and add them to those."""
        lease_number, made = self._raise_lease(), []
        for entry in entries:
            last = known.get(entry.job)
            known[entry.job] = LastEntry(entry=entry, number=(last.number if last else 0) + 1)
            try:
                made.append(row_of(entry, lease_number, known[entry.job].number, self._read_code_version(), at_s))
            except Exception as error:  # whatever it is, the other jobs have their rows
                raise EntryRefusedError(entry.job, f"{type(error).__name__}: {error}") from error
        try:
            return arrow_rows(CONTROL_LOG, made)
        except (ValueError, OverflowError, TypeError):
            for entry, row in zip(entries, made, strict=True):
                _require_writable(entry, row)
            raise

    def _raise_lease(self) -> int:
        """Return the lease's number, after it was raised above those of all last rows: by it rows are ordered.

        Where the folder of the leases was lost, numbers begin at 1 again.
        """
        highest = max((one.lease_number for one in self._jobs().values()), default=0)
        if self._lease.number < highest:
            self._lease.skip_to(highest + 1)
        return self._lease.number

    def read_history(self, job: str) -> JobHistory:
        """Return the history after the last entry of a job; an empty one for a job without entries."""
        last = self.read_last(job)
        return history_without_rows(self._restore) if last is None else last.history

    def read_last(self, job: str) -> LogEntry | None:
        """Return the last entry of a job."""
        known = self._jobs()
        if job not in known and not self._is_older_read:
            self._add_older(known)
        result = known.get(job)
        return None if result is None else result.last

    def read_open(self) -> dict[str, LogEntry]:
        """Return the last entries of all jobs that have a request without an end, or whose outcome is not judged."""
        result = {}
        for job, known in self._jobs().items():
            try:
                entry = known.last
            except ValueError as error:  # the job is refused where its history is asked for
                log.error("%s: its last entry cannot be read: %s", job, error)
                continue
            if entry.history.in_flight is not None:
                result[job] = entry
        return result

    def _jobs(self) -> KnownJobs:
        if self._known is None or self._known_under != self._lease.first_number:
            self.load()
        return self._known or {}

    def _add_older(self, known: KnownJobs) -> None:
        """Read further back, once, for jobs that have no row of late."""
        now_s = self._clock()
        older = read_older_jobs(self._table, [self._cluster], now_s)
        self._is_older_read = True
        new = {job: one for job, one in older.items() if job not in known}
        self._leave_restored(new, now_s)
        known |= new
        self._lost |= set(new)

    def _notice_loss(self, known: KnownJobs) -> None:
        """Have all last entries written again where the table was made anew, or is an older version of itself."""
        version = self._table.read_version()
        if self._version is not None and (version is None or version < self._version):
            log.error("cluster %s: %s Its last entries are written again", self._cluster, _ROWS_MISSING)
            self._lost = set(known)
        self._version = version

    def _leave_restored(self, known: KnownJobs, now_s: float) -> None:
        """Leave jobs alone whose last row was restored from a backup."""
        if self._restore is None:
            return
        unknown = leave_restored(known, self._cluster, self._restore, now_s)
        if unknown:
            log.warning("%d jobs of %s: %s", len(unknown), self._cluster, describe_restore(self._restore))
        known |= unknown
        self._lost |= set(unknown)

    def _add_written(self, result: KnownJobs, written: Mapping[str, int], now_s: float) -> None:
        """Add what this process, or one before it, is known to have written and the table has not."""
        for job, one in self._written.items():
            if job not in result or result[job].number < one.number:
                result[job] = one
                self._lost.add(job)
        for job, number in written.items():
            last = result.get(job)
            if job.partition("/")[0] == self._cluster and (last is None or last.number < number):
                log.error("%s: %s; it is left alone for a time", job, _ROWS_MISSING)
                entry = leave_alone(job, None if last is None else last.last, now_s, _ROWS_MISSING)
                result[job] = LastEntry(entry=entry, number=number)
                self._lost.add(job)
        self._written = result


def _keep(entry: LogEntry, now_s: float) -> LogEntry:
    """Return an entry with the history of another."""
    case = replace(entry.case, now_s=now_s, desired=None, history=entry.history)
    action = Action(Verb.WAIT, Reason.KEPT, "what is known of the job is written down again")
    return LogEntry(entry.job, case, action, entry.history, provenance=entry.provenance)


def _require_writable(entry: LogEntry, row: Mapping[str, object]) -> None:
    try:
        arrow_rows(CONTROL_LOG, [row])
    except (ValueError, OverflowError, TypeError) as error:
        raise EntryRefusedError(entry.job, str(error)) from error


def open_control_log(lake: str) -> LakeTable:
    """Return the table of the log."""
    return LakeTable(lake, CONTROL_LOG)
