"""Before anything is replaced: the files from which the rows of these hours come are still there.

What was read of a file stands in ops.files, by the hour of its directory; from which files the rows of an hour come,
also those of the directories around it, stands in bronze. Either may have gone with its retention: both are asked.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from include.lost_input import KnownFile, LostInputError, ReadFile, describe_lost, find_lost
from include.raw_files import UNREADABLE, RawFile
from include.settings import Settings
from include.tables import BRONZE_JOB_EVENTS, BRONZE_METRICS, FILES
from include.utc import Interval
from spark_jobs.ingest.hours import hours_where, read_hours
from spark_jobs.ingest.raw_input import RawInput, list_files_around
from spark_jobs.lake import Lake

Lost = Mapping[KnownFile, str]
"""File from which less comes now than before -> why."""
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


def _read_now(own_files: list[RawFile], read_files: DataFrame) -> dict[str, ReadFile]:
    """Return what was read of each file; of an own one that Hadoop passed over, nothing.

    Args:
        own_files: of the run's own directories.
        read_files: from :func:`spark_jobs.raw_parsing.parsed_lines.select_files`.
    """
    read = {file.name: ReadFile(0, "not read by Hadoop") for file in own_files if file.is_readable}
    for row in read_files.collect():
        fault = row["fault"]
        detail = "" if fault is None else str(fault["detail"])
        is_unreadable = fault is not None and fault["reason"] == UNREADABLE
        read[row["source_file"]] = ReadFile(row["file_lines"] or 0, detail, is_unreadable)
    return read


def _find_known(lake: Lake, interval: Interval, hours: Interval, read: Mapping[str, ReadFile]) -> list[KnownFile]:
    """Return the files from which the rows of these hours come, and those that a worker does not have.

    Args:
        lake: of the run.
        interval: the run's own directories.
        hours: whose rows are replaced.
        read: what was read now.
    """
    none = {"lines": F.lit(None).cast("BIGINT"), "date": F.lit(None).cast("DATE"), "hour": F.lit(None).cast("INT")}
    held_lines = F.col("lines").isNull() | (F.col("lines") > 0)
    rows = lake.read(FILES).where(hours_where(interval)).where(held_lines).select("source_file", *none)
    for table in (BRONZE_METRICS, BRONZE_JOB_EVENTS):
        sources = read_hours(lake, table, hours.start, hours.end).where("source_file IS NOT NULL")
        rows = rows.unionByName(sources.select("source_file").distinct().withColumns(none))
    known = {name: KnownFile(name) for name, result in read.items() if result.is_elsewhere}
    for row in rows.collect():
        name = row["source_file"]
        if row["date"] is not None:  # of ops.files, which tells more
            known[name] = _known_file(row)
        else:
            known.setdefault(name, KnownFile(name))
    return list(known.values())


def _known_file(row: Row) -> KnownFile:
    return KnownFile(row["source_file"], row["lines"], datetime.combine(row["date"], time(row["hour"]), UTC))


def _list_needed(
    lake: Lake, settings: Settings, hours: Interval, own_files: list[RawFile], known: list[KnownFile]
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
    rows = lake.read(FILES).where(hours_where(day)).where("lines > 0").select("source_file", "lines", "date", "hour")
    known = [_known_file(row) for row in rows.collect()]
    if not known or list_files_around(lake, settings, day):
        return {}
    return dict.fromkeys(known, "is not there, nor is any other of this day")
