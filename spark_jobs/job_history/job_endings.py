"""Jobs that came to their end, told apart from jobs that were stopped to be deployed again.

Flink shows both alike: a job that was stopped with a savepoint is FINISHED, as is one whose bounded sources have been
read, and a job that was cancelled may have been cancelled for good.  The rule, of a run that ended FINISHED or CANCELED
and a later one of the same name under another id:

1. A batch job never goes on where another one was.
2. The later run came to run within :data:`GOES_ON_WITHIN_S` of the end; else the job had ended, and began anew.
3. After CANCELED that is enough: somebody stopped it and soon deployed it again.
4. After FINISHED the state has to go on: the later run was restored from a checkpoint or savepoint, or the former one
   ended with a savepoint.  Where no reply tells of the later run's checkpoints, the former has to have run for at least
   :data:`LONGER_THAN_THE_PAUSE` times as long as the pause: a job that ends by itself pauses about as long as it runs.

A run of which no reply shows the end (its JobManager went with it, say) was interrupted, as was one that FAILED.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.flink.job_states import BATCH, ENDED_WITHOUT_FAILURE

GOES_ON_WITHIN_S = 900.0
LONGER_THAN_THE_PAUSE = 4.0
SAVEPOINT_WITHIN_S = 60.0
"""A job that is stopped with a savepoint finishes so soon after it."""
_ID = ("cluster", "job_id")


def drop_endings(transitions: DataFrame, polls: DataFrame, checkpoints: DataFrame) -> DataFrame:
    """Return transitions without those from the end of a job to another run of its name.

    Args:
        transitions: from one run to the next, of :mod:`spark_jobs.job_history.restarts`.
        polls: of :func:`spark_jobs.job_history.job_replies.select_polls`.
        checkpoints: of :func:`spark_jobs.job_history.job_replies.select_state_moves`.
    """
    ended = (
        polls.where(F.col("state").isin(*ENDED_WITHOUT_FAILURE))
        .groupBy(*_ID)
        .agg(F.min("ended_at").alias("ended_at"), F.max_by("state", "observed_at").alias("end_state"))
    )
    batch = polls.groupBy(*_ID).agg(F.max(F.col("job_type") == BATCH).alias("is_batch"))
    of_former = batch.join(ended, list(_ID)).join(checkpoints.drop("is_restored"), list(_ID), "left")
    former = of_former.withColumnRenamed("job_id", "job_id_before")
    later = checkpoints.select(*_ID, "is_restored")
    known = transitions.join(F.broadcast(former), ["cluster", "job_id_before"], "left")
    reported = known.join(F.broadcast(later), list(_ID), "left")
    is_other = F.col("job_id") != F.col("job_id_before")
    has_ended = is_other & F.col("ended_at").isNotNull() & ~_goes_on()
    return reported.where(~F.coalesce(has_ended, F.lit(False))).select(*transitions.columns)


def _goes_on() -> Column:
    pause_s = _seconds("running_at") - _seconds("ended_at")
    before_end_s = _seconds("ended_at") - _seconds("savepoint_at")
    ended_with_savepoint = F.coalesce(F.abs(before_end_s) <= SAVEPOINT_WITHIN_S, F.lit(False))
    ran_longer = _seconds("ended_at") - _seconds("ran_since") >= LONGER_THAN_THE_PAUSE * pause_s
    keeps_state = ended_with_savepoint | F.coalesce("is_restored", ran_longer)
    is_batch = F.coalesce("is_batch", F.lit(False))
    return ~is_batch & (pause_s <= GOES_ON_WITHIN_S) & ((F.col("end_state") == "CANCELED") | keeps_state)


def _seconds(timestamp: str) -> Column:
    return F.unix_micros(timestamp) / F.lit(1e6)
