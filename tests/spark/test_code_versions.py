"""Each row carries the version of the code that decided on it."""

from __future__ import annotations

from pyspark.sql import SparkSession

from include.version import stage_version
from lab.stages.backtest.stage import version_column


def test_a_row_carries_the_version_of_its_own_policy(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("ds2",), ("planner",), ("best_constant",), (None,)], "policy STRING")
    result = [row[0] for row in rows.select(version_column(["ds2", "planner", "best_constant"])).collect()]
    alone = stage_version("backtest")
    assert result[:2] == [stage_version("backtest", ["ds2"]), stage_version("backtest", ["planner"])]
    assert result[2:] == [alone, alone]
