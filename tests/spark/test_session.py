"""What every session is started with, and local frames."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.one_job import local_frame

pytestmark = pytest.mark.spark


def test_there_is_room_for_the_code_that_spark_generates(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    headroom_ratio = sum(pool.getUsage().getMax() for pool in pools if pool.getName().startswith("Code"))
    assert headroom_ratio >= 200 * 2**20, "a JVM that runs out of it loses tasks' results and waits for them for ever"


def test_a_frame_without_rows_keeps_its_columns(spark: SparkSession) -> None:
    """Also one whose name the text of a type does not quote, as in Flink's replies."""
    like = spark.range(1).select(F.struct(F.lit("BATCH").alias("job-type")).alias("event")).where("false")
    made = local_frame(like, like.toArrow())
    assert made.schema["event"].dataType == like.schema["event"].dataType
    assert made.collect() == []
