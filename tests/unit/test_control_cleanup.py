"""What persons said and what has ended goes, what is in force or cannot be read stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.control import cleanup
from include.control.approvals import Approval, ApprovalStore
from include.control.cleanup import delete_ended
from include.control.holds import FOLDER, Hold, HoldStore
from include.control.lifted_blocks import LiftedBlock, LiftedBlockStore
from include.control.small_objects import MOST_BYTES
from include.control.undo_orders import UndoOrder, UndoStore

NOW_S = 1_795_000_000.0
DAY_S = 86_400.0


def say_all(lake: str, until_s: float) -> None:
    """A person's answer, hold and undo that end then."""
    answer = Approval("prod", "orders", "step", {"a": 1}, {"a": 2}, True, "boss", until_s - 60, until_s)
    ApprovalStore(lake).write(answer)
    HoldStore(lake).write(Hold("prod/clicks", "night", "boss", until_s - 60, until_s))
    order = UndoOrder("prod", "orders", "id", "step", {"v": 2}, {"v": 1}, "boss", "", until_s - 60, until_s)
    UndoStore(lake).write(order)


def count_objects(lake: Path) -> int:
    return sum(path.is_file() for path in (lake / "_control").rglob("*"))


def test_what_ended_a_week_ago_goes_and_what_is_in_force_stays(tmp_path: Path) -> None:
    lake = str(tmp_path)
    say_all(lake, NOW_S - cleanup.STAYS_S - 1)
    LiftedBlockStore(lake).write(LiftedBlock("prod", "orders", "block", "boss", NOW_S - 61 * DAY_S))
    assert count_objects(tmp_path) == 5  # an undo has a hold of its own
    assert delete_ended(lake, NOW_S) == 5
    assert count_objects(tmp_path) == 0
    say_all(lake, NOW_S + DAY_S)
    HoldStore(lake).write(Hold("prod", "until it is released", "boss", NOW_S - 400 * DAY_S))
    LiftedBlockStore(lake).write(LiftedBlock("prod", "orders", "block", "boss", NOW_S - DAY_S))
    assert delete_ended(lake, NOW_S) == 0
    assert count_objects(tmp_path) == 6


@pytest.mark.parametrize("ahead_s", [3600.0, 6 * DAY_S])
def test_a_clock_that_is_days_ahead_deletes_nothing_in_force(tmp_path: Path, ahead_s: float) -> None:
    say_all(str(tmp_path), NOW_S + 60)
    assert delete_ended(str(tmp_path), NOW_S + ahead_s) == 0


def test_what_cannot_be_read_stays_and_holds(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    (folder / "odd.json").write_text("{")
    (folder / "list.json").write_text("[1]")
    (folder / "huge.json").write_bytes(b" " * (MOST_BYTES + 1))
    assert delete_ended(str(tmp_path), NOW_S) == 0
    assert len(HoldStore(str(tmp_path)).read(NOW_S)) == 3


def test_without_a_lake_nothing_happens(tmp_path: Path) -> None:
    assert delete_ended(str(tmp_path / "none"), NOW_S) == 0
