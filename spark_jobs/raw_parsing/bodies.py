"""The bodies of raw lines: vertex metrics as typed arrays, other replies checked and kept whole.

A value that breaks a rule becomes null in the array and is reported in ``value_faults`` with its text as received; the
rest of the row is kept.  Flink's own "NaN" for a share of time that it did not measure is no fault.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.flink.raw_format import Kind
from include.settings import Ingest
from include.tables import AGGREGATES
from spark_jobs.raw_parsing.arrow_json import AGGREGATIONS, SHARE_LIMIT_MS, SUBTASK_AGGREGATIONS, TIME_SHARES
from spark_jobs.raw_parsing.envelopes import FAULT, JSON_OPTIONS, fault
from spark_jobs.raw_parsing.reply_schema import REPLY, VERTEX_IDS

VALUE_FAULTS = "ARRAY<STRUCT<reason: STRING, detail: STRING, raw: STRING>>"
_AS_TEXT = AGGREGATES.replace("DOUBLE", "STRING")
# What the rules look at in a reply that is an object: other fields may be of any type.
_RULED = f"name STRING, {VERTEX_IDS}, _corrupt STRING"


def parse_bodies(parsed: DataFrame, rules: Ingest) -> DataFrame:
    """Add to envelopes without fault what their bodies hold, and ``fault`` where a body as a whole cannot be used.

    Bodies that Arrow could not read, or read with a value that breaks a rule (null ``metrics`` and ``event``), are read
    here.

    New columns: ``metrics`` (AGGREGATES), ``value_faults`` (VALUE_FAULTS or null), ``metric_values`` and
    ``not_measured`` (counts), ``event`` (REPLY) and ``vertex_ids`` (of ``job`` and ``plan`` replies).
    """
    is_metrics = F.col("fault").isNull() & (F.col("kind") == Kind.VERTEX_METRICS)
    is_event = F.col("fault").isNull() & (F.col("kind") != Kind.VERTEX_METRICS)
    lenient = F.from_json("body", _RULED, JSON_OPTIONS)
    typed = (
        parsed.withColumn("typed", F.when(is_metrics, F.coalesce("metrics", F.from_json("body", AGGREGATES))))
        # Most bodies need no second look; the others are read again as text, so that what was received can be told.
        .withColumn(
            "texts", F.when(is_metrics & F.col("metrics").isNull() & _is_suspect(rules), F.from_json("body", _AS_TEXT))
        )
        .withColumn("checked", F.when(F.col("texts").isNotNull(), _checked(rules)))
        .withColumn("lenient", F.when(is_event & ~_is_list() & F.col("event").isNull(), lenient))
        .withColumn("body_fault", F.when(is_metrics, _metrics_fault()).when(is_event, _event_fault()))
    )
    has_texts = F.col("texts").isNotNull()
    as_far_as_it_fits = F.from_json("body", REPLY)
    given = F.filter("checked", lambda value: value["text"].isNotNull())
    return typed.select(
        "cluster_dir",
        "dir_hour",
        "source_file",
        # A good line is not kept beside what was read from it; its number finds it again in its file.
        F.when(F.coalesce("fault", "body_fault").isNotNull(), F.col("line")).alias("line"),
        "line_number",
        "kind",
        "job_id",
        "vertex_id",
        "observed_at",
        F.coalesce("fault", "body_fault").cast(FAULT).alias("fault"),
        F.when(is_event, F.col("body")).alias("body"),
        F.when(has_texts, _cleaned()).otherwise(F.col("typed")).alias("metrics"),
        F.when(has_texts, _value_faults()).cast(VALUE_FAULTS).alias("value_faults"),
        F.when(has_texts, F.size(given)).otherwise(F.size("typed") * len(AGGREGATIONS)).alias("metric_values"),
        F.when(has_texts, F.size(F.filter("checked", _not_measured))).otherwise(0).alias("not_measured"),
        F.when(is_event, F.coalesce("event", F.when(F.col("lenient").isNotNull(), as_far_as_it_fits))).alias("event"),
        F.when(is_event, F.coalesce(_ids("plan.nodes"), _ids("vertices"))).alias("vertex_ids"),
    )


def _metric_name(metric: Column) -> Column:
    """Return a metric's name without its operator's prefix (``Source__x.pendingRecords`` -> ``pendingRecords``)."""
    return F.substring_index(metric["id"], ".", -1)


def _is_share(metric: Column) -> Column:
    return _metric_name(metric).isin(*TIME_SHARES)


def _any(conditions: list[Column]) -> Column:
    combined = conditions[0]
    for condition in conditions[1:]:
        combined = combined | condition
    return combined


def _is_suspect(rules: Ingest) -> Column:
    """Whether any value of the typed array is missing, not a number, negative or too large."""

    def suspicious(metric: Column) -> Column:
        values = [metric[name] for name in AGGREGATIONS]
        # NaN is greater than every number in Spark's order: `between` refuses it too.
        outside = _any([F.coalesce(~value.between(0.0, rules.max_value), F.lit(True)) for value in values])
        too_busy = F.greatest(*[metric[name] for name in SUBTASK_AGGREGATIONS]) > SHARE_LIMIT_MS
        return metric["id"].isNull() | outside | (too_busy & _is_share(metric))

    return F.col("typed").isNull() | F.exists("typed", suspicious)


def _metrics_fault() -> Column:
    unreadable = F.col("typed").isNull() & F.col("texts").isNull()
    return F.when(
        unreadable & F.try_parse_json("body").isNull(),
        fault("malformed_json", "body"),
    ).when(
        unreadable | F.exists("texts", lambda metric: metric["id"].isNull()), fault("wrong_type", "body: no metrics")
    )


def _is_list() -> Column:
    # The metrics of a job come as a list; every other reply is an object.
    return F.col("kind") == Kind.JOB_METRICS


def _event_fault() -> Column:
    is_corrupt = F.col("lenient._corrupt").isNotNull()
    nodes, vertices = _ids("plan.nodes"), _ids("vertices")
    ids = F.coalesce(nodes, vertices)
    ids_unusable = F.exists(ids, lambda found: found.isNull()) | (F.size(F.array_distinct(ids)) < F.size(ids))
    malformed = fault("malformed_json", "body")
    is_nameless = F.coalesce("event.name", "lenient.name").isNull()
    lacks = F.when(F.col("kind") == Kind.JOB, is_nameless | vertices.isNull()).when(
        F.col("kind") == Kind.PLAN, nodes.isNull()
    )
    return (
        F.when(_is_list() & F.try_parse_json("body").isNotNull(), None)
        .when((_is_list() | is_corrupt) & F.try_parse_json("body").isNull(), malformed)
        .when(is_corrupt, fault("wrong_type", "body"))
        .when(lacks | (F.col("event").isNull() & F.col("lenient").isNull()), fault("missing_field", "body"))
        .when(ids_unusable, fault("wrong_type", "body: vertices without an id of their own"))
    )


def _ids(field: str) -> Column:
    return F.coalesce(f"event.{field}.id", f"lenient.{field}.id")


def _checked(rules: Ingest) -> Column:
    """Return every value of ``texts`` in order: ``id, name, text, value`` and the ``reason`` why it cannot be used."""

    def values_of(metric: Column) -> Column:
        # Spark hands a bare NaN or Infinity over in quotes of its own.
        texts = [
            F.struct(
                metric["id"].alias("id"), F.lit(name).alias("name"), F.btrim(metric[name], F.lit('"')).alias("text")
            )
            for name in AGGREGATIONS
        ]
        return F.array(*texts)

    def parsed(given: Column) -> Column:
        value = given["text"].try_cast("DOUBLE")
        return F.struct(given["id"].alias("id"), given["name"], given["text"], value.alias("value"))

    def judged(given: Column) -> Column:
        reason = _reason(given, rules).alias("reason")
        return F.struct(given["id"].alias("id"), given["name"], given["text"], given["value"], reason)

    return F.transform(F.transform(F.flatten(F.transform("texts", values_of)), parsed), judged)


def _reason(given: Column, rules: Ingest) -> Column:
    """Return why a value cannot be used; null when it can, was not given, or is a share that Flink did not measure."""
    value, is_share = given["value"], _is_share(given)
    too_busy = is_share & given["name"].isin(*SUBTASK_AGGREGATIONS) & (value > SHARE_LIMIT_MS)
    return (
        F.when(given["text"].isNull(), None)
        .when(value.isNull(), "wrong_type")
        .when(F.isnan(value), F.when(~is_share, "value_nan"))
        .when(value < 0, "value_negative")
        .when((value > rules.max_value) | too_busy, "value_huge")
    )


def _cleaned() -> Column:
    def usable(metric: Column, index: Column) -> Column:
        values = []
        for offset, name in enumerate(AGGREGATIONS):
            one = F.get("checked", index * len(AGGREGATIONS) + offset)
            keep = one["reason"].isNull() & ~F.isnan(one["value"])
            values.append(F.when(keep, one["value"]).alias(name))
        return F.struct(metric["id"].alias("id"), *values)

    return F.transform("texts", usable)


def _value_faults() -> Column:
    def located(one: Column) -> Column:
        detail = F.concat_ws(" ", "job_id", "vertex_id", F.concat_ws(".", one["id"], one["name"]))
        return F.struct(one["reason"].alias("reason"), detail.alias("detail"), one["text"].alias("raw"))

    return F.transform(F.filter("checked", lambda one: one["reason"].isNotNull()), located)


def _not_measured(one: Column) -> Column:
    return _is_share(one) & (one["name"] == "avg") & F.isnan(one["value"])
