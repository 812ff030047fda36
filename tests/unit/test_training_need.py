"""When a training is triggered before the nightly one, on real Delta tables without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from include.settings import Settings, Training
from include.tables import MODEL_JOBS, MODEL_VERSIONS, OBSERVATIONS, Table
from include.training_need import LastTraining, find_training_need, judge_need

pytestmark = pytest.mark.covers("apply_review 24")
NOW = datetime(2026, 11, 20, 0, 0, tzinfo=UTC)  # the look-back reaches into the day before
ORDERS, CLICKS = ("eu", "orders"), ("us", "clicks")
OPTIONS = Training()


def last(hours_ago: float, *jobs: tuple[str, str], champion: bool = True) -> LastTraining:
    return LastTraining(NOW - timedelta(hours=hours_ago), champion, frozenset(jobs))


@pytest.mark.parametrize(
    ("windows", "training", "need"),
    [
        ({}, None, None),
        ({ORDERS: 2}, None, None),
        ({ORDERS: 3}, None, "there is no model yet, and jobs with 3 windows or more: 1"),
        ({ORDERS: 12}, last(12, ORDERS), None),
        ({ORDERS: 12, CLICKS: 12}, last(12, ORDERS), "in no model yet (1): us/clicks"),
        ({ORDERS: 12, CLICKS: 12}, last(1, ORDERS), None),  # at most once in two hours
        ({ORDERS: 12, CLICKS: 1}, last(12, ORDERS), None),
        ({ORDERS: 12}, last(3, ORDERS, champion=False), "gave no champion"),
        ({ORDERS: 12}, last(1, ORDERS, champion=False), None),
    ],
)
def test_need(windows: dict[tuple[str, str], int], training: LastTraining | None, need: str | None) -> None:
    result = judge_need(windows, training, NOW, OPTIONS)
    assert (result is None) == (need is None)
    assert (need or "") in (result or "")


def write(lake: Path, table: Table, rows: list[dict[str, object]]) -> None:
    partitions = [name for name in table.partition_by if name in rows[0]]
    write_deltalake(lake / table.relative_path, pa.Table.from_pylist(rows), mode="append", partition_by=partitions)


def window(job: tuple[str, str], minutes_ago: int, operator: str = "src") -> dict[str, object]:
    start = NOW - timedelta(minutes=minutes_ago)
    named = {"cluster": job[0], "job": job[1], "operator": operator}
    return named | {"window_start": start, "date": start.date(), "hour": start.hour}


def test_need_is_found_in_the_tables(tmp_path: Path) -> None:
    settings = Settings()
    settings = settings.model_copy(update={"paths": settings.paths.model_copy(update={"lake": str(tmp_path)})})
    assert find_training_need(settings, NOW) is None
    old = [window(ORDERS, minutes) for minutes in (600, 605, 610, 615)]
    few = [window(ORDERS, 5, name) for name in ("src", "map", "sink")]  # one window of three operators
    write(tmp_path, OBSERVATIONS, old + few)
    assert find_training_need(settings, NOW) is None
    write(tmp_path, OBSERVATIONS, [window(ORDERS, minutes) for minutes in (10, 15)])
    assert "there is no model yet" in str(find_training_need(settings, NOW))
    assert find_training_need(settings, NOW - timedelta(minutes=20)) is None

    trained = NOW - timedelta(hours=5)
    made = {"as_of": trained, "gate": "first", "champion_before": None}
    write(tmp_path, MODEL_VERSIONS, [made | {"champion_before": ""}, made | {"as_of": trained - timedelta(days=1)}])
    row = {"as_of": trained, "cluster": "eu", "job": "orders", "date": trained.date()}
    write(tmp_path, MODEL_JOBS, [row])
    assert find_training_need(settings, NOW) is None
    write(tmp_path, OBSERVATIONS, [window(CLICKS, minutes) for minutes in (5, 10, 15)])
    assert find_training_need(settings, NOW) == "in no model yet (1): us/clicks"
