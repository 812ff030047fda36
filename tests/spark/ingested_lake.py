"""A lake after one ingestion of several situations, each of which is a cluster of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from include.tables import QUALITY, QUARANTINE, Table
from spark_jobs.lake import Lake


@dataclass(frozen=True)
class IngestedLake:
    """The lake, and what the ingestion counted over all clusters."""

    lake: Lake
    summary: dict[str, object]

    def select(self, table: Table, cluster: str) -> DataFrame:
        return self.lake.read(table).where(F.col("cluster") == cluster)

    def rows(self, table: Table, cluster: str) -> list[Row]:
        return self.select(table, cluster).collect()

    def reasons(self, cluster: str) -> dict[str, int]:
        """Why lines, values and files of the cluster were refused, and how often."""
        result = self.select(QUARANTINE, cluster).groupBy("reason").agg(F.count(F.lit(1)).alias("n")).collect()
        return {row["reason"]: row["n"] for row in result}

    def quality(self, cluster: str) -> dict[str, Any]:
        (row,) = self.rows(QUALITY, cluster)
        return row.asDict()
