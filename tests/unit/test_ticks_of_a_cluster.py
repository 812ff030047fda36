"""Ticks of a controller on a cluster over REST: what is read, kept and written, and what a cluster at work misses."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from flink_server import FakeJob, FlinkServer, Request, serving

from controller.actuators.choose_actuator import open_cluster_actuator
from controller.cluster_control import ClusterControl
from controller.command import poll_once
from controller.leases.lease import Lease
from controller.limits.limits_of_job import open_limits
from controller.log.delta_log import DeltaControlLog, open_control_log
from controller.memory.stored_memories import StoredMemories
from controller.tick import FORGET_AFTER_S, Readers, Ticker
from controller.view.champion import ChampionReader
from controller.view.plan_tables import PlanTables
from controller.wiring import build_ticker
from include.lake_table import LakeTable
from include.settings import SETTINGS_FILE_VARIABLE, load_settings
from include.tables import CONTROLLER_MEMORY, PLANS, RESCALE_OUTCOMES
from models.polling.poll_history import PollHistory
from tests.unit.test_rescale_outcomes import judged

FILE = """
[paths]
lake = "{root}/lake"
raw = "{root}/raw"
out = "{root}/out"
[planner]
policy = "need_vector"
timing.apply_every_s = 60
[apply]
tick_s = 60
[limits]
cooldown_s = 0
[clusters.live]
rest_url = "{url}"
actuator = "{actuator}"
limits.mode = "auto"
"""


class World:
    """A cluster, and controllers of it that are made from a settings file."""

    def __init__(self, root: Path, server: FlinkServer) -> None:
        self.root, self.server = root, server
        # Ten seconds after jobs are evaluated, so that no evaluation comes by itself.
        self.now_s = time.time() // EVALUATED_S * EVALUATED_S + EVALUATED_S + 10
        self.lake = str(root / "lake")
        self.write("rest")

    def write(self, actuator: str) -> None:
        file = self.root / "settings.toml"
        file.write_text(FILE.format(root=self.root, url=self.server.url, actuator=actuator))
        os.utime(file, (self.now_s - 1000, self.now_s - 1000))

    def start(self, owner: str = "one", *, is_rehearsal: bool = False) -> Ticker:
        """Return a controller that knows the job from its plan alone."""
        return build_ticker(load_settings, ["live"], owner, lambda: self.now_s, is_rehearsal=is_rehearsal)

    def make_control(self) -> ClusterControl:
        """Return a control whose cluster is never asked."""
        settings, lease = load_settings(), Lease(self.lake, "live", "one", time.time)
        return ClusterControl(
            name="live",
            actuator=open_cluster_actuator(settings, "live", lease.may_send),
            log=DeltaControlLog(open_control_log(self.lake), "live", lease, time.time),
            lease=lease,
            limits=open_limits(settings, time.time, load_settings),
            clock=time.time,
            late_after_s=60.0,
        )

    def read_memories(self) -> list[dict[str, object]]:
        """Return what controllers have kept of the job."""
        return DeltaTable(f"{self.lake}/{CONTROLLER_MEMORY.relative_path}").to_pyarrow_table().to_pylist()

    def plan(self, count: int) -> None:
        """Write the plan of the job, made ten minutes ago, with one step that is due now."""
        at, job = datetime.fromtimestamp(self.now_s, UTC), self.server.jobs[0]
        before = {job.names[vertex]: parallelism for vertex, parallelism in job.parallelism.items()}
        hours = {name: datetime.fromtimestamp(self.now_s + s, UTC) for name, s in TIMES.items()}
        row = {
            "step_id": f"step-{count}",
            "cluster": "live",
            "job": job.name,
            "step_index": 0,
            "status": "planned",
            "parallelism_from": before,
            "parallelism_to": dict.fromkeys(before, count),
            "slots_from": max(before.values()),
            "slots": count,
            "reason": "as forecast",
            "policy": "need_vector",
            "date": at.date(),
        }
        LakeTable(self.lake, PLANS).append([row | hours])


EVALUATED_S = 60.0
DRY_RUN, AS_DESIRED = "rescale plan (dry run)", {"wait as_desired": 1}
TIMES = {"as_of": -600, "observations_until": -600, "apply_at": -60, "effective_at": 0, "valid_until": 3600}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "settings.toml"))
    monkeypatch.setattr(ChampionReader, "refresh", lambda _: None)  # there are no models
    for folder in ("lake", "raw", "out"):
        (tmp_path / folder).mkdir()
    with serving(FlinkServer(FakeJob())) as server:
        made = World(tmp_path, server)
        monkeypatch.setattr(time, "time", lambda: made.now_s)
        server.clock = time.time
        yield made


@pytest.mark.parametrize(
    ("actuator", "is_rehearsal", "decision", "puts"),
    [("rest", False, "rescale plan", 1), ("none", False, DRY_RUN, 0), ("rest", True, DRY_RUN, 0)],
)
def test_only_a_controller_that_may_send_sends(
    world: World, actuator: str, is_rehearsal: bool, decision: str, puts: int
) -> None:
    """A rehearsal asks nothing of the cluster either: the jobs are as the polls have shown them."""
    world.write(actuator)
    world.plan(4)
    made = world.start(is_rehearsal=is_rehearsal)
    poll_once(made, load_settings(), ["live"])
    polled = len(world.server.requests)
    assert made.tick().decisions == {decision: 1}
    assert len(world.server.asked("PUT")) == puts
    assert (len(world.server.requests) > polled) is not is_rehearsal
    made.close()


@pytest.mark.parametrize(("is_missed", "evaluations"), [(True, 2), (False, 1)])
def test_a_cluster_that_was_at_work_at_an_evaluation_has_it_at_its_next_turn(
    world: World, is_missed: bool, evaluations: int
) -> None:
    """While no poll has seen the job nothing is wanted of it, so that it is decided on at evaluations alone."""
    world.plan(4)
    made, gate = world.start(), threading.Event()

    def answer_late(request: Request) -> None:
        gate.wait(20.0)
        status, content = world.server._reply(request)
        request.write_json(content, status)

    assert made.tick().decisions == AS_DESIRED
    world.now_s += EVALUATED_S
    world.server.troubles["*"] = answer_late
    assert "still at work" in made.tick(0.0).problems["live"]
    world.now_s += EVALUATED_S if is_missed else 1.0
    assert made.tick(0.0).is_evaluation is is_missed
    gate.set()
    decided = Counter[str]()
    for _ in range(3):
        decided.update(made.tick().decisions)
    assert decided == {"wait as_desired": evaluations}
    made.close()


def test_what_is_kept_of_a_job_is_written_when_it_changes_and_read_by_the_next_controller(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.plan(4)
    made = world.start()
    made.tick()
    made.close()
    (row,) = world.read_memories()
    assert row["standing"] is not None
    later = world.start("two")
    assert later.tick().is_evaluation
    assert world.read_memories() == [row]  # the same step stands
    LakeTable(world.lake, CONTROLLER_MEMORY).append([row | {"at": row["at"] + timedelta(seconds=1), "memory": "none"}])
    world.now_s += EVALUATED_S
    assert later.tick().is_evaluation
    assert caplog.messages == []  # it goes by what it knows itself
    later.close()
    world.start("three").tick()
    assert [one for one in caplog.messages if "cannot be read" in one] != []


def test_what_is_kept_of_jobs_that_have_gone_is_in_the_table_alone(world: World) -> None:
    made = world.start()
    poll_once(made, load_settings(), ["live"])
    assert made.tick().seen == 1
    assert made._kept.keys() == {("live", "orders")}
    world.now_s += FORGET_AFTER_S + EVALUATED_S
    made.tick()
    assert made._kept == {}
    made.close()


def test_rescales_that_were_judged_are_written_once_and_nothing_where_there_are_none(world: World) -> None:
    control, settings = world.make_control(), load_settings()
    readers = Readers(PlanTables(world.lake), StoredMemories(world.lake), ChampionReader(settings.mlflow))
    made = Ticker(load_settings, PollHistory({}), readers, {"live": control}, lambda: world.now_s)
    outcomes = LakeTable(world.lake, RESCALE_OUTCOMES)
    made.tick()
    assert outcomes.read_version() is None
    control.outcomes.append(judged(False))
    made.tick()
    made.tick()
    assert control.outcomes == []
    assert len(outcomes.read(["job"], date.min, date.max)) == 1
    made.close()
