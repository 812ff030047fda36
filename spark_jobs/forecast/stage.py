"""Forecast stage: the rates of sources -> quantiles per bin in ``gold.forecasts``, record of the methods in
``gold.forecast_scores``.

Series travel as one row of arrays each, in a bounded number of batches: a batch is forecast by vectorised arithmetic.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from include import tables
from include.settings import Settings
from include.stages import StageRequest
from models.forecasting import Calendar
from models.forecasting.boosting import Fit
from spark_jobs.forecast.series import RESULT_SCHEMA, ForecastTask, fit_global, make_forecaster
from spark_jobs.job_inputs.newest_rows import JOB, current_sources, read_newest_hours
from spark_jobs.job_inputs.renames import follow_renames, read_renames
from spark_jobs.job_inputs.source_series import SERIES, read_source_loads, source_series
from spark_jobs.lake import Lake
from spark_jobs.session import threads
from spark_jobs.timestamps import as_of_slice

BATCHES = 16
"""Groups that the series are dealt into; each is cut into chunks of bounded size again."""
SAMPLE_SERIES = 64
"""The global model is fitted on so many series, drawn by a hash of their names: the time is the same for any fleet."""
CHAMPION_MEMORY = timedelta(days=7)
"""A champion not confirmed for this long is dropped."""


def forecast_task(settings: Settings, request: StageRequest) -> ForecastTask:
    """Return the frame of a forecast: history up to the last full bin before ``as_of``, horizon from there."""
    wanted = settings.forecast
    calendar = Calendar(0, wanted.bin_s)
    as_of_s = request.as_of.timestamp()
    history_bins = wanted.history_days * calendar.day
    start_s = int(as_of_s // wanted.bin_s) * wanted.bin_s
    return ForecastTask(
        as_of_s=as_of_s,
        first_bin_s=start_s - history_bins * wanted.bin_s,
        bin_s=wanted.bin_s,
        history_bins=history_bins,
        horizon_bins=calendar.bins(wanted.horizon_h * 3600),
        backtest_origins=wanted.backtest_origins,
        champion_margin=wanted.champion_margin,
        plan_error_max=wanted.plan_error_max,
        stale_after_s=settings.planner.max_input_age_h * 3600,
        time_zones=dict(sorted(wanted.time_zones.items())),
        holidays={name: tuple(sorted(map(str, days))) for name, days in sorted(wanted.holidays.items())},
        events=dict(sorted(settings.events.items())),
    )


def keep_current(series: DataFrame, graphs: DataFrame, jobs: DataFrame, as_of: datetime) -> DataFrame:
    """Leave out sources that their job's newest graph no longer has, or that have ended.

    A job without a recent graph keeps all of them.
    """
    joined = series.join(F.broadcast(current_sources(graphs, jobs, as_of)), JOB, how="left")
    current = F.col("sources").isNull() | F.array_contains("sources", F.col("operator"))
    return joined.where(current).select(*series.columns)


def as_of_column(task: ForecastTask) -> Column:
    """Return the as-of time as a literal, exact to the microsecond."""
    return F.timestamp_micros(F.lit(round(task.as_of_s * 1e6)))


def previous_champions(scores: DataFrame, request: StageRequest) -> DataFrame:
    """Return each source's champion before ``as_of``: the newest that was recorded."""
    as_of = F.lit(request.as_of)
    earlier = (F.col("as_of") < as_of) & (F.col("date") >= F.lit((request.as_of - CHAMPION_MEMORY).date()))
    return (
        scores.where(earlier & F.col("champion"))
        .groupBy(*SERIES)
        .agg(F.max_by("method", "as_of").alias("previous_champion"))
        .select(*SERIES, "previous_champion")
    )


def global_fits(series: DataFrame, task: ForecastTask) -> tuple[Fit, ...]:
    """Fit the global model on a sample of the series, here and now: see docs/adr/0008-global-model-in-the-stage.md."""
    sample = series.orderBy(F.xxhash64(*SERIES), *SERIES).limit(SAMPLE_SERIES).toPandas()
    return fit_global(sample, task) if len(sample) else ()


def results(
    series: DataFrame, champions: DataFrame, task: ForecastTask, partitions: int, fits: tuple[Fit, ...] = ()
) -> DataFrame:
    """Forecast every series; one row each, arrays over the bins of the horizon and over the methods."""
    batch = F.pmod(F.xxhash64(*SERIES), F.lit(BATCHES)).alias("batch")
    return (
        series.join(champions, list(SERIES), how="left")
        .select("*", batch)
        .repartition(partitions, "batch")
        .groupBy("batch")
        .applyInPandas(make_forecaster(task, fits), RESULT_SCHEMA)  # type: ignore[arg-type]
    )


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


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Forecast every source of the history; replaces the forecasts of the same ``as_of``.

    Raises:
        LostInputError: forecasts of that time are there, and there is no history of any source any more.
    """
    lake = Lake(spark, settings.paths.lake)
    task = forecast_task(settings, request)
    renames = read_renames(lake, datetime.fromtimestamp(task.first_bin_s, UTC), request.as_of)
    observed = source_series(follow_renames(read_source_loads(lake, task), renames), task)
    graphs, jobs = (read_newest_hours(lake, table, request.as_of) for table in (tables.JOB_GRAPHS, tables.JOBS))
    series = keep_current(observed, graphs, jobs, request.as_of).persist()
    champions = previous_champions(lake.read(tables.FORECAST_SCORES), request)
    made = results(series, champions, task, settings.spark.shuffle_partitions, global_fits(series, task)).persist()
    try:
        known, where = made.where(has_forecast()), as_of_slice(request.as_of)
        version = forecast_version(made, task)  # makes the forecasts, so that the following only read them
        if made.isEmpty():
            lake.require_empty(tables.FORECASTS, where)
        with threads(spark) as pool:
            written = pool.submit(lake.replace, tables.FORECASTS, forecast_rows(known, task, version), where)
            scored = pool.submit(lake.replace, tables.FORECAST_SCORES, score_rows(known, task), where)
            counted = pool.submit(counts, made)
            written.result()
            scored.result()
            return counted.result()
    finally:
        made.unpersist()
        series.unpersist()


def counts(made: DataFrame) -> dict[str, object]:
    """Count series: forecast, fallen back, stale, without any usable rate, and by method."""
    usable = has_forecast()
    row = made.agg(
        F.count_if(usable).alias("forecasts"),
        F.count_if(usable & F.col("fallback_reason").isNotNull()).alias("fallbacks"),
        F.count_if(F.col("fallback_reason").contains("stale: ")).alias("stale"),
        F.count_if(~usable).alias("unusable"),
    ).first()
    by_method = {line["method"]: line["count"] for line in made.groupBy("method").count().orderBy("method").collect()}
    return {**(row.asDict() if row else {}), "methods": by_method}
