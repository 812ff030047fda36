"""What ingestion's processor time is held against: the same files by the same reader to the tables of most rows.

Without Spark: Arrow, NumPy and delta-rs in one process. It makes bronze.metrics, bronze.job_events and
silver.observations of files that break no rule: nothing is refused, late, or there twice. It does not look for
rescales and for the windows that they disturb, and makes no small tables. Started as
``python -m benchmarks.pipeline.reference_ingest RAW TARGET SCHEMA WINDOW_S``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

from include.arrow_rows import arrow_schema
from include.flink.job_states import RUNNING
from include.flink.raw_format import Endpoint
from include.raw_lines import PIECE_BYTES, number_lines
from include.settings import Ingest
from include.tables import BRONZE_JOB_EVENTS, BRONZE_METRICS, OBSERVATIONS, Table
from models.arrays import Ints
from models.observing.metric_table import COLUMNS
from spark_jobs.job_history.sample_placement import REPLY_KEY
from spark_jobs.job_history.vertex_rows import VERTEX_KEY
from spark_jobs.job_history.vertex_windows import read_windows
from spark_jobs.raw_parsing.sample_columns import SAMPLE_COLUMNS
from spark_jobs.raw_parsing.typed_lines import ReplyLimits, read_line_columns

JOINED = ("parallelism", "disturbed", "date", "hour")
"""Columns of silver.observations that are no measure of a window."""
_US = 1_000_000
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class JobTables:
    """What the replies about jobs say of V vertices.

    Attributes:
        vertices: V rows of ``job_id, vertex_id, job, operator, is_source``, by ``job_id`` and ``vertex_id``.
        vertex: (P,) number of the vertex of each period of constant parallelism, ascending.
        since_us: (P,) when the period began, ascending for each vertex.
        parallelism: (P,)
    """

    vertices: pa.Table
    vertex: Ints
    since_us: Ints
    parallelism: Ints

    def look_up(self, vertex: Ints, at_us: Ints, *, is_at_begin: bool) -> Ints:
        """Return (n,) the parallelism in force at moments, 0 where none is known.

        Args:
            vertex: (n,) numbers.
            at_us: (n,) moments.
            is_at_begin: whether a period that begins at that moment is in force.
        """
        first_us = int(min(at_us.min(), self.since_us.min()))
        span_us = int(max(at_us.max(), self.since_us.max())) - first_us + 1
        keys = self.vertex * span_us + (self.since_us - first_us)
        asked = vertex * span_us + (at_us - first_us)
        place = np.searchsorted(keys, asked, side="right" if is_at_begin else "left") - 1
        is_known = (place >= 0) & (self.vertex[place] == vertex)
        return np.where(is_known, self.parallelism[place], 0)


def read_files(raw: Path, schema: pa.Schema) -> tuple[pa.Table, pa.Table]:
    """Return the rows of bronze.metrics and bronze.job_events, with what was read in ``sample`` and ``event``."""
    rules = Ingest()
    limits = ReplyLimits(rules.max_value, 1000 * rules.max_clock_skew_s)
    metrics, events = [], []
    for file in sorted(raw.glob("cluster=*/date=*/hour=*/*.jsonl.gz")):
        name, cluster = str(file.relative_to(raw)), file.parts[-4].removeprefix("cluster=")
        for first, lines in number_lines(name, _read_chunks(file)):
            numbers = pa.array(np.arange(first, first + len(lines)))
            columns = read_line_columns(lines, {"line_number": numbers}, (None, None), schema, limits)
            envelope = columns["envelope"]
            fields = {key: pc.struct_field(envelope, key) for key in ("kind", "job_id", "vertex_id", "body")}
            at = pc.multiply(pc.struct_field(envelope, "observed_at_ms"), 1000).cast(_TIME)
            every = {
                **fields,
                "observed_at": at,
                "cluster": pa.repeat(cluster, len(lines)),
                "source_file": pa.repeat(name, len(lines)),
                "metrics": columns["metrics"],
                "sample": columns["sample"],
                "event": columns["event"],
                "date": at.cast(pa.date32()),
                "hour": pc.hour(at).cast(pa.int32()),
            }
            rows, is_metrics = pa.table(every), pc.equal(fields["kind"], str(Endpoint.VERTEX_METRICS))
            metrics.append(rows.filter(is_metrics).select([*BRONZE_METRICS.columns, "sample"]))
            events.append(rows.filter(pc.invert(is_metrics)).select([*BRONZE_JOB_EVENTS.columns, "event"]))
    return pa.concat_tables(metrics), pa.concat_tables(events)


def _read_chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as binary:
        while chunk := binary.read(PIECE_BYTES):
            yield chunk


def read_jobs(events: pa.Table) -> JobTables:
    """Return what the replies say; every operator has a name of its own in its job."""
    of_job = events.filter(pc.equal(events["kind"], str(Endpoint.JOB)))
    polled = _explode(of_job, ("vertices",), {"vertex_id": "id", "operator": "name", "parallelism": "parallelism"})
    names = polled.group_by(["job_id", "vertex_id"]).aggregate([("job", "min"), ("operator", "min")])
    of_plan = events.filter(pc.equal(events["kind"], str(Endpoint.PLAN)))
    nodes = _explode(of_plan, ("plan", "nodes"), {"vertex_id": "id", "inputs": "inputs"})
    is_source = pc.equal(pc.fill_null(pc.list_value_length(nodes["inputs"]), 0), 0)
    planned = nodes.drop(["inputs", "job"]).append_column("is_source", is_source)
    sources = planned.group_by(["job_id", "vertex_id"]).aggregate([("is_source", "max")])
    joined = names.join(sources, ["job_id", "vertex_id"]).rename_columns(
        ["job_id", "vertex_id", "job", "operator", "is_source"]
    )
    vertices = joined.sort_by([("job_id", "ascending"), ("vertex_id", "ascending")]).combine_chunks()
    running = polled.filter(pc.equal(polled["state"], RUNNING))
    vertex, at_us = _number(running, vertices), running["observed_at"].cast(pa.int64()).to_numpy()
    order = np.lexsort((at_us, vertex))
    vertex, at_us, parallelism = vertex[order], at_us[order], running["parallelism"].to_numpy()[order]
    begins = np.ones(len(vertex), bool)
    begins[1:] = (vertex[1:] != vertex[:-1]) | (parallelism[1:] != parallelism[:-1])
    return JobTables(vertices, vertex[begins], at_us[begins], parallelism[begins].astype(np.int64))


def _explode(replies: pa.Table, path: tuple[str, ...], columns: dict[str, str]) -> pa.Table:
    """Return a row for each entry of a list within replies, with the job's id, name and state and when it was."""
    event = replies["event"].combine_chunks()
    lists = event
    for name in path:
        lists = pc.struct_field(lists, name)
    place, entries = pc.list_parent_indices(lists), lists.flatten()
    made = {name: pc.struct_field(entries, of) for name, of in columns.items()}
    made["job"] = pc.struct_field(event, "name").take(place)
    if path == ("vertices",):
        made["state"] = pc.struct_field(event, "state").take(place)
    return pa.table(made | {name: replies[name].take(place) for name in ("job_id", "observed_at")})


def _number(rows: pa.Table, vertices: pa.Table) -> Ints:
    """Return (n,) the number of each row's vertex."""
    whole = [pc.binary_join_element_wise(one["job_id"], one["vertex_id"], "") for one in (rows, vertices)]
    return np.asarray(pc.index_in(whole[0], whole[1].combine_chunks()), np.int64)


def build_observations(metrics: pa.Table, jobs: JobTables, window_s: int) -> pa.Table:
    """Return the rows of silver.observations, as if no rescale had disturbed any."""
    given = metrics.filter(pc.is_valid(metrics["sample"])).combine_chunks()
    sample = given["sample"].combine_chunks()
    fields = {name: pc.struct_field(sample, name) for name in SAMPLE_COLUMNS}
    wide = pa.table({name: given[name] for name in REPLY_KEY} | fields)
    vertex, at_us = _number(wide, jobs.vertices), wide["observed_at"].cast(pa.int64()).to_numpy()
    is_whole = ~(wide["subtasks"].to_numpy() < jobs.look_up(vertex, at_us, is_at_begin=True))
    order = np.lexsort((at_us, vertex))
    order = order[is_whole[order]]
    own = jobs.vertices.take(pa.array(vertex[order]))
    rows = {name: wide[name].take(pa.array(order)) for name in ("cluster", "observed_at", *COLUMNS)}
    rows |= {name: own[name] for name in own.column_names}
    rows["window_s"] = pa.array(np.full(len(order), window_s, np.int32))
    samples = pa.table(rows).select([*VERTEX_KEY, "observed_at", *COLUMNS]).combine_chunks()
    schema = arrow_schema(OBSERVATIONS)
    measured = pa.schema([field for field in schema if field.name not in JOINED])
    windows = pa.Table.from_batches(read_windows(samples.to_batches(), measured, {}))
    start = windows["window_start"]
    end_us = start.cast(pa.int64()).to_numpy() + window_s * _US
    parallelism = jobs.look_up(_number(windows, jobs.vertices), end_us, is_at_begin=False)
    joined = {
        "parallelism": pa.array(parallelism, pa.int32(), mask=parallelism == 0),
        "disturbed": pa.repeat(False, len(windows)),
        "date": start.cast(pa.date32()),
        "hour": pc.hour(start).cast(pa.int32()),
    }
    for name, column in joined.items():
        windows = windows.append_column(name, column)
    return windows.select(schema.names).cast(schema)


def write_table(target: str, table: Table, rows: pa.Table) -> None:
    """Write the rows of a table, without its constraints: delta-rs does not know all of their functions."""
    columns = rows.select(list(table.columns)).cast(arrow_schema(table))
    write_deltalake(f"{target}/{table.relative_path}", columns, partition_by=list(table.partition_by))


def main(raw: str, target: str, schema: str, window_s: str) -> None:
    """Read the files and write the three tables."""
    metrics, events = read_files(Path(raw), pa.ipc.read_schema(pa.py_buffer(Path(schema).read_bytes())))
    write_table(target, BRONZE_METRICS, metrics)
    write_table(target, BRONZE_JOB_EVENTS, events)
    write_table(target, OBSERVATIONS, build_observations(metrics, read_jobs(events), int(window_s)))


if __name__ == "__main__":
    main(*sys.argv[1:5])
