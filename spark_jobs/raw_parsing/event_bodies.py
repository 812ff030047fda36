"""Bodies of replies about jobs: which of them are read, and the vertices that they name."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.flink.raw_format import Endpoint


def select_bodies(events: DataFrame, kind: Endpoint) -> DataFrame:
    """Return the replies of a kind that have a body.

    Not by a condition on ``kind``: Spark looks at conditions on what is read of a body first, and would read all there
    are for them (7 s of processor time for three weeks of 18 jobs without one reply of the kind).
    """
    own = F.when(F.col("kind") == kind, F.col("body"))
    return events.withColumn("body", own).where("body IS NOT NULL")


def vertex_ids(event: str) -> Column:
    """Return the ids that a ``job`` or ``plan`` reply names, null of another."""
    return F.when(F.col("kind") == Endpoint.JOB, F.col(f"{event}.vertices.id")).when(
        F.col("kind") == Endpoint.PLAN, F.col(f"{event}.plan.nodes.id")
    )


def are_unusable(ids: Column) -> Column:
    """Whether vertices lack ids of their own: they cannot be told apart."""
    return F.exists(ids, lambda result: result.isNull()) | (F.size(F.array_distinct(ids)) < F.size(ids))
