"""What ingestion is held against: a Spark application that parses the same raw files and writes them to Delta, no more.

Started with spark-submit as ``bare_ingest.py RAW TARGET``.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include.tables import AGGREGATES

_ENVELOPE = (
    "observed_at_ms BIGINT, cluster STRING, kind STRING, job_id STRING, vertex_id STRING, status INT, body STRING"
)


def main(raw: str, target: str) -> None:
    """Parse every line's envelope and its metrics, and append the rows to one table."""
    spark = SparkSession.builder.appName("bare").getOrCreate()
    lines = spark.read.text(f"{raw}/cluster=*/date=*/hour=*/*.jsonl.gz")
    records = lines.select(F.from_json("value", _ENVELOPE).alias("r")).select("r.*")
    is_metrics = F.col("kind") == "vertex_metrics"
    parsed = records.withColumn("metrics", F.when(is_metrics, F.from_json("body", AGGREGATES)))
    slim = parsed.withColumn("body", F.when(~is_metrics, F.col("body")))
    slim.write.format("delta").mode("append").save(target)


if __name__ == "__main__":
    main(*sys.argv[1:3])
