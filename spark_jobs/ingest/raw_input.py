"""The parsed lines that one run of ingestion needs: those of its own hours and those that belong to them.

A row belongs to the hour in which it was observed; its file lies in the directory of the hour in which it was written.
So the rows of ``[start, end)`` are found in the directories from one hour before ``start`` (a clock a little ahead) to
``late_allowance_h`` hours after ``end``.  Rows of the interval's own directories that were observed before ``start``
widen the interval: their hours are made again from all their files.  Thereby bronze is a function of the files alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame

from include.raw_files import RawFile
from include.settings import Settings
from include.utc import Interval, floor_hour
from spark_jobs.ingest.file_contents import (
    FileContent,
    ReadContents,
    add_left,
    collect_keys,
    count_contents,
    count_lines,
)
from spark_jobs.ingest.quality import Counts
from spark_jobs.lake import Lake, frame_of
from spark_jobs.raw_parsing.parsed_lines import parse_lines, read_left_lines, replace_left_lines, select_lines
from spark_jobs.raw_parsing.raw_contents import RawContents, read_contents
from spark_jobs.raw_parsing.raw_files import hour_range, list_files, list_files_and_faults


@dataclass(frozen=True, slots=True)
class RawInput:
    """What one run has read; every line is parsed once, and its rows are kept.

    Attributes:
        interval: of the run; its own files lie in the directories of these hours.
        hours: whose rows are written: the interval, begun earlier where late rows belong to earlier hours.
        own_files: raw files of the interval's own directories, and what cannot be read or is misplaced.
        read_files: what stands in each file that was read, by its name.
        rows: the lines, columns :data:`spark_jobs.raw_parsing.parsed_lines.PARSED_COLUMNS`.
        keys: from :func:`spark_jobs.ingest.file_contents.collect_keys`.
        repeated: hashes of keys that stand more than once among rows without fault; None without any.
        line_counts: what stands in the own files.
    """

    interval: Interval
    hours: Interval
    own_files: list[RawFile]
    read_files: Mapping[str, FileContent]
    rows: DataFrame
    keys: Mapping[str, pa.Table]
    repeated: DataFrame | None
    line_counts: Counts


def list_own_files(lake: Lake, settings: Settings, interval: Interval) -> list[RawFile]:
    """Return the raw files of an interval's own directories, and what cannot be read or is misplaced."""
    return list_files_and_faults(lake.spark, settings.paths.raw, hour_range(interval.start, interval.end))


def read_raw_input(lake: Lake, settings: Settings, interval: Interval, own_files: list[RawFile]) -> RawInput:
    """Read and parse the lines that belong to the interval of a run."""
    parsed, read = _parse(settings, interval, _select_own_contents(lake, settings, interval, own_files))
    rows, keys = select_lines(parsed), read.keys
    line_counts = count_lines(read.files.values(), interval.start, interval.end)
    hours = _widen_hours(interval, line_counts)
    if hours.start < interval.start:  # seldom: only then are keys looked for twice
        late, _ = _parse(settings, interval, _select_late_contents(lake, settings, interval, hours))
        rows = rows.unionByName(select_lines(late))
        keys = collect_keys(rows)
    repeated = frame_of(lake.spark, keys["repeated"]) if len(keys["repeated"]) else None
    return RawInput(interval, hours, own_files, read.files, rows, keys, repeated, line_counts)


def _parse(settings: Settings, interval: Interval, contents: RawContents) -> tuple[DataFrame, ReadContents]:
    """Return parsed lines and files, and what stands in them."""
    parsed = parse_lines(contents, settings.ingest)
    read = count_contents(parsed, interval.start)
    if not read.left:
        return parsed, read
    left = read_left_lines(parsed, settings.ingest)
    complete, counted = replace_left_lines(parsed, left), count_contents(left, interval.start)
    if counted.faulty:  # which keys stand more than once among lines without fault is another question now
        return complete, count_contents(complete, interval.start)
    return complete, add_left(read, counted)


def _select_own_contents(lake: Lake, settings: Settings, interval: Interval, own_files: list[RawFile]) -> RawContents:
    """Return the files of the interval's own directories, and of those around what was observed in the interval."""
    start, end = interval.start, interval.end
    allowance = timedelta(hours=settings.ingest.late_allowance_h)
    before = _read_files(lake, settings, start - _ahead(settings), start, observed=(start, end))
    after = _read_files(lake, settings, end, end + allowance, observed=(None, end))
    return read_contents(lake.spark, own_files) + before + after


def _widen_hours(interval: Interval, line_counts: Counts) -> Interval:
    """Return the hours that are written: the interval, begun earlier where late rows belong to earlier hours."""
    late = [result["first_late"] for result in line_counts.values() if result["first_late"] is not None]
    starts = [floor_hour(timestamp.astimezone(interval.start.tzinfo)) for timestamp in late]
    return Interval(min([interval.start, *starts]), interval.end)


def _select_late_contents(lake: Lake, settings: Settings, interval: Interval, hours: Interval) -> RawContents:
    """Return what belongs to the hours by which the interval was widened."""
    first = hours.start - _ahead(settings)
    return _read_files(lake, settings, first, interval.start, observed=(hours.start, interval.start))


def _ahead(settings: Settings) -> timedelta:
    """Return how far ahead of its hour a file's clock may be, in whole directories."""
    return timedelta(hours=1 if settings.ingest.max_clock_skew_s else 0)


def list_files_around(lake: Lake, settings: Settings, hours: Interval) -> list[RawFile]:
    """Return the raw files of all directories that may hold rows of these hours."""
    end = hours.end + timedelta(hours=settings.ingest.late_allowance_h)
    return list_files(lake.spark, settings.paths.raw, hour_range(hours.start - _ahead(settings), end))


def _read_files(
    lake: Lake, settings: Settings, start: datetime, end: datetime, observed: tuple[datetime | None, datetime | None]
) -> RawContents:
    files = list_files(lake.spark, settings.paths.raw, hour_range(start, end))
    return read_contents(lake.spark, files, *observed)
