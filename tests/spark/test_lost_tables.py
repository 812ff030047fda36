"""A forecast or a plan that is made again on a lake whose tables are gone does not replace the one that is there."""

from __future__ import annotations

import pytest
from delta_tables import write_rows
from pyspark.sql import SparkSession

from include import tables
from include.lost_input import LostInputError
from include.settings import Retention, Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.utc import HOUR, Interval
from spark_jobs.forecast import stage as forecast
from spark_jobs.ingest.silver import choose_rescale_hours
from spark_jobs.lake import Lake
from spark_jobs.plan import stage as plan
from tests.spark import synthetic_fleet as fleet

pytestmark = [pytest.mark.spark, pytest.mark.covers("harm tables-gone")]


@pytest.mark.long
def test_forecasts_and_plans_are_not_replaced_by_none(spark: SparkSession, settings: Settings, lake: Lake) -> None:
    write_rows(lake, tables.FORECASTS, fleet.forecast_rows("steady", [1000.0] * 24))
    as_of = fleet.AS_OF
    row = {"as_of": as_of, "cluster": "c", "job": "j", "step_index": 0, "status": "hold", "date": as_of.date()}
    write_rows(lake, tables.PLANS, [row])
    there = {table.name: lake.read(table).count() for table in (tables.FORECASTS, tables.PLANS)}
    with pytest.raises(LostInputError, match=r"gold\.forecasts has rows"):
        forecast.run(spark, settings, StageRequest(Stage.FORECAST, as_of))
    with pytest.raises(LostInputError, match=r"gold\.plans has rows"):
        plan.run(spark, settings, StageRequest(Stage.PLAN, as_of))
    assert {table.name: lake.read(table).count() for table in (tables.FORECASTS, tables.PLANS)} == there


def test_hours_whose_bronze_rows_were_removed_are_not_made_anew(
    spark: SparkSession, settings: Settings, lake: Lake
) -> None:
    midnight = fleet.AS_OF.replace(hour=0, minute=0)
    hours = Interval(midnight + 2 * HOUR, midnight + 3 * HOUR)
    allowance = settings.ingest.late_allowance_h
    assert allowance == 2
    assert choose_rescale_hours(lake, settings, hours).start == hours.start - allowance * HOUR
    short = settings.model_copy(update={"retention": Retention(bronze_days=30)})
    assert choose_rescale_hours(lake, short, hours) == hours
    row = {"cluster": "c", "kind": "job", "observed_at": midnight, "date": midnight.date(), "hour": 0}
    write_rows(lake, tables.BRONZE_JOB_EVENTS, [row])
    assert choose_rescale_hours(lake, short, hours).start == midnight + HOUR
    long_ago = {**row, "date": (midnight - 99 * HOUR).date()}
    write_rows(lake, tables.BRONZE_JOB_EVENTS, [long_ago])
    assert choose_rescale_hours(lake, short, hours).start == hours.start - allowance * HOUR
