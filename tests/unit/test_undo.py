"""A person takes our last rescale back: by the controller's own path, with its gates, and without its cooldown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from controlled_flink import ENRICH, SOURCE, World, controlled

from include.control.holds import Hold, HoldStore
from include.control.undo_orders import UndoOrder, UndoStore, find_order
from models.control.case import OutcomeCheck
from models.control.limits import Limits
from models.control.state import Mode
from models.control.undo import Undo, name_hold

BEFORE, FOUR = {SOURCE: 1, ENRICH: 2}, {SOURCE: 4, ENRICH: 4}
SLOW = Limits(mode=Mode.AUTO, cooldown_s=3600.0, rescales_per_hour=1)


@pytest.fixture
def world() -> Iterator[World]:
    """A job that was brought up to four a moment ago, under limits that allow no further rescale for an hour."""
    with controlled() as world:
        world.limits, world.wanted = SLOW, 4
        assert world.job.requested == BEFORE
        assert world.ticks(6)[-1] in {"as_desired", "runs_as_requested"}
        assert world.job.requested == FOUR
        world.wanted = 6
        assert world.tick().reason in {"cooldown", "rescales_per_hour"}
        yield world


def undo_in(world: World, **changed: object) -> Undo:
    """Return the order that the command writes."""
    order = Undo("step-4", world.job.job_id, FOUR, BEFORE, "ada", "late since", world.now() + 7200)
    return replace(order, **changed)  # type: ignore[arg-type]


def take_back(world: World, **changed: object) -> None:
    world.limits = replace(world.limits, is_held=True, hold_reason="held by ada", undo=undo_in(world, **changed))


def test_it_goes_out_at_once_and_the_job_is_held_afterwards(world: World) -> None:
    take_back(world)
    action = world.tick()
    assert (action.verb, action.reason, action.is_dry_run) == ("roll_back", "undo", False)
    assert action.detail.startswith("ada takes the rescale of step step-4 back: late since")
    assert world.ticks(30)[-1] == "on_hold"
    assert (world.job.requested, world.job.parallelism) == (BEFORE, BEFORE)
    assert world.puts == 2  # the rescale, and the undo, once
    assert not world.entries[-1].history.bad_steps_s


def test_after_the_hold_the_plan_goes_on(world: World) -> None:
    take_back(world)
    world.ticks(10)
    world.limits = replace(SLOW, cooldown_s=0.0, rescales_per_hour=9)
    assert "plan" in world.ticks(10)
    assert world.job.requested == {SOURCE: 6, ENRICH: 6}


def test_what_somebody_has_changed_since_stays(world: World) -> None:
    world.job.requested = {SOURCE: 3, ENRICH: 3}
    take_back(world)
    world.ticks(10)
    assert world.job.requested == {SOURCE: 3, ENRICH: 3}
    assert world.puts == 1


@pytest.mark.parametrize(
    ("changed", "reason"),
    [({"mode": Mode.OFF}, "mode_off"), ({"in_blackout": True}, "blackout"), ({"undo": None}, "on_hold")],
)
def test_gates_hold_it_back(world: World, changed: dict[str, object], reason: str) -> None:
    take_back(world)
    world.limits = replace(world.limits, **changed)  # type: ignore[arg-type]
    assert world.tick().reason == reason
    assert world.puts == 1


def test_in_dry_run_it_is_recorded_alone(world: World) -> None:
    take_back(world)
    world.limits = replace(world.limits, mode=Mode.DRY_RUN)
    assert world.tick().is_dry_run
    assert world.puts == 1


def test_it_needs_no_yes_and_goes_before_the_judgement_of_the_same_rescale(world: World) -> None:
    take_back(world)
    world.limits, world.outcome = replace(world.limits, mode=Mode.APPROVE), OutcomeCheck(True, "records wait")
    assert world.tick().reason == "undo"
    world.outcome = OutcomeCheck()
    world.ticks(5)
    assert world.job.requested == BEFORE


@pytest.mark.parametrize("changed", [{"until_s": 0.0}, {"job_id": "f" * 32}, {"undone": BEFORE}, {"target": FOUR}])
def test_an_order_about_something_else_is_a_hold_alone(world: World, changed: dict[str, object]) -> None:
    take_back(world, **changed)
    assert world.tick().reason == "on_hold"


def test_a_person_may_end_the_hold_after_a_foreign_change(world: World) -> None:
    world.job.requested = {SOURCE: 3, ENRICH: 3}
    world.limits = replace(SLOW, cooldown_s=0.0, rescales_per_hour=9)
    assert world.ticks(5) == ["foreign_change", "held"]
    released = name_hold(world.entries[-1].history)
    world.limits = replace(world.limits, lifted_blocks=(released,))
    assert "plan" in world.ticks(5)
    assert world.job.requested == {SOURCE: 6, ENRICH: 6}


ORDER = UndoOrder("prod", "orders", "j", "step-4", {"a": 4}, {"a": 2}, "ada", "late", 100.0, 7300.0)


def test_an_order_counts_beside_its_own_hold_alone(tmp_path) -> None:
    store, holds = UndoStore(str(tmp_path)), HoldStore(str(tmp_path))
    mine = Hold("prod/orders", "wait", "bob", 50.0)
    holds.write(mine)
    store.write(ORDER)
    assert store.read() == [ORDER]
    named = holds.read_named(200.0)
    assert sorted(one.by for one in named.values()) == ["ada", "bob"]  # it replaces nobody's hold
    assert find_order(store.read(), "prod", "orders", list(named.values())) is None
    holds.release(next(name for name, one in named.items() if one == mine))
    assert find_order(store.read(), "prod", "orders", holds.read(200.0)) == ORDER
    assert find_order(store.read(), "prod", "orders", holds.read(7300.0)) is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"cluster": "prod"}', b"\xff", b'{"cluster": 1}'])
def test_what_is_no_order_undoes_nothing(tmp_path, content: bytes) -> None:
    UndoStore(str(tmp_path)).write(ORDER)
    folder = tmp_path / "_control" / "undos"
    next(folder.iterdir()).write_bytes(content)
    assert UndoStore(str(tmp_path)).read() == []
