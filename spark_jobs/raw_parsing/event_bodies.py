"""The bodies of replies other than vertex metrics: checked for what is expected of each kind, and kept whole.

Names may be missing or alike: operators get names of their own later.  Ids may not.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.flink.raw_format import Kind
from include.settings import Ingest
from spark_jobs.raw_parsing.envelopes import HEX_ID, fault
from spark_jobs.raw_parsing.reply_schema import STATES
from spark_jobs.raw_parsing.typed_lines import FAULT

EARLIEST_MS = 946_684_800_000
"""The year 2000: no job has run for longer, and a time in seconds that is taken for milliseconds lies before it."""


def check_events(parsed: DataFrame, rules: Ingest) -> DataFrame:
    """Add ``vertex_ids`` (of ``job`` and ``plan`` replies), and ``fault`` where a body cannot be used.

    Args:
        parsed: from :func:`spark_jobs.raw_parsing.envelopes.parse_envelope`.
        rules: the settings of ingestion.
    """
    is_event = (
        F.col("fault").isNull()
        & F.col("line_number").isNotNull()
        & ~F.col("kind").isin(str(Kind.VERTEX_METRICS), str(Kind.JOB_METRICS))
    )
    checked = F.when(is_event, _event_fault(rules)).cast(FAULT)
    read = parsed.withColumn("vertex_ids", F.when(is_event, vertex_ids("event")))
    return read.withColumn("fault", F.coalesce("fault", checked))


def vertex_ids(event: str) -> Column:
    """Return the ids that a ``job`` or ``plan`` reply names, null of another."""
    return F.when(F.col("kind") == Kind.JOB, F.col(f"{event}.vertices.id")).when(
        F.col("kind") == Kind.PLAN, F.col(f"{event}.plan.nodes.id")
    )


def are_unusable(ids: Column) -> Column:
    """Whether vertices lack ids of their own: they cannot be told apart."""
    return F.exists(ids, lambda found: found.isNull()) | (F.size(F.array_distinct(ids)) < F.size(ids))


def _event_fault(rules: Ingest) -> Column:
    ids = vertex_ids("event")
    told = F.coalesce(F.when(F.col("kind") == Kind.JOB, F.col("event.jid")), "event.plan.jid")
    lacks = F.when(
        F.col("kind") == Kind.JOB,
        (F.coalesce("event.name", F.lit("")) == "") | F.col("event.state").isNull() | ids.isNull(),
    ).when(F.col("kind") == Kind.PLAN, ids.isNull())
    bad = F.get(F.filter(ids, lambda found: ~found.rlike(HEX_ID)), F.lit(0))
    times = _times()
    latest_ms = F.unix_millis("observed_at") + 1000 * rules.max_clock_skew_s
    cannot_be = F.filter(times, lambda at: (at > 0) & ((at < EARLIEST_MS) | (at > latest_ms)))
    return (
        F.when(lacks, fault("missing_field", "body"))
        .when(are_unusable(ids), fault("wrong_type", "body: vertices without an id of their own"))
        .when(bad.isNotNull(), fault("bad_id", F.concat(F.lit("body: vertex "), bad)))
        .when(told != F.col("job_id"), fault("job_mismatch", F.concat(F.lit("the reply is of job "), told)))
        .when(_has_unknown_inputs(), fault("bad_graph", "body: a vertex is fed by one that the plan does not name"))
        .when(
            F.size(cannot_be) > 0,
            fault(
                "time_out_of_range",
                F.concat(F.lit("body: "), F.get(cannot_be, F.lit(0)).cast("STRING"), F.lit(" ms since 1970")),
            ),
        )
    )


def _has_unknown_inputs() -> Column:
    named = F.col("event.plan.nodes.id")
    fed_by = F.flatten(F.filter(F.col("event.plan.nodes.inputs"), lambda inputs: inputs.isNotNull())).getField("id")
    unknown = F.exists(fed_by, lambda found: found.isNull() | ~F.array_contains(named, found))
    return (F.col("kind") == Kind.PLAN) & F.coalesce(unknown, F.lit(False))


def _times() -> Column:
    """Return the times, epoch milliseconds, of what a reply says has happened; Flink writes 0 or -1 for never."""
    of_job = F.array(*[F.col(f"event.timestamps.{state}") for state in STATES])
    checkpoints = F.concat(F.array("event.latest.completed"), F.coalesce("event.history", F.array()))
    completed = F.filter(checkpoints, lambda one: one["status"] == "COMPLETED")
    return (
        F.when(F.col("kind") == Kind.JOB, of_job)
        .when(
            F.col("kind") == Kind.CHECKPOINTS,
            F.concat(completed["trigger_timestamp"], completed["latest_ack_timestamp"]),
        )
        .when(F.col("kind") == Kind.EXCEPTIONS, F.col("event.exceptionHistory.entries.timestamp"))
    )
