"""What is kept of a job between evaluations comes back to the next controller, whatever of it there is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller.memory.stored_memories import REMEMBERED_S, StoredMemories
from controller.view.job_view import EvaluationState
from controller.view.plan_rows import PolicyMemory
from include.lake_table import LakeTable, date_of, timestamp_of
from include.tables import CONTROLLER_MEMORY
from lab.policies.baselines.reactive import ReactiveMemory
from models.policies.memory import dump
from tests.unit.test_evaluation import NOW_S, stand
from tests.unit.test_present_names import BEFORE

STANDING = stand()
REACTS = PolicyMemory("reactive", dump(ReactiveMemory()))
STATES = {
    ("c", "all"): replace(STANDING, remembered=REACTS, operators=BEFORE),
    ("c", "left as it is"): replace(STANDING, standing=None, operators=BEFORE),
    ("c", "of unknown operators"): STANDING,
    ("c", "never planned for"): replace(STANDING, plan_as_of_s=None),
    ("c", "of a policy that reacts"): EvaluationState(1.0, STANDING.standing, REACTS, BEFORE),
    ("c", "reacts, left as it is"): EvaluationState(None, None, REACTS),
}


def write(lake: Path, *rows: dict[str, Any]) -> None:
    of_all = {"cluster": "c", "at": timestamp_of(NOW_S), "date": date_of(NOW_S)}
    LakeTable(str(lake), CONTROLLER_MEMORY).append([of_all | row for row in rows])


def test_what_is_kept_comes_back_as_it_was(tmp_path) -> None:
    memories = StoredMemories(str(tmp_path))
    memories.append({**STATES, ("c", "begun"): EvaluationState()}, NOW_S)
    read = memories.read([*STATES, ("c", "begun"), ("c", "never kept")], NOW_S)
    assert read == {**STATES, ("c", "begun"): EvaluationState()}
    assert memories.read([("c", "all")], NOW_S) == {("c", "all"): STATES["c", "all"]}


def test_what_the_controller_of_an_earlier_release_kept_of_the_planner_is_as_before_the_first_time(tmp_path) -> None:
    text = '{"back_to":null,"due":[],"histories":{},"planned":true,"seen_until_s":300.0,"shares":{"map":0.5}}'
    write(tmp_path, {"job": "orders", "plan_as_of": timestamp_of(1.0), "memory": text})
    assert StoredMemories(str(tmp_path)).read([("c", "orders")], NOW_S) == {("c", "orders"): EvaluationState(1.0)}


def test_a_memory_that_cannot_be_read_is_said_and_is_none(tmp_path, caplog: pytest.LogCaptureFixture) -> None:
    good = {"job": "good", "memory": "{}"}
    write(tmp_path, good, {"job": "bad", "memory": "{"}, good | {"job": "odd", "standing": "{}"})
    read = StoredMemories(str(tmp_path)).read([("c", "good"), ("c", "bad"), ("c", "odd")], NOW_S)
    assert set(read) == {("c", "good")}
    assert [one.getMessage().partition(":")[0] for one in caplog.records] == ["c/bad", "c/odd"]


def test_without_a_change_nothing_is_written(tmp_path) -> None:
    StoredMemories(str(tmp_path)).append({}, NOW_S)
    assert list(tmp_path.iterdir()) == []


def test_the_newest_of_each_job_counts_for_so_long_in_one_commit(tmp_path) -> None:
    names = [("c", f"job-{number}") for number in range(3)]
    memories = StoredMemories(str(tmp_path))
    assert memories.read(names, NOW_S) == {}
    first = {name: EvaluationState(float(place + 1)) for place, name in enumerate(names)}
    memories.append(first, NOW_S - 300)
    memories.append({names[1]: STANDING}, NOW_S)
    assert len(list((tmp_path / CONTROLLER_MEMORY.relative_path / "_delta_log").glob("*.json"))) == 3  # with its making
    again = StoredMemories(str(tmp_path))
    assert again.read(names, NOW_S) == {**first, names[1]: STANDING}
    assert again.read(names, NOW_S - 10) == first
    assert again.read(names, NOW_S + REMEMBERED_S - 1) == {names[1]: STANDING}
    assert again.read(names, NOW_S + REMEMBERED_S + 1) == {}
