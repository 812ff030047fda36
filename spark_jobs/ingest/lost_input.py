"""Before anything is replaced: the files from which the rows of these hours come are still there.

What was read of a file stands in ops.files, by the hour of its directory; from which files the rows of an hour come,
also those of the directories around it, stands in bronze. Either may have gone with its retention: both are asked.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from include.lost_input import InputFile, LostInputError, SourceFile, describe_lost, find_lost
from include.raw_files import UNREADABLE, RawFile
from include.settings import Settings
from include.tables import BRONZE_JOB_EVENTS, BRONZE_METRICS, FILES, Table
from include.utc import Interval
from spark_jobs.ingest.file_contents import FileContent
from spark_jobs.ingest.hours import hours_where
from spark_jobs.ingest.raw_input import RawInput, list_files_around
from spark_jobs.lake import Lake

Lost = Mapping[SourceFile, str]
"""File from which less comes now than before -> why."""
_COLUMNS = ("source_file", "lines", "date", "hour")
DAY = timedelta(days=1)
log = logging.getLogger(__name__)


def refuse_lost_input(lake: Lake, settings: Settings, raw: RawInput, *, is_forced: bool) -> None:
    """Refuse to replace rows by nothing; where the run is forced, what is gone is only told.

    Raises:
        LostInputError: files from which rows come are gone or hold less, or a worker lacks one.
    """
    read = _read_now(raw.own_files, raw.read_files)
    known = _find_known(lake, raw.interval, raw.hours, read)
    lost = find_lost(known, _list_needed(lake, settings, raw.hours, raw.own_files, known), read)
    gone = _find_gone_folder(lake, settings, raw.interval, raw.own_files)
    if not lost and not gone:
        return
    message = describe_lost({**gone, **lost}, settings.paths.raw, raw.hours)
    if not is_forced:
        raise LostInputError(message)
    log.warning("forced: %s", message)


def _read_now(own_files: list[RawFile], read_files: Mapping[str, FileContent]) -> dict[str, InputFile]:
    """Return what was read of each file; of an own one that Hadoop passed over, nothing."""
    read = {file.name: InputFile(0, "not read by Hadoop") for file in own_files if file.is_readable}
    for file in read_files.values():
        read[file.name] = InputFile(file.lines, file.detail or "", file.reason == UNREADABLE)
    return read


def _find_known(lake: Lake, interval: Interval, hours: Interval, read: Mapping[str, InputFile]) -> list[SourceFile]:
    """Return the files from which the rows of these hours come, and those that a worker does not have."""
    known = {name: SourceFile(name) for name, result in read.items() if result.is_elsewhere}
    for table in (BRONZE_METRICS, BRONZE_JOB_EVENTS):
        known |= {name: SourceFile(name) for name in _find_sources(lake, table, hours)}
    return list(
        (known | {file.name: file for file in _read_files(lake, interval, "lines IS NULL OR lines > 0")}).values()
    )


def _find_sources(lake: Lake, table: Table, hours: Interval) -> set[str]:
    """Return the files that the rows of these hours name."""
    parts = lake.few(table).read_parts(["source_file"], *_dates(hours), hours_where(hours))
    return {name for part in parts for name in part["source_file"].unique().to_pylist() if name is not None}


def _read_files(lake: Lake, hours: Interval, where: str) -> list[SourceFile]:
    """Return the files of ops.files of these hours."""
    rows = lake.few(FILES).read(_COLUMNS, *_dates(hours), f"({hours_where(hours)}) AND ({where})")
    return [_known_file(row) for row in rows.to_pylist()]


def _dates(hours: Interval) -> tuple[date, date]:
    return hours.start.date(), hours.end.date()


def _known_file(row: Mapping[str, Any]) -> SourceFile:
    return SourceFile(row["source_file"], row["lines"], datetime.combine(row["date"], time(row["hour"]), UTC))


def _list_needed(
    lake: Lake, settings: Settings, hours: Interval, own_files: list[RawFile], known: list[SourceFile]
) -> list[RawFile]:
    """Return the files of all directories that are read; of the run's own alone where no other is needed."""
    own = {file.name for file in own_files}
    return own_files if all(file.name in own for file in known) else list_files_around(lake, settings, hours)


def _find_gone_folder(lake: Lake, settings: Settings, interval: Interval, own_files: list[RawFile]) -> Lost:
    """Return the files of the day before, where neither they nor any file of the run are there: nobody mounted them.

    An hour in which nothing was collected has no files; the day before it has, for as long as raw files are kept.
    """
    if any(not file.is_misplaced for file in own_files):
        return {}
    day = Interval(interval.start - DAY, interval.start)
    known = _read_files(lake, day, "lines > 0")
    if not known or list_files_around(lake, settings, day):
        return {}
    return dict.fromkeys(known, "is not there, nor is any other of this day")
