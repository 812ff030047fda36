"""The bodies of replies other than vertex metrics: checked for what is expected of each kind, and kept whole."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.flink.raw_format import Kind
from spark_jobs.raw_parsing.envelopes import FAULT, JSON_OPTIONS, fault
from spark_jobs.raw_parsing.reply_schema import VERTEX_IDS

# What is expected of a reply that is an object: other fields may be of any type.
_EXPECTED = f"name STRING, {VERTEX_IDS}, _corrupt STRING"


def check_events(parsed: DataFrame) -> DataFrame:
    """Add ``vertex_ids`` (of ``job`` and ``plan`` replies), and ``fault`` where a body cannot be used.

    Args:
        parsed: from :func:`spark_jobs.raw_parsing.envelopes.parse_envelope`; where ``event`` is null, Arrow could not
            read the body.
    """
    is_event = F.col("fault").isNull() & (F.col("kind") != Kind.VERTEX_METRICS)
    lenient = F.when(is_event & ~_is_list() & F.col("event").isNull(), F.from_json("body", _EXPECTED, JSON_OPTIONS))
    read = parsed.withColumn("lenient", lenient).withColumn(
        "vertex_ids", F.when(is_event, F.coalesce(_ids("plan.nodes"), _ids("vertices")))
    )
    checked = F.when(is_event, _event_fault()).cast(FAULT)
    return read.withColumn("fault", F.coalesce("fault", checked)).drop("lenient")


def _is_list() -> Column:
    # The metrics of a job come as a list; every other reply is an object.
    return F.col("kind") == Kind.JOB_METRICS


def _ids(field: str) -> Column:
    return F.coalesce(f"event.{field}.id", f"lenient.{field}.id")


def _event_fault() -> Column:
    is_json = F.try_parse_json("body").isNotNull()
    is_corrupt = F.col("lenient._corrupt").isNotNull()
    ids = F.col("vertex_ids")
    ids_unusable = F.exists(ids, lambda found: found.isNull()) | (F.size(F.array_distinct(ids)) < F.size(ids))
    is_nameless = F.coalesce("event.name", "lenient.name").isNull()
    lacks = F.when(F.col("kind") == Kind.JOB, is_nameless | _ids("vertices").isNull()).when(
        F.col("kind") == Kind.PLAN, _ids("plan.nodes").isNull()
    )
    return (
        F.when(_is_list() & is_json, None)
        .when((_is_list() | is_corrupt) & ~is_json, fault("malformed_json", "body"))
        .when(is_corrupt, fault("wrong_type", "body"))
        .when(lacks | (F.col("event").isNull() & F.col("lenient").isNull()), fault("missing_field", "body"))
        .when(ids_unusable, fault("wrong_type", "body: vertices without an id of their own"))
    )
