"""Forecast stage: the rates of sources -> quantiles per bin in ``gold.forecasts``, record of the methods in
``gold.forecast_scores``.

Series travel as one row of arrays each, in a bounded number of batches: a batch is forecast by vectorised arithmetic.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from include import tables
from include.settings import Settings
from include.stages import StageRequest
from models.forecasting import Calendar
from models.forecasting.boosting import Fit
from spark_jobs.forecast import few_sources
from spark_jobs.forecast.series import RESULT_SCHEMA, ForecastTask, fit_global, make_forecaster
from spark_jobs.job_inputs.newest_rows import JOB, current_sources, read_newest_hours
from spark_jobs.job_inputs.renames import current_names, follow_renames, read_versions, renames_frame
from spark_jobs.job_inputs.source_rates import MOST_SOURCES, read_source_rates
from spark_jobs.job_inputs.source_series import SERIES, read_source_loads, source_series
from spark_jobs.lake import Lake, empty, frame_of
from spark_jobs.session import threads
from spark_jobs.timestamps import as_of_slice

BATCHES = 16
"""Groups that the series are dealt into; each is cut into chunks of bounded size again."""
SAMPLE_SERIES = 64
"""The global model is fitted on so many series, drawn by a hash of their names: the time is the same for any fleet."""
HISTORY_COLUMNS = dict.fromkeys(SERIES, "STRING") | {
    "rate_per_s": "ARRAY<DOUBLE>",
    "last_seen_s": "DOUBLE",
    "previous_champion": "STRING",
}
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


def sample_order() -> list[Column]:
    """Return the order of series of which the first are a sample: by a hash of their names."""
    return [F.xxhash64(*SERIES), *(F.col(name) for name in SERIES)]


def global_fits(series: DataFrame, task: ForecastTask) -> tuple[Fit, ...]:
    """Fit the global model on a sample of the series, here and now: see docs/adr/0008-global-model-in-the-stage.md."""
    sample = series.orderBy(*sample_order()).limit(SAMPLE_SERIES).toPandas()
    return fit_global(sample, task) if len(sample) else ()


def results(series: DataFrame, task: ForecastTask, partitions: int, fits: tuple[Fit, ...] = ()) -> DataFrame:
    """Forecast every series; one row each, arrays over the bins of the horizon and over the methods.

    Args:
        series: with their bins or windows and ``previous_champion``, see :func:`.series.forecast_chunk`.
        task: what to forecast.
        partitions: of Spark.
        fits: of the global model.
    """
    batch = F.pmod(F.xxhash64(*SERIES), F.lit(BATCHES)).alias("batch")
    return (
        series.select("*", batch)
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
    names = current_names(read_versions(lake, datetime.fromtimestamp(task.first_bin_s, UTC), request.as_of))
    graphs, jobs = (read_newest_hours(lake, table, request.as_of) for table in (tables.JOB_GRAPHS, tables.JOBS))
    partitions = settings.spark.shuffle_partitions
    few = read_source_rates(lake.root, task, names, MOST_SOURCES)
    if few is not None:
        current = choose_current(lake, few.table, graphs, jobs, request)
        return write_few(lake, forecast_few(lake, current, task, request, partitions), task, request)
    windows = source_series(follow_renames(read_source_loads(lake, task), renames_frame(lake, names)), task)
    series = keep_current(windows, graphs, jobs, request.as_of).persist()
    champions = previous_champions(lake.read(tables.FORECAST_SCORES), request)
    made = results(
        series.join(champions, list(SERIES), how="left"), task, partitions, global_fits(series, task)
    ).persist()
    try:
        return write(lake, made, task, request)
    finally:
        made.unpersist()
        series.unpersist()


def choose_current(
    lake: Lake, sources: pa.Table, graphs: DataFrame, jobs: DataFrame, request: StageRequest
) -> pa.Table:
    """Return the sources that are not left out, in the order in which the global model's sample is drawn."""
    if not len(sources):
        return sources
    names = keep_current(frame_of(lake.spark, sources.select(list(SERIES))), graphs, jobs, request.as_of)
    return few_sources.choose_sources(sources, names.orderBy(*sample_order()).toArrow())


def forecast_few(lake: Lake, sources: pa.Table, task: ForecastTask, request: StageRequest, partitions: int) -> pa.Table:
    """Forecast sources whose history is in the driver, in the order of their names."""
    fits = fit_global(sources.slice(0, SAMPLE_SERIES).to_pandas(), task) if len(sources) else ()
    whole = few_sources.add_champions(sources, lake, request.as_of, CHAMPION_MEMORY)
    series = frame_of(lake.spark, whole) if len(whole) else empty(lake.spark, HISTORY_COLUMNS)
    return results(series, task, partitions, fits).toArrow().sort_by([(name, "ascending") for name in SERIES])


def write_few(lake: Lake, made: pa.Table, task: ForecastTask, request: StageRequest) -> dict[str, object]:
    """Replace the rows of this ``as_of`` in both tables by those of few series, and count these."""
    where = as_of_slice(request.as_of)
    if not len(made):
        lake.require_empty(tables.FORECASTS, where)
    known = made.filter(few_sources.is_usable(made))
    version = few_sources.hash_forecast(made, task)
    lake.few(tables.FORECASTS).replace(few_sources.list_forecasts(known, task, version), where)
    lake.few(tables.FORECAST_SCORES).replace(few_sources.list_scores(known, task), where)
    return few_sources.count_series(made)


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
