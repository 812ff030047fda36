"""What a training shows of the forecasts' record."""

from __future__ import annotations

import pandas as pd
import pytest

from spark_jobs.train.forecast_scores import forecast_figure, forecast_measures

COLUMNS = ["as_of", "method", "series", "coverage_q90", "pinball_q90", "mase"]


def record() -> pd.DataFrame:
    hours = pd.date_range("2026-03-20", periods=3, freq="h")
    rows = [
        (hour, method, 5, 0.9 + 0.01 * step, loss, 0.7)
        for step, hour in enumerate(hours)
        for method, loss in (("blend", 0.02), ("champions", 0.01))
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_the_newest_pass_of_the_champions_is_measured() -> None:
    result = forecast_measures(record())
    assert result == pytest.approx({"forecast_coverage_q90": 0.92, "forecast_pinball_q90": 0.01, "forecast_mase": 0.7})
    assert forecast_measures(record().iloc[:0]) == {}


def test_every_method_has_a_line() -> None:
    top, bottom = forecast_figure(record()).axes
    assert {line.get_label() for line in bottom.lines} == {"blend", "champions"}
    assert len(top.lines) == 3  # and the target
