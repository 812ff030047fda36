"""Raw lines read with Arrow's JSON reader, several times faster than one by one; what it cannot read is left to Spark.

Arrow reads many documents at once, to a schema, and refuses all of them when one does not fit.  So
:func:`read_objects` gives null for documents that are not plainly what they should be; those go through Spark's more
lenient reader and the rules of ingestion.  A document that Arrow did read has the same values there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from include.flink.raw_format import Kind
from include.tables import AGGREGATES
from spark_jobs.raw_parsing.raw_lines import DamagedFileError, numbered_lines
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
# Refused documents are halved down to this many: one that does not fit leaves so many others to Spark's reader.
SMALLEST_PART = 64
_HTTP_OK = 200
AGGREGATIONS = ("min", "max", "avg", "sum", "skew")
SUBTASK_AGGREGATIONS = ("min", "max", "avg")  # in the metric's own unit; of a share of time they are ms per s
TIME_SHARES = ("busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond")
SHARE_LIMIT_MS = 1050.0  # ms per s of one subtask: Flink overshoots 1000 a little, more cannot be
_ARRAY = "array"


def read_raw(contents: DataFrame, rules: Ingest) -> DataFrame:
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
        for first, lines in numbered_lines(name, content):
            numbers = pa.array(np.arange(first, first + len(lines)))
            yield read_columns(lines, numbers, wanted, schema, max_value)
    except DamagedFileError as error:
        yield {"line": pa.array([name]), "damage": pa.array([str(error)])}


def _batch(name: str, columns: dict[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Complete columns of one file by what its name says; those not given are null."""
    cluster, date, hour = (part.partition("=")[2] for part in name.split("/")[:3])
    timestamp = datetime.fromisoformat(date).replace(hour=int(hour), tzinfo=UTC)
    predicted = {"cluster_dir": cluster, "dir_hour": timestamp, "source_file": name}
    count = len(columns["line"])
    made = []
    for field in schema:
        given = columns.get(field.name)
        made.append(pa.repeat(pa.scalar(predicted.get(field.name), field.type), count) if given is None else given)
    return pa.RecordBatch.from_arrays(made, schema=schema)


def read_columns(
    lines: pa.StringArray,
    numbers: pa.Int64Array,
    wanted: tuple[int | None, int | None],
    schema: pa.Schema,
    max_value: float,
) -> dict[str, pa.Array]:
    """Read lines with their numbers; see :func:`read_raw`.

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
    metrics = pc.if_else(keeps_rules(metrics, max_value), metrics, pa.scalar(None, metrics.type))
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


def read_objects(texts: pa.StringArray, kind: pa.StructType, wanted: pa.BooleanArray | None = None) -> pa.StructArray:
    """Return each text as an object with the fields of ``kind``; null where it is not one, or not in plain JSON.

    A field that is missing is null; one that ``kind`` does not name is passed over. So are texts that are not wanted.
    """
    plain = pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))

    def read(some: pa.StringArray) -> pa.StructArray:
        table = _documents(some, "", "", pa.schema(list(kind)))
        return pa.StructArray.from_arrays([table[field.name].combine_chunks() for field in kind], fields=list(kind))

    return _spread(texts, plain, wanted, kind, read)


def read_arrays(texts: pa.StringArray, kind: pa.ListType, wanted: pa.BooleanArray | None = None) -> pa.ListArray:
    """Return each text as an array of ``kind``; null where it is not one, or not in plain JSON, or not wanted."""
    bracketed = pc.and_(pc.starts_with(texts, "["), pc.ends_with(texts, "]"))
    # Arrow takes these words for numbers, Spark only some of them.
    has_words = _hold_any(texts, "NaN", "Inf")

    def read(some: pa.StringArray) -> pa.ListArray:
        table = _documents(some, f'{{"{_ARRAY}":', "}", pa.schema([(_ARRAY, kind)]))
        return table[_ARRAY].combine_chunks()

    return _spread(texts, pc.and_not(bracketed, has_words), wanted, kind, read)


def _hold_any(texts: pa.StringArray, *words: str) -> pa.BooleanArray:
    """Whether each text holds any of the words; found out with fast searches when none does, as is the rule."""
    buffer = texts.buffers()[2]
    content = b"" if buffer is None else buffer.to_pybytes()
    found = pa.repeat(False, len(texts))
    for word in words:
        if word.encode() in content:
            found = pc.or_(found, pc.match_substring(texts, word))
    return found


def keeps_rules(metrics: pa.ListArray, max_value: float) -> pa.BooleanArray:
    """Whether every metric of a row has its name and every aggregation, none negative or larger than it can be.

    Args:
        metrics: rows of ``AGGREGATES``; a null row keeps no rule.
        max_value: the largest value of any metric.
    """
    flat = metrics.flatten()
    fields = dict(zip([field.name for field in flat.type], flat.flatten(), strict=True))  # null in an element that is
    names = fields["id"].dictionary_encode()
    is_share = [name.rpartition(".")[2] in TIME_SHARES for name in names.dictionary.to_pylist()]
    limits = pa.array([min(SHARE_LIMIT_MS, max_value) if share else max_value for share in is_share], pa.float64())
    limit = _numbers(limits.take(names.indices))  # NaN without a name: no value is below it
    kept = np.ones(len(flat), dtype=bool)
    for aggregation in AGGREGATIONS:
        value = _numbers(fields[aggregation])  # NaN where it is missing
        kept &= (value >= 0.0) & (value <= (limit if aggregation in SUBTASK_AGGREGATIONS else max_value))
    kept &= ~np.isnan(limit)
    broken = np.concatenate(([0], np.cumsum(~kept)))
    ends = np.concatenate(([0], np.cumsum(pc.fill_null(pc.list_value_length(metrics), 0).to_numpy())))
    return pc.and_(pa.array(broken[ends[1:]] == broken[ends[:-1]]), pc.is_valid(metrics))


def _numbers(values: pa.DoubleArray) -> npt.NDArray[np.float64]:
    """Return values with NaN for null."""
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def _spread(
    texts: pa.StringArray,
    plain: pa.BooleanArray,
    wanted: pa.BooleanArray | None,
    kind: pa.DataType,
    read: Callable[[pa.StringArray], pa.Array],
) -> pa.Array:
    """Return what was read of the plain texts that are wanted (all when None), each in its place, null elsewhere."""
    chosen = plain if wanted is None else pc.and_(wanted, plain)
    some = texts if pc.all(chosen, min_count=0, skip_nulls=False).as_py() else texts.filter(chosen)
    found = pa.concat_arrays([pa.array([], kind), *_parts(some, kind, read)])
    if len(found) == len(texts):
        return found
    # The place among the chosen: one less than how many were chosen up to here.
    place = pc.subtract(pc.cumulative_sum(pc.fill_null(chosen, False).cast(pa.int64())), 1)
    return found.take(pc.if_else(chosen, place, pa.scalar(None, pa.int64())))


def _parts(texts: pa.StringArray, kind: pa.DataType, read: Callable[[pa.StringArray], pa.Array]) -> Iterator[pa.Array]:
    """Yield what was read, part by part; where Arrow refuses a text, the few around it are null, for Spark's reader."""
    if not len(texts):
        return
    try:
        yield read(texts)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if len(texts) <= SMALLEST_PART:
            yield pa.nulls(len(texts), kind)
            return
        half = len(texts) // 2
        yield from _parts(texts[:half], kind, read)
        yield from _parts(texts[half:], kind, read)


def _documents(texts: pa.StringArray, before: str, after: str, schema: pa.Schema) -> pa.Table:
    """Read every text between ``before`` and ``after`` as one document.

    The texts start and end with a bracket, and no JSON string holds a bare newline: so every newline put between them
    lies between two documents, each text holds at least one, and equal counts mean one in each.

    Raises:
        pa.ArrowInvalid: a text is not JSON, does not fit the schema, or holds more than one document.
    """
    texts.validate(full=True)  # Arrow's reader would pass on what is no UTF-8
    joined = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), f"{after}\n{before}")[0].as_buffer()
    content = b"".join((before.encode(), joined, after.encode())) if before or after else joined
    table = pj.read_json(
        pa.BufferReader(content),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(content)),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(texts):
        raise pa.ArrowInvalid("more than one document in a text")
    return table
