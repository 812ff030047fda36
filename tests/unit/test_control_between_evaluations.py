"""A cluster's control: which jobs it asks for between two evaluations, and what it knows of them."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from flink_server import FakeJob, FlinkServer, serving

from controller.cluster_control import ClusterControl
from controller.log.delta_log import open_control_log
from controller.view.job_view import JobView
from include.control.undo_orders import UndoOrder, UndoStore
from include.settings import SETTINGS_FILE_VARIABLE
from include.tables import CONTROL_LOG
from models.control.state import Intention, Origin
from tests.unit import test_cluster_control
from tests.unit.test_evaluation import plan, seen, step

NOW_S = [time.time()]


class World(test_cluster_control.World):
    """The cluster and its control, by a clock that a test turns."""

    def pass_s(self, seconds: float) -> None:
        NOW_S[0] += seconds

    @property
    def job(self) -> FakeJob:
        return self.server.jobs[0]

    def decide(
        self,
        count: int | None = None,
        made: ClusterControl | None = None,
        *,
        evaluates: bool = True,
        view: JobView | None = None,
    ) -> str:
        """Decide on the job, as seen by the polls; returns verb and reason, or why the cluster was left alone."""
        wanted = None
        if count is not None:
            target = dict.fromkeys(self.job.requested or {}, count)
            wanted = Intention(target, Origin.PLAN, f"step-{count}", "load", time.time() + 600)
        views = {self.job.name: view or self.view()}
        control = made or self.made
        result, problem = control.control(views, {self.job.name: wanted}, None, is_evaluation=evaluates)
        assert isinstance(result, Counter)
        return problem or next(iter(result), "")

    def view(self, **known: Any) -> JobView:
        ids = {name: vertex for vertex, name in self.job.names.items()}
        return JobView("live", self.job.name, seen=seen(time.time(), vertex_ids=ids), **known)

    @property
    def rows(self) -> int:
        """Lines of the log, as any later controller would read them."""
        log = open_control_log(str(self.root / "lake"))
        return len(log.read(["job"], date.min, date.max))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "settings.toml"))
    NOW_S[0] = time.time()
    monkeypatch.setattr(time, "time", lambda: NOW_S[0])
    with serving(FlinkServer(FakeJob())) as server:
        yield World(tmp_path, server)


def test_a_new_job_is_taken_over_and_decided_on_at_once_and_any_other_once(world: World) -> None:
    assert world.decide(3) == "rescale plan"
    assert world.decide(3) == "confirm runs_as_requested"


def test_of_a_job_of_which_nothing_is_wanted_nothing_is_asked_between_evaluations(world: World) -> None:
    assert world.decide() == "wait as_desired"
    asked = len(world.server.requests)
    assert world.decide(evaluates=False) == ""
    assert len(world.server.requests) == asked
    assert world.decide() == "wait as_desired"
    assert len(world.server.requests) > asked
    assert world.decide(3, evaluates=False) == "rescale plan"


def test_a_request_is_followed_between_evaluations_until_it_is_judged(world: World) -> None:
    world.decide()
    assert world.decide(3) == "rescale plan"
    assert world.decide(evaluates=False) == "confirm runs_as_requested"
    assert world.made.log.read_history("live/orders").to_judge is not None
    assert world.decide(evaluates=False) == "wait as_desired"


def test_a_request_whose_job_no_poll_has_seen_is_followed_as_well(world: World) -> None:
    assert world.decide(3) == "rescale plan"
    assert world.made.control({}, {}, None, is_evaluation=False) == (Counter({"confirm runs_as_requested": 1}), None)


def test_a_request_is_followed_by_what_the_polls_have_seen_of_its_job(world: World) -> None:
    """The log names its operators, which their ids alone do not tell."""
    world.decide(3)
    world.decide(evaluates=False)
    entry = world.made.log.read_last("live/orders")
    assert entry is not None
    assert (entry.action.verb, dict(entry.provenance.operators)) == ("confirm", world.job.names)


@pytest.mark.parametrize(("seconds", "reason"), [(30.0, "roll_back undo"), (7300.0, "")])
def test_what_a_person_wants_taken_back_is_taken_back_between_evaluations(
    world: World, seconds: float, reason: str
) -> None:
    world.decide()
    before = dict(world.job.requested or {})
    world.decide(3)
    world.decide(3)
    history = world.made.log.read_history("live/orders")
    end = replace(history, to_judge=None)
    entry = world.made.log.read_last("live/orders")
    assert entry is not None
    world.made.log.append(replace(entry, history=end))  # it was judged meanwhile
    assert world.decide(evaluates=False) == ""
    at_s = time.time()
    ids = (world.job.job_id, "step-3", dict(world.job.requested or {}), before)
    order = UndoOrder("live", "orders", *ids, by="ada", at_s=at_s, until_s=at_s + 7200)
    UndoStore(str(world.root / "lake")).write(order)
    world.pass_s(seconds)
    world.made = world.make("later") if seconds > 60 else world.made
    assert world.decide(evaluates=False) == reason


def test_the_log_has_the_plan_behind_a_decision(world: World) -> None:
    world.decide(3, view=world.view(plan=plan(step(), as_of_s=1_795_000_000.0)))
    entry = world.made.log.read_last("live/orders")
    assert entry is not None
    assert entry.provenance.plan_as_of_s == 1_795_000_000.0


def test_what_the_log_has_lost_is_written_again_with_the_next_evaluation(world: World) -> None:
    world.decide(3)
    world.decide(3)
    assert world.rows > 0
    shutil.rmtree(world.root / "lake" / CONTROL_LOG.relative_path)
    assert world.decide(evaluates=False) == "wait as_desired"
    assert world.rows == 0
    assert world.decide() == "wait as_desired"
    assert world.rows == 1


@pytest.mark.parametrize("are_removed", [False, True])
def test_a_controller_that_gets_the_lease_again_has_what_another_has_written_meanwhile(
    world: World, are_removed: bool
) -> None:
    """Where all leases are removed each time, nothing in their numbers shows that another one was there."""

    def hand_over(made: ClusterControl) -> None:
        made.release()
        if are_removed:
            shutil.rmtree(world.root / "lake" / "ops" / "leases")

    world.decide()
    other = world.make("other")
    hand_over(world.made)
    assert world.decide(3, other) == "rescale plan"
    hand_over(other)
    assert world.decide(evaluates=False) == "confirm runs_as_requested"


def test_a_term_that_has_ended_is_noticed_before_a_new_one_is_taken(world: World) -> None:
    """Another controller may have had the lease in between: what it wrote is read first."""
    world.decide()
    world.pass_s(100.0)
    assert world.decide(3).endswith("of the lease has ended")
    assert world.server.asked("PUT") == []
    assert world.decide(3) == "rescale plan"


@pytest.mark.parametrize(("mode", "reason"), [("off", "wait mode_off"), ("auto", "rescale plan (dry run)")])
def test_a_rehearsal_is_at_most_a_dry_run(world: World, mode: str, reason: str) -> None:
    world.path.write_text(world.path.read_text().replace('"auto"', f'"{mode}"'))
    world.pass_s(1000.0)
    world.made = world.make("rehearsal")
    world.made.is_rehearsal = True
    assert world.decide(3) == reason
    assert world.server.asked("PUT") == []
