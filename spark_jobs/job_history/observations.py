"""silver.observations: one row per job, operator and window, with observed and true rates.

The true rates are those of the whole operator: Eq. 1 of ContTune, PA(p) = observed rate / useful share of time.

Deviation: Eq. 5 and 6 of DS2 sum the true rate of every instance; Flink's aggregated replies give the sum of the rates
and the mean busy share, so that the sum is taken before the division. Without skew the two are equal.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.tables import OBSERVATIONS
from models.observing.metric_table import GAUGES
from models.observing.windows import BACKPRESSURED_ABOVE
from spark_jobs.job_history.samples import VERTEX_KEY, spread_over_hours
from spark_jobs.job_history.source_rates import SourceCounts, choose_capacity, choose_taken, stands_still
from spark_jobs.lake import date_hour_columns

_WINDOW_KEY = (*VERTEX_KEY, "window_start")  # in the order of samples
_SUPERSEDED_KEY = ("cluster", "job", "operator", "job_id", "vertex_id", "window_start")
RECORDS = ("in_total", "out_total", "source_in_total", "source_out_total")
_SHARES = {"busy": "busy_share", "idle": "idle_share", "backpressured": "backpressured_share"}


def build_observations(samples: DataFrame, changes: DataFrame, disturbed_windows: DataFrame) -> DataFrame:
    """Return the rows of silver.observations.

    Args:
        samples: from :func:`spark_jobs.job_history.samples.build_samples`.
        changes: from :func:`spark_jobs.job_history.job_replies.find_parallelism_periods`.
        disturbed_windows: ``cluster, job_id, window_start`` of the windows that a rescale or restart touches.
    """
    windows = _windows(samples)
    with_parallelism = _with_parallelism(windows, changes)
    disturbed = F.broadcast(disturbed_windows.withColumn("disturbed", F.lit(True)))
    marked = with_parallelism.join(disturbed, ["cluster", "job_id", "window_start"], "left")
    unique = marked.join(F.broadcast(_find_superseded(samples)), list(_SUPERSEDED_KEY), "left_anti")
    flagged = unique.withColumn("disturbed", F.coalesce("disturbed", F.lit(False)))
    rated = flagged.withColumns(_observe_rates()).withColumns(_find_taken()).withColumns(_derive_rates())
    return rated.select("*", *date_hour_columns("window_start")).select(*OBSERVATIONS.columns)


def _ratio(total: Column, duration: Column) -> Column:
    return F.when(duration > 0, total / duration)


def _windows(samples: DataFrame) -> DataFrame:
    """Sum the differences that end in each window: with several polls they telescope to last minus first."""
    sums = []
    for difference in (*(f"d_{counter}" for counter in RECORDS), "d_pending"):
        sums += [F.sum(difference).alias(difference), _elapsed(difference).alias(f"{difference}_dt_s")]
    for share in ("d_busy_total_ms", "d_busy_max_total_ms", "d_idle_total_ms", "d_backpressured_total_ms"):
        sums += [F.sum(share).alias(share), _elapsed(share).alias(f"{share}_dt_s")]
    return samples.groupBy(*_WINDOW_KEY).agg(
        F.count(F.lit(1)).cast("INT").alias("samples"),
        F.max_by("pending", F.when(F.col("pending").isNotNull(), F.col("observed_at"))).alias("pending"),
        F.max("in_total").alias("in_total"),
        *[F.mean(gauge).alias(gauge) for gauge in GAUGES],
        *sums,
    )


def _find_superseded(samples: DataFrame) -> DataFrame:
    """Return the windows of former ids: a window of a job submitted again has samples under two, the later stands.

    Looked for among resubmitted jobs alone: they are few, and all windows would have to be sorted.
    """
    lasts = samples.where("is_resubmitted").groupBy(*_SUPERSEDED_KEY).agg(F.max("observed_at").alias("last_at"))
    latest = Window.partitionBy("cluster", "job", "operator", "window_start").orderBy(
        F.desc("last_at"), "job_id", "vertex_id"
    )
    return lasts.withColumn("rank", F.row_number().over(latest)).where("rank > 1").drop("rank", "last_at")


def _elapsed(difference: str) -> Column:
    return F.sum(F.when(F.col(difference).isNotNull(), F.col("dt_s")))


def _with_parallelism(windows: DataFrame, changes: DataFrame) -> DataFrame:
    """Add the parallelism in force at the end of each window (of the last period that began before it)."""
    periods = F.broadcast(spread_over_hours(changes, "window_hour"))
    ended = windows.withColumns(
        {
            "window_end": F.timestamp_seconds(F.unix_seconds("window_start") + F.col("window_s")),
            "window_hour": F.date_trunc("hour", "window_start"),
        }
    )
    keys = ("cluster", "job_id", "vertex_id", "window_hour")
    same_hour = [F.col(f"w.{key}") == F.col(f"p.{key}") for key in keys]
    in_force = (F.col("valid_from") < F.col("window_end")) & (F.col("valid_to") >= F.col("window_end"))
    joined = ended.alias("w").join(periods.alias("p"), [*same_hour, in_force], "left")
    return joined.select("w.*", "p.parallelism")


def _observe_rates() -> dict[str, Column]:
    """Return rates and shares as observed: differences of counters, else Flink's gauges (means of the last minute)."""
    rates = {
        f"{side}_per_s": F.coalesce(
            _ratio(F.col(f"d_{side}_total"), F.col(f"d_{side}_total_dt_s")), f"{side}_gauge_per_s"
        )
        for side in ("in", "out")
    }
    operators = {
        f"source_{side}_per_s": _ratio(F.col(f"d_source_{side}_total"), F.col(f"d_source_{side}_total_dt_s"))
        for side in ("in", "out")
    }
    shares = {column: _share(f"{name}_total_ms", f"{name}_gauge_ms") for name, column in _SHARES.items()}
    return {**rates, **operators, **shares, "busy_share_max": _share("busy_max_total_ms", "busy_gauge_max_ms")}


def _share(total: str, gauge: str) -> Column:
    # Flink counts in steps of its measurement: a share may come out a little above one. What was not measured stays
    # null, which `least` would pass over.
    counted = _ratio(F.col(f"d_{total}") / F.lit(1000.0), F.col(f"d_{total}_dt_s"))
    share = F.coalesce(counted, F.col(gauge) / F.lit(1000.0))
    return F.when(share > 1.0, F.lit(1.0)).otherwise(share)


def _find_taken() -> dict[str, Column]:
    """Return what each operator takes in, a source from outside, and the growth of its backlog."""
    counts = SourceCounts(
        F.col("in_per_s"),
        F.col("out_per_s"),
        F.col("source_in_per_s"),
        F.col("source_out_per_s"),
        stands_still(F.col("in_total"), F.col("busy_share")),
    )
    return {
        "taken_per_s": F.when(F.col("is_source"), choose_taken(counts)).otherwise(F.col("in_per_s")),
        "growth_per_s": _ratio(F.col("d_pending"), F.col("d_pending_dt_s")),
    }


def _derive_rates() -> dict[str, Column]:
    is_source = F.col("is_source")
    out, busy, processed = F.col("out_per_s"), F.col("busy_share"), F.col("taken_per_s")
    growth = F.col("growth_per_s")
    worked = (busy > 0) & (processed > 0)  # Eq. 1, 2 of DS2 are undefined without useful time
    pending = F.when(is_source, F.col("pending"))
    of_source = choose_capacity(processed, growth)
    true = F.when(is_source, of_source).otherwise(F.when(worked, processed / busy))
    return {
        "observed_processing_rate_per_s": processed,
        "observed_output_rate_per_s": out,
        "true_processing_rate_per_s": true,
        "true_output_rate_per_s": F.when(processed > 0, true * (out / processed)),
        "target_data_rate_per_s": F.when(is_source, _target(processed, growth)),
        "target_is_lower_bound": F.coalesce(
            is_source & pending.isNull() & (F.col("backpressured_share") > BACKPRESSURED_ABOVE), F.lit(False)
        ),
        "busy_share_max": F.greatest(F.col("busy_share_max"), busy),
        "selectivity": F.when(processed > 0, out / processed),
        "pending_records": pending,
        "latency_ms": F.when(pending == 0, F.lit(0.0)).when(processed > 0, 1000.0 * pending / processed),
    }


def _target(taken: Column, growth: Column) -> Column:
    """Rule 1 of Flink's autoscaler; a source that shows no backlog has what it takes in as target."""
    due_records = F.when(taken.isNotNull() & growth.isNotNull(), F.greatest(taken + growth, F.lit(0.0)))
    return F.when(F.col("pending").isNull(), taken).otherwise(due_records)
