"""The parsed lines that one run of ingestion looks at: those of its own hours and those that belong to them.

A row belongs to the hour in which it was observed; its file lies in the directory of the hour in which it was written.
So the rows of ``[start, end)`` are found in the directories from one hour before ``start`` (a clock a little ahead) to
``late_allowance_h`` hours after ``end``.  Rows of the interval's own directories that were observed before ``start``
widen the interval: their hours are made again from all their files.  Thereby bronze is a function of the files alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from include.intervals import Interval, floor_hour
from include.settings import Settings
from spark_jobs.ingest.arrow_json import read_raw
from spark_jobs.ingest.bodies import parse_bodies
from spark_jobs.ingest.envelopes import observed_within, parse_envelope
from spark_jobs.ingest.quality import line_counts
from spark_jobs.ingest.raw_files import RawFile, find_corrupt, hour_range, list_files, read_lines


@dataclass(frozen=True, slots=True)
class ParsedInput:
    """What one run reads.

    Attributes:
        rows: parsed lines, kept; from :func:`spark_jobs.ingest.bodies.parse_bodies`.
        interval: as asked for.
        start: start of the hours to write, earlier than the interval's when late rows widened it.
        files: the raw files of the interval's own directories.
        corrupt: name -> what is wrong, of all files read.
        counts: per cluster, the columns of :func:`spark_jobs.ingest.quality.line_counts`.
    """

    rows: DataFrame
    interval: Interval
    start: datetime
    files: list[RawFile]
    corrupt: dict[str, str]
    counts: dict[str, dict[str, Any]]


def read_input(spark: SparkSession, settings: Settings, interval: Interval) -> ParsedInput:
    """Read and parse everything that belongs to an interval, widened by late rows."""
    rules = settings.ingest
    ahead = timedelta(hours=1 if rules.max_clock_skew_s else 0)
    allowance = timedelta(hours=rules.late_allowance_h)
    own = list_files(spark, settings.paths.raw, hour_range(interval.start, interval.end))
    before = list_files(spark, settings.paths.raw, hour_range(interval.start - ahead, interval.start))
    after = list_files(spark, settings.paths.raw, hour_range(interval.end, interval.end + allowance))

    def lines(skip_corrupt: bool) -> DataFrame:
        whole = read_lines(spark, own, skip_corrupt=skip_corrupt)
        ahead_of_file = _edge(spark, before, interval.start, interval.end, skip_corrupt)
        behind_file = _edge(spark, after, None, interval.end, skip_corrupt)
        return whole.unionByName(ahead_of_file).unionByName(behind_file)

    rows, counts, corrupt = _parse(spark, settings, lines, [*own, *before, *after], interval)
    late = [found["first_late"] for found in counts.values() if found["first_late"] is not None]
    start = min([interval.start, *(floor_hour(moment.astimezone(interval.start.tzinfo)) for moment in late)])
    if start < interval.start:
        earlier = list_files(spark, settings.paths.raw, hour_range(start - ahead, interval.start))

        def earlier_lines(skip_corrupt: bool) -> DataFrame:
            return _edge(spark, earlier, start, interval.start, skip_corrupt)

        more, _, also_corrupt = _parse(spark, settings, earlier_lines, earlier, interval)
        rows, corrupt = rows.unionByName(more), corrupt | also_corrupt
    return ParsedInput(rows, interval, start, own, corrupt, counts)


def _edge(
    spark: SparkSession, files: Iterable[RawFile], start: datetime | None, end: datetime, skip_corrupt: bool
) -> DataFrame:
    """Read files of other directories: only the lines observed in ``[start, end)`` are worth parsing."""
    start_ms = None if start is None else int(start.timestamp() * 1000)
    return read_lines(spark, files, skip_corrupt=skip_corrupt).where(
        observed_within(start_ms, int(end.timestamp() * 1000))
    )


def _parse(
    spark: SparkSession,
    settings: Settings,
    lines: Callable[[bool], DataFrame],
    files: list[RawFile],
    interval: Interval,
) -> tuple[DataFrame, dict[str, dict[str, Any]], dict[str, str]]:
    """Parse lines once, keep them, and count.

    A damaged file fails the first attempt; then the files are probed for their names and read to where they are sound.
    Looking for damage up front would decompress everything twice on every run.
    """

    def attempt(skip_corrupt: bool) -> tuple[DataFrame, dict[str, dict[str, Any]]]:
        rules = settings.ingest
        # A checkpoint rather than a cache: the long plan of the parser is then not planned again by every later query.
        rows = parse_bodies(parse_envelope(read_raw(lines(skip_corrupt), rules), rules), rules).localCheckpoint()
        return rows, {row["cluster"]: row.asDict() for row in line_counts(rows, interval).collect()}

    try:
        return *attempt(skip_corrupt=False), {}
    except (Py4JJavaError, PySparkException):
        corrupt = find_corrupt(spark, files)
        if not corrupt:
            raise
        return *attempt(skip_corrupt=True), corrupt
