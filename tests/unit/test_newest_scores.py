"""What people are told of forecasts that are scored once a day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fleet.small_tables import SmallTables, select_newest_scores
from include.arrow_rows import arrow_schema
from include.lake_table import LakeTable
from include.tables import FORECAST_SCORES

MORNING = datetime(2026, 3, 20, 0, 20, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def score(
    at: datetime, job: str, coverage: float, *, cluster: str = "eu", method: str = "blend", champion: bool = True
) -> dict[str, Any]:
    series = {"cluster": cluster, "job": job, "operator": "source", "as_of": at, "date": at.date(), "method": method}
    return {**series, "origins": 15, "mase": 0.7, "pinball_q90": 0.02, "coverage_q90": coverage, "champion": champion}


ROWS = [
    score(MORNING - DAY, "a", 0.5),
    score(MORNING - DAY, "ended", 0.5),
    score(MORNING, "a", 0.90),
    score(MORNING, "a", 0.10, method="seasonal_naive", champion=False),
    score(MORNING, "b", 0.70),
    score(MORNING, "u", 0.95, cluster="us"),
    score(MORNING + 5 * HOUR, "b", 0.80),  # its contest was held again
    score(MORNING + 6 * HOUR, "new", 0.94),
]


def select_at(at: datetime) -> list[tuple[str, float]]:
    return sorted((row["job"], row["coverage_q90"]) for row in select_newest_scores(ROWS, at.timestamp()))


def test_the_newest_contest_of_each_source_counts_on_the_last_date() -> None:
    assert select_at(MORNING + 7 * HOUR) == [("a", 0.10), ("a", 0.90), ("b", 0.80), ("new", 0.94), ("u", 0.95)]
    assert select_at(MORNING) == [("a", 0.10), ("a", 0.90), ("b", 0.70), ("u", 0.95)]
    assert select_at(MORNING - HOUR) == [("a", 0.5), ("ended", 0.5)]
    assert select_at(MORNING - 2 * DAY) == []


def test_a_source_that_comes_later_in_the_day_leaves_the_coverage_of_the_others(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist(ROWS, schema=arrow_schema(FORECAST_SCORES))
    LakeTable(str(tmp_path), FORECAST_SCORES).append_arrow(rows)
    tables = SmallTables(str(tmp_path))
    assert tables.read_coverage((MORNING + 7 * HOUR).timestamp()) == pytest.approx({"eu": (0.90 + 0.80 + 0.94) / 3})
    assert tables.read_coverage((MORNING - HOUR).timestamp()) == {"eu": 0.5}
