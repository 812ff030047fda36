"""The last row of every job in ``ops.control_log``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from controller.log.control_log import LogEntry
from controller.log.log_codec import entry_of
from fleet.log_tables import KEYS, newest_of_jobs
from include.lake_table import LakeTable, date_of, is_in

HISTORY_DAYS = 14
"""Within these days last rows are sought first. Only jobs without one there are looked for in all rows that are kept;
rows that have become old are written again by whoever has the lease."""
_NEWEST = (*KEYS, "at")
_DECODED = (
    *_NEWEST,
    *("verb", "reason", "detail", "answer", "is_dry_run", "decided_at_s", "observed", "desired", "limits", "outcome"),
    *("history_before", "history", "request", "operators", "plan_as_of", "model_version", "wish_changed"),
)


class LastEntry:
    """The last row of a job, decoded when it is first asked for.

    Attributes:
        number: of the entry.
        lease_number: of the lease that it was written under; 0 where nobody asks.
        at_s: when it was written, epoch seconds.
    """

    def __init__(self, row: Mapping[str, object] | None = None, entry: LogEntry | None = None, number: int = 0) -> None:
        self._row, self._entry, self.number = row, entry, number
        at = None if row is None else row["at"]
        self.at_s: float = float("inf") if at is None else at.timestamp()  # type: ignore[attr-defined]
        self.lease_number = 0 if row is None else int(str(row["lease_number"]))

    @property
    def last(self) -> LogEntry:
        """The entry; raises ValueError for a row that cannot be read."""
        if self._row is not None:
            try:
                self._entry, self._row = entry_of(self._row), None
            except Exception as error:  # whatever a table may hold
                raise ValueError(f"its last row cannot be read: {type(error).__name__}: {error}") from error
        if self._entry is None:
            raise ValueError("neither a row nor an entry is known")
        return self._entry


KnownJobs = dict[str, LastEntry]
"""``cluster/job`` -> its last row."""


def read_known_jobs(table: LakeTable, clusters: Iterable[str], now_s: float) -> KnownJobs:
    """Return the last row of every job of the clusters that has one of late.

    Rows of an older lease come before those of a newer one, whenever they were written: a controller that was slow to
    notice that it had lost the lease may have appended one.  Rows of a clock that was ahead, by however much, count as
    others do.
    """
    since = date_of(now_s) - timedelta(days=HISTORY_DAYS)
    return _read(table, clusters, since, date.max)


def read_older_jobs(table: LakeTable, clusters: Iterable[str], now_s: float) -> KnownJobs:
    """Return the last row of every job among those that :func:`read_known_jobs` does not look at."""
    return _read(table, clusters, date.min, date_of(now_s) - timedelta(days=HISTORY_DAYS + 1))


def _read(table: LakeTable, clusters: Iterable[str], since: date, until: date) -> KnownJobs:
    newest = _last_rows(table, since, until, is_in("cluster", clusters))
    return {
        f"{row['cluster']}/{row['job']}": LastEntry(row=row, number=int(row["entry"])) for row in newest.to_pylist()
    }


def _last_rows(table: LakeTable, since: date, until: date, where: str) -> pa.Table:
    """Return one row for each job: first all keys are read, then the days on which last rows lie."""
    last = newest_of_jobs(table.read([*_NEWEST, "date"], since, until, where))
    days = sorted(set(last.column("date").to_pylist()))
    retained = table.read(_DECODED, since, since, "false")
    for day in days:
        wanted = last.filter(pc.equal(last.column("date"), day))
        for rows in table.read_parts(_DECODED, day, day, f"{where} AND {_reach_of(wanted)}"):
            retained = newest_of_jobs(pa.concat_tables([retained, newest_of_jobs(rows)]))
    return retained


def _reach_of(rows: pa.Table) -> str:
    """Return a condition that closes files before the earliest of some rows."""
    return f"at >= '{pc.min(rows.column('at')).as_py().isoformat()}'"
