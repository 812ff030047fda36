"""What the controller did, from rows of ``ops.control_log``: the outcome of each step, and the steps of no plan."""

from __future__ import annotations

from datetime import date, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

STEP = ("cluster", "job", "step_id")
LOGGED = (
    *("date", "at", "verb", "reason", "answer", "origin", "is_dry_run", "lease_number", "entry", "history_before"),
    *("slots_from", "slots_to"),
)
"""Of ops.control_log, what is read beside the step."""
# How the step ids of requests end that take an earlier one back.
_TAKEN_BACK = "(-rollback|-withdrawn|-failed|-postponed)+$"
OF_NO_PLAN = ("reactive", "pin", "schedule")


def step_outcomes(log: DataFrame, first: date, last: date) -> DataFrame:
    """Return what became of each step that the controller decided on: one row for each of :data:`STEP`.

    ``final_status`` is confirmed, rolled_back, rolling_back, failed, sent, dry_run, refused or waiting; ``outcome``
    adds the named reason; ``decided_at`` is when its request was decided on, or the last decision without one. The
    dates are those of the oldest and the newest rows.
    """
    of_days = F.col("date").between(F.lit(first), F.lit(last)) & F.col("step_id").isNotNull()
    reported = log.where(of_days).withColumn("told", _outcome())
    order = F.struct(F.col("told.weight"), "lease_number", "entry")
    is_request = (F.col("verb") == "rescale") & F.isnull("answer") & ~F.col("is_dry_run")
    return (
        reported.groupBy("cluster", "job", F.regexp_replace("step_id", _TAKEN_BACK, "").alias("step_id"))
        .agg(
            F.max_by("told", order).alias("told"),
            F.min(F.when(is_request, F.col("at"))).alias("requested_at"),
            F.max("at").alias("last_at"),
        )
        .select(
            *STEP,
            F.concat_ws(": ", "told.status", "told.reason").alias("outcome"),
            F.col("told.status").alias("final_status"),
            F.coalesce("requested_at", "last_at").alias("decided_at"),
        )
    )


def _outcome() -> Column:
    """Return status, named reason and weight of a row: of a step's rows the heaviest counts, and of those the last."""
    verb, reason, answer, step_id = (F.col(name) for name in ("verb", "reason", "answer", "step_id"))
    had_request = F.get_json_object("history_before", "$.in_flight.step_id").isNotNull()
    was_sent = ~F.coalesce(answer.startswith("withdrawn") | answer.startswith("refused"), F.lit(False))
    is_refusal, postponed = verb.isin("refuse", "wait"), F.lit("savepoint_in_progress")

    def describe_status(status: str, weight: int, why: Column | None = None) -> Column:
        named = F.lit(None).cast("string") if why is None else why
        return F.struct(F.lit(status).alias("status"), named.alias("reason"), F.lit(weight).alias("weight"))

    return (
        F.when((verb == "confirm") & step_id.endswith("-rollback"), describe_status("rolled_back", 3))
        .when((verb == "confirm") & step_id.endswith("-withdrawn"), describe_status("failed", 3, F.lit("not_filled")))
        .when((verb == "confirm") & step_id.endswith("-failed"), describe_status("failed", 3, F.lit("job_fails")))
        .when((verb == "confirm") & step_id.endswith("-postponed"), describe_status("refused", 2, postponed))
        .when(verb == "confirm", describe_status("confirmed", 3))
        .when((verb == "roll_back") & (reason == postponed), describe_status("refused", 2, reason))
        .when(
            (verb == "roll_back") & reason.isin("not_filled", "slots_missing", "job_fails"),
            describe_status("failed", 3, reason),
        )
        .when((verb == "roll_back") & ~was_sent, describe_status("confirmed", 3))
        .when(verb == "roll_back", describe_status("rolling_back", 3))
        .when((verb == "rescale") & F.col("is_dry_run"), describe_status("dry_run", 1))
        .when(answer.startswith("withdrawn"), describe_status("refused", 2, F.lit("withdrawn_before_sending")))
        .when(answer.startswith("refused"), describe_status("refused", 2, F.lit("refused_by_flink")))
        .when(verb == "rescale", describe_status("sent", 2))
        .when(
            is_refusal & had_request & ~reason.isin("in_flight", "slots_missing"), describe_status("failed", 2, reason)
        )
        .when(verb == "refuse", describe_status("refused", 0, reason))
        .otherwise(describe_status("waiting", 0, reason))
    )


def own_steps(log: DataFrame, since: datetime, as_of: datetime) -> DataFrame:
    """Return the steps of no plan (of the controller, a pin or a schedule): in effect until the next step."""
    inside = F.col("at").between(F.lit(since), F.lit(as_of))
    own = F.col("origin").isin(*OF_NO_PLAN) & (F.col("verb") == "rescale") & F.isnull("answer")
    latest = F.max_by(F.struct("origin", "slots_from", F.col("slots_to").alias("slots")), "at").alias("latest")
    return log.where(inside & own).groupBy(*STEP).agg(latest, F.max("at").alias("at")).select(*STEP, "latest.*", "at")
