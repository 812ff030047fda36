"""Raw files to rows in one pass of Arrow: lines, their envelopes and what their bodies hold, as far as it can be used.

What Arrow refuses is read one by one.  Metrics with a value that breaks a rule are left null: Spark's more lenient
reader and the rules of ingestion go through those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from include.domain.reply_limits import HTTP_OK
from include.flink.raw_format import Endpoint
from include.raw_files import UNREADABLE
from include.raw_lines import DamagedFileError, number_lines
from include.tables import AGGREGATES
from models.arrays import Ints
from spark_jobs.raw_parsing.arrow_json import read_arrays, read_objects, select_texts
from spark_jobs.raw_parsing.event_rules import find_event_faults
from spark_jobs.raw_parsing.left_texts import find_body_fault, read_body, read_line
from spark_jobs.raw_parsing.metric_values import find_usable_rows
from spark_jobs.raw_parsing.raw_contents import FileChunks, FileRequest, RawContents, show_error
from spark_jobs.raw_parsing.reply_schema import REPLY
from spark_jobs.raw_parsing.sample_columns import SAMPLE, read_samples

if TYPE_CHECKING:  # a worker that reads need not load the settings
    from include.settings import Ingest

ENVELOPE = (
    "observed_at_ms BIGINT, cluster STRING, kind STRING, job_id STRING, vertex_id STRING, status INT, body STRING"
)
FAULT = "STRUCT<reason: STRING, detail: STRING>"
READ_COLUMNS = {
    "cluster_dir": "STRING",
    "dir_hour": "TIMESTAMP",
    "source_file": "STRING",
    "line": "STRING",  # null when the body was read too
    "line_number": "BIGINT",  # null in the last row of a file, which is about the file
    "raw_bytes": "BINARY",  # of a line that is no UTF-8
    "file_lines": "BIGINT",  # in the last row of a file: how many lines it has
    "line_fault": FAULT,  # in the last row of a file: why it could not be read to its end
    "body_fault": FAULT,
    "envelope": f"STRUCT<{ENVELOPE}>",
    "metrics": AGGREGATES,  # the body of a reply with metrics
    "sample": SAMPLE,  # what of them is measured; null without any
    "event": REPLY,  # the body of another reply, unless it is a list
}
_LISTED = pa.list_(pa.struct([("id", pa.string())]))
_TOGETHER_BYTES = 8 * 2**20
"""Lines of so many bytes are read at once, unless one file gives more."""
Bounds = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """What a reply may say.

    Attributes:
        max_value: the largest value of any metric.
        skew_ms: how much later than it was observed it may say that something happened.
    """

    max_value: float
    skew_ms: int


def read_files(contents: RawContents, rules: Ingest) -> DataFrame:
    """Read the lines of files as far as they can be used as they are; columns ``READ_COLUMNS``.

    The envelope is null where a line has a fault; so is what a body holds, and that of any reply but a successful
    one.  ``metrics`` are null, too, where a value breaks a rule: what stands there can be used as it is, and the
    envelope then goes without the body it came from.

    Of a file of which only some time is wanted, lines with a fault or observed outside that time are passed over.
    """
    limits = ReplyLimits(rules.max_value, 1000 * rules.max_clock_skew_s)
    return contents.read_all(partial(_read_together, schema=read_schema(), limits=limits), READ_COLUMNS)


def read_schema() -> pa.Schema:
    """Return ``READ_COLUMNS`` as Arrow has them; it takes a session, so on the driver alone."""
    return pa.schema([(name, to_arrow_type(DataType.fromDDL(kind))) for name, kind in READ_COLUMNS.items()])


@dataclass(slots=True)
class _Reading:
    """What has been read of a file: how many of its lines are rows, why no more are, and whether the rest is left."""

    file: FileRequest
    lines: int = 0
    fault: dict[str, str] | None = None
    is_left: bool = False


_Piece = tuple[_Reading, int, pa.StringArray]
"""Lines of a file, and the number of the first."""


def _read_together(files: Iterator[FileChunks], schema: pa.Schema, limits: ReplyLimits) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files; whatever is wrong with one is said in a row about it, and harms no other.

    Lines of several files are read at once: a file of nine lines would take as long as one of a thousand.
    """
    held, size, every = list[_Piece](), 0, list[_Reading]()
    for file, chunks in files:
        reading = _Reading(file)
        every.append(reading)
        if held and _bounds_of(held[0][0].file) != _bounds_of(file):
            yield from _read_pieces(held, schema, limits)
            held, size = [], 0
        try:
            for first, lines in number_lines(file.name, chunks):
                held.append((reading, first, lines))
                size += lines.nbytes
                if size >= _TOGETHER_BYTES:
                    yield from _read_pieces(held, schema, limits)
                    held, size = [], 0
                if reading.is_left:
                    break
        except DamagedFileError as error:
            reading.fault = {"reason": str(error.rule), "detail": str(error)}
        except Exception as error:  # of one file must not keep the others from being read
            reading.fault = _describe(error)
    yield from _read_pieces(held, schema, limits)
    of_files = {
        "line": [one.file.name for one in every],
        "file_lines": [one.lines for one in every],
        "line_fault": [one.fault for one in every],
    }
    made = {name: pa.array(values, schema.field(name).type) for name, values in of_files.items()}
    yield _batch(made | _place([one.file for one in every], np.arange(len(every)), schema), schema)


def _bounds_of(file: FileRequest) -> Bounds:
    return file.since_ms, file.until_ms


def _describe(error: Exception) -> dict[str, str]:
    return {"reason": str(UNREADABLE), "detail": show_error(error)}


def _read_pieces(pieces: list[_Piece], schema: pa.Schema, limits: ReplyLimits) -> Iterator[pa.RecordBatch]:
    """Yield the rows of pieces of files of which the same time is wanted; one by one where that fails together."""
    left = [piece for piece in pieces if not piece[0].is_left]
    if not left:
        return
    numbers = [np.arange(first, first + len(lines)) for _, first, lines in left]
    own = np.repeat(np.arange(len(left)), list(map(len, numbers)))
    places = _place([reading.file for reading, _, _ in left], own, schema)
    places["line_number"] = pa.array(np.concatenate(numbers))
    try:
        texts = pa.concat_arrays([lines for _, _, lines in left])
        batch = _batch(read_line_columns(texts, places, _bounds_of(left[0][0].file), schema, limits), schema)
    except Exception as error:
        if len(left) > 1:
            for piece in left:
                yield from _read_pieces([piece], schema, limits)
        else:
            left[0][0].fault, left[0][0].is_left = _describe(error), True
        return
    for reading, first, lines in left:
        reading.lines = first + len(lines) - 1
    yield batch


def _place(files: Sequence[FileRequest], own: Ints, schema: pa.Schema) -> dict[str, pa.Array]:
    """Return the columns that say from which of some files each row comes, ``own`` its number, shape (rows,)."""
    values = {
        "cluster_dir": [file.cluster for file in files],
        "dir_hour": [file.hour for file in files],
        "source_file": [file.name for file in files],
    }
    rows = pa.array(own)
    return {name: pa.array(listed, schema.field(name).type).take(rows) for name, listed in values.items()}


def _batch(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of a schema; columns that are not given are null."""
    count = len(columns["line"])
    arrays = [columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def read_line_columns(
    lines: pa.StringArray, places: Mapping[str, pa.Array], wanted: Bounds, schema: pa.Schema, limits: ReplyLimits
) -> dict[str, pa.Array]:
    """Read lines of any files; see :func:`read_files`.

    ``places`` says where each stands, ``wanted`` the bounds ``[since_ms, until_ms)`` of the observation, None for no
    bound.
    """
    columns = {**_read_envelopes(lines, schema), **places}
    if any(bound is not None for bound in wanted):
        inside = _inside(pc.struct_field(columns["envelope"], "observed_at_ms"), wanted)
        columns = {name: column.filter(inside) for name, column in columns.items()}
    envelope = columns["envelope"]
    kind, status, body = (pc.struct_field(envelope, name) for name in ("kind", "status", "body"))
    successful = pc.fill_null(pc.equal(status, HTTP_OK), False)
    is_metrics = pc.fill_null(pc.equal(kind, str(Endpoint.VERTEX_METRICS)), False)
    is_list = pc.fill_null(pc.equal(kind, str(Endpoint.JOB_METRICS)), False)
    is_retained = pc.fill_null(
        pc.equal(kind, str(Endpoint.RESCALE)), False
    )  # its fields would meet those of other kinds
    of_vertex = pc.and_(successful, is_metrics)
    of_job = pc.and_(successful, is_list)
    of_event = pc.and_not(pc.and_not(pc.and_not(successful, is_metrics), is_list), is_retained)
    metrics = read_arrays(body, schema.field("metrics").type, of_vertex)
    metrics = pc.if_else(find_usable_rows(metrics, limits.max_value), metrics, pa.scalar(None, metrics.type))
    event = read_objects(body, schema.field("event").type, of_event)
    listed = read_arrays(body, _LISTED, of_job)
    event, body_fault = _read_left_bodies(
        body,
        event,
        schema.field("body_fault").type,
        is_left_whole=pc.or_(pc.and_(of_vertex, pc.is_null(metrics)), pc.and_(successful, is_retained)),
        is_left_list=pc.and_(of_job, pc.is_null(listed)),
        is_left_event=pc.and_(of_event, pc.is_null(event)),
    )
    observed_at_ms, job_id = (pc.struct_field(envelope, name) for name in ("observed_at_ms", "job_id"))
    broken = find_event_faults(kind, job_id, observed_at_ms, event, limits.skew_ms)
    if broken:
        body_fault = _replace(body_fault, np.array([*broken]), [*broken.values()])
    was_read = pc.or_(pc.is_valid(metrics), pc.is_valid(event))
    return {
        **columns,
        "line": select_texts(pc.invert(was_read), columns["line"]),
        "envelope": _with_body(envelope, select_texts(pc.is_null(metrics), body)),
        "metrics": metrics,
        "sample": read_samples(metrics),
        "event": event,
        "body_fault": body_fault,
    }


def _read_envelopes(lines: pa.StringArray, schema: pa.Schema) -> dict[str, pa.Array]:
    """Return the columns that lines give: their text, envelope and fault."""
    envelope = read_objects(lines, schema.field("envelope").type)
    place = np.flatnonzero(np.asarray(pc.is_null(envelope)))
    if not len(place):
        return {"line": lines, "envelope": envelope}
    texts = lines.cast(pa.binary()).take(pa.array(place)).to_pylist()
    remaining = [read_line(text, envelope.type) for text in texts]
    return {
        "line": _replace(lines, place, [one.text for one in remaining]),
        "raw_bytes": _spread(place, [one.raw_bytes for one in remaining], len(lines), schema.field("raw_bytes").type),
        "line_fault": _spread(place, [one.fault for one in remaining], len(lines), schema.field("line_fault").type),
        "envelope": _replace(envelope, place, [one.envelope for one in remaining]),
    }


def _read_left_bodies(
    body: pa.StringArray,
    event: pa.StructArray,
    fault_type: pa.StructType,
    *,
    is_left_whole: pa.BooleanArray,
    is_left_list: pa.BooleanArray,
    is_left_event: pa.BooleanArray,
) -> tuple[pa.StructArray, pa.StructArray]:
    """Read the bodies that Arrow refused; returns the events with those that can be used, and the faults."""
    is_remaining = pc.and_(pc.or_(is_left_whole, pc.or_(is_left_list, is_left_event)), pc.is_valid(body))
    place = np.flatnonzero(np.asarray(is_remaining))
    if not len(place):
        return event, pa.nulls(len(body), fault_type)
    texts = body.take(pa.array(place)).to_pylist()
    read: list[tuple[Any, dict[str, str] | None]] = []
    of_event, of_list = np.asarray(is_left_event)[place], np.asarray(is_left_list)[place]
    for text, is_event, is_list in zip(texts, of_event, of_list, strict=True):
        if not text.strip():  # a rule of its own
            read.append((None, None))
        elif is_event:
            read.append(read_body(text, event.type))
        else:
            read.append((None, read_body(text, _LISTED)[1] if is_list else find_body_fault(text)))
    return (
        _replace(event, place, [result for result, _ in read]),
        _spread(place, [fault for _, fault in read], len(body), fault_type),
    )


def _replace(array: pa.Array, place: np.ndarray[Any, Any], values: list[Any]) -> pa.Array:
    """Return an array with other values in some places."""
    index = np.arange(len(array))
    index[place] = len(array) + np.arange(len(place))
    return pa.concat_arrays([array, pa.array(values, array.type)]).take(pa.array(index))


def _spread(place: np.ndarray[Any, Any], values: list[Any], length: int, kind: pa.DataType) -> pa.Array:
    """Return values in their places, null elsewhere."""
    index = np.zeros(length, np.int64)
    index[place] = np.arange(len(place))
    is_null = np.ones(length, np.bool_)
    is_null[place] = False
    return pa.array(values, kind).take(pa.array(index, mask=is_null))


def _inside(observed_at_ms: pa.Int64Array, wanted: Bounds) -> pa.BooleanArray:
    """Whether a line was observed within the bounds."""
    since_ms, until_ms = wanted
    inside = pc.is_valid(observed_at_ms)
    if since_ms is not None:
        inside = pc.and_(inside, pc.greater_equal(observed_at_ms, since_ms))
    if until_ms is not None:
        inside = pc.and_(inside, pc.less(observed_at_ms, until_ms))
    return pc.fill_null(inside, False)


def _with_body(envelope: pa.StructArray, body: pa.StringArray) -> pa.StructArray:
    """Return envelopes with other bodies."""
    kind = envelope.type
    columns = [body if field.name == "body" else pc.struct_field(envelope, field.name) for field in kind]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=pc.is_null(envelope))
