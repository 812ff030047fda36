"""The rule of ``models/capacity/busy_windows.py`` in Spark: the windows in which an operator shows its capacity."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from models.capacity.busy_windows import BUSY_ENOUGH, HELD_S, OF_BUSIEST, TRUSTED


def with_busiest(windows: DataFrame, point: Sequence[str]) -> DataFrame:
    """Keep the windows that tell the capacity of their parallelism, with ``busiest``, the highest busy share there.

    Args:
        windows: with the columns of ``point``, ``window_start``, ``busy_share`` above 0 and ``capacity_per_s``.
        point: columns of an (operator, parallelism).
    """
    of_point = Window.partitionBy(*point)
    start_s, rate = F.unix_timestamp("window_start"), F.col("busy_share") * F.col("capacity_per_s")
    last_s = F.max("start_s").over(of_point)
    usual = F.avg(F.when(F.col("late"), F.col("rate"))).over(of_point)
    counts = F.col("late") & (F.col("rate") >= F.lit(OF_BUSIEST) * F.col("usual"))
    busiest = F.max(F.when(counts, F.col("busy_share"))).over(of_point)
    marked = (
        windows.withColumns({"start_s": start_s, "rate": rate})
        .withColumn("late", F.col("start_s") >= last_s - F.lit(HELD_S))
        .withColumn("usual", usual)
        .withColumn("busiest", busiest)
    )
    least = F.least(F.lit(BUSY_ENOUGH), F.lit(OF_BUSIEST) * F.col("busiest"))
    return marked.where(F.col("busy_share") >= least).drop("start_s", "rate", "late", "usual")


def with_trusted(windows: DataFrame, operator: Sequence[str]) -> DataFrame:
    """Keep the windows of :func:`with_busiest` in which the operator was about as busy as it ever shows its capacity.

    A parallelism that was used less than another one tells of its load more than of its capacity: no model is judged
    on it.  Of an operator that is lightly used everywhere nothing better is known.
    """
    most = F.max("busiest").over(Window.partitionBy(*operator))
    least = F.least(F.lit(TRUSTED), F.lit(OF_BUSIEST) * F.col("most"))
    return windows.withColumn("most", most).where(F.col("busy_share") >= least).drop("most")
