"""The rows that a forecast writes, and what the driver needs of them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from include.tables import FORECAST_SCORES, FORECASTS
from spark_jobs.forecast import forecast_rows
from spark_jobs.forecast.series import ForecastTask

AS_OF = datetime(2026, 3, 20, 10, 3, 0, 250_001, tzinfo=UTC)
START_S = int(datetime(2026, 3, 20, 10, tzinfo=UTC).timestamp())
TASK = ForecastTask(
    as_of_s=AS_OF.timestamp(),
    first_bin_s=START_S - 600,
    bin_s=300,
    history_bins=2,
    horizon_bins=2,
    backtest_origins=1,
    champion_margin=0.02,
    stale_after_s=3600.0,
)
NAMES = {"cluster": "c", "operator": "source", "method": "blend", "fallback_reason": None, "input_hash": "i"}


def series(job: str, rate: float | None, **values: Any) -> dict[str, Any]:
    quantiles = {f"q{level}": [rate, rate] for level in (10, 50, 90, 95)}
    events = {"event": [None, "sale"], "event_factor": [1.0, 2.0], "event_spread": [0.0, 0.5]}
    scores = {"mase": [0.5, math.nan], "pinball_q90": [0.1, None], "coverage_q90": [0.9, 0.8]}
    record = {"methods": ["blend", "boosting"], "origins": [3, 0], "champion": [True, False]}
    return {**NAMES, "job": job, **quantiles, **events, **scores, **record, **values}


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows))


def test_a_forecast_has_a_row_per_bin_and_an_event_where_it_is() -> None:
    rows = forecast_rows.list_forecasts(table(series("a", 5.0), series("b", 7.0)), TASK, "v").to_pylist()
    assert [(row["job"], row["q50_per_s"], row["bin_start"].minute) for row in rows] == [
        ("a", 5.0, 0),
        ("a", 5.0, 5),
        ("b", 7.0, 0),
        ("b", 7.0, 5),
    ]
    assert [(row["event"], row["event_factor"], row["event_spread"]) for row in rows[:2]] == [
        (None, None, None),
        ("sale", 2.0, 0.5),
    ]
    assert {(row["as_of"], row["date"], row["forecast_version"]) for row in rows} == {(AS_OF, AS_OF.date(), "v")}
    assert list(rows[0]) == list(FORECASTS.columns)


def test_a_method_that_was_not_scored_has_no_row_and_an_unknown_score_is_null() -> None:
    unknown = series("a", 5.0, mase=[math.nan, 1.0], pinball_q90=[None, 1.0])
    (row,) = forecast_rows.list_scores(table(unknown), TASK).to_pylist()
    assert (row["method"], row["origins"], row["champion"]) == ("blend", 3, True)
    assert (row["mase"], row["pinball_q90"], row["coverage_q90"]) == (None, None, 0.9)
    assert list(row) == list(FORECAST_SCORES.columns)


def test_series_are_counted_by_what_became_of_them() -> None:
    stale = series("b", 5.0, fallback_reason="too short; stale: last measured yesterday", method="recent_level")
    broken = series("c", None, fallback_reason="no usable rate", origins=[0, 0])
    made = table(series("a", 5.0), stale, broken, series("d", math.nan))
    assert forecast_rows.is_usable(made).to_pylist() == [True, True, False, False]
    keys = forecast_rows.list_keys(made)
    assert keys.column_names == list(forecast_rows.KEY_COLUMNS)
    assert forecast_rows.count_series(keys) == {
        "forecasts": 2,
        "fallbacks": 1,
        "stale": 1,
        "unusable": 2,
        "contests": 3,
        "methods": {"blend": 3, "recent_level": 1},
    }


def test_a_version_depends_on_inputs_and_settings_but_not_on_the_order() -> None:
    a, b = series("a", 5.0), series("b", 7.0)
    version = forecast_rows.hash_forecast(table(a, b), TASK)
    assert forecast_rows.hash_forecast(table(b, a), TASK) == version
    assert forecast_rows.hash_forecast(table(a, b | {"input_hash": "j"}), TASK) != version


def test_a_series_without_a_usable_rate_has_no_row() -> None:
    made = table(series("a", None, origins=[0, 0]), series("b", 5.0))
    assert {row["job"] for row in forecast_rows.list_forecasts(made, TASK, "v").to_pylist()} == {"b"}
    assert {row["job"] for row in forecast_rows.list_scores(made, TASK).to_pylist()} == {"b"}


def test_nothing_is_written_of_no_series() -> None:
    none = table(series("a", 5.0)).slice(0, 0)
    assert forecast_rows.list_forecasts(none, TASK, "v").num_rows == 0
    assert forecast_rows.list_scores(none, TASK).num_rows == 0
    assert forecast_rows.count_series(forecast_rows.list_keys(none))["forecasts"] == 0
