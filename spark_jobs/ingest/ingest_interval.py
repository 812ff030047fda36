"""One run of ingestion, from top to bottom: raw files -> bronze -> silver, and what became of the files.

Every line is parsed once, and each table is made from that one pass.  What takes Spark long and depends on nothing that
is under way goes on in a thread of its own: while one query is planned, another keeps the cores busy.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from include.settings import Settings
from include.tables import BRONZE_JOB_EVENTS, BRONZE_METRICS, INGESTED, OBSERVATIONS
from include.utc import Interval
from spark_jobs.ingest import marked_rows
from spark_jobs.ingest.earlier_replies import read_earlier_replies
from spark_jobs.ingest.hours import LOOKBACK, hours_where
from spark_jobs.ingest.lost_input import refuse_lost_input
from spark_jobs.ingest.quality import Counts, merge_counts, write_quality
from spark_jobs.ingest.quarantine import write_refused
from spark_jobs.ingest.raw_input import list_own_files, read_raw_input
from spark_jobs.ingest.samples_before import read_samples_before
from spark_jobs.ingest.silver import choose_rescale_hours, read_job_replies, write_graphs, write_observations
from spark_jobs.ingest.table_writes import TableWrites
from spark_jobs.interpreted import open_interpreted
from spark_jobs.lake import Lake
from spark_jobs.one_job import collect_together, local_frame, work_out

WRITTEN_BY_SPARK = (BRONZE_METRICS,)
"""Always."""
READ_OF_MANY = (*WRITTEN_BY_SPARK, BRONZE_JOB_EVENTS, OBSERVATIONS)
"""What Spark writes or reads where an hour is too large for the driver."""
MANY_BYTES = 32 * 2**20
"""Raw files of so many bytes hold more than the driver takes; this much is known before they are parsed."""
INTERPRETED_BYTES = 2**20
"""Raw files of so many bytes, about a dozen jobs polled each minute for an hour, are not worth any compiled code."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What a run has written.

    Attributes:
        hours: that were replaced.
        counts: what stands in ops.quality of the interval.
        refusals: what was refused most, one line each.
    """

    hours: Interval
    counts: Counts
    refusals: list[str]


def ingest_interval(lake: Lake, settings: Settings, interval: Interval, pool: Executor, *, is_forced: bool) -> Ingested:
    """Replace every table of ingestion over the hours of an interval.

    Args:
        lake: to write to.
        settings: of the run.
        interval: whose directories are read.
        pool: works out what does not depend on each other.
        is_forced: whether rows are replaced though the files that they came from are gone.

    Raises:
        LostInputError: raw files from which rows of these hours come are gone, and the run is not forced.
    """
    own_files = list_own_files(lake, settings, interval)
    size = sum(file.size for file in own_files)
    is_interpreted, are_many = size <= INTERPRETED_BYTES, size >= MANY_BYTES
    if is_interpreted:
        lake = _interpret(lake, settings)
    preparing = pool.submit(_prepare, lake, settings, interval, are_many=are_many)
    raw = read_raw_input(lake, settings, interval, own_files)
    planned, hours = preparing.result(), raw.hours
    # What the rows that are replaced were made from is still there: else nothing is written.
    checking = pool.submit(refuse_lost_input, lake, settings, raw, is_forced=is_forced)
    events = marked_rows.select_events(raw.rows, raw.repeated, hours)
    rescale_hours = choose_rescale_hours(lake, settings, hours)
    since = rescale_hours.start - LOOKBACK
    if planned is None or hours != interval:
        planned = read_earlier_replies(lake, hours.start - LOOKBACK if raw.has_few_events else since, hours.start)
    known = marked_rows.find_known_vertices(raw.rows, planned, hours)
    few_events: pa.Table | None = None
    if raw.has_few_events:
        collected = collect_together({"known": known, "events": events})
        few_events, known = collected["events"], local_frame(known, collected["known"])
        few = lake if is_interpreted else _interpret(lake, settings)
        few_rows = local_frame(events, few_events, few.spark)
        earlier = read_earlier_replies(few, since, hours.start)
        replying = partial(read_job_replies, few, settings, few_rows, raw, pool)
    else:
        earlier, replying = planned, partial(read_job_replies, lake, settings, events, raw, pool)
    reading = pool.submit(replying, earlier=earlier, rescale_hours=rescale_hours)
    if few_events is None:
        known = work_out({"known": known}, pool, is_small=raw.is_small)["known"].frame
    marked = marked_rows.mark_rows(raw.rows, known, raw.repeated, are_few=raw.has_few_values)
    checking.result()

    writes = TableWrites(lake, pool, is_small=raw.is_small)
    metrics = marked_rows.select_metrics(marked, hours)
    # The largest write takes half of the cores, so that all else goes on beside it.
    writes.start(BRONZE_METRICS, metrics.drop("sample"), hours_where(hours), core_share=0.5)
    if few_events is None:
        writes.start(BRONZE_JOB_EVENTS, events, hours_where(hours))
    else:
        writes.start_few(BRONZE_JOB_EVENTS, few_events.select(list(BRONZE_JOB_EVENTS.columns)), hours_where(hours))
    refusing = pool.submit(write_refused, lake, raw, marked_rows.select_own_rows(marked, interval), writes)

    measuring = pool.submit(read_samples_before, lake, hours, is_small=raw.is_small)
    replies = reading.result()
    drawing = pool.submit(write_graphs, replies, writes)
    measured = measuring.result()
    window_counts = write_observations(lake, settings, replies, metrics, writes, raw=raw, before=measured)

    refused = refusing.result()
    counts = merge_counts(raw.line_counts, refused.counts, window_counts)
    write_quality(interval, counts, writes)
    drawing.result()
    writes.wait()
    return Ingested(hours, counts, refused.refusals)


def _prepare(lake: Lake, settings: Settings, interval: Interval, *, are_many: bool) -> DataFrame | None:
    """Create the tables, and have Delta read the logs that Spark needs.

    Where replies are many those before the interval are returned: their query is planned while the cores parse.
    """
    lake.prepare(INGESTED, READ_OF_MANY if are_many else WRITTEN_BY_SPARK)
    if not are_many:
        return None
    since = choose_rescale_hours(lake, settings, interval).start - LOOKBACK
    return read_earlier_replies(lake, since, interval.start)


def _interpret(lake: Lake, settings: Settings) -> Lake:
    """Return the lake with a session that compiles nothing."""
    return Lake(open_interpreted(lake.spark, settings.spark.options), lake.root)
