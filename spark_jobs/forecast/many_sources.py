"""A forecast of more sources than the driver can hold: every table is read, unfolded and written by Spark.

The rows are those of :mod:`.few_sources`, bit for bit.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include import tables
from include.stages import StageRequest
from models.forecasting.boosting import Fit
from spark_jobs.forecast.batches import CHAMPION_MEMORY, SAMPLE_SERIES, forecast_series, sample_order
from spark_jobs.forecast.series import ForecastTask, fit_global
from spark_jobs.lake import Lake
from spark_jobs.session import threads
from spark_jobs.source_inputs.source_windows import SERIES
from spark_jobs.timestamps import as_of_slice


def forecast_many(
    lake: Lake, sources: DataFrame, task: ForecastTask, request: StageRequest, partitions: int
) -> dict[str, object]:
    """Forecast sources from their windows, replace the rows of this ``as_of`` in both tables, and count the series."""
    series = sources.persist()
    champions = previous_champions(lake.read(tables.FORECAST_SCORES), request)
    whole = series.join(champions, list(SERIES), how="left").fillna({"is_chosen": False})
    made = forecast_series(whole, task, partitions, global_fits(series, task)).persist()
    try:
        return write(lake, made, task, request)
    finally:
        made.unpersist()
        series.unpersist()


def previous_champions(scores: DataFrame, request: StageRequest) -> DataFrame:
    """Return each source's champion before ``as_of``: the newest that was recorded, and whether on its date."""
    as_of = F.lit(request.as_of)
    earlier = (F.col("as_of") < as_of) & (F.col("date") >= F.lit((request.as_of - CHAMPION_MEMORY).date()))
    newest = (F.max_by("method", "as_of").alias("previous_champion"), F.max("date").alias("date"))
    is_chosen = (F.col("date") == F.lit(request.as_of.date())).alias("is_chosen")
    champions = scores.where(earlier & F.col("champion")).groupBy(*SERIES).agg(*newest)
    return champions.select(*SERIES, "previous_champion", is_chosen)


def global_fits(series: DataFrame, task: ForecastTask) -> tuple[Fit, ...]:
    """Fit the global model on a sample of the series, here and now: see docs/adr/0008-global-model-in-the-stage.md."""
    sample = series.orderBy(*sample_order()).limit(SAMPLE_SERIES).toPandas()
    return fit_global(sample, task) if len(sample) else ()


def as_of_column(task: ForecastTask) -> Column:
    """Return the as-of time as a literal, exact to the microsecond."""
    return F.timestamp_micros(F.lit(round(task.as_of_s * 1e6)))


def forecast_version(made: DataFrame, task: ForecastTask) -> Column:
    """Return the hash of all inputs and settings of this forecast as a literal: equal input, equal version."""
    inputs = made.select(F.concat_ws("|", *SERIES, "input_hash").alias("line"))
    row = inputs.agg(F.sha2(F.concat_ws("\n", F.array_sort(F.collect_list("line"))), 256).alias("hash")).first()
    digest = F.sha2(F.lit(f"{task.version_text}\n{row['hash'] if row else ''}"), 256)
    return F.substring(digest, 1, 16)


def has_forecast() -> Column:
    """Whether a series had any rate to start from (Arrow hands NaN over as null)."""
    return F.exists("q50", lambda q: q.isNotNull() & ~F.isnan(q))


def forecast_rows(made: DataFrame, task: ForecastTask, version: Column) -> DataFrame:
    """Unfold the quantiles: one row per series and bin."""
    start_s = task.first_bin_s + task.history_bins * task.bin_s
    columns = ("q10", "q50", "q90", "q95", "event", "event_factor", "event_spread")
    bins = F.posexplode(F.arrays_zip(*columns)).alias("step", "q")
    has_event = F.col("q.event").isNotNull()
    unfolded = made.select(*SERIES, "method", "fallback_reason", bins)
    return unfolded.withColumns(
        {
            "as_of": as_of_column(task),
            "bin_start": F.timestamp_seconds(F.lit(start_s) + F.col("step") * task.bin_s),
            "bin_s": F.lit(task.bin_s),
            "q10_per_s": F.col("q.q10"),
            "q50_per_s": F.col("q.q50"),
            "q90_per_s": F.col("q.q90"),
            "q95_per_s": F.col("q.q95"),
            "forecast_version": version,
            "date": F.to_date(as_of_column(task)),
            "event": F.col("q.event"),
            "event_factor": F.when(has_event, F.col("q.event_factor")),
            "event_spread": F.when(has_event, F.col("q.event_spread")),
        }
    ).select(*tables.FORECASTS.columns)


def score_rows(made: DataFrame, task: ForecastTask) -> DataFrame:
    """Unfold the record: one row per series and method that was scored."""
    columns = ("methods", "origins", "mase", "pinball_q90", "coverage_q90", "champion")
    unfolded = made.select(*SERIES, F.explode(F.arrays_zip(*columns)).alias("s"))
    scores = {name: F.col(f"s.{name}") for name in ("mase", "pinball_q90", "coverage_q90")}
    return (
        unfolded.where(F.col("s.origins") > 0)
        .withColumns(
            {
                "as_of": as_of_column(task),
                "method": F.col("s.methods"),
                "origins": F.col("s.origins"),
                **{name: F.when(~F.isnan(score), score) for name, score in scores.items()},
                "champion": F.col("s.champion"),
                "date": F.to_date(as_of_column(task)),
            }
        )
        .select(*tables.FORECAST_SCORES.columns)
    )


def write(lake: Lake, made: DataFrame, task: ForecastTask, request: StageRequest) -> dict[str, object]:
    """Replace the rows of this ``as_of`` in both tables, and count the series."""
    known, where = made.where(has_forecast()), as_of_slice(request.as_of)
    version = forecast_version(made, task)  # makes the forecasts, so that the following only read them
    if made.isEmpty():
        lake.require_empty(tables.FORECASTS, where)
    with threads(lake.spark) as pool:
        written = pool.submit(lake.replace, tables.FORECASTS, forecast_rows(known, task, version), where)
        scored = pool.submit(lake.replace, tables.FORECAST_SCORES, score_rows(known, task), where)
        counted = pool.submit(counts, made)
        written.result()
        scored.result()
        return counted.result()


def counts(made: DataFrame) -> dict[str, object]:
    """Count series: forecast, fallen back, stale, without any usable rate, with a contest of methods, and by method."""
    usable = has_forecast()
    row = made.agg(
        F.count_if(usable).alias("forecasts"),
        F.count_if(usable & F.col("fallback_reason").isNotNull()).alias("fallbacks"),
        F.count_if(F.col("fallback_reason").contains("stale: ")).alias("stale"),
        F.count_if(~usable).alias("unusable"),
        F.count_if(F.exists("origins", lambda days: days > 0)).alias("contests"),
    ).first()
    by_method = {line["method"]: line["count"] for line in made.groupBy("method").count().orderBy("method").collect()}
    return {**(row.asDict() if row else {}), "methods": by_method}
