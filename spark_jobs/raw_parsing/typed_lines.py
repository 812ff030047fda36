"""Raw files to rows in one pass of Arrow: lines, their envelopes and what their bodies hold, as far as it can be used.

Lines and bodies that Arrow cannot read, and metrics with a value that breaks a rule, are left null: Spark's more
lenient reader and the rules of ingestion go through those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from include.flink.raw_format import Kind
from include.tables import AGGREGATES
from spark_jobs.raw_parsing.arrow_json import read_arrays, read_objects
from spark_jobs.raw_parsing.metric_values import find_usable_rows
from spark_jobs.raw_parsing.raw_lines import DamagedFileError, number_lines
from spark_jobs.raw_parsing.reply_schema import REPLY

if TYPE_CHECKING:  # a worker that reads need not load the settings
    from include.settings import Ingest

ENVELOPE = (
    "observed_at_ms BIGINT, cluster STRING, kind STRING, job_id STRING, vertex_id STRING, status INT, body STRING"
)
READ_COLUMNS = {
    "cluster_dir": "STRING",
    "dir_hour": "TIMESTAMP",
    "source_file": "STRING",
    "line": "STRING",  # null when the body was read too
    "line_number": "BIGINT",
    "damage": "STRING",  # one more row of a file that cannot be read to its end says why
    "envelope": f"STRUCT<{ENVELOPE}>",
    "metrics": AGGREGATES,  # the body of a reply with metrics
    "event": REPLY,  # the body of another reply, unless it is a list
}
_HTTP_OK = 200


def read_files(contents: DataFrame, rules: Ingest) -> DataFrame:
    """Read the lines of files as far as Arrow can; columns ``READ_COLUMNS``.

    The envelope is null where Arrow could not read it; so is what a body holds, and that of any reply but a successful
    one.  ``metrics`` are null, too, where a value breaks a rule: what stands there can be used as it is, and the
    envelope then goes without the body it came from.

    Of the lines whose envelope was read, those observed outside the time that is wanted are passed over.

    Args:
        contents: from :func:`spark_jobs.raw_parsing.raw_files.read_contents`.
        rules: the settings of ingestion.
    """
    types = [(name, to_arrow_type(DataType.fromDDL(kind))) for name, kind in READ_COLUMNS.items()]
    return contents.mapInArrow(
        _reader(pa.schema(types), rules.max_value), ", ".join(f"{name} {READ_COLUMNS[name]}" for name, _ in types)
    )


def _reader(schema: pa.Schema, max_value: float) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place, name in enumerate(batch.column("source_file").to_pylist()):
                since_ms, until_ms = (batch.column(bound)[place].as_py() for bound in ("since_ms", "until_ms"))
                content = batch.column("content")[place].as_buffer()
                for columns in _columns_of_file(name, content, (since_ms, until_ms), schema, max_value):
                    yield _batch(name, columns, schema)

    return read


def _columns_of_file(
    name: str, content: pa.Buffer, wanted: tuple[int | None, int | None], schema: pa.Schema, max_value: float
) -> Iterator[dict[str, pa.Array]]:
    try:
        for first, lines in number_lines(name, content):
            numbers = pa.array(np.arange(first, first + len(lines)))
            yield read_columns(lines, numbers, wanted, schema, max_value)
    except DamagedFileError as error:
        yield {"line": pa.array([name]), "damage": pa.array([str(error)])}


def _batch(name: str, columns: dict[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Complete columns of one file by what its name says; those not given are null."""
    cluster, date, hour = (part.partition("=")[2] for part in name.split("/")[:3])
    timestamp = datetime.fromisoformat(date).replace(hour=int(hour), tzinfo=UTC)
    of_name = {"cluster_dir": cluster, "dir_hour": timestamp, "source_file": name}
    count = len(columns["line"])
    made = []
    for field in schema:
        given = columns.get(field.name)
        made.append(pa.repeat(pa.scalar(of_name.get(field.name), field.type), count) if given is None else given)
    return pa.RecordBatch.from_arrays(made, schema=schema)


def read_columns(
    lines: pa.StringArray,
    numbers: pa.Int64Array,
    wanted: tuple[int | None, int | None],
    schema: pa.Schema,
    max_value: float,
) -> dict[str, pa.Array]:
    """Read lines with their numbers; see :func:`read_files`.

    Args:
        lines: of one file.
        numbers: their places in the file.
        wanted: bounds ``[since_ms, until_ms)`` of the observation, None for no bound.
        schema: of all columns.
        max_value: the largest value of any metric.
    """
    envelope = read_objects(lines, schema.field("envelope").type)
    if any(bound is not None for bound in wanted):
        inside = _inside(pc.struct_field(envelope, "observed_at_ms"), wanted)
        lines, numbers, envelope = (column.filter(inside) for column in (lines, numbers, envelope))
    kind, status, body = (pc.struct_field(envelope, name) for name in ("kind", "status", "body"))
    successful = pc.equal(status, _HTTP_OK)
    is_metrics = pc.equal(kind, str(Kind.VERTEX_METRICS))
    metrics = read_arrays(body, schema.field("metrics").type, pc.and_(successful, is_metrics))
    metrics = pc.if_else(find_usable_rows(metrics, max_value), metrics, pa.scalar(None, metrics.type))
    event = read_objects(body, schema.field("event").type, pc.and_not(successful, is_metrics))
    return {
        "line": _where(pc.invert(pc.or_(pc.is_valid(metrics), pc.is_valid(event))), lines),
        "line_number": numbers,
        "envelope": _with_body(envelope, _where(pc.is_null(metrics), body)),
        "metrics": metrics,
        "event": event,
    }


def _inside(observed_at_ms: pa.Int64Array, wanted: tuple[int | None, int | None]) -> pa.BooleanArray:
    """Whether a line may have been observed within the bounds; one that does not say when is kept for the rules."""
    since_ms, until_ms = wanted
    outside = pa.repeat(False, len(observed_at_ms))
    if since_ms is not None:
        outside = pc.or_(outside, pc.less(observed_at_ms, since_ms))
    if until_ms is not None:
        outside = pc.or_(outside, pc.greater_equal(observed_at_ms, until_ms))
    return pc.invert(pc.fill_null(outside, False))


def _where(condition: pa.BooleanArray, texts: pa.StringArray) -> pa.StringArray:
    """Return the texts where a condition holds, null elsewhere."""
    # Arrow's own `if_else` leaves the text of what is null in the buffer, which Spark would be sent.
    return texts.take(pc.if_else(condition, pa.array(np.arange(len(texts))), pa.scalar(None, pa.int64())))


def _with_body(envelope: pa.StructArray, body: pa.StringArray) -> pa.StructArray:
    """Return envelopes with other bodies."""
    kind = envelope.type
    columns = [body if field.name == "body" else pc.struct_field(envelope, field.name) for field in kind]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=pc.is_null(envelope))
