"""Vertex metrics that Arrow left: read by Spark's more lenient reader and checked by the value rules.

A value that breaks a rule becomes null and is reported in ``value_faults`` with its text as received; the rest of the
row is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from include.domain.quarantine_rules import Rule
from include.flink.raw_format import Endpoint
from include.tables import AGGREGATES
from models.observing.value_rules import AGGREGATIONS
from spark_jobs.raw_parsing.envelopes import fault
from spark_jobs.raw_parsing.metric_values import check_values
from spark_jobs.raw_parsing.sample_columns import read_samples
from spark_jobs.raw_parsing.typed_lines import FAULT

VALUE_FAULTS = "ARRAY<STRUCT<reason: STRING, detail: STRING, raw: STRING>>"
_TEXTS = AGGREGATES.replace("DOUBLE", "STRING")
_CHECKED = {
    "metrics": AGGREGATES,
    "value_faults": VALUE_FAULTS,
    "metric_values": "INT",
    "not_measured": "INT",
}


def is_left() -> Column:
    """Whether a row has metrics that Arrow did not read, or read with a value that breaks a rule."""
    is_metrics = F.col("kind").eqNullSafe(F.lit(str(Endpoint.VERTEX_METRICS)))  # the row about a file has no kind
    return F.col("fault").isNull() & is_metrics & F.col("metrics").isNull()


def read_left_metrics(left: DataFrame, max_value: float) -> DataFrame:
    """Return rows of which :func:`is_left` holds, read: with ``_CHECKED`` columns, or with a ``fault``."""
    # As a type: the text of one does not quote names such as `job-type`.
    schema = StructType([StructField(field.name, field.dataType) for field in left.schema])
    read = left.withColumn("texts", F.from_json("body", _TEXTS)).withColumn("fault", _metrics_fault().cast(FAULT))
    # Spark hands a bare NaN or Infinity over in quotes of its own.
    trimmed = read.withColumn("texts", _convert("texts", lambda text: F.btrim(text, F.lit('"'))))
    typed = trimmed.withColumn("metrics", _convert("texts", lambda text: text.try_cast("DOUBLE")))
    rows = typed.withColumn("place", F.concat_ws(" ", "job_id", "vertex_id"))
    checked = rows.mapInArrow(_checker(left.columns, max_value), schema)
    return checked.withColumns(
        {"body": F.lit(None).cast("STRING"), "line": F.when(F.col("fault").isNotNull(), F.col("line"))}
    )


def _metrics_fault() -> Column:
    return F.when(
        F.col("texts").isNull() | F.exists("texts", lambda metric: metric["id"].isNull()),
        fault(Rule.WRONG_TYPE, "body: no metrics"),
    )


def _convert(metrics: str, convert: Callable[[Column], Column]) -> Column:
    """Return rows of metrics with every value converted."""
    return F.transform(
        metrics,
        lambda metric: F.struct(
            metric["id"].alias("id"), *[convert(metric[name]).alias(name) for name in AGGREGATIONS]
        ),
    )


def _checker(columns: list[str], max_value: float) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    kinds = {name: to_arrow_type(DataType.fromDDL(kind)) for name, kind in _CHECKED.items()}

    def check(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            checked = check_values(batch["metrics"], batch["texts"], batch["place"], max_value)
            made = {name: getattr(checked, name).cast(kind) for name, kind in kinds.items()}
            made["sample"] = read_samples(made["metrics"])
            yield pa.RecordBatch.from_pydict({name: made.get(name, batch.column(name)) for name in columns})

    return check
