"""What Flink is asked before a request, and what of its answers is remembered: for how long, and of which job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import flink_server
import pytest
from flink_server import FakeJob, FlinkServer, checkpoint_statistics, completed_checkpoint, serving

from controller.actuators.flink_actuator import FlinkActuator
from include.flink.client import FlinkClient
from models.control.readiness import Checkpoints, Readiness

BEGAN_S = 1_795_000_000.0
ORDERS, RIDES = "a" * 32, "b" * 32
SEVENTH, EIGHTH = completed_checkpoint(7, BEGAN_S), completed_checkpoint(8, BEGAN_S)
AUTOSCALER = "job.autoscaler.enabled"


@dataclass
class OpenJob(FakeJob):
    """A job whose answers about checkpoints and failures a test sets."""

    config: dict[str, Any] = field(default_factory=lambda: {"interval": 60_000, "timeout": 600_000})
    last: dict[str, Any] = field(default_factory=lambda: SEVENTH)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def checkpoint_config(self) -> dict[str, Any]:
        return self.config

    def checkpoints(self, now_s: float) -> dict[str, Any]:
        return checkpoint_statistics([self.last], completed=self.last)

    def exceptions(self) -> dict[str, Any]:
        return {"exceptionHistory": {"entries": self.failures, "truncated": False}}


@dataclass
class World:
    """A cluster, its actuator, and the monotonic clock of the latter, which begins at 0."""

    server: FlinkServer
    clock_s: float = 0.0

    def __post_init__(self) -> None:
        client = FlinkClient(self.server.url, cluster="prod", retries=0, read_timeout_s=2.0)
        self.actuator = FlinkActuator(client, "prod", clock=lambda: self.clock_s)

    @property
    def job(self) -> OpenJob:
        job = self.server.jobs[0]
        assert isinstance(job, OpenJob)
        return job

    def ask(self, job_id: str = ORDERS) -> Readiness:
        return self.actuator.inspect("prod/orders", job_id)

    def trigger(self) -> None:
        self.actuator.trigger_checkpoint("prod/orders", ORDERS)

    def look(self) -> None:
        self.actuator.observe("prod/orders")

    def go_and_come_back(self) -> None:
        """Let the job be gone for one look, and be deployed again under its id, as an application is."""
        jobs, self.server.jobs = self.server.jobs, self.server.jobs[1:]
        self.look()
        self.server.jobs = jobs


@pytest.fixture
def world() -> Iterator[World]:
    with serving(FlinkServer(OpenJob(), OpenJob(RIDES, "rides"), clock=lambda: BEGAN_S)) as server:
        yield World(server)


# Flink's time


def test_flink_s_time_goes_on_from_what_it_told(world: World) -> None:
    world.clock_s = 100.0
    world.look()
    world.clock_s = 130.0
    assert world.ask().now_s == BEGAN_S + 30


def test_a_time_that_flink_does_not_tell_is_unknown_and_harms_nothing_else(world: World) -> None:
    assert world.ask().now_s is None  # before any reply about a job
    for now in (None, "1795000000000", True, 0, -1, 1.5, [5]):
        world.server.troubles[f"/jobs/{ORDERS}"] = flink_server.reply_with({**world.job.reply(), "now": now})
        assert world.actuator.observe("prod/orders").job_id == ORDERS
        assert world.ask().now_s is None


# how long Flink waits


def test_only_what_flink_waits_for_is_named(world: World) -> None:
    world.server.version = "1.18.1"
    world.look()
    old = world.ask()
    assert (old.wait_s, old.wait_detail, old.waits_for_checkpoint, old.tells_gc) == (
        10.0,
        "10 s for slots",
        False,
        False,
    )
    world.server.version = "2.1.3"
    world.look()
    new = world.ask()
    assert new.wait_detail == "180 s for the next checkpoint, 30 s of cooldown, 70 s for slots"
    assert (new.checkpoint_wait_s, new.waits_for_checkpoint, new.tells_gc) == (180.0, True, True)


def test_a_version_that_is_not_told_is_taken_for_one_that_waits_and_tells_all(world: World) -> None:
    world.server.version = None
    world.look()
    assert (world.ask().waits_for_checkpoint, world.ask().tells_gc) == (True, True)


def test_where_several_checkpoints_are_taken_at_once_no_wait_keeps_a_savepoint(world: World) -> None:
    assert world.ask().checkpoint_wait_s == 180.0
    world.job.config["max_concurrent"] = 2
    assert world.ask().checkpoint_wait_s == 0.0


def test_of_a_job_without_checkpoints_none_are_asked_for(world: World) -> None:
    """Flink 2 replies 404 to the question for the checkpoints of such a job."""
    world.job.config["interval"] = 0
    world.server.troubles["/checkpoints"] = flink_server.reply_with({"errors": ["Checkpointing is not enabled"]}, 404)
    assert (world.ask().checkpoints, world.ask().unknown) == (Checkpoints(None, None), "")


# a checkpoint that was asked for


def test_a_checkpoint_is_fresh_once_a_later_one_is_completed(world: World) -> None:
    assert (world.ask().asked_ago_s, world.ask().is_fresh) == (None, False)
    world.trigger()
    world.look()  # of all jobs that run the rest stays known
    world.clock_s = 20.0
    assert (world.ask().asked_ago_s, world.ask().is_fresh) == (20.0, False)
    world.job.last = EIGHTH
    assert world.ask().is_fresh


def test_the_last_checkpoint_stays_known_from_one_look_to_the_next(world: World) -> None:
    world.ask()
    world.look()
    world.trigger()
    assert not world.ask().is_fresh  # the seventh was there before


def test_a_checkpoint_that_cannot_be_asked_for_is_not_waited_for(world: World) -> None:
    world.ask()
    world.server.troubles["/checkpoints"] = flink_server.reply_500
    world.trigger()
    world.server.troubles.clear()
    assert world.ask().is_fresh


@pytest.mark.parametrize("timeout_s", [10, 600])
def test_a_checkpoint_is_forgotten_once_flink_has_given_it_up(world: World, timeout_s: int) -> None:
    world.job.config["timeout"] = 1000 * timeout_s
    world.ask()
    world.trigger()
    world.clock_s = 1.5 * timeout_s
    assert world.ask().asked_ago_s == world.clock_s
    world.clock_s += 1
    assert world.ask().asked_ago_s is None


def test_how_long_flink_tries_a_checkpoint_stays_known_when_it_is_not_told(world: World) -> None:
    world.job.config["timeout"] = 10_000
    world.ask()
    world.look()
    world.trigger()
    world.clock_s = 100.0
    world.server.troubles["/checkpoints/config"] = flink_server.reply_500
    assert world.ask().asked_ago_s is None


# another job under the same id


def test_nothing_of_a_job_that_has_gone_is_taken_for_that_of_a_later_one(world: World) -> None:
    world.job.config["timeout"] = 10_000
    world.job.failures = [{"timestamp": 5000, "stacktrace": "java.lang.A: x"}]
    world.ask()
    world.trigger()
    world.go_and_come_back()
    world.job.failures, world.job.config = [], {"interval": 60_000}
    assert world.actuator.read_failures("prod/orders", ORDERS) == ()
    assert world.ask().asked_ago_s is None


def test_the_first_checkpoint_of_a_later_job_is_fresh_though_the_earlier_one_had_more(world: World) -> None:
    world.ask()
    world.go_and_come_back()
    world.trigger()
    world.job.last = completed_checkpoint(1, BEGAN_S)
    assert world.ask().is_fresh


def test_how_long_the_earlier_job_tried_a_checkpoint_is_forgotten(world: World) -> None:
    world.job.config["timeout"] = 10_000
    world.ask()
    world.go_and_come_back()
    world.trigger()
    world.clock_s = 100.0
    world.server.troubles["/checkpoints/config"] = flink_server.reply_500
    assert world.ask().asked_ago_s == 100.0


def test_failures_that_flink_no_longer_lists_stay_known_while_the_job_runs(world: World) -> None:
    world.job.failures = [{"timestamp": 5000, "stacktrace": "java.lang.A: x"}]
    world.ask()
    world.look()
    world.job.failures = [{"timestamp": 6000, "stacktrace": "java.lang.B: y"}]
    failures = world.ask().failures
    assert failures is not None
    assert [one.cause for one in failures] == ["java.lang.A: x", "java.lang.B: y"]


def test_that_failures_are_unknown_is_logged_and_nothing_else(world: World, caplog: pytest.LogCaptureFixture) -> None:
    assert world.actuator.read_failures("prod/orders", ORDERS) == ()
    assert not caplog.messages
    for trouble, why in ((flink_server.reply_500, "500"), (flink_server.close, "did not reply")):
        caplog.clear()
        world.server.troubles["/exceptions"] = trouble
        assert world.actuator.read_failures("prod/orders", ORDERS) is None
        assert [why in message for message in caplog.messages if "are unknown" in message] == [True]


# what is the same for all jobs, and who else rescales


def test_memory_is_asked_for_once_for_all_jobs_of_a_tick(world: World) -> None:
    def count_questions() -> int:
        return world.server.asked().count("/taskmanagers/metrics")

    world.ask()
    once = count_questions()
    world.server.heap_used = 400e6
    world.clock_s = 4.0
    memory = world.ask(RIDES).memory
    assert memory is not None
    assert (memory.heap_share, count_questions()) == (0.4, once)
    world.clock_s = 6.0
    memory = world.ask(RIDES).memory
    assert memory is not None
    assert (memory.heap_share, count_questions()) == (0.8, 2 * once)


def test_another_autoscaler_is_looked_for_in_both_configurations_before_a_request(world: World) -> None:
    assert (world.ask().other_autoscaler, world.ask().autoscaler_unknown) == (None, "")
    world.job.user_config = {AUTOSCALER: "true"}
    assert world.ask().other_autoscaler == AUTOSCALER
    world.job.user_config, world.server.config = {}, [{"key": AUTOSCALER, "value": "true"}]
    world.clock_s = 60.0
    assert world.ask().other_autoscaler == AUTOSCALER


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/jobmanager/config", "the cluster's configuration is not told"),
        ("/config", "the job's configuration is not told"),
    ],
)
def test_a_configuration_that_is_not_told_is_no_proof_that_nobody_else_rescales(
    world: World, path: str, why: str
) -> None:
    world.server.troubles[f"{ORDERS}{path}" if path == "/config" else path] = flink_server.reply_500
    ready = world.ask()
    assert ready.other_autoscaler is None
    assert ready.autoscaler_unknown.startswith(why)
