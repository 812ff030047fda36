"""How long the configurations of a cluster and of its jobs count without being asked for again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import flink_server
import pytest
from flink_server import FakeJob, FlinkServer, serving

from controller.actuators.flink_configuration import FlinkConfiguration
from include.flink.client import FlinkClient

ORDERS, RIDES = "a" * 32, "b" * 32
AUTOSCALER = "job.autoscaler.enabled"
CLUSTER_PATH, JOB_PATH = "/jobmanager/config", f"/jobs/{ORDERS}/config"


@dataclass
class World:
    """A cluster, what is known of its configurations, and a clock."""

    server: FlinkServer
    clock_s: float = 0.0

    def __post_init__(self) -> None:
        client = FlinkClient(self.server.url, cluster="prod", retries=0, read_timeout_s=2.0)
        self.configuration = FlinkConfiguration(client, "prod", lambda: self.clock_s)

    def times_asked(self, path: str = JOB_PATH) -> int:
        return self.server.asked().count(path)


@pytest.fixture
def world() -> Iterator[World]:
    with serving(FlinkServer(FakeJob(), FakeJob(RIDES, "rides"))) as server:
        yield World(server)


def test_the_configuration_of_a_cluster_is_asked_for_every_half_minute(world: World) -> None:
    assert world.configuration.read_cluster().scheduler == "adaptive"
    world.server.config = [{"key": AUTOSCALER, "value": "true"}]
    world.clock_s = 29.0
    assert (world.configuration.read_cluster().autoscaler, world.times_asked(CLUSTER_PATH)) == (None, 1)
    assert world.configuration.read_cluster(5.0).autoscaler == AUTOSCALER  # before a request
    world.clock_s = 60.0
    world.configuration.read_cluster()
    assert world.times_asked(CLUSTER_PATH) == 3


@pytest.mark.parametrize("trouble", [flink_server.reply_with({}), flink_server.reply_500])
def test_a_configuration_that_cannot_be_read_is_asked_for_at_once_again(
    world: World, trouble: flink_server.Trouble
) -> None:
    world.server.troubles[CLUSTER_PATH] = trouble
    assert world.configuration.read_cluster().unknown
    world.server.troubles.clear()
    facts = world.configuration.read_cluster()
    assert (facts.unknown, facts.scheduler) == ("", "adaptive")


def test_the_configuration_of_a_job_is_asked_for_once_after_each_submission(world: World) -> None:
    for _ in range(3):
        assert world.configuration.find_autoscaler(ORDERS, 5) == (None, "")
    assert world.times_asked() == 1
    world.server.jobs[0].user_config = {AUTOSCALER: "true"}
    assert world.configuration.find_autoscaler(ORDERS, 6) == (AUTOSCALER, "")
    assert world.times_asked() == 2


def test_without_the_time_of_its_submission_it_is_asked_for_each_time(world: World) -> None:
    assert world.configuration.find_autoscaler(ORDERS) == (None, "")
    world.server.jobs[0].user_config = {AUTOSCALER: "true"}
    assert world.configuration.find_autoscaler(ORDERS) == (AUTOSCALER, "")
    assert world.configuration.find_autoscaler(ORDERS, 5) == (AUTOSCALER, "")


def test_a_configuration_of_a_job_that_waits_for_resources_is_asked_for_again(world: World) -> None:
    """Flink leaves out of it what the job has set."""
    world.server.troubles[JOB_PATH] = flink_server.reply_with({"jid": ORDERS, "name": "orders"})
    assert world.configuration.find_autoscaler(ORDERS, 5) == (None, "the job's configuration cannot be read")
    world.server.troubles.clear()
    assert world.configuration.find_autoscaler(ORDERS, 5) == (None, "")


def test_what_is_known_of_jobs_that_have_gone_is_forgotten_and_of_the_others_kept(world: World) -> None:
    world.configuration.find_autoscaler(ORDERS, 5)
    world.configuration.forget([ORDERS, RIDES])
    world.configuration.find_autoscaler(ORDERS, 5)
    assert world.times_asked() == 1
    world.configuration.forget([RIDES])
    world.configuration.find_autoscaler(ORDERS, 5)
    assert world.times_asked() == 2
