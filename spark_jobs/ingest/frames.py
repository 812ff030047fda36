"""What one run of ingestion makes and writes: every value from those before it, every table from one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from pyspark.sql import DataFrame

from include.lost_input import find_lost
from include.tables import (
    BRONZE_JOB_EVENTS,
    BRONZE_METRICS,
    FILES,
    INGESTED,
    JOB_GRAPHS,
    JOBS,
    OBSERVATIONS,
    OPERATOR_KEYS,
    QUALITY,
    QUARANTINE,
    RESCALES,
    Table,
)
from include.utc import Interval
from spark_jobs.ingest import file_counts, lost_input, marked_rows, quality, quarantine, raw_input, silver
from spark_jobs.ingest.dependency_graph import Node
from spark_jobs.ingest.hours import hours_where, select_hours
from spark_jobs.job_history import job_replies
from spark_jobs.job_history.job_graphs import build_graphs, build_jobs, select_job_graphs
from spark_jobs.job_history.observations import select_source_samples
from spark_jobs.job_history.operator_keys import build_operator_keys
from spark_jobs.lake import Lake
from spark_jobs.raw_parsing.parsed_lines import select_files, select_lines
from spark_jobs.timestamps import timestamp_literal


@dataclass(frozen=True, slots=True)
class TableSlice:
    """A slice of a table that is replaced.

    Attributes:
        table: which.
        frame: name of its rows.
        hours: name of the hours that are replaced.
        where: the predicate of the slice, from its hours.
        core_share: at most this share of the cores writes it; as many tasks as the frame has partitions when None.
    """

    table: Table
    frame: str
    hours: str
    where: Callable[[Interval], str] = hours_where
    core_share: float | None = None

    @property
    def node(self) -> Node:
        """The writing of it, once its rows are there and nothing is written in the place of lost input."""
        return Node(f"written {self.table.name}", self.write, ("tables", self.frame, self.hours, "checked"))

    def write(self, lake: Lake, rows: DataFrame, hours: Interval, _checked: object) -> None:
        """Replace the slice."""
        if self.core_share is not None:
            tasks = max(1, int(lake.spark.sparkContext.defaultParallelism * self.core_share))
            rows = rows.coalesce(tasks)
        lake.replace(self.table, rows, self.where(hours))


def prepare_tables(lake: Lake) -> Lake:
    """Create the tables that are not there."""
    lake.prepare(INGESTED)
    return lake


def keep(make: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    """Return a function that works out the frame that ``make`` returns at once, and keeps it."""

    @wraps(make)
    def make_and_keep(*inputs: Any) -> DataFrame:
        return make(*inputs).localCheckpoint()

    return make_and_keep


def interval_where(interval: Interval) -> str:
    """Return the slice of ops.quality of one interval."""
    start, end = (timestamp_literal(timestamp) for timestamp in (interval.start, interval.end))
    return f"interval_start = {start} AND interval_end = {end}"


# Given: the lake, the settings, the interval, whether the run is forced. A frame that is used more than once is kept:
# that keeps plans short, too.
FRAMES = (
    Node("tables", prepare_tables, ("lake",)),
    # raw files -> parsed rows. Late rows are seldom: repeated keys are looked for as if there were none.
    Node("own_files", raw_input.list_own_files, ("lake", "settings", "interval")),
    Node("parsed", raw_input.parse_own_rows, ("lake", "settings", "interval", "own_files")),
    Node("own_rows", select_lines, ("parsed",)),
    Node("own_repeated", raw_input.find_repeated_keys, ("own_rows",)),
    Node("line_counts", quality.count_lines, ("own_rows", "interval")),
    Node("hours", raw_input.widen_hours, ("interval", "line_counts")),
    Node("late_rows", raw_input.parse_late_rows, ("lake", "settings", "interval", "hours")),
    Node("rows", raw_input.add_late_rows, ("own_rows", "late_rows")),
    Node("repeated", raw_input.add_late_repeated_keys, ("own_repeated", "rows", "late_rows")),
    # Before any table is replaced: what its rows were made from is still there.
    Node("read_files", select_files, ("parsed",)),
    Node("read_now", lost_input.read_now, ("own_files", "read_files")),
    Node("known_files", lost_input.find_known, ("tables", "interval", "hours", "read_now")),
    Node("listed_files", lost_input.list_needed, ("tables", "settings", "hours", "own_files", "known_files")),
    Node("lost", find_lost, ("known_files", "listed_files", "read_now")),
    Node("gone", lost_input.find_gone_folder, ("tables", "settings", "interval", "own_files")),
    Node("checked", lost_input.refuse_lost, ("settings", "hours", "is_forced", "lost", "gone")),
    # -> bronze
    Node("events", marked_rows.select_events, ("rows", "repeated", "hours")),
    Node("known", keep(marked_rows.find_known_vertices), ("tables", "rows", "hours")),
    Node("marked", marked_rows.mark_rows, ("rows", "known", "repeated")),
    Node("metrics", marked_rows.select_metrics, ("marked", "hours")),
    # -> what the replies about jobs say
    Node("rescale_hours", silver.choose_rescale_hours, ("tables", "settings", "hours")),
    Node("earlier_events", silver.read_earlier_events, ("tables", "rescale_hours", "hours")),
    Node("replies", keep(silver.type_replies), ("earlier_events", "events")),
    Node("plans", job_replies.select_plans, ("replies",)),
    Node("polls", keep(job_replies.select_polls), ("replies",)),
    Node("stops", keep(silver.find_stops), ("polls", "replies", "earlier_events", "events")),
    Node("names", keep(silver.name_operators), ("polls", "plans")),
    Node("changes", keep(silver.find_parallelism), ("polls", "hours")),
    # -> silver
    Node("observed_hours", silver.choose_observed_hours, ("stops", "rescale_hours", "hours")),
    Node("earlier_metrics", silver.read_earlier_metrics, ("tables", "observed_hours", "hours")),
    Node("samples", keep(silver.make_samples), ("earlier_metrics", "metrics", "names", "changes", "settings")),
    Node("unsettled", keep(silver.find_unsettled_windows), ("stops", "polls", "settings", "observed_hours")),
    Node("observations", keep(silver.make_observations), ("samples", "changes", "unsettled", "observed_hours")),
    Node("topic_sources", silver.find_topic_sources, ("tables", "names", "settings", "hours")),
    Node("arrivals", silver.find_arrivals, ("earlier_events", "events", "topic_sources", "settings")),
    Node("all_observations", silver.add_arrivals, ("observations", "arrivals", "topic_sources", "observed_hours")),
    Node("sources", select_source_samples, ("samples",)),
    Node("earlier_rescales", silver.read_earlier_rescales, ("tables", "rescale_hours", "hours")),
    Node("all_rescales", silver.make_rescales, ("stops", "sources", "earlier_rescales", "settings")),
    Node("rescales", select_hours, ("all_rescales", "rescale_hours")),
    Node("graphs", keep(build_graphs), ("polls", "plans")),
    Node("all_job_graphs", select_job_graphs, ("graphs",)),
    Node("own_job_graphs", select_hours, ("all_job_graphs", "hours")),
    Node("job_graphs", silver.add_partitions, ("own_job_graphs", "events", "topic_sources")),
    Node("all_jobs", build_jobs, ("polls", "plans")),
    Node("jobs", select_hours, ("all_jobs", "hours")),
    Node("all_operator_keys", build_operator_keys, ("graphs",)),
    Node("operator_keys", select_hours, ("all_operator_keys", "hours")),
    # -> quarantine and quality, of the interval's own directories
    Node("own_marked", marked_rows.select_own_rows, ("marked", "interval")),
    Node("files", keep(file_counts.count_files), ("lake", "own_files", "read_files", "own_marked")),
    Node("quarantine", keep(marked_rows.collect_quarantine), ("lake", "own_files", "own_marked", "files")),
    Node("refusals", quarantine.name_refusals, ("quarantine",)),
    Node("refusal_counts", quality.count_refusals, ("own_files", "files")),
    Node("window_counts", quality.count_windows, ("observations", "interval")),
    Node("counts", quality.merge_counts, ("line_counts", "refusal_counts", "window_counts")),
    Node("quality", quality.make_quality_rows, ("lake", "interval", "counts")),
)

TABLES = (
    TableSlice(BRONZE_JOB_EVENTS, "events", "hours"),
    # The largest write takes half of the cores, so that all else goes on beside it.
    TableSlice(BRONZE_METRICS, "metrics", "hours", core_share=0.5),
    TableSlice(JOB_GRAPHS, "job_graphs", "hours"),
    TableSlice(JOBS, "jobs", "hours"),
    TableSlice(OPERATOR_KEYS, "operator_keys", "hours"),
    # A task writes a file for every hour: no more tasks than can run at once.
    TableSlice(OBSERVATIONS, "all_observations", "observed_hours", core_share=1.0),
    TableSlice(RESCALES, "rescales", "rescale_hours"),
    TableSlice(QUARANTINE, "quarantine", "interval"),
    TableSlice(FILES, "files", "interval"),
    TableSlice(QUALITY, "quality", "interval", where=interval_where),
)
