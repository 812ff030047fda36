"""Mode approve from the answer's file to the request: each yes has one request, whatever the clock of who gives it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from flink_server import FakeJob, FlinkServer, serving
from scenario import ENRICH, JOB, SOURCE, Scenario, both

from controller.limits.limits_of_job import LimitsReader
from include.control.approvals import NOBODY, Approval, ApprovalStore
from include.settings import check_settings
from models.control.case import Verb

NAMES = {"source": SOURCE, "enrich": ENRICH}
SETTINGS = check_settings(
    {
        "clusters": {"prod": {"rest_url": "http://h:1"}},
        "limits": {"mode": "approve", "cooldown_s": 0},
        "apply": {"foreign_change_hold_h": 0.01, "block_h": 0.01},
    }
)


class Approved(Scenario):
    """A job in mode approve, whose answers are files."""

    store: ApprovalStore

    def tick(self, after_s: float = 60.0, number: int = 1):
        if hasattr(self, "store"):
            read = LimitsReader(
                lambda: SETTINGS, lambda clusters, now: [], self.store.read, lambda: self.now_s + after_s
            )
            self.limits = read.read_limits("prod", "orders", NAMES)
        return super().tick(after_s, number)

    def answer(self, by: str, target: int, *, is_approved: bool = True, ahead_s: float = 0.0) -> None:
        at_s = self.now_s + ahead_s
        before, after = (dict.fromkeys(NAMES, count) for count in (self.flink.requested[SOURCE], target))
        reported = Approval("prod", "orders", "shown", before, after, is_approved, by, at_s, at_s + 3 * 3600)
        self.store.write(reported)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Approved]:
    with serving(FlinkServer(FakeJob(parallelism=both(4)))) as server:
        server.free_slots = 20
        made = Approved(server)
        (tmp_path / "lake").mkdir()
        made.store = ApprovalStore(str(tmp_path / "lake"))
        yield made


def go_back(world: Approved) -> None:
    """Let a person take the job back to four, and the hold for it pass."""
    world.put(both(4))
    for _ in range(3):
        world.tick()


@pytest.mark.parametrize("ahead_s", [-900.0, 0.0, 900.0])
@pytest.mark.covers("harm yes-twice")
def test_a_yes_allows_one_request(world: Approved, ahead_s: float) -> None:
    world.wanted = both(8)
    assert world.tick().reason == "needs_approval"
    world.answer("ada", 8, ahead_s=ahead_s)
    assert (world.tick().verb, world.tick().verb) == (Verb.RESCALE, Verb.CONFIRM)
    assert world.log.read_last(JOB).history.used_approvals
    for _ in range(4):
        go_back(world)
        assert world.tick().reason == "needs_approval"
    assert world.puts == 1
    world.answer("ada", 8, ahead_s=ahead_s)  # asked and answered again
    assert world.tick().verb is Verb.RESCALE


def test_a_yes_covers_the_step_of_the_next_evaluation_that_differs_by_little(world: Approved) -> None:
    world.answer("ada", 8)
    world.wanted = both(9)
    assert world.tick().verb is Verb.RESCALE


@pytest.mark.covers("harm no-lifted")
def test_a_no_outweighs_what_others_say_later(world: Approved) -> None:
    world.wanted = both(8)
    world.answer("ada", 8, is_approved=False)
    for by in ("ada", "bob", "carol"):
        world.tick()
        world.answer(by, 8)
    assert world.tick().reason == "denied"
    world.wanted = both(9)  # a step like it
    assert world.tick().reason == "denied"
    assert world.puts == 0
    world.store.lift([one for one in world.store.read(world.now_s) if not one.is_approved])
    assert world.tick().verb is Verb.RESCALE


@pytest.mark.parametrize(("by", "is_sent"), [("ada", False), (NOBODY, True)])
@pytest.mark.covers("harm no-lifted")
def test_a_no_stands_though_the_mode_becomes_auto(world: Approved, monkeypatch, by: str, is_sent: bool) -> None:
    """Silence is none: that is about who has to be asked, and auto asks nobody."""
    world.wanted = both(8)
    world.answer(by, 8, is_approved=False)
    assert world.tick().reason == "denied"
    values = SETTINGS.model_dump(exclude_unset=True, mode="json")
    values["limits"]["mode"] = "auto"
    monkeypatch.setattr(sys.modules[__name__], "SETTINGS", check_settings(values))
    assert world.tick().reason == ("reactive" if is_sent else "denied")
    assert world.puts == is_sent


def test_a_yes_whose_request_was_withdrawn_or_recorded_only_is_not_used_up(world: Approved) -> None:
    world.answer("ada", 8)
    world.wanted = both(8)
    asked = world.actuator.observe

    def change_before_the_second_look(job: str):
        observed = asked(job)
        if world.log.entries[-1].sends and world.flink.requested == both(4):
            world.put(both(5))
            return asked(job)
        return observed

    world.actuator.observe = change_before_the_second_look  # type: ignore[method-assign]
    assert world.tick().reason == "withdrawn_before_sending"
    assert not world.history.used_approvals
