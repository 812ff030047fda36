"""A raw line's envelope: typed columns, and the first rule that the line breaks.

Rules are looked at in the order of :func:`_rules`; a line that breaks none has a null ``fault``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.domain.quarantine_rules import Rule
from include.domain.reply_limits import HEX_ID, HTTP_OK, LAST_MS
from include.flink.raw_format import CLUSTER_WIDE, Endpoint
from include.settings import Ingest


def parse_envelope(read: DataFrame, rules: Ingest) -> DataFrame:
    """Add ``observed_at`` and ``fault`` (null or ``FAULT``) to lines and take their envelopes apart.

    The last row of a file has its fault only.
    """
    located = read.withColumn("observed_at", timestamp_of_ms(F.col("envelope.observed_at_ms")))
    is_line = F.col("line_number").isNotNull()
    broken = F.coalesce("line_fault", F.when(is_line, F.coalesce(*_rules(rules))))
    return located.withColumn("fault", broken).select(
        "cluster_dir",
        "dir_hour",
        "source_file",
        "line",
        "line_number",
        "raw_bytes",
        "file_lines",
        "body_fault",
        "envelope.kind",
        "envelope.job_id",
        "envelope.vertex_id",
        "envelope.body",
        "metrics",
        "sample",
        "event",
        "observed_at",
        "fault",
    )


def fault(rule: Rule, detail: Column | str) -> Column:
    """Return the fault of breaking a rule."""
    text = F.lit(detail) if isinstance(detail, str) else detail
    return F.struct(F.lit(str(rule)).alias("reason"), text.alias("detail"))


def timestamp_of_ms(epoch_ms: Column) -> Column:
    """Return the time of epoch milliseconds; null for 0 (Flink's "never") and for what no timestamp can hold."""
    return F.when(epoch_ms.between(1, LAST_MS), F.timestamp_millis(epoch_ms))


def _rules(rules: Ingest) -> list[Column]:
    """Return the rules in order, each null or the fault; later ones may rely on the earlier having passed."""
    field = {name: F.col(f"envelope.{name}") for name in ("kind", "job_id", "vertex_id", "status", "body")}
    needs_job = ~field["kind"].isin([str(kind) for kind in CLUSTER_WIDE])
    needs_vertex = field["kind"] == Endpoint.VERTEX_METRICS
    return [
        _missing("observed_at_ms", "cluster", "kind", "status"),
        F.when(F.col("metrics").isNull(), _missing("body")),
        F.when(
            F.col("envelope.cluster") != F.col("cluster_dir"),
            fault(Rule.CLUSTER_MISMATCH, F.concat(F.lit("the directory says "), F.col("cluster_dir"))),
        ),
        F.when(~field["kind"].isin([str(kind) for kind in Endpoint]), fault(Rule.UNKNOWN_KIND, field["kind"])),
        *_clock_rules(rules),
        F.when(field["status"] != HTTP_OK, fault(Rule.HTTP_ERROR, field["status"].cast("STRING"))),
        F.when(needs_job, _missing("job_id")),
        F.when(needs_vertex, _missing("vertex_id")),
        F.when(
            needs_job & ~field["job_id"].rlike(HEX_ID), fault(Rule.BAD_ID, F.concat(F.lit("job_id "), field["job_id"]))
        ),
        F.when(
            needs_vertex & ~field["vertex_id"].rlike(HEX_ID),
            fault(Rule.BAD_ID, F.concat(F.lit("vertex_id "), field["vertex_id"])),
        ),
        F.when(  # two replies of a job would have one key in bronze.job_events, which has no vertices
            ~needs_vertex & field["vertex_id"].isNotNull(),
            fault(Rule.BAD_ID, F.concat(F.lit("vertex_id of a reply of kind "), field["kind"])),
        ),
        F.when(F.trim(field["body"]) == "", fault(Rule.EMPTY_BODY, "body")),
        F.col("body_fault"),
    ]


def _missing(*names: str) -> Column:
    return F.coalesce(*[F.when(F.col(f"envelope.{name}").isNull(), fault(Rule.MISSING_FIELD, name)) for name in names])


def _clock_rules(rules: Ingest) -> list[Column]:
    epoch_ms = F.col("envelope.observed_at_ms")
    directory_ms = F.unix_millis("dir_hour")
    latest_ms = directory_ms + 3_600_000 + 1000 * rules.max_clock_skew_s
    earliest_ms = directory_ms - 3_600_000 * rules.late_allowance_h
    return [
        F.when(epoch_ms >= latest_ms, fault(Rule.CLOCK_JUMP, "observed after its file's hour")),
        F.when(
            epoch_ms < earliest_ms,
            fault(Rule.TOO_LATE, F.concat(F.lit(f"more than {rules.late_allowance_h} h before "), F.col("dir_hour"))),
        ),
    ]
