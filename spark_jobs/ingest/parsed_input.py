"""The parsed lines that one run of ingestion looks at: those of its own hours and those that belong to them.

A row belongs to the hour in which it was observed; its file lies in the directory of the hour in which it was written.
So the rows of ``[start, end)`` are found in the directories from one hour before ``start`` (a clock a little ahead) to
``late_allowance_h`` hours after ``end``.  Rows of the interval's own directories that were observed before ``start``
widen the interval: their hours are made again from all their files.  Thereby bronze is a function of the files alone.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame

from include.settings import Settings
from include.tables import BRONZE_JOB_EVENTS
from include.utc import Interval, floor_hour
from spark_jobs.ingest.hours import LOOKBACK, read_hours
from spark_jobs.ingest.quality import line_counts
from spark_jobs.lake import Lake
from spark_jobs.raw_parsing.bronze_rows import known_vertices, repeated_keys
from spark_jobs.raw_parsing.parsed_lines import parse_lines
from spark_jobs.raw_parsing.raw_files import RawFile, hour_range, list_files, read_contents


@dataclass(frozen=True, slots=True)
class ParsedInput:
    """What one run reads.

    Attributes:
        rows: parsed lines, kept; from :func:`spark_jobs.raw_parsing.bodies.parse_bodies`.
        interval: as asked for.
        start: start of the hours to write, earlier than the interval's when late rows widened it.
        files: the raw files of the interval's own directories.
        counts: per cluster, the columns of :func:`spark_jobs.ingest.quality.line_counts`.
        known: will be what :func:`spark_jobs.raw_parsing.bronze_rows.known_vertices` returns.
        has_repeated: whether a key stands more than once among rows without fault.
    """

    rows: DataFrame
    interval: Interval
    start: datetime
    files: list[RawFile]
    counts: dict[str, dict[str, Any]]
    known: Future[DataFrame]
    has_repeated: bool


def read_input(lake: Lake, settings: Settings, interval: Interval, pool: Executor) -> ParsedInput:
    """Read and parse everything that belongs to an interval, widened by late rows."""
    rules, start, end = settings.ingest, interval.start, interval.end
    ahead = timedelta(hours=1 if rules.max_clock_skew_s else 0)
    allowance = timedelta(hours=rules.late_allowance_h)

    def files(since: datetime, until: datetime) -> list[RawFile]:
        return list_files(lake.spark, settings.paths.raw, hour_range(since, until))

    def contents(since: datetime, until: datetime, *observed: datetime | None) -> DataFrame:
        return read_contents(lake.spark, files(since, until), *observed)

    def known(rows: DataFrame, first: datetime) -> DataFrame:
        return known_vertices(rows, read_hours(lake, BRONZE_JOB_EVENTS, first - LOOKBACK, first)).localCheckpoint()

    own = files(start, end)
    around = contents(start - ahead, start, start, end).unionByName(contents(end, end + allowance, None, end))
    rows = parse_lines(read_contents(lake.spark, own).unionByName(around), rules)
    # Side by side, as if no row were late: they seldom are.
    of_known, unrepeated = pool.submit(known, rows, start), pool.submit(repeated_keys(rows).isEmpty)
    counts = {row["cluster"]: row.asDict() for row in line_counts(rows, interval).collect()}
    late = [found["first_late"] for found in counts.values() if found["first_late"] is not None]
    first = min([start, *(floor_hour(timestamp.astimezone(start.tzinfo)) for timestamp in late)])
    if first == start:
        return ParsedInput(rows, interval, start, own, counts, of_known, not unrepeated.result())
    widened = rows.unionByName(parse_lines(contents(first - ahead, start, first, start), rules))
    repeats = not repeated_keys(widened).isEmpty()
    return ParsedInput(widened, interval, first, own, counts, pool.submit(known, widened, first), repeats)
