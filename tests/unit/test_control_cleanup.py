"""What persons said and what has ended goes, what is in force or cannot be read stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.limits.forgotten_lifts import delete_forgotten_lifts
from controller.limits.lost_restraints import OF_SETTINGS
from include.control import cleanup, small_objects
from include.control.approvals import Approval, ApprovalStore
from include.control.cleanup import delete_ended
from include.control.holds import EVERYTHING, FOLDER, Hold, HoldStore
from include.control.lifted_blocks import LiftedBlock, LiftedBlockStore
from include.control.small_objects import MOST_BYTES, ObjectFolder
from include.control.undo_orders import UndoOrder, UndoStore
from models.control.bad_steps import name_lift
from models.control.state import BlockedTarget, JobHistory
from models.control.undo import name_hold_until

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
    assert count_objects(tmp_path) == 4  # an undo has a hold of its own
    assert delete_ended(lake, NOW_S) == 4
    assert count_objects(tmp_path) == 0
    say_all(lake, NOW_S + DAY_S)
    HoldStore(lake).write(Hold("prod", "until it is released", "boss", NOW_S - 400 * DAY_S))
    assert delete_ended(lake, NOW_S) == 0
    assert count_objects(tmp_path) == 5


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


HISTORY = JobHistory(
    blocked=(BlockedTarget({"a": 4}, float("inf"), "blocked-1"),), bad_steps_s=(5.0,), held_until_s=70.0
)


def test_a_lift_goes_when_the_log_names_no_more_what_was_lifted(tmp_path: Path) -> None:
    """A suspension stays in the log for years: without its lift the job would be back in dry-run."""
    store, at_s = LiftedBlockStore(str(tmp_path)), NOW_S - 400 * DAY_S
    named = ["blocked-1", name_lift(5.0), name_hold_until(70.0)]
    for block_id in (*named, "blocked-0"):
        store.write(LiftedBlock("prod", "orders", block_id, at_s=at_s))
    store.write(LiftedBlock("prod", "orders", "young", at_s=NOW_S))
    store.write(LiftedBlock("of another", "orders", "blocked-0", at_s=at_s))
    store.write(LiftedBlock(OF_SETTINGS, OF_SETTINGS, "settings-1", at_s=at_s))
    delete_forgotten_lifts(str(tmp_path), "prod", lambda _: HISTORY, NOW_S)
    assert {one.block_id for one in store.read() if one.cluster == "prod"} == {*named, "young"}
    delete_forgotten_lifts(str(tmp_path), OF_SETTINGS, lambda _: HISTORY, NOW_S)  # a cluster may be called so
    assert {one.cluster for one in store.read()} == {"prod", "of another", OF_SETTINGS}


def test_too_many_objects_hold_everything_until_those_that_ended_are_removed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(small_objects, "MOST_OBJECTS", 5)
    folder = ObjectFolder(str(tmp_path), FOLDER)
    for number in range(9):
        folder.write(f"{number}.json", json.dumps({"scope": "prod/orders", "until_s": 5.0}).encode())
    (hold,) = HoldStore(str(tmp_path)).read(NOW_S)
    assert (hold.scope, "more than 5 objects" in hold.reason) == (EVERYTHING, True)
    assert [delete_ended(str(tmp_path), NOW_S) for _ in range(3)] == [5, 4, 0]
    assert HoldStore(str(tmp_path)).read(NOW_S) == []


def test_without_a_lake_nothing_happens(tmp_path: Path) -> None:
    assert delete_ended(str(tmp_path / "none"), NOW_S) == 0
