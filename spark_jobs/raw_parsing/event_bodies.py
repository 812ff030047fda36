"""The vertices that replies name."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.flink.raw_format import Kind


def vertex_ids(event: str) -> Column:
    """Return the ids that a ``job`` or ``plan`` reply names, null of another."""
    return F.when(F.col("kind") == Kind.JOB, F.col(f"{event}.vertices.id")).when(
        F.col("kind") == Kind.PLAN, F.col(f"{event}.plan.nodes.id")
    )


def are_unusable(ids: Column) -> Column:
    """Whether vertices lack ids of their own: they cannot be told apart."""
    return F.exists(ids, lambda result: result.isNull()) | (F.size(F.array_distinct(ids)) < F.size(ids))
