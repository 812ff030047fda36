"""How many steps of plans were due on each date, and how many of them went out as planned."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.report.control_log import STEP, step_outcomes
from spark_jobs.report.step_results import PLAN_REACHES

_SENT = ("confirmed", "sent", "dry_run")


def count_carried_out(plans: DataFrame, log: DataFrame, since: datetime, as_of: datetime) -> DataFrame:
    """Return ``cluster, job, date, due, as_planned``; ``date`` is that on which steps were due.

    A step counts as due when its time comes while its plan is the newest of the job; as planned when the controller has
    asked for it, in a dry run as well, and did not take it back.
    """
    dates = F.col("date").between(F.lit((since - PLAN_REACHES).date()), F.lit(as_of.date()))
    made = plans.where(dates & (F.col("as_of") < F.lit(as_of))).select("as_of", *STEP, "status", "apply_at")
    moments = made.select("cluster", "job", "as_of").distinct()
    following = F.lead("as_of").over(Window.partitionBy("cluster", "job").orderBy("as_of"))
    newest_until = F.coalesce("newest_until", F.lit(as_of))
    is_due = (
        F.col("apply_at").between(F.lit(since), F.lit(as_of))
        & (F.col("apply_at") < newest_until)
        & (F.col("status") == "planned")
    )
    due = made.join(moments.withColumn("newest_until", following), ["cluster", "job", "as_of"]).where(is_due)
    outcomes = step_outcomes(log, since.date(), as_of.date())
    is_sent = F.coalesce(F.col("final_status").isin(*_SENT), F.lit(False))
    return (
        due.join(outcomes, [*STEP], "left")
        .groupBy("cluster", "job", F.to_date("apply_at").alias("date"))
        .agg(F.count("*").alias("due"), F.sum(is_sent.cast("int")).alias("as_planned"))
    )
