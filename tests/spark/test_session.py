"""What every session is started with."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_there_is_room_for_the_code_that_spark_generates(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    headroom_ratio = sum(pool.getUsage().getMax() for pool in pools if pool.getName().startswith("Code"))
    assert headroom_ratio >= 200 * 2**20, "a JVM that runs out of it loses tasks' results and waits for them for ever"
