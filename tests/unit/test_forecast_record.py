"""What a training reads and shows of the forecasts' record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pyarrow as pa
import pytest

from include.arrow_rows import arrow_schema
from include.lake_table import LakeTable
from include.tables import FORECAST_SCORES
from spark_jobs.lake import Lake
from spark_jobs.train.forecast_scores import forecast_figure, forecast_measures, forecast_record

NIGHT = datetime(2026, 3, 20, 2, 0, tzinfo=UTC)

COLUMNS = ["date", "method", "series", "coverage_q90", "pinball_q90", "mase"]


def record() -> pd.DataFrame:
    days = pd.date_range("2026-03-20", periods=3, freq="D")
    rows = [
        (day, method, 5, 0.9 + 0.01 * step, loss, 0.7)
        for step, day in enumerate(days)
        for method, loss in (("blend", 0.02), ("champions", 0.01))
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_the_newest_date_of_the_champions_is_measured() -> None:
    result = forecast_measures(record())
    assert result == pytest.approx({"forecast_coverage_q90": 0.92, "forecast_pinball_q90": 0.01, "forecast_mase": 0.7})
    assert forecast_measures(record().iloc[:0]) == {}


def test_every_method_has_a_line() -> None:
    top, bottom = forecast_figure(record()).axes
    assert {line.get_label() for line in bottom.lines} == {"blend", "champions"}
    assert len(top.lines) == 3  # and the target


def score(at: datetime, job: str, coverage: float, method: str = "blend", *, champion: bool = True) -> dict[str, Any]:
    series = {"cluster": "c", "job": job, "operator": "source", "as_of": at, "date": at.date()}
    measures = {"origins": 7, "mase": 0.7, "pinball_q90": 0.02, "coverage_q90": coverage}
    return {**series, "method": method, **measures, "champion": champion}


def read_record(folder: Path, rows: list[dict[str, Any]]) -> pd.DataFrame:
    table = LakeTable(str(folder), FORECAST_SCORES)
    table.append_arrow(pa.Table.from_pylist(rows, schema=arrow_schema(FORECAST_SCORES)))
    return forecast_record(cast(Lake, SimpleNamespace(few=lambda _: table)), NIGHT)


def test_the_newest_contest_of_each_series_counts_for_its_date(tmp_path: Path) -> None:
    first, day = NIGHT - timedelta(hours=1, minutes=40), timedelta(days=1)
    rows = [
        score(first - day, "a", 0.80),
        score(first - day, "a", 0.50, "seasonal_naive", champion=False),
        score(first - timedelta(hours=5), "b", 0.90),  # came later than the first contest of its day
        score(first - timedelta(hours=4), "b", 0.96),  # a contest of every hour, as releases before had
        score(first, "a", 0.86),
        score(NIGHT, "a", 0.10),  # is of this time, not before it
    ]
    result = read_record(tmp_path, rows)
    used = result[result["method"] == "champions"]
    assert used["date"].tolist() == [pd.Timestamp("2026-03-19"), pd.Timestamp("2026-03-20")]
    assert used["series"].tolist() == [2, 1]
    assert used["coverage_q90"].tolist() == pytest.approx([0.88, 0.86])
    assert sorted(result.loc[result["date"] == "2026-03-19", "method"]) == ["blend", "champions", "seasonal_naive"]


def test_the_first_date_counts_whole(tmp_path: Path) -> None:
    week = NIGHT - timedelta(days=7)
    rows = [score(week - timedelta(hours=1), "a", 0.8), score(week + timedelta(hours=1), "b", 0.9)]
    assert read_record(tmp_path, rows)["series"].tolist() == [2, 2]
