"""A raw line's envelope: typed columns, and the first rule that the line breaks.

Rules are looked at in the order of :func:`_rules`; a line that breaks none has a null ``fault``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.flink.raw_format import CLUSTER_WIDE, Kind
from include.settings import Ingest
from spark_jobs.raw_parsing.typed_lines import ENVELOPE

_ENVELOPE = f"{ENVELOPE}, _corrupt STRING"
_TEXT_ENVELOPE = _ENVELOPE.replace("BIGINT", "STRING").replace("INT", "STRING")
JSON_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}
FAULT = "STRUCT<reason: STRING, detail: STRING>"
DAMAGED = "corrupt_file"
HEX_ID = "^[0-9a-f]{32}$"
_LAST_MS = 253_402_300_799_999  # year 9999: beyond it no timestamp can be built


def parse_envelope(read: DataFrame, rules: Ingest) -> DataFrame:
    """Add ``observed_at`` and ``fault`` (null or ``FAULT``) to lines and take their envelopes apart.

    Args:
        read: from :func:`spark_jobs.raw_parsing.typed_lines.read_files`; what Arrow could not read is read here.
        rules: the settings of ingestion.
    """
    lenient = F.from_json("line", _ENVELOPE, JSON_OPTIONS)
    parsed = read.withColumn("lenient", F.when(F.col("envelope").isNull(), lenient)).withColumn(
        "envelope", F.coalesce("envelope", F.col("lenient").dropFields("_corrupt"))
    )
    located = parsed.withColumn("observed_at", timestamp_of_ms(F.col("envelope.observed_at_ms")))
    return located.withColumn("fault", F.coalesce(*_rules(rules))).select(
        "cluster_dir",
        "dir_hour",
        "source_file",
        "line",
        "line_number",
        "envelope.kind",
        "envelope.job_id",
        "envelope.vertex_id",
        "envelope.body",
        "metrics",
        "event",
        "observed_at",
        "fault",
    )


def fault(reason: str, detail: Column | str) -> Column:
    """Return a fault of one reason."""
    text = F.lit(detail) if isinstance(detail, str) else detail
    return F.struct(F.lit(reason).alias("reason"), text.alias("detail"))


def timestamp_of_ms(epoch_ms: Column) -> Column:
    """Return the time of epoch milliseconds; null for 0 (Flink's "never") and for what no timestamp can hold."""
    return F.when(epoch_ms.between(1, _LAST_MS), F.timestamp_millis(epoch_ms))


def _rules(rules: Ingest) -> list[Column]:
    """Return the rules in order, each null or the fault; later ones may rely on the earlier having passed."""
    field = {name: F.col(f"envelope.{name}") for name in ("kind", "job_id", "vertex_id", "status", "body")}
    needs_job = ~field["kind"].isin([str(kind) for kind in CLUSTER_WIDE])
    needs_vertex = field["kind"] == Kind.VERTEX_METRICS
    return [
        F.when(F.col("damage").isNotNull(), fault(DAMAGED, F.col("damage"))),
        *_shape_rules(),
        _missing("observed_at_ms", "cluster", "kind", "status"),
        F.when(F.col("metrics").isNull(), _missing("body")),
        F.when(
            F.col("envelope.cluster") != F.col("cluster_dir"),
            fault("cluster_mismatch", F.concat(F.lit("the directory says "), F.col("cluster_dir"))),
        ),
        F.when(~field["kind"].isin([str(kind) for kind in Kind]), fault("unknown_kind", field["kind"])),
        *_clock_rules(rules),
        F.when(field["status"] != 200, fault("http_error", field["status"].cast("STRING"))),
        F.when(needs_job, _missing("job_id")),
        F.when(needs_vertex, _missing("vertex_id")),
        F.when(
            needs_job & ~field["job_id"].rlike(HEX_ID), fault("bad_id", F.concat(F.lit("job_id "), field["job_id"]))
        ),
        F.when(
            needs_vertex & ~field["vertex_id"].rlike(HEX_ID),
            fault("bad_id", F.concat(F.lit("vertex_id "), field["vertex_id"])),
        ),
        F.when(F.trim(field["body"]) == "", fault("empty_body", "body")),
    ]


def _shape_rules() -> list[Column]:
    # A reader of JSON stops after the first object of a line: a second one (a lost newline) must not go unseen. A brace
    # pair followed by a bare quote cannot stand inside a string, where quotes are escaped.
    two_in_one = F.col("line").contains('}{"')
    broken = F.col("envelope").isNull() | F.col("lenient._corrupt").isNotNull() | (F.trim("line") == "")
    as_text = F.from_json("line", _TEXT_ENVELOPE, JSON_OPTIONS)
    # Only a broken line is read a second time, with every field as text: then only its types were wrong.
    only_types = as_text["_corrupt"].isNull() & as_text["kind"].isNotNull()
    return [
        F.when(two_in_one, fault("malformed_json", "two records on one line")),
        F.when(broken & only_types, fault("wrong_type", "a field of the envelope")),
        F.when(broken, fault("malformed_json", "line")),
    ]


def _missing(*names: str) -> Column:
    return F.coalesce(*[F.when(F.col(f"envelope.{name}").isNull(), fault("missing_field", name)) for name in names])


def _clock_rules(rules: Ingest) -> list[Column]:
    epoch_ms = F.col("envelope.observed_at_ms")
    directory_ms = F.unix_millis("dir_hour")
    latest_ms = directory_ms + 3_600_000 + 1000 * rules.max_clock_skew_s
    earliest_ms = directory_ms - 3_600_000 * rules.late_allowance_h
    return [
        F.when(epoch_ms >= latest_ms, fault("clock_jump", "observed after its file's hour")),
        F.when(
            epoch_ms < earliest_ms,
            fault("too_late", F.concat(F.lit(f"more than {rules.late_allowance_h} h before "), F.col("dir_hour"))),
        ),
    ]
