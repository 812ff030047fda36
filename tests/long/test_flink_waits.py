"""Real clusters with checkpoints every ten minutes: rises, falls, a savepoint, no checkpoints, a rescale that fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from single_job import control_job
from waiting import wait_until

from benchmarks.versions.__main__ import VERSIONS
from controller.actuators.flink_actuator import FlinkActuator
from controller.decisions.job_control import JobControl
from controller.log.control_log import LogEntry
from lab.local_flink.build import FLINK_HOME
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.job_client import JobClient
from lab.local_flink.load import ENRICH, LoadOptions, submit_load
from lab.local_flink.releases import RELEASES, install_release
from models.control.case import Action
from models.control.limits import Limits
from models.control.state import Intention, JobHistory, Mode, Origin

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]

JOB = "live/orders"
TICK_S = 5.0
EVERY_S = 600.0
LIMITS = Limits(mode=Mode.AUTO, cooldown_s=0.0, confirm_timeout_s=60.0)
LIGHT = LoadOptions(low_per_s=50.0, high_per_s=100.0, fails_above=3)


@dataclass
class Live:
    """A job on a cluster, and the controller that ticks every few seconds."""

    client: JobClient
    job_id: str
    actuator: FlinkActuator
    entries: list[LogEntry] = field(default_factory=list)

    def append_all(self, entries: list[LogEntry]) -> None:
        self.entries += entries

    def read_last(self, job: str) -> LogEntry | None:
        return self.entries[-1] if self.entries else None

    def read_history(self, job: str) -> JobHistory:
        return self.entries[-1].history if self.entries else JobHistory()

    def read_open(self) -> dict[str, LogEntry]:
        return {one.job: one for one in self.entries[-1:] if one.history.in_flight is not None}

    @property
    def ids(self) -> dict[str, str]:
        return {vertex["name"]: vertex["id"] for vertex in self.client.job(self.job_id)["vertices"]}

    def tick(self, enrich: int | None = None, origin: Origin = Origin.REACTIVE) -> Action:
        desired = None
        if enrich is not None:
            target = {**dict.fromkeys(self.ids.values(), 1), self.ids[ENRICH]: enrich}
            desired = Intention(target, origin, f"step-{enrich}", "tested", time.time() + 600)
        controller = JobControl(self.actuator, self, lambda: None, time.time)
        return control_job(controller, JOB, desired, lambda: LIMITS)

    def decide_until(self, reason: str, enrich: int, within_s: float, origin: Origin = Origin.REACTIVE) -> float:
        """Tick until a decision is made; returns the seconds."""
        began_s, reported = time.monotonic(), list[str]()
        while time.monotonic() - began_s < within_s:
            action = self.tick(enrich, origin)
            reported.append(f"{action.reason}: {action.detail}")
            if action.reason == reason:
                return time.monotonic() - began_s
            time.sleep(TICK_S)
        raise AssertionError("\n".join(dict.fromkeys(reported)))

    def running(self) -> int:
        return self.client.running_parallelism(self.job_id).get(ENRICH, 0)

    def count_savepoints(self) -> int:
        return sum(one["is_savepoint"] for one in self.client.checkpoints(self.job_id)["history"])

    def take_checkpoint(self) -> None:
        self.client.trigger_checkpoint(self.job_id)
        assert wait_until(lambda: self.client.checkpoints(self.job_id)["counts"]["completed"] > 0, 60)


@contextmanager
def living(folder: Path, version: str, every_s: float = EVERY_S, **settings: str) -> Iterator[Live]:
    """Run a cluster with the load job, and take the job over."""
    home = install_release(version) if version in RELEASES else FLINK_HOME
    reported = {
        "execution.checkpointing.savepoint-dir": (folder / "savepoints").as_uri(),
        "restart-strategy.fixed-delay.delay": "1 s",
        **settings,
    }
    options = ClusterOptions.quick(slots=8, checkpoint_every_s=every_s, settings=reported)
    with LocalCluster(folder / "flink", options, flink_home=home) as cluster:
        job_id = submit_load(cluster.client, cluster.work_dir, LIGHT, home)
        cluster.client.wait_for_parallelism(job_id, {}, timeout_s=180)
        live = Live(cluster.client, job_id, FlinkActuator(cluster.client, "live"))
        assert live.tick().reason == "new_job_id"
        yield live


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.covers("flink_waits 1")
@pytest.mark.covers("flink_waits 4")
@pytest.mark.covers("flink_waits 5")
def test_with_checkpoints_every_ten_minutes_the_controller_and_flink_get_on(version: str, tmp_path: Path) -> None:
    with living(tmp_path, version) as live:
        assert live.tick(2).reason == "no_checkpoint"
        live.take_checkpoint()
        rise_s = live.decide_until("runs_as_requested", 2, 120)
        assert live.running() == 2
        fall_s = live.decide_until("runs_as_requested", 1, 120, Origin.PLAN)
        assert live.running() == 1
        fails_s = live.decide_until("job_fails", 4, 120)
        assert "enrich cannot run at more than 3 subtasks" in live.entries[-1].action.detail
        assert wait_until(lambda: live.running() == 1, 60)
        live.decide_until("blocked_target", 4, 60)
        print(f"{version}: rise {rise_s:.0f} s, fall {fall_s:.0f} s, taken back after {fails_s:.0f} s")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.covers("flink_waits 2")
def test_without_checkpoints_nothing_is_sent(version: str, tmp_path: Path) -> None:
    off = {"execution.checkpointing.interval": "", "execution.checkpointing.min-pause": ""}
    with living(tmp_path, version, **off) as live:
        for origin in (Origin.REACTIVE, Origin.PLAN):
            assert live.tick(2, origin).reason == "checkpoints_off"
        assert live.client.upper_bounds(live.job_id)[live.ids[ENRICH]] == 1


@pytest.mark.covers("flink_waits 1")
def test_a_savepoint_that_takes_long_is_not_ended(tmp_path: Path) -> None:
    """Backpressure holds its barrier up; with checkpoints every ten seconds a rescale would end it after thirty."""
    with living(tmp_path, "2.1.3", every_s=10.0) as live:
        live.take_checkpoint()
        live.client.transport.send_json("POST", f"/jobs/{live.job_id}/savepoints", json={})
        observed = set()
        assert wait_until(lambda: live.count_savepoints() > 0, 60)
        while True:
            reported = live.client.checkpoints(live.job_id)
            going_on = [one for one in reported["history"] if one["is_savepoint"] and one["status"] == "IN_PROGRESS"]
            if not going_on:
                break
            observed.add(live.tick(2).reason)
        assert observed <= {"savepoint_in_progress", "withdrawn_before_sending"}
        assert reported["latest"]["savepoint"]["status"] == "COMPLETED"
        live.decide_until("runs_as_requested", 2, 120)


def test_where_no_checkpoint_is_asked_for_flink_takes_its_time_and_is_not_given_up(tmp_path: Path) -> None:
    """The longest delay is 3 min here, three times what a request had before; the job's next checkpoint is further."""
    key = "jobmanager.adaptive-scheduler.rescale-trigger.max-delay"
    with living(tmp_path, "2.1.3", **{key: "180 s"}) as live:
        live.take_checkpoint()
        live.actuator.trigger_checkpoint = lambda job, job_id: None  # type: ignore[method-assign]
        took_s = live.decide_until("runs_as_requested", 2, 400)
        assert 150 < took_s < 300
        assert live.running() == 2
