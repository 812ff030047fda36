"""What was measured in the hour before the hours of a run, as far as their rows depend on it.

Windows need the last measurements of each vertex, what follows a stop all of its job.  delta-rs reads and Arrow chooses
them in the driver: of 1,000 jobs that takes 1.5 s of processor time, where Spark brought all to Python in 16 s, and
their windows were made beside the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from include.settings import Cluster
from include.tables import BRONZE_METRICS
from include.utc import Interval
from models.arrays import Ints
from models.observing.ages import LOOKBACK_WINDOWS
from spark_jobs.arrow_schema import arrow_schema
from spark_jobs.ingest.hours import LOOKBACK, hours_where
from spark_jobs.job_history.sample_placement import REPLY_KEY
from spark_jobs.lake import Lake, empty, frame_of
from spark_jobs.raw_parsing.sample_columns import SAMPLE, read_samples

_COLUMNS = {**REPLY_KEY, "sample": SAMPLE}
_DDL = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
_VERTEX = ("cluster", "job_id", "vertex_id")
_ROWS_AT_ONCE = 500_000


def read_samples_before(
    lake: Lake, start: datetime, clusters: Mapping[str, Cluster], job_ids: Collection[str]
) -> DataFrame:
    """Return what was measured in the hour before, as far as the rows of an hour depend on it.

    Columns are those of :func:`spark_jobs.job_history.sample_placement.read_metrics`; of some jobs all rows are wanted.
    """
    hour, schema = Interval(start - LOOKBACK, start), arrow_schema(_DDL)
    parts = lake.few(BRONZE_METRICS).read_parts(
        [*REPLY_KEY, "metrics"], hour.start.date(), hour.end.date(), hours_where(hour)
    )
    chosen, size = [schema.empty_table()], 0
    for part in parts:  # what was chosen so far is chosen from again: the driver holds little of an hour
        chosen.append(_read_part(part, schema))
        size += len(part)
        if size >= _ROWS_AT_ONCE:
            chosen, size = [select_last(pa.concat_tables(chosen), start, clusters, job_ids)], 0
    rows = select_last(pa.concat_tables(chosen), start, clusters, job_ids)
    if not len(rows):
        return empty(lake.spark, _COLUMNS)
    return frame_of(lake.spark, rows, cast("StructType", StructType.fromDDL(_DDL)))


def _read_part(part: pa.Table, schema: pa.Schema) -> pa.Table:
    metrics = part.column("metrics").combine_chunks()
    sample = read_samples(metrics).cast(schema.field("sample").type)
    return pa.table([*(part.column(name) for name in REPLY_KEY), sample], schema=schema)


def select_last(rows: pa.Table, end: datetime, clusters: Mapping[str, Cluster], job_ids: Collection[str]) -> pa.Table:
    """Return the rows of some jobs, and of the others those that a difference over the end of their hour may need.

    Differences and ages go back over no more than some windows: all rows of these, and
    the newest before, which tells whether the first of them is one.  That one for each number of subtasks: rows of
    fewer subtasks than ran are left out later on.
    """
    at_us = np.asarray(pc.cast(rows["observed_at"], pa.int64()))
    is_late = at_us >= int(end.timestamp()) * 1_000_000 - _reach_us(rows["cluster"], clusters)
    is_wanted = is_late | np.asarray(pc.is_in(rows["job_id"], pa.array(sorted(job_ids), pa.string())))
    subtasks = pc.struct_field(rows["sample"].combine_chunks(), "subtasks")
    earlier = pa.table(
        {
            **{name: rows[name] for name in _VERTEX},
            "subtasks": pc.fill_null(subtasks, -1.0),
            "at_us": at_us,
            "row": np.arange(len(rows)),
        }
    ).filter(pa.array(~is_wanted & np.asarray(pc.is_valid(rows["sample"]))))
    newest = earlier.sort_by("at_us").group_by([*_VERTEX, "subtasks"], use_threads=False).aggregate([("row", "last")])
    is_wanted[np.asarray(newest["row_last"])] = True
    return rows.filter(pa.array(is_wanted))


def _reach_us(cluster: pa.ChunkedArray, clusters: Mapping[str, Cluster]) -> Ints:
    """Return (n,) over how long the rows of an hour look back."""
    names = cluster.combine_chunks().dictionary_encode()
    of_name = [clusters.get(name, Cluster()).window_s for name in names.dictionary.to_pylist()]
    return np.asarray(LOOKBACK_WINDOWS * 1_000_000 * np.array([*of_name, 0], np.int64)[np.asarray(names.indices)])
