"""silver.job_windows: the windows of a job and day in one value, for trainings.

A training reads each window of its look-back.  As rows they are read, hashed, sorted by job and handed to Python one by
one, every night again, though all but a day's are those of the night before.  Here they are brought together once, when
their day is over: a training then moves a value for each job and day, in which nothing is lost, so that its models are
the same to the last bit.

It is a copy of silver.observations by day: a day says from which files it was made, and is made anew where those are
others by now, after late rows or a backfill.  So it may be out of date, or not there at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import JOB_WINDOWS, OBSERVATIONS
from spark_jobs.arrow_schema import arrow_schema
from spark_jobs.lake import Lake, rows_of
from spark_jobs.row_conditions import is_demand
from spark_jobs.source_inputs.copied_slices import find_stale

JOB = ("cluster", "job")
OPERATOR = (*JOB, "operator")
_RULE = 2
"""Counted up when the same windows make other values: then every day is made anew."""
_DAYS_AT_ONCE = 7
"""So many days are sorted at once, and committed: a training that is killed goes on there."""
_PACKED = (*JOB, "date", "rows", "operators", "first_at", "last_s", "hash_sum", "windows")
_DDL = ", ".join(f"{name} {JOB_WINDOWS.columns[name]}" for name in _PACKED)
_OF_ALL = (*JOB, "start_s")  # of a row, but not of its value: known of it, or worked out


def select_windows(observations: DataFrame) -> DataFrame:
    """Return what a training reads of undisturbed windows, with their ``date``: one row per operator and window."""
    undisturbed = ~F.coalesce(F.col("disturbed"), F.lit(False))
    return observations.where(undisturbed & F.col("parallelism").isNotNull()).select(
        *OPERATOR,
        "parallelism",
        "window_start",
        F.unix_timestamp("window_start").alias("start_s"),
        "window_s",
        "is_source",
        F.col("observed_processing_rate_per_s").alias("rate_per_s"),
        F.col("observed_output_rate_per_s").alias("output_per_s"),
        F.col("true_processing_rate_per_s").alias("true_rate_per_s"),
        "busy_share",
        "busy_share_max",
        "backpressured_share",
        (1000.0 * F.col("age_s")).alias("latency_ms"),
        is_demand().alias("is_demand"),
        "date",
    )


def pack_windows(rows: DataFrame) -> DataFrame:
    """Return a row per job and date of rows of :func:`select_windows`.

    Columns ``cluster, job, date, rows, operators, first_at, last_s, hash_sum, windows`` of silver.job_windows.
    """
    names = [name for name in rows.columns if name != "date"]
    schema = arrow_schema(_DDL)
    hashed = rows.withColumn("hash", F.xxhash64(*names))

    def pack(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        ordered = table.sort_by([("operator", "ascending"), ("window_start", "ascending")])
        own = {
            **dict(zip((*JOB, "date"), ([part.as_py()] for part in key), strict=True)),
            "rows": [len(ordered)],
            "operators": [ordered["operator"].unique().to_pylist()],
            "first_at": [pc.min(ordered["window_start"]).as_py()],
            "last_s": [pc.max(ordered["start_s"]).as_py()],
            "hash_sum": [pc.sum(ordered["hash"].cast(pa.decimal128(38))).as_py()],
            "windows": [pack_rows(ordered.select([name for name in names if name not in _OF_ALL]))],
        }
        return pa.table([pa.array(own[field.name], field.type) for field in schema], schema=schema)

    return hashed.groupBy(*JOB, "date").applyInArrow(pack, _DDL)


def unpack_windows(values: Iterable[bytes]) -> pa.Table:
    """Return the windows of one job from its values ``windows``: columns of :func:`select_windows` but its names."""
    whole = pa.concat_tables([_from_bytes(one) for one in values]).combine_chunks()
    start_s = pc.divide(whole["window_start"].cast(pa.int64()), 1_000_000)
    return whole.append_column("start_s", start_s)


def pack_rows(table: pa.Table) -> bytes:
    """Return windows as one value, for :func:`unpack_windows`."""
    encoded = table.set_column(
        table.schema.get_field_index("operator"), "operator", table["operator"].combine_chunks().dictionary_encode()
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, encoded.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(encoded.combine_chunks())
    return bytes(sink.getvalue())


def _from_bytes(value: bytes) -> pa.Table:
    table = pa.ipc.open_stream(value).read_all()
    place = table.schema.get_field_index("operator")
    return table.set_column(place, "operator", table["operator"].cast(pa.string()))


def read_days(lake: Lake, since: date, until: date) -> DataFrame:
    """Return the rows of :func:`pack_windows` of closed days, after bringing those up to date."""
    update_days(lake, since, until)
    stored = lake.read(JOB_WINDOWS).where(F.col("job").isNotNull() & F.col("date").between(since, until))
    return stored.select(*_PACKED)


def update_days(lake: Lake, since: date, until: date) -> int:
    """Make the days anew whose values were not made from the windows that are there now; returns how many."""
    version = lake.version(OBSERVATIONS)
    files = {} if version is None else lake.few(OBSERVATIONS, version).read_files()
    by_day = {(day,): own for day, own in files.items()}
    made_from, stale = find_stale(lake.few(JOB_WINDOWS), by_day, since, until, _RULE)
    wanted, days = {day: own for (day,), own in made_from.items()}, [day for (day,) in stale]
    for first in range(0, len(days), _DAYS_AT_ONCE):
        _make_days(lake, days[first : first + _DAYS_AT_ONCE], wanted, version)
    return len(days)


def _make_days(lake: Lake, days: Sequence[date], wanted: Mapping[date, str], version: int | None) -> None:
    own = {day: wanted[day] for day in days if day in wanted}
    windows = lake.read(OBSERVATIONS, version).where(F.col("date").isin(*days))
    # A row without a job tells that a day was looked at, also one without any window that could be learnt from.
    looked_at = [{"date": day, "rows": 0, "made_from": made_from} for day, made_from in own.items()]
    marks = rows_of(lake.spark, JOB_WINDOWS.columns, looked_at)
    hashes = F.broadcast(marks.select("date", "made_from"))
    packed = pack_windows(select_windows(windows)).join(hashes, "date").select(*JOB_WINDOWS.columns)
    listed = ", ".join(f"DATE'{day}'" for day in days)
    lake.replace(JOB_WINDOWS, marks.unionByName(packed), f"date IN ({listed})")
