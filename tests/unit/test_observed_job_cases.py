"""What is made of a job's replies one by one: what is missing from a reply is unknown, and the rest counts."""

from __future__ import annotations

from collections.abc import Iterator

import flink_server
import pytest
from flink_server import FakeJob, FlinkServer, serving

from controller.actuators.actuator import RequestConflictError, RequestRefusedError
from controller.actuators.flink_actuator import FlinkActuator
from include.flink.client import FlinkClient
from models.control.state import ObservedJob

ORDERS, RIDES = "a" * 32, "b" * 32
SOURCE, ENRICH = "1" * 32, "2" * 32
RUNS = {SOURCE: 1, ENRICH: 2}
UNSUPPORTED = {"errors": ["java.lang.UnsupportedOperationException: the DefaultScheduler"]}
JOB, OTHER = "prod/orders", "prod/rides"
AUTOSCALER = "job.autoscaler.enabled"


@pytest.fixture
def server() -> Iterator[FlinkServer]:
    with serving(FlinkServer(FakeJob(), FakeJob(RIDES, "rides"), clock=lambda: 1_795_000_000.0)) as running:
        yield running


def open_actuator(server: FlinkServer) -> FlinkActuator:
    client = FlinkClient(server.url, cluster="prod", retries=0, read_timeout_s=5.0, total_timeout_s=10.0)
    return FlinkActuator(client, "prod", clock=lambda: 0.0)


def observe(server: FlinkServer) -> ObservedJob:
    return open_actuator(server).observe(JOB)


# what a request was judged by


def test_a_look_at_one_job_leaves_what_another_was_judged_by(server: FlinkServer) -> None:
    actuator = open_actuator(server)
    actuator.observe(JOB)
    actuator.observe(OTHER)
    actuator.request(JOB, ORDERS, {SOURCE: 3, ENRICH: 4})
    assert server.jobs[0].requested == {SOURCE: 3, ENRICH: 4}


def test_a_job_that_was_gone_meanwhile_is_not_judged_by_what_it_was_before(server: FlinkServer) -> None:
    actuator = open_actuator(server)
    actuator.observe(JOB)
    jobs, server.jobs = server.jobs, server.jobs[1:]
    actuator.observe(OTHER)
    server.jobs = jobs
    with pytest.raises(RequestConflictError, match="than when it was judged"):
        actuator.request(JOB, ORDERS, {SOURCE: 3, ENRICH: 4})
    assert server.asked("PUT") == []


def test_a_scheduler_that_takes_no_requests_any_more_is_not_asked_a_second_time(server: FlinkServer) -> None:
    """It is a refusal, and not a conflict, after which the request would be judged and sent once more."""
    actuator = open_actuator(server)
    actuator.observe(JOB)
    server.troubles["/resource-requirements"] = flink_server.reply_with(UNSUPPORTED, 500)
    with pytest.raises(RequestRefusedError) as reported:
        actuator.request(JOB, ORDERS, {SOURCE: 3, ENRICH: 4})
    assert type(reported.value) is RequestRefusedError


def test_one_job_is_looked_at_while_the_process_ends(server: FlinkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that is under way then looks at its job before and after a request; no new threads are to be had."""
    actuator = open_actuator(server)
    monkeypatch.setattr("concurrent.futures.thread._shutdown", True)
    with pytest.raises(RuntimeError, match="after interpreter shutdown"):
        actuator.observe_all([JOB, OTHER])
    assert actuator.observe(JOB).running == RUNS


# what a job's replies tell


@pytest.mark.parametrize(
    ("field", "name", "value"),
    [
        ("start-time", "submitted_at_s", 0.005),
        ("now", "told_at_s", 1_795_000_000.0),
        ("timestamps", "running_since_s", 1_795_000_000.0),
    ],
)
def test_a_time_that_a_reply_lacks_is_unknown_and_the_rest_counts(
    server: FlinkServer, field: str, name: str, value: float
) -> None:
    assert getattr(observe(server), name) == value
    _, reply = server._reply(flink_server.Request(None, "GET", f"/jobs/{ORDERS}", {}, "", server.ending))  # type: ignore[arg-type]
    assert isinstance(reply, dict)
    server.troubles[f"/jobs/{ORDERS}"] = flink_server.reply_with({key: reply[key] for key in reply if key != field})
    observed = observe(server)
    assert (observed.running, getattr(observed, name)) == (RUNS, None)


@pytest.mark.parametrize(
    ("status", "parallelism", "running"),
    [
        ({}, RUNS, RUNS),
        ({SOURCE: "FINISHED"}, RUNS, {ENRICH: 2}),
        ({SOURCE: "INITIALIZING"}, RUNS, {}),
        ({SOURCE: "FINISHED", ENRICH: "DEPLOYING"}, RUNS, {}),
        ({}, {SOURCE: 0, ENRICH: 2}, {}),  # a parallelism that is not told
        ({SOURCE: "FINISHED"}, {SOURCE: 0, ENRICH: 2}, {ENRICH: 2}),
    ],
)
def test_a_job_runs_where_each_vertex_runs_that_has_not_finished(
    server: FlinkServer, status: dict[str, str], parallelism: dict[str, int], running: dict[str, int]
) -> None:
    server.jobs[0].status, server.jobs[0].parallelism = status, parallelism
    assert observe(server).running == running


def test_nothing_is_asked_of_what_is_no_job_id(server: FlinkServer) -> None:
    server.jobs[0].job_id = "../../jars"
    observed = observe(server)
    assert (observed.problem, observed.problem_detail) == ("unreadable_reply", "'../../jars' is no id of a job")
    assert set(server.asked()) == {"/jobs/overview", "/overview"}


# who else rescales it


def test_another_autoscaler_of_cluster_or_job_is_seen(server: FlinkServer) -> None:
    assert (observe(server).other_autoscaler, observe(server).autoscaler_unknown) == (None, "")
    server.jobs[0].user_config = {AUTOSCALER: "true"}
    assert observe(server).other_autoscaler == AUTOSCALER
    server.jobs[0].user_config = {}
    server.config = [{"key": AUTOSCALER, "value": "true"}]
    assert observe(server).other_autoscaler == AUTOSCALER


def test_where_the_cluster_names_an_autoscaler_the_job_is_not_asked_for_one(server: FlinkServer) -> None:
    server.config = [{"key": AUTOSCALER, "value": "true"}]
    server.troubles[f"{ORDERS}/config"] = flink_server.reply_500
    assert observe(server).autoscaler_unknown == ""
    assert f"/jobs/{ORDERS}/config" not in server.asked()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/jobmanager/config", "the cluster's configuration is not told"),
        (f"{ORDERS}/config", "the job's configuration is not told"),
    ],
)
def test_a_configuration_that_is_not_told_leaves_autoscalers_unknown(server: FlinkServer, path: str, why: str) -> None:
    server.troubles[path] = flink_server.reply_500
    observed = observe(server)
    assert (observed.running, observed.other_autoscaler) == (RUNS, None)
    assert observed.autoscaler_unknown.startswith(why)


# slots and versions


def test_only_other_jobs_that_restart_are_asked_for_the_slots_that_they_will_take(server: FlinkServer) -> None:
    server.troubles[f"/jobs/{RIDES}"] = flink_server.reply_500
    assert observe(server).free_slots == 5  # it runs: its slots are not free
    server.troubles.clear()
    server.jobs[0].state = "RESTARTING"
    assert observe(server).free_slots == 5  # its own
    server.jobs[1].state = "RESTARTING"
    assert observe(server).free_slots == 3


def test_a_flink_that_is_too_old_is_told_from_another_scheduler(server: FlinkServer) -> None:
    server.troubles["/resource-requirements"] = flink_server.reply_with({"errors": ["Not found: x"]}, 404)
    for version, obstacle in (("1.17.2", "flink_too_old"), ("2.1.3", "default_scheduler"), (None, "default_scheduler")):
        server.version = version
        assert observe(server).obstacle == obstacle


@pytest.mark.parametrize(("version", "waits"), [("1.18.1", False), ("2.1.3", True), (None, True)])
def test_the_version_of_the_cluster_says_whether_a_rescale_waits(
    server: FlinkServer, version: str | None, waits: bool
) -> None:
    server.version = version
    actuator = open_actuator(server)
    actuator.observe(JOB)
    assert actuator.inspect(JOB, ORDERS).waits_for_checkpoint is waits
