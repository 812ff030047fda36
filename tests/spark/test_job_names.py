"""Spark and Python read a pattern of names alike."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include.settings import Cluster
from spark_jobs.job_history.job_replies import name_by_pattern

pytestmark = pytest.mark.spark
PATTERNS = (
    *(r"(?P<job>.+?)-\d+\.\d+\.\d+", r"v\d+_(?P<job>.*)"),
    *(r"(?P<job>orders|rides)(?:-blue|-green)?", r"(?P<job>\w*)x"),
)
NAMES = (
    *("orders-1.4.2", "orders-1.5.0\n", "orders", "v7_rides", "v7_", "rides-blue"),
    *("ordersx", "x", "-1.2.3", "ä-1.2.3", "٣x"),
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_read_alike(spark: SparkSession, pattern: str) -> None:
    clusters = {"prod": Cluster(job_names=pattern), "other": Cluster()}
    given = spark.createDataFrame(
        [(cluster, name) for cluster in clusters for name in NAMES], "cluster STRING, name STRING"
    )
    rows = given.select("cluster", "name", name_by_pattern(F.col("name"), clusters).alias("job")).collect()
    assert [(row.cluster, row.name, row.job) for row in rows] == [
        (row.cluster, row.name, clusters[row.cluster].name_job(row.name)) for row in rows
    ]
