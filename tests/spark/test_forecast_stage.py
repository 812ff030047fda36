"""The forecast stage on tables: what it writes, twice and again, for sources of every kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from delta_tables import write_rows
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from benchmarks.pipeline.spark_jobs import count_jobs
from include import tables
from include.settings import Forecast, Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from spark_jobs.forecast import forecast_sources
from spark_jobs.forecast import stage as forecast
from spark_jobs.lake import Lake

pytestmark = pytest.mark.spark

AS_OF = datetime(2026, 3, 20, 10, 3, tzinfo=UTC)
BIN_S = 1800
DAYS = 16
DAILY = 2000.0
LATER = AS_OF + timedelta(hours=1)
NEXT_DAY = AS_OF + timedelta(hours=15)
NEW = "wrong"
OFFICE = "harmonic_ridge"


@dataclass(frozen=True)
class Forecasts:
    """What a run took and returned, and the rows in order that it wrote as of its time."""

    spark_jobs: int = field(compare=False)
    counts: dict[str, object]
    forecasts: list[Row]
    scores: list[Row]

    @property
    def champions(self) -> dict[str, str]:
        """The method of each job that was chosen by its scores."""
        return {row["job"]: row["method"] for row in self.scores if row["champion"]}


@dataclass(frozen=True)
class Runs:
    """Three runs in one lake: as of ``AS_OF``, of an hour later, and of the next date.

    Before the second one the champions of the first were replaced by ``OFFICE``, which a margin then keeps, and those
    of the job ``NEW`` were taken away, as if it came after the first run.
    """

    lake: Lake
    settings: Settings
    first: Forecasts
    later: Forecasts
    next_day: Forecasts


def windows(job: str, start: datetime, end: datetime, window_s: int, *, cluster: str = "c5m") -> pd.DataFrame:
    """Source windows of a rate with a daily wave and some noise."""
    starts = np.arange(start.timestamp(), end.timestamp(), window_s)
    noise = np.random.default_rng(len(job)).normal(0, 40, len(starts))
    rate = DAILY + 900 * np.sin(2 * np.pi * starts / 86400) + noise
    return pd.DataFrame(
        {"cluster": cluster, "job": job, "start_s": starts, "window_s": window_s, "target_data_rate_per_s": rate}
    )


def write(lake: Lake, rows: list[pd.DataFrame]) -> None:
    """Put windows of the operator ``source`` into the empty table of observations."""
    whole = pd.concat(rows)
    whole["window_start"] = pd.to_datetime(whole["start_s"], unit="s", utc=True)
    whole["date"] = whole["window_start"].dt.date
    # One file a day: the stage looks at the date only.
    given = whole.assign(operator="source", is_source=True, disturbed=False, hour=0).drop(columns="start_s")
    write_rows(lake, tables.OBSERVATIONS, given.astype(object).to_dict("records"))


def sorted_rows(frame: DataFrame, table: tables.Table) -> list[Row]:
    return frame.orderBy(*table.keys).collect()


def request(as_of: datetime = AS_OF) -> StageRequest:
    return StageRequest(Stage.FORECAST, as_of)


def write_every_kind(lake: Lake) -> None:
    """Write a job for each kind of source."""
    start = AS_OF - timedelta(days=DAYS)
    whole = windows("whole", start, NEXT_DAY, 900)
    wrong = windows("wrong", start, NEXT_DAY, 900)
    wrong.loc[::7, "target_data_rate_per_s"] = np.nan
    wrong.loc[1::97, "target_data_rate_per_s"] = -5.0
    never = windows("never", start, AS_OF, 900)
    never["target_data_rate_per_s"] = np.nan
    recorded = windows("recorded", AS_OF - timedelta(minutes=14), AS_OF, 15, cluster="c15s")
    newborn = windows("newborn", AS_OF - timedelta(minutes=2), AS_OF, 15, cluster="c15s")
    stale = windows("stale", start, AS_OF - timedelta(hours=5), 900)
    future = windows("future", AS_OF, AS_OF + timedelta(hours=1), 300)
    write(lake, [whole, wrong, never, recorded, newborn, stale, future])


def run(lake: Lake, settings: Settings, as_of: datetime = AS_OF) -> Forecasts:
    begun = count_jobs(lake.spark)
    counts = forecast.run(lake.spark, settings, request(as_of))
    spark_jobs = count_jobs(lake.spark) - begun
    made = F.col("as_of") == F.lit(as_of)
    written = (tables.FORECASTS, tables.FORECAST_SCORES)
    return Forecasts(spark_jobs, counts, *(sorted_rows(lake.read(table).where(made), table) for table in written))


@pytest.fixture(scope="module")
def runs(shared_settings: Settings, shared_lake: Lake) -> Runs:
    wanted = Forecast(bin_s=BIN_S, history_days=DAYS, backtest_origins=4)
    settings, lake = shared_settings.model_copy(update={"forecast": wanted}), shared_lake
    write_every_kind(lake)
    first = run(lake, settings)
    office = lake.read(tables.FORECAST_SCORES).where(F.col("job") != NEW)
    office = office.withColumn("champion", F.col("method") == OFFICE)
    lake.replace(tables.FORECAST_SCORES, office.localCheckpoint(), "date >= DATE '2000-01-01'")
    # Nothing beats an incumbent by 99 %: the one in office stays while it is better than the blend.
    stubborn = settings.model_copy(update={"forecast": wanted.model_copy(update={"champion_margin": 0.99})})
    return Runs(lake, settings, first, run(lake, stubborn, LATER), run(lake, stubborn, NEXT_DAY))


def test_every_kind_of_source_gets_its_forecast(runs: Runs) -> None:
    result = runs.first.counts
    assert result["forecasts"] == 5
    assert result["fallbacks"] == 3
    assert result["stale"] == 1
    assert result["unusable"] == 1
    rows = pd.DataFrame(runs.first.forecasts, columns=list(tables.FORECASTS.columns))
    assert set(rows["job"]) == {"whole", "wrong", "recorded", "newborn", "stale"}
    assert (rows.groupby("job").size() == 48).all()
    assert rows["bin_start"].min() == pd.Timestamp("2026-03-20 10:00:00")
    assert rows["bin_start"].max() == pd.Timestamp("2026-03-21 09:30:00")
    assert rows["forecast_version"].nunique() == 1
    ordered = rows[["q10_per_s", "q50_per_s", "q90_per_s", "q95_per_s"]].to_numpy()
    assert (ordered >= 0).all()
    assert (np.diff(ordered, axis=1) >= 0).all()

    hours = (rows["bin_start"] - pd.Timestamp("1970-01-01")).dt.total_seconds() + BIN_S / 2
    truth = DAILY + 900 * np.sin(2 * np.pi * hours / 86400)
    for job in ("whole", "wrong", "stale"):
        mine = rows["job"] == job
        assert np.abs(rows["q50_per_s"] - truth)[mine].mean() < 60
        assert (rows["q90_per_s"] > truth)[mine].mean() > 0.8
    reasons = rows.groupby("job")["fallback_reason"].first()
    assert reasons[["whole", "wrong"]].isna().all()
    assert reasons["stale"] == "stale: last measured 2026-03-20 05:03 UTC, 5.0 hours before"
    assert reasons["recorded"].endswith("of history; holding the recent level")
    level = rows.loc[rows["job"] == "newborn", "q50_per_s"]
    assert level.iloc[0] == pytest.approx(truth[rows["bin_start"].idxmin()], rel=0.15)

    scores = pd.DataFrame(runs.first.scores, columns=list(tables.FORECAST_SCORES.columns))
    assert set(scores["job"]) == {"whole", "wrong", "stale"}
    assert (scores.groupby("job")["champion"].sum() == 1).all()
    assert (scores["mase"] < 1.5).all()


def test_the_first_run_of_a_day_holds_the_contest(runs: Runs) -> None:
    assert runs.first.counts["contests"] == 3
    assert runs.first.champions["whole"] == "blend"


def test_a_later_run_of_the_day_takes_its_champion_and_scores_a_new_source_alone(runs: Runs) -> None:
    methods = {row["job"]: row["method"] for row in runs.later.forecasts}
    assert (methods["whole"], methods["stale"]) == (OFFICE, OFFICE)  # whatever a contest would say
    assert methods[NEW] == runs.later.champions[NEW]
    assert {row["job"] for row in runs.later.scores} == {NEW}
    assert runs.later.counts["contests"] == 1
    assert runs.later.counts["forecasts"] == 6  # one more has begun


def test_a_run_takes_four_spark_jobs(runs: Runs) -> None:
    """For the forecasts with their keys, for both tables, and for windows of sources that are new."""
    assert max(runs.later.spark_jobs, runs.next_day.spark_jobs) <= 4


def test_the_first_run_of_the_next_day_holds_a_contest_against_the_champion_in_office(runs: Runs) -> None:
    assert {row["job"] for row in runs.next_day.scores} == {"whole", "wrong", "stale"}
    assert set(runs.next_day.champions.values()) <= {OFFICE, "blend"}
    assert OFFICE in runs.next_day.champions.values()


@pytest.mark.long
def test_the_same_input_gives_the_same_tables(runs: Runs) -> None:
    # A rerun of the past does not see what was made later, nor champions that were recorded for its own time.
    again = run(runs.lake, runs.settings)
    assert again.counts == runs.first.counts
    assert again.forecasts == runs.first.forecasts
    assert again.scores == runs.first.scores
    assert again.champions == runs.first.champions
    assert runs.lake.read(tables.FORECASTS).select("as_of", "forecast_version").distinct().count() == 3


@pytest.mark.long
def test_a_remade_first_run_is_followed_by_the_same_later_one(runs: Runs) -> None:
    run(runs.lake, runs.settings)
    later = run(runs.lake, runs.settings, LATER)
    assert later.scores == []
    run(runs.lake, runs.settings)
    assert run(runs.lake, runs.settings, LATER) == later


@pytest.mark.long
def test_sources_in_several_groups_have_the_same_rows(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    run(runs.lake, runs.settings)
    later = run(runs.lake, runs.settings, LATER)
    monkeypatch.setattr(forecast_sources, "_HELD_BYTES", 0)  # each batch in a group of its own
    assert run(runs.lake, runs.settings) == runs.first
    assert run(runs.lake, runs.settings, LATER) == later


def test_an_empty_lake_is_no_error(spark: SparkSession, settings: Settings, lake: Lake) -> None:
    assert forecast.run(spark, settings, request())["forecasts"] == 0
    assert lake.read(tables.FORECASTS).count() == 0
