"""Hours whose raw files were not ingested, or not all of them: found by comparing the files with ``ops.files``.

No Spark: a task of the ingest DAG asks every hour.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import unquote, urlsplit

from include.raw_files import UNREADABLE, LocalFiles, ObjectFiles, RawFile, walk
from include.settings import Settings
from include.tables import FILES
from include.utc import HOUR, Interval


def find_missed_hours(settings: Settings, until: datetime) -> list[Interval]:
    """Return the hours before ``until``, as intervals, that hold files which were not ingested as they are now.

    Looks back for ``ingest.missed_hours_days`` days. The hour of ``until`` and later ones are others' to ingest.
    """
    raw_root = local_path(settings.paths.raw)
    since = until - timedelta(days=settings.ingest.missed_hours_days)
    if since >= until:
        return []
    place = ObjectFiles(settings.paths.raw) if raw_root is None else LocalFiles(raw_root)
    result = walk(place, Interval(since, until).hours())
    files = [file for file in result if not file.is_misplaced and _may_be_read(file)]
    return join_hours(missed_hours(files, read_ingested(_table_root(settings), since.date())))


def _may_be_read(file: RawFile) -> bool:
    if file.local_path is None:
        return bool(file.uri)
    return os.access(file.local_path, os.R_OK)


def _table_root(settings: Settings) -> str:
    return local_path(settings.paths.lake) or settings.paths.lake


def missed_hours(files: Iterable[RawFile], ingested: Mapping[str, datetime]) -> set[datetime]:
    """Return the hours of files that are newer than what was ingested of them, or were never ingested.

    ``ingested`` says when the file of a name was written that was ingested, whole milliseconds.
    """
    return {file.hour for file in missed_files(files, ingested)}


def missed_files(files: Iterable[RawFile], ingested: Mapping[str, datetime]) -> list[RawFile]:
    """Return the files that are newer than what was ingested of them, or were never ingested."""
    return [file for file in files if _is_missed(file, ingested.get(file.name))]


def _is_missed(file: RawFile, ingested_at: datetime | None) -> bool:
    return ingested_at is None or int(file.modified_s * 1000) > round(ingested_at.timestamp() * 1000)


def join_hours(hours: Iterable[datetime]) -> list[Interval]:
    """Return hours as intervals: those that follow each other are one."""
    joined: list[Interval] = []
    for hour in sorted(hours):
        if joined and joined[-1].end == hour:
            joined[-1] = Interval(joined[-1].start, hour + HOUR)
        else:
            joined.append(Interval(hour, hour + HOUR))
    return joined


def read_ingested(lake_root: str, since: date, until: date = date.max) -> dict[str, datetime]:
    """Return name -> modification time of the files in ``ops.files`` of the days from ``since`` to ``until``.

    A file that could not be read is none of them: it may be readable later, as it is.
    """
    from include.lake_table import LakeTable  # heavy: DAG files are parsed without it

    rows = LakeTable(lake_root, FILES).read(["source_file", "modified_at", "reason"], since, until).to_pylist()
    read = [row for row in rows if row["modified_at"] and row["reason"] != UNREADABLE]
    return {row["source_file"]: row["modified_at"] for row in read}


def read_ingested_hours(
    settings: Settings, cluster: str, hours: Interval, passed_over: tuple[str, ...]
) -> set[datetime]:
    """Return the hours of whose raw files ``ops.files`` has lines; names in ``passed_over`` do not count."""
    from include.lake_table import LakeTable, is_in

    columns = ["source_file", "lines", "date", "hour"]
    rows = LakeTable(_table_root(settings), FILES).read(
        columns, hours.start.date(), hours.end.date(), is_in("cluster", [cluster])
    )
    return {
        datetime.combine(row["date"], time(row["hour"]), UTC)
        for row in rows.to_pylist()
        if row["lines"] != 0 and not row["source_file"].rpartition("/")[2].startswith(passed_over)
    }


def local_path(root: str) -> str | None:
    """Return a root as a path of this machine; None when it is a URI of another place."""
    result = urlsplit(root)
    if result.scheme == "file":
        return unquote(result.path)
    return None if result.scheme else root
