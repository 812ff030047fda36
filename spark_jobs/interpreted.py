"""A session for few rows, whose queries Spark interprets instead of writing, compiling and loading code for each.

What is made of the replies about a hundred jobs is a few thousand rows through a hundred expressions: to compile their
code takes longer than to evaluate them. Where rows are many, code pays: an ingestion of 100 jobs interpreted as a whole
costs its tasks more than is saved. Figures are in docs/performance.md.
"""

from __future__ import annotations

from collections.abc import Container

from pyspark.sql import SparkSession

_ADAPTIVE = "spark.sql.adaptive.enabled"
_FEW_ROWS = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Nor do few rows repay filters that are worked out from others, or a second task.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


def choose_settings(submitted: Container[str]) -> dict[str, str]:
    """Return the settings of a session for few rows, without those that the user's options name.

    >>> choose_settings({"spark.sql.codegen.factoryMode", "spark.sql.shuffle.partitions"})
    {'spark.sql.constraintPropagation.enabled': 'false'}
    """
    return {name: value for name, value in _FEW_ROWS.items() if name not in submitted}


def open_interpreted(spark: SparkSession, options: Container[str]) -> SparkSession:
    """Return another session of the same application, in which no code is compiled and few rows stay in one partition.

    Frames of both may be joined: the query runs in the session of the left one.

    Args:
        spark: the session; inside :func:`spark_jobs.lake.planned_once` queries of the other one are planned once, too.
        options: of Spark that the user has set, which win.
    """
    result = spark.newSession()
    settings = choose_settings(options) | {_ADAPTIVE: spark.conf.get(_ADAPTIVE) or "true"}
    for name, value in settings.items():
        result.conf.set(name, value)
    return result
