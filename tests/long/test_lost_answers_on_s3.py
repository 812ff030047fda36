"""The answer to a conditional write is lost, others write, and its client asks once more: nothing is there twice."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from local_s3 import losing_answer, s3_environment, s3_server
from racing_writer import PAST, RACE

from controller.leases.lease import Lease
from include.arrow_rows import arrow_rows
from include.lake_table import LakeTable
from include.maintenance.table_upkeep import keep_up
from include.settings import Retention, load_settings

pytestmark = pytest.mark.long
NOW = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with s3_server() as running:
        yield running


@pytest.fixture
def lake(address: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    for name, value in s3_environment(address, request.node.name).items():
        if "MLFLOW" not in name:
            monkeypatch.setenv(name, value)
    return load_settings().paths.lake


def lose_answer(address: str, path: str, act: Callable[[], Any], between: Callable[[], Any] = lambda: None) -> Any:
    """Do something whose write to a path is carried out and not answered, something else, and let it ask again."""
    results: list[Any] = []

    def note() -> None:
        try:
            results.append(act())
        except Exception as error:
            results.append(error)

    acting = threading.Thread(target=note)
    with losing_answer(address, path) as wait:
        acting.start()
        wait()
        between()
    acting.join()
    return results[0]


def row(number: int) -> dict[str, Any]:
    return {"writer": "w", "number": number, "date": PAST.date()}


def numbers(lake: str) -> Counter[int]:
    return Counter(LakeTable(lake, RACE).read(["number"], date.min, date.max)["number"].to_pylist())


def merge(lake: str) -> None:
    made = keep_up(f"{lake}/{RACE.relative_path}", RACE, Retention(), NOW, applies=True)
    assert made.merged_files


def test_rows_that_were_merged_before_the_answer_are_there_once(address: str, lake: str) -> None:
    table = LakeTable(lake, RACE)
    table.append([row(0)])
    assert lose_answer(address, "_delta_log/", lambda: table.append([row(1)]), lambda: merge(lake)) is None
    table.append([row(2)])
    assert numbers(lake) == {0: 1, 1: 1, 2: 1}


def test_a_slice_that_was_empty_and_was_merged_before_the_answer_is_there_once(address: str, lake: str) -> None:
    table = LakeTable(lake, RACE)
    table.append([{**row(0), "writer": "other"}])
    rows = arrow_rows(RACE, [row(1)])

    def replace() -> None:
        table.replace(rows, "writer = 'w'")

    assert lose_answer(address, "_delta_log/", replace, lambda: merge(lake)) is None
    assert numbers(lake) == {0: 1, 1: 1}
    replace()
    assert numbers(lake) == {0: 1, 1: 1}


def test_another_commit_with_that_number_is_no_own_one(address: str, lake: str) -> None:
    mine, other = LakeTable(lake, RACE), LakeTable(lake, RACE)
    for number in range(0, 10, 2):
        mine.append([row(number)])
        other.append([row(number + 1)])
    assert numbers(lake) == dict.fromkeys(range(10), 1)


def test_a_merge_whose_answer_was_lost_loses_and_doubles_nothing(address: str, lake: str) -> None:
    table = LakeTable(lake, RACE)
    for number in range(3):
        table.append([row(number)])
    merged = lose_answer(address, "_delta_log/", lambda: merge(lake), lambda: table.append([row(3)]))
    assert merged is None or isinstance(merged, CommitFailedError)
    table.append([row(4)])
    merge(lake)
    assert numbers(lake) == dict.fromkeys(range(5), 1)
    assert len(DeltaTable(f"{lake}/{RACE.relative_path}").file_uris()) == 1


def test_a_table_whose_first_commit_was_not_answered_is_there(address: str, lake: str) -> None:
    assert lose_answer(address, "_delta_log/", lambda: LakeTable(lake, RACE).append([row(0)])) is None
    assert numbers(lake) == {0: 1}


@pytest.mark.parametrize("what", ["take", "renew"])
def test_a_lease_whose_answer_was_lost_is_held(address: str, lake: str, what: str) -> None:
    lease, other = (Lease(lake, "live", owner, time.time) for owner in ("me", "other"))
    if what == "renew":
        assert lease.take()
    made = lose_answer(address, "ops/leases", getattr(lease, what), other.take)
    assert made in {True, None}
    lease.check()
    assert lease.number == (2 if what == "renew" else 1)
    assert not other.take()
