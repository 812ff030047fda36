"""What every session is started with, and the one that interprets."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.interpreted import choose_settings, open_interpreted
from spark_jobs.lake import planned_once, rows_of
from spark_jobs.one_job import local_frame

pytestmark = pytest.mark.spark


def test_there_is_room_for_the_code_that_spark_generates(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    headroom_ratio = sum(pool.getUsage().getMax() for pool in pools if pool.getName().startswith("Code"))
    assert headroom_ratio >= 200 * 2**20, "a JVM that runs out of it loses tasks' results and waits for them for ever"


def count_compiled(spark: SparkSession) -> int:
    jvm: Any = spark.sparkContext._jvm
    return int(jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME().getCount())


def summarise(spark: SparkSession) -> DataFrame:
    """An aggregate of a join after a shuffle, whose code no other test has."""
    rows = [{"name": name, "at": at} for name, at in (("a", 1), ("a", None), ("b", 3), (None, 4))]
    frame = rows_of(spark, {"name": "STRING", "at": "BIGINT"}, rows)
    doubled = frame.select("name", (F.col("at") * 2 + F.length("name")).alias("twice"), F.array("at").alias("only"))
    joined = frame.join(F.broadcast(doubled), "name", "left").where("twice IS NULL OR twice > 3")
    return joined.groupBy("name").agg(F.max("twice"), F.sort_array(F.collect_list("only")), F.sum("at") / 3)


def test_a_session_for_few_rows_compiles_nothing_and_gives_the_same_rows(spark: SparkSession) -> None:
    compiling = spark.newSession()
    compiling.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")  # Spark's own, which the suite's defaults are not
    with planned_once(compiling):
        before = count_compiled(spark)
        compiled = summarise(compiling).toArrow()
        between = count_compiled(spark)
        for name, value in choose_settings(()).items():
            compiling.conf.set(name, value)
        interpreted = summarise(compiling).toArrow()
    assert between > before
    assert count_compiled(spark) == between
    assert sorted(map(str, interpreted.to_pylist())) == sorted(map(str, compiled.to_pylist()))


def test_a_session_for_few_rows_plans_as_the_other_and_a_users_options_win(spark: SparkSession) -> None:
    with planned_once(spark):
        opened = open_interpreted(spark, {"spark.sql.shuffle.partitions"})
    assert opened.conf.get("spark.sql.adaptive.enabled") == "false"
    assert opened.conf.get("spark.sql.codegen.factoryMode") == "NO_CODEGEN"
    assert opened.conf.get("spark.sql.shuffle.partitions") != "1"
    assert open_interpreted(spark, ()).conf.get("spark.sql.shuffle.partitions") == "1"


def test_a_frame_without_rows_keeps_its_columns_in_another_session(spark: SparkSession) -> None:
    """Also one whose name the text of a type does not quote, as in Flink's replies."""
    like = spark.range(1).select(F.struct(F.lit("BATCH").alias("job-type")).alias("event")).where("false")
    made = local_frame(like, like.toArrow(), open_interpreted(spark, ()))
    assert made.schema["event"].dataType == like.schema["event"].dataType
    assert made.collect() == []
