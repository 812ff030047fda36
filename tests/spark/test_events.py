"""Events on tables: the forecast has those to come, learns nothing from past ones, and the page says what came."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import functions as F

from include import tables
from include.settings import Event, Forecast, Settings
from spark_jobs.forecast import stage as forecast
from spark_jobs.lake import Lake
from spark_jobs.plan_inputs.newest_of_jobs import read_newest_forecasts
from spark_jobs.report.events import list_event_results
from spark_jobs.report.stage import write_event_results
from tests.spark.test_forecast_stage import AS_OF, BIN_S, DAYS, request, windows, write

pytestmark = [pytest.mark.spark, pytest.mark.long]
FACTOR = 2.5  # of the event that is over; 3 was said
PAST = Event(starts_at=AS_OF - timedelta(hours=8), ends_at=AS_OF - timedelta(hours=2), jobs=("c5m/sale",), factor=3.0)
NEXT = Event(starts_at=AS_OF + timedelta(hours=4), ends_at=AS_OF + timedelta(hours=8), jobs=("c5m/sale",), factor=2.0)


def read_rates(lake: Lake, job: str) -> pd.DataFrame:
    own = lake.read(tables.FORECASTS).where((F.col("as_of") == F.lit(AS_OF)) & (F.col("job") == job))
    return own.orderBy("bin_start").toPandas()


def test_events_are_forecast_masked_and_judged(lake: Lake, settings: Settings) -> None:
    wanted = settings.model_copy(
        update={
            "forecast": Forecast(bin_s=BIN_S, history_days=DAYS, backtest_origins=4),
            "events": {"last": PAST, "next": NEXT},
        }
    )
    plain, sale = (windows(job, AS_OF - timedelta(days=DAYS), AS_OF, 900) for job in ("calm", "sale"))
    sale["target_data_rate_per_s"] = plain["target_data_rate_per_s"]
    at_s = sale["start_s"]
    during = (at_s >= PAST.starts_at.timestamp()) & (at_s < PAST.ends_at.timestamp())
    sale.loc[during, "target_data_rate_per_s"] *= FACTOR
    write(lake, [plain, sale])
    forecast.run(lake.spark, wanted.model_copy(update={"events": {}}), request(AS_OF - timedelta(hours=9)))
    forecast.run(lake.spark, wanted, request())

    calm, raised = read_rates(lake, "calm"), read_rates(lake, "sale")
    inside = raised["event"].notna()
    starts = raised.loc[inside, "bin_start"]
    assert (starts.min(), starts.max()) == (pd.Timestamp("2026-03-20 14:00:00"), pd.Timestamp("2026-03-20 18:00:00"))
    whole = inside & (raised["event_factor"] == 2.0)
    assert whole.sum() == 7  # the first and the last bin have a part of it
    usual = calm["q50_per_s"].to_numpy()
    np.testing.assert_allclose(raised.loc[whole, "q50_per_s"], 2.0 * usual[whole], rtol=0.1)
    np.testing.assert_allclose(raised.loc[~inside, "q50_per_s"], usual[~inside], rtol=0.1)  # the last one is not learnt
    assert (raised.loc[whole, "event_spread"] > 0.1).all()
    assert raised.loc[~inside, ["event_factor", "event_spread"]].isna().all(axis=None)
    assert calm["event"].isna().all()

    job = (str(sale["cluster"].iloc[0]), "sale")
    (row,) = read_newest_forecasts(lake.few(tables.FORECASTS), AS_OF, [job])
    assert np.isfinite(row["bins"]["event_factor"]).sum() == inside.sum()

    write_event_results(lake, wanted, AS_OF)
    write_event_results(lake, wanted, AS_OF)  # a second report of a date replaces the rows of the first
    (made,) = lake.read(tables.EVENT_RESULTS).collect()
    assert (made["event"], made["job"], made["operator"]) == ("last", "sale", "source")
    assert made["announced"] == "3x (2.4 to 3.75)"
    assert float(made["came"].split("x")[0]) == pytest.approx(FACTOR, rel=0.05)
    assert made["proposed"].startswith("factor = 2.")
    assert list_event_results(lake, settings, AS_OF) == []
