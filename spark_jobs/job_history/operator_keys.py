"""silver.operator_keys: the operators of each job whenever they changed, so that its history outlives their names."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from include.tables import OPERATOR_KEYS

_JOB_HOUR = ("cluster", "job", "job_id", "date", "hour")


def build_operator_keys(graphs: DataFrame) -> DataFrame:
    """Return the graphs of the first hour of each day, and those that are other than the graph before.

    The graph before is of the same hour (another id of a job that was submitted again) or of the hour before it.  So
    what a row says depends on two hours alone, and every day can be read for itself.

    Args:
        graphs: of :func:`spark_jobs.job_history.job_graphs.build_graphs`, of the hours to write and the one before.
    """
    operator = F.struct("operator", "vertex_id", "position", "upstream")
    hourly = graphs.groupBy(*_JOB_HOUR).agg(
        F.sort_array(F.collect_list(operator)).alias("operators"), F.max("observed_at").alias("observed_at")
    )
    by_job = Window.partitionBy("cluster", "job").orderBy("date", "hour", "observed_at", "job_id")
    hour_s = F.unix_timestamp(F.to_timestamp("date")) + F.col("hour") * 3600
    dated = hourly.withColumn("hour_s", hour_s)
    before = dated.withColumns({f"{name}_before": F.lag(name).over(by_job) for name in ("operators", "hour_s")})
    apart_s = F.col("hour_s") - F.col("hour_s_before")
    is_same = (F.col("operators_before") == F.col("operators")) & (apart_s <= 3600)
    is_first_of_day = (F.col("hour") == 0) & F.coalesce(apart_s > 0, F.lit(True))
    shown = before.where(is_first_of_day | ~F.coalesce(is_same, F.lit(False)))
    return (
        shown.withColumn("one", F.explode("operators"))
        .select(
            "cluster",
            "job",
            "one.operator",
            "one.vertex_id",
            "one.position",
            "one.upstream",
            "observed_at",
            "date",
            "hour",
        )
        .select(*OPERATOR_KEYS.columns)
    )
