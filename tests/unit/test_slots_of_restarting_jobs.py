"""Free slots where another job comes back, and a request whose job or bounds are gone when it is to be sent."""

from __future__ import annotations

from collections.abc import Iterator

import flink_server
import pytest
from flink_server import FakeJob, FlinkServer, serving

from controller.actuators.actuator import RequestConflictError, RequestRefusedError, RequestUnknownError
from controller.actuators.flink_actuator import FlinkActuator
from include.flink.client import FlinkClient

ORDERS, RIDES = "a" * 32, "b" * 32
SOURCE, ENRICH = "1" * 32, "2" * 32


@pytest.fixture
def server() -> Iterator[FlinkServer]:
    with serving(FlinkServer(FakeJob(), FakeJob(RIDES, "rides"))) as running:
        yield running


def open_actuator(server: FlinkServer) -> FlinkActuator:
    client = FlinkClient(server.url, cluster="prod", retries=0, read_timeout_s=5.0, total_timeout_s=10.0)
    return FlinkActuator(client, "prod")


@pytest.mark.parametrize(
    "trouble", [flink_server.reply_500, flink_server.reply_with({SOURCE: None, ENRICH: {"parallelism": 1}})]
)
def test_while_another_job_comes_back_that_does_not_tell_its_slots_free_ones_are_unknown(server, trouble) -> None:
    server.jobs[1].state = "RESTARTING"
    assert open_actuator(server).observe("prod/orders").free_slots == 3
    server.troubles[f"/jobs/{RIDES}/resource-requirements"] = trouble
    observed = open_actuator(server).observe("prod/orders")
    assert (observed.running, observed.free_slots) == ({SOURCE: 1, ENRICH: 2}, None)


@pytest.mark.parametrize(
    ("message", "status", "error", "told"),
    [
        ("FlinkJobNotFoundException: Could not find Flink job (a)", 404, RequestRefusedError, "knows no job"),
        ("java.lang.UnsupportedOperationException: DefaultScheduler", 500, RequestRefusedError, "DefaultScheduler"),
        ("slow down", 503, RequestConflictError, "slow down"),
    ],
)
def test_a_job_that_takes_no_requests_any_more_is_refused_and_any_other_trouble_judged_afresh(
    server, message: str, status: int, error: type[Exception], told: str
) -> None:
    actuator = open_actuator(server)
    actuator.observe("prod/orders")
    server.troubles["/resource-requirements"] = flink_server.reply_with({"errors": [message]}, status)
    with pytest.raises(error, match=told):
        actuator.request("prod/orders", ORDERS, {SOURCE: 3, ENRICH: 4})
    assert server.asked("PUT") == []


def test_a_job_without_a_reply_is_no_job_without_slots(server) -> None:
    server.troubles[f"/jobs/{ORDERS}"] = flink_server.reply_500
    with pytest.raises(RequestUnknownError):
        open_actuator(server).observe("prod/orders")


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("Not found: /jobs/a/resource-requirements", 404),
        ("java.lang.UnsupportedOperationException: DefaultScheduler", 500),
    ],
)
def test_a_scheduler_without_bounds_is_told_by_name(server, message: str, status: int) -> None:
    server.troubles[f"/jobs/{ORDERS}/resource-requirements"] = flink_server.reply_with({"errors": [message]}, status)
    observed = open_actuator(server).observe("prod/orders")
    assert observed.requested is None
    assert observed.obstacle


@pytest.mark.parametrize("overview", [[], "up", None])
def test_an_overview_that_is_none_leaves_free_slots_unknown(server, overview: object) -> None:

    def reply_as_ever(request: flink_server.Request) -> None:
        status, content = server._reply(request)
        request.write_json(content, status)

    server.troubles["/jobs/overview"] = reply_as_ever  # it ends like the other one
    server.troubles["/overview"] = flink_server.reply_with(overview)
    observed = open_actuator(server).observe("prod/orders")
    assert (observed.requested, observed.free_slots) == ({SOURCE: 1, ENRICH: 2}, None)
