"""Tables that were not created to the end; frames that are brought to the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.pipeline.spark_jobs import count_jobs
from include.tables import JOB_GRAPHS
from spark_jobs.lake import Lake, empty, frame_of, keep, planned_once, rows_of
from spark_jobs.one_job import collect_together

pytestmark = pytest.mark.spark

COMMIT = "00000000000000000000.json"


@pytest.mark.parametrize(
    "left",
    [[], ["_staged_commits/"], [f".{COMMIT}.0b5c.tmp", f"..{COMMIT}.0b5c.tmp.crc", "_staged_commits/"]],
    ids=["empty log", "no commit", "half a commit"],
)
def test_a_creation_that_was_killed_is_begun_again(lake: Lake, left: list[str]) -> None:
    log = Path(lake.path(JOB_GRAPHS)) / "_delta_log"
    log.mkdir(parents=True)
    for name in left:
        (log / name).mkdir() if name.endswith("/") else (log / name).write_text('{"commitInfo":')
    lake.ensure(JOB_GRAPHS)
    assert lake.read(JOB_GRAPHS).columns == list(JOB_GRAPHS.columns)
    assert (log / COMMIT).is_file()


def test_a_table_that_exists_is_left_as_it_is(lake: Lake) -> None:
    lake.ensure(JOB_GRAPHS)
    log = Path(lake.path(JOB_GRAPHS)) / "_delta_log"
    before = {path: path.stat().st_mtime_ns for path in log.rglob("*")}
    lake.ensure(JOB_GRAPHS)
    assert {path: path.stat().st_mtime_ns for path in log.rglob("*")} == before


def test_a_local_frame_has_the_rows_after_a_piece_without_any(lake: Lake) -> None:
    """As a read leaves one of a file none of whose rows it wants; Spark itself stops there."""
    pieces = [pa.array(values, pa.int64()) for values in ([1, 2], [], [3])]
    rows = pa.table({"at": pa.chunked_array(pieces)})
    assert [row.at for row in frame_of(lake.spark, rows).collect()] == [1, 2, 3]


def test_frames_are_collected_by_one_job_as_each_alone(spark: SparkSession) -> None:
    """Also nested rows, nulls, columns of one name, and a frame without rows."""
    rows = [{"name": "a", "at": None}, {"name": None, "at": 3}]
    plain = rows_of(spark, {"name": "STRING", "at": "BIGINT"}, rows)
    nested = plain.groupBy("name").agg(F.collect_list(F.struct("at", F.lit("x").alias("kind"))).alias("ones"))
    frames = {"plain": plain, "nested": nested, "none": empty(spark, {"name": "STRING", "ones": "ARRAY<INT>"})}
    begun = count_jobs(spark)
    with planned_once(spark):
        made = collect_together(frames)
    assert count_jobs(spark) - begun == 1
    for name, frame in frames.items():
        alone = frame.toArrow()
        assert made[name].cast(alone.schema).sort_by("name").to_pylist() == alone.sort_by("name").to_pylist(), name


def test_what_is_kept_is_worked_out_once_and_again_when_it_is_lost(spark: SparkSession) -> None:
    worked = spark.sparkContext.accumulator(0)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            worked.add(batch.num_rows)
            yield batch

    rows = keep(spark.range(10).mapInArrow(count, "id BIGINT"))
    assert worked.value == 0
    assert [rows.count() for _ in range(2)] == [10, 10]
    assert worked.value == 10
    java: Any = rows
    java._jdf.queryExecution().logical().rdd().unpersist(True)  # as with the executor that holds it
    assert rows.count() == 10
    assert worked.value == 20
