"""One run of ingestion, from top to bottom: raw files -> bronze -> silver, and what became of the files.

Every line is parsed once, and each table is made from that one pass.  What takes Spark long and depends on nothing that
is under way goes on in a thread of its own: while one query is planned, another keeps the cores busy.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

from include.settings import Settings
from include.tables import BRONZE_JOB_EVENTS, BRONZE_METRICS
from include.utc import Interval
from spark_jobs.ingest.earlier_replies import read_earlier_replies
from spark_jobs.ingest.hours import LOOKBACK, hours_where
from spark_jobs.ingest.lost_input import refuse_lost_input
from spark_jobs.ingest.quality import Counts, merge_counts, write_quality
from spark_jobs.ingest.quarantine import write_refused
from spark_jobs.ingest.raw_input import list_own_files, read_raw_input
from spark_jobs.ingest.silver import choose_rescale_hours, read_job_replies, write_graphs, write_observations
from spark_jobs.ingest.table_writes import TableWrites
from spark_jobs.lake import Lake
from spark_jobs.raw_parsing import bronze_rows


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What a run has written.

    Attributes:
        hours: that were replaced.
        counts: what stands in ops.quality of the interval.
        refusals: what was refused most, one line each.
    """

    hours: Interval
    counts: Counts
    refusals: list[str]


def ingest_interval(
    lake: Lake, settings: Settings, interval: Interval, pool: Executor, *, is_forced: bool
) -> IngestResult:
    """Replace every table of ingestion over the hours of an interval.

    Raises:
        LostInputError: raw files from which rows of these hours come are gone, and the run is not forced.
    """
    own_files = list_own_files(lake, settings, interval)
    raw = read_raw_input(lake, settings, interval, own_files)
    hours = raw.hours
    # What the rows that are replaced were made from is still there: else nothing is written.
    checking = pool.submit(refuse_lost_input, lake, settings, raw, is_forced=is_forced)
    events = bronze_rows.select_events(raw.rows, raw.repeated, hours)
    rescale_hours = choose_rescale_hours(lake, settings, hours)
    earlier = read_earlier_replies(lake, rescale_hours.start - LOOKBACK, hours.start)
    checking.result()

    writes = TableWrites(lake, pool)
    writes.start(BRONZE_JOB_EVENTS, events, hours_where(hours))
    replies = read_job_replies(lake, settings, events, raw, earlier=earlier, rescale_hours=rescale_hours)
    unknown = bronze_rows.find_unknown(raw.keys["measured"], raw.keys["named"], replies.named)
    marked = bronze_rows.mark_rows(raw.rows, unknown, raw.repeated)
    metrics = bronze_rows.select_metrics(marked, hours)
    # The largest write takes half of the cores, so that all else goes on beside it.
    writes.start(BRONZE_METRICS, metrics.drop("sample"), hours_where(hours), core_share=0.5)
    own_marked, has_more = bronze_rows.select_own_rows(marked, interval), bool(unknown) or raw.repeated is not None
    refusing = pool.submit(write_refused, lake, raw, own_marked, writes, has_more=has_more)
    drawing = pool.submit(write_graphs, replies, writes)
    window_counts = write_observations(lake, settings, replies, metrics, writes, interval=interval)

    refused = refusing.result()
    counts = merge_counts(raw.line_counts, refused.counts, window_counts)
    write_quality(interval, counts, lake)
    drawing.result()
    writes.wait()
    return IngestResult(hours, counts, refused.refusals)
