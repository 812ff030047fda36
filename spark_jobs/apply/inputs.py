"""What applying reads from the tables: due steps, unfinished claims, and what is known of their jobs."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include import tables
from spark_jobs.job_inputs.newest_rows import JOB, newest_graphs, newest_plans, observed_until, within_lookback
from spark_jobs.lake import Lake
from spark_jobs.timestamps import timestamp_column

STEP = [
    "step_id",
    *JOB,
    "job_id",
    "as_of",
    "apply_at",
    "valid_until",
    "parallelism_from",
    "parallelism_to",
    "expected_recovery_s",
    "forecast_version",
]
_OF_NET = {"superseded": False, "held": False, "of_net": True}
LOAD_OVER_S = 600  # one window may be as short as 15 s: the load is the mean over at least this long


def due_steps(plans: DataFrame, applied: DataFrame, looks: DataFrame, as_of: datetime) -> DataFrame:
    """Return the steps of plans that are due and were never dealt with.

    Where the reactive controller evaluates a job, the step that it released goes out, now or earlier, after which the
    cluster was not reached.  ``held`` are the step that it holds back and those of a plan that it does not know yet;
    ``superseded`` all others, as are all but the latest of a job.  A released step starts from what the evaluation saw
    running: since the plan was made, the controller may have changed it.

    Args:
        plans: gold.plans.
        applied: gold.applied_steps.
        looks: gold.looks.
        as_of: the time of applying.
    """
    latest_first = Window.partitionBy(*JOB).orderBy(F.col("apply_at").desc(), F.col("step_index").desc())
    is_due = (F.col("status") == "planned") & (F.col("apply_at") <= timestamp_column(as_of))
    due = newest_plans(plans, as_of).where(is_due).withColumn("rank", F.row_number().over(latest_first))
    earlier = looks.where(
        within_lookback(as_of) & (F.col("as_of") <= timestamp_column(as_of)) & (F.col("decision") == "due")
    )
    released = earlier.select("step_id").distinct().withColumn("released", F.lit(True))
    decided = looks_now(looks, as_of).where("seen")
    now = decided.select(*JOB, "decision", "held_step_id", "plan_as_of", F.col("parallelism_from").alias("looked_at"))
    new = due.join(applied.select("step_id"), "step_id", how="left_anti")
    told = new.join(released, "step_id", how="left").join(now, JOB, how="left")
    looked = F.col("decision").isNotNull()
    goes = ~looked | (F.coalesce("released", F.lit(False)) & (F.col("decision") != "net"))
    # An evaluation knows its plan by the second.
    unknown = F.col("plan_as_of").isNull() | (F.unix_timestamp("as_of") > F.unix_timestamp("plan_as_of"))
    waits = ~goes & (unknown | F.col("step_id").eqNullSafe(F.col("held_step_id")))
    superseded = (F.col("rank") > 1) | (~goes & ~waits)
    is_past = F.col("valid_until") <= timestamp_column(as_of)
    starts = told.withColumn("parallelism_from", F.coalesce("looked_at", "parallelism_from"))
    held = waits & ~superseded & ~is_past
    return starts.select(*STEP, superseded.alias("superseded"), held.alias("held"), F.lit(False).alias("of_net"))


def looks_now(looks: DataFrame, as_of: datetime) -> DataFrame:
    """Return what the reactive controller decided at exactly this time; none where it did not evaluate."""
    return looks.where((F.col("date") == F.lit(as_of.date())) & (F.col("as_of") == timestamp_column(as_of)))


def net_steps(looks: DataFrame, applied: DataFrame) -> DataFrame:
    """Return the controller's own steps that were never dealt with; no forecast stands behind them."""
    own = looks.where("decision = 'net'").join(applied.select("step_id"), "step_id", how="left_anti")
    return own.withColumns(
        {
            "expected_recovery_s": F.lit(None).cast("double"),
            "forecast_version": F.lit(None).cast("string"),
        }
    ).select(*STEP, *[F.lit(value).alias(name) for name, value in _OF_NET.items()])


def open_claims(plans: DataFrame, applied: DataFrame, looks: DataFrame, as_of: datetime) -> DataFrame:
    """Return claimed steps without an outcome; ``superseded`` when a newer plan has taken over.

    A claim whose plan is gone counts as expired since it was due.  The controller's own step is valid until its end.

    Args:
        plans: gold.plans.
        applied: gold.applied_steps.
        looks: gold.looks.
        as_of: the time of applying.
    """
    own = looks.where(within_lookback(as_of) & (F.col("decision") == "net"))
    in_force = newest_plans(plans, as_of).select("step_id").unionByName(own.select("step_id"))
    newest = in_force.withColumn("in_force", F.lit(True))
    no_forecast = F.lit(None).cast("string").alias("forecast_version")
    details = (
        plans.where(within_lookback(as_of))
        .select("step_id", "valid_until", "forecast_version", F.lit(False).alias("of_net"))
        .unionByName(own.select("step_id", "valid_until", no_forecast, F.lit(True).alias("of_net")))
    )
    claims = (
        applied.where(F.col("status") == "claimed")
        .join(details, "step_id", how="left")
        .join(newest, "step_id", how="left")
        .withColumn("valid_until", F.coalesce("valid_until", "apply_at"))
    )
    superseded = F.isnull("in_force").alias("superseded")
    of_net = F.coalesce("of_net", F.lit(False)).alias("of_net")
    return claims.select(*STEP, superseded, F.lit(False).alias("held"), of_net, _seconds("decided_at"))


def with_surroundings(steps: DataFrame, lake: Lake, looks: DataFrame, as_of: datetime) -> DataFrame:
    """Add to each step what the tables know of its job; times become epoch seconds.

    What an evaluation of this time saw running is newer than the last hour that was ingested.
    """
    observations = lake.read(tables.OBSERVATIONS)
    operators = F.from_json("operators", "ARRAY<STRUCT<operator: STRING, parallelism: INT>>")
    running = F.map_from_entries(F.transform(operators, lambda found: F.struct(found.operator, found.parallelism)))
    graphs = newest_graphs(lake.read(tables.JOB_GRAPHS), as_of).select(*JOB, running.alias("ingested"))
    seen = looks.where("seen").select(
        *JOB, F.col("parallelism_from").alias("looked_at"), F.col("observations_until").alias("looked_until")
    )
    around = (
        steps.join(graphs, JOB, how="left")
        .join(observed_until(observations, as_of), JOB, how="left")
        .join(seen, JOB, how="left")
        .withColumn("running", F.coalesce("looked_at", "ingested"))
        .join(current_load(observations, as_of), JOB, how="left")
        .join(last_rescales(lake.read(tables.RESCALES), lake.read(tables.APPLIED_STEPS), as_of), JOB, how="left")
    )
    banded = around.join(
        forecast_now(lake.read(tables.FORECASTS), around, as_of), [*JOB, "forecast_version"], how="left"
    )
    # Not before the forecast was read: what it says is compared with the load that was ingested last.
    banded = banded.withColumn("observed_until", F.greatest("observed_until", "looked_until"))
    times = [_seconds(name) for name in ("as_of", "apply_at", "valid_until", "observed_until", "last_rescale_at")]
    kept = [name for name in STEP if name not in {"as_of", "apply_at", "valid_until", "forecast_version"}]
    claimed = ["decided_at_s"] if "decided_at_s" in steps.columns else []
    return banded.select(
        *kept, "superseded", "of_net", *claimed, *times, "running", "load_per_s", "q50_per_s", "q90_per_s"
    )


def current_load(observations: DataFrame, as_of: datetime) -> DataFrame:
    """Return what each job's sources should emit, records/s: the mean over the last windows, summed over sources."""
    ended = observations.where(within_lookback(as_of) & F.col("is_source") & ~F.coalesce("disturbed", F.lit(False)))
    window_end_s = F.unix_timestamp("window_start") + F.col("window_s")
    known = ended.withColumn("end_s", window_end_s).where(F.col("end_s") <= F.unix_timestamp(timestamp_column(as_of)))
    newest = F.max("end_s").over(Window.partitionBy(*JOB, "operator"))
    recent = known.withColumn("newest_s", newest).where(F.col("end_s") > F.col("newest_s") - LOAD_OVER_S)
    measured = F.nanvl("target_data_rate_per_s", F.lit(None))
    per_source = recent.groupBy(*JOB, "operator").agg(F.avg(measured).alias("rate"))
    return per_source.groupBy(*JOB).agg(F.sum("rate").alias("load_per_s"))


def last_rescales(rescales: DataFrame, applied: DataFrame, as_of: datetime) -> DataFrame:
    """Return when each job last changed, as seen in its metrics or as this stage did it."""
    seen = rescales.where(within_lookback(as_of)).select(*JOB, F.coalesce("running_at", "started_at").alias("at"))
    asked = applied.where(F.col("requested_at").isNotNull())
    done = asked.select(*JOB, F.coalesce("confirmed_at", "requested_at").alias("at"))
    changes = seen.unionByName(done).where(F.col("at") <= timestamp_column(as_of))
    return changes.groupBy(*JOB).agg(F.max("at").alias("last_rescale_at"))


def forecast_now(forecasts: DataFrame, around: DataFrame, as_of: datetime) -> DataFrame:
    """Return what the forecast behind a step says for the time of the job's last metrics, all sources together.

    The bin that holds that time; metrics from before the forecast began are compared with its first bin.
    """
    wanted = around.select(*JOB, "forecast_version", "observed_until").distinct()
    bins = forecasts.where(within_lookback(as_of)).join(F.broadcast(wanted), [*JOB, "forecast_version"], how="inner")
    begun = F.col("bin_start") < F.col("observed_until")
    per_source = bins.groupBy(*JOB, "forecast_version", "operator").agg(
        *[
            F.coalesce(F.max_by(quantile, F.when(begun, F.col("bin_start"))), F.min_by(quantile, "bin_start")).alias(
                quantile
            )
            for quantile in ("q50_per_s", "q90_per_s")
        ]
    )
    return per_source.groupBy(*JOB, "forecast_version").agg(
        F.sum("q50_per_s").alias("q50_per_s"), F.sum("q90_per_s").alias("q90_per_s")
    )


def _seconds(name: str) -> Column:
    return (F.unix_micros(name) / 1e6).alias(f"{name}_s")
