"""What is kept of a job between evaluations comes back to the next controller, whatever of it there is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.memory.memory_store import JobMemory, MemoryStore
from controller.memory.stored_memories import StoredMemories
from controller.view.job_view import EvaluationState
from controller.view.plan_rows import PolicyMemory
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


def test_what_is_kept_comes_back_as_it_was(tmp_path) -> None:
    memories = StoredMemories(MemoryStore(str(tmp_path)))
    memories.append({**STATES, ("c", "begun"): EvaluationState()}, NOW_S)
    read = memories.read([*STATES, ("c", "begun"), ("c", "never kept")], NOW_S)
    assert read == {**STATES, ("c", "begun"): EvaluationState()}
    assert memories.read([("c", "all")], NOW_S) == {("c", "all"): STATES["c", "all"]}


def test_what_the_controller_of_an_earlier_release_kept_of_the_planner_is_as_before_the_first_time(tmp_path) -> None:
    store = MemoryStore(str(tmp_path))
    text = '{"back_to":null,"due":[],"histories":{},"planned":true,"seen_until_s":300.0,"shares":{"map":0.5}}'
    store.append_all([JobMemory("c", "orders", NOW_S, 1.0, text)])
    assert StoredMemories(store).read([("c", "orders")], NOW_S) == {("c", "orders"): EvaluationState(1.0)}


def test_a_memory_that_cannot_be_read_is_said_and_is_none(tmp_path, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore(str(tmp_path))
    good = JobMemory("c", "good", NOW_S, None, "{}")
    store.append_all([good, replace(good, job="bad", memory="{"), replace(good, job="odd", standing="{}")])
    read = StoredMemories(store).read([("c", "good"), ("c", "bad"), ("c", "odd")], NOW_S)
    assert set(read) == {("c", "good")}
    assert [one.getMessage().partition(":")[0] for one in caplog.records] == ["c/bad", "c/odd"]


def test_without_a_change_nothing_is_written(tmp_path) -> None:
    StoredMemories(MemoryStore(str(tmp_path))).append({}, NOW_S)
    assert list(tmp_path.iterdir()) == []
