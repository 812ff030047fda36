"""What the actuator makes of a cluster's replies, and what it sends; the real cluster is in tests/live."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import flink_server
import pytest
from flink_server import FakeJob, FlinkServer, serving

from controller.actuators.actuator import RequestConflictError, RequestRefusedError, RequestUnknownError
from controller.actuators.flink_actuator import FlinkActuator, open_actuator
from controller.decisions.before_request import observe_followed
from include.flink.client import FlinkClient
from include.flink.versions import explain_no_requirements
from include.settings import Cluster, Settings
from models.control.state import JobHistory, ObservedJob

SOURCE, ENRICH = "1" * 32, "2" * 32
JOB_PATH = f"/jobs/{'a' * 32}"
GONE = {
    "errors": [
        "Internal server error.",
        "<Exception on server side:\norg.apache.flink.runtime.messages.FlinkJobNotFoundException: Could not find Flink "
        "job (a)\n\tat x.Y\n>",
    ]
}  # of Flink 2.1.3
UNSUPPORTED = {
    "errors": [
        "Internal server error.",
        "<Exception on server side:\njava.lang.UnsupportedOperationException: The DefaultScheduler does not support "
        "changing the parallelism without a job restart.\n\tat org.apache.flink.runtime.scheduler.SchedulerNG\n>",
    ]
}  # of Flink 2.1.3 under the default scheduler


def actuator_of(server, **options):
    client = FlinkClient(server.url, cluster="prod", retries=0, read_timeout_s=0.5, total_timeout_s=2.0)
    return FlinkActuator(client, "prod", **options)


@pytest.fixture
def server():
    with serving(FlinkServer(FakeJob(), FakeJob("b" * 32, "rides"))) as running:
        yield running


def observe(server, job="prod/orders", **options):
    return actuator_of(server, **options).observe(job)


# what is observed


def test_a_job_is_found_by_name_and_seen_by_vertex_id(server):
    result = observe(server)
    assert result.told_at_s == pytest.approx(time.time(), abs=60)  # by the cluster's clock
    assert replace(result, told_at_s=None) == ObservedJob(
        job_id="a" * 32,
        state="RUNNING",
        running={SOURCE: 1, ENRICH: 2},
        requested={SOURCE: 1, ENRICH: 2},
        max_parallelism={SOURCE: 128, ENRICH: 128},
        slot_sharing_group={SOURCE: "default", ENRICH: "default"},
        free_slots=5,
        cluster_slots_used=3,
        submitted_at_s=0.005,
        lower_bounds={SOURCE: 1, ENRICH: 1},
        running_since_s=1_795_000_000.0,
    )


@pytest.mark.covers("apply_review 5")
def test_two_vertices_of_one_name_are_two(server):
    server.jobs[0].names = {SOURCE: "map", ENRICH: "map"}
    actuator = actuator_of(server)
    assert actuator.observe("prod/orders").running == {SOURCE: 1, ENRICH: 2}
    actuator.request("prod/orders", "a" * 32, {SOURCE: 2, ENRICH: 3})
    assert server.jobs[0].requested == {SOURCE: 2, ENRICH: 3}


@pytest.mark.covers("apply_review 14")
def test_two_running_jobs_of_one_name_are_refused_by_name(server):
    server.jobs.append(FakeJob("c" * 32, "orders"))
    observed = observe(server)
    assert (observed.job_id, observed.problem) == (None, "ambiguous_name")
    assert "a" * 32 in observed.problem_detail
    assert "c" * 32 in observed.problem_detail
    assert observe(server, "prod/rides").job_id == "b" * 32


@pytest.mark.parametrize("state", ["FINISHED", "FAILED", "CANCELED", "CANCELLING", "FAILING", "SUSPENDED"])
def test_a_job_that_ends_does_not_count(server, state):
    server.jobs[0].state = state
    assert observe(server) == ObservedJob(None, "", {}, None)
    server.jobs.append(FakeJob("c" * 32, "orders"))
    assert observe(server).job_id == "c" * 32


@pytest.mark.parametrize("state", ["RESTARTING", "CREATED", "INITIALIZING"])
def test_a_job_that_is_brought_back_has_bounds_and_nothing_runs(server, state):
    server.jobs[0].state = state
    observed = observe(server)
    assert (observed.state, observed.running, observed.requested) == (state, {}, {SOURCE: 1, ENRICH: 2})


@pytest.mark.covers("apply_review 19 finished vertex")
def test_a_finished_vertex_is_left_out_and_the_others_run(server):
    server.jobs[0].status = {SOURCE: "FINISHED"}
    observed = observe(server)
    assert (observed.running, observed.requested) == ({ENRICH: 2}, {SOURCE: 1, ENRICH: 2})
    server.jobs[0].status = {SOURCE: "FINISHED", ENRICH: "INITIALIZING"}
    assert observe(server).running == {}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, ""),
        ({"status": {SOURCE: "FINISHED"}}, ""),
        ({"status": {ENRICH: "INITIALIZING"}}, "its vertex enrich is INITIALIZING"),
        (
            {"status": {SOURCE: "SCHEDULED", ENRICH: "DEPLOYING"}},
            "its vertex Source: orders is SCHEDULED, and 1 more do not run",
        ),
        ({"parallelism": {SOURCE: 1, ENRICH: 0}}, "its vertex enrich is without a parallelism"),
        ({"names": {SOURCE: ""}, "status": {SOURCE: "CREATED"}}, f"its vertex {SOURCE} is CREATED"),
    ],
)
def test_a_running_job_names_the_vertex_that_does_not_run(server, changed, why):
    server.jobs[0] = replace(server.jobs[0], **changed)
    assert observe(server).not_at_work == why
    server.jobs[0].state = "FAILING"
    assert observe(server).not_at_work == ""


@pytest.mark.covers("apply_review 19 slot sharing")
def test_slot_sharing_groups_are_flinks(server):
    server.jobs[0].groups = {SOURCE: "g1", ENRICH: "g2"}
    observed = observe(server)
    assert observed.slot_sharing_group == {SOURCE: "g1", ENRICH: "g2"}
    assert observed.slots_of(observed.running) == 3


@pytest.mark.covers("apply_review 17")
def test_a_missing_requirement_is_one_jobs_refusal_by_name(server):
    server.jobs[0].requested = {SOURCE: 1}
    observed = observe(server)
    assert observed.problem == "missing_requirement"
    assert f"enrich ({ENRICH})" in observed.problem_detail


def test_without_the_adaptive_scheduler_there_are_no_bounds(server):
    """Before 1.18 the path does not exist."""
    server.troubles["/resource-requirements"] = flink_server.reply_with(UNSUPPORTED, 500)
    assert (observe(server).requested, observe(server).obstacle) == (None, "default_scheduler")
    with pytest.raises(RequestRefusedError, match="DefaultScheduler does not support"):
        actuator_of(server).request("prod/orders", "a" * 32, {SOURCE: 1})
    server.troubles["/resource-requirements"] = flink_server.reply_with({"errors": ["Not found: /jobs/x"]}, 404)
    assert observe(server).requested is None


@pytest.mark.parametrize("trouble", [flink_server.reply_500, flink_server.reply_with(["2.1.3"], 200)])
def test_a_scheduler_without_bounds_is_named_on_a_cluster_that_does_not_tell_its_version(server, trouble):
    server.troubles["/resource-requirements"] = flink_server.reply_with(UNSUPPORTED, 500)
    server.troubles["/overview"] = trouble
    explained = actuator_of(server)._explain_no_requirements(is_reactive=False)
    assert explained == explain_no_requirements(None, is_reactive=False)


@pytest.mark.parametrize(
    ("config", "elastic"),
    [
        ({"execution.target": "kubernetes-session"}, True),
        ({"execution.target": "yarn-application"}, True),
        ({"execution.target": "remote", "kubernetes.cluster-id": "x"}, False),  # the operator's standalone mode
        ({}, False),
    ],
)
@pytest.mark.covers("apply_review 4")
def test_elastic_clusters_are_recognised_or_declared(server, config, elastic):
    server.config = [{"key": key, "value": value} for key, value in config.items()]
    assert observe(server).is_elastic is elastic
    assert observe(server, is_elastic=not elastic).is_elastic is not elastic


@pytest.mark.covers("apply_review 4")
def test_a_reactive_cluster_is_elastic_and_takes_no_requirements(server):
    server.config = [{"key": "scheduler-mode", "value": "reactive"}]
    observed = observe(server)
    assert (observed.is_elastic, observed.requested) == (True, None)
    assert observed.obstacle == "reactive_mode"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"job.autoscaler.enabled": "true"}, "job.autoscaler.enabled"),
        ({"kubernetes.operator.job.autoscaler.enabled": "true"}, "kubernetes.operator.job.autoscaler.enabled"),
        ({"job.autoscaler.enabled": "true", "job.autoscaler.scaling.enabled": "false"}, None),
        ({"job.autoscaler.enabled": "false"}, None),
    ],
)
def test_another_autoscaler_is_found_in_the_clusters_and_the_jobs_configuration(server, values, found):
    server.jobs[0].user_config = values
    assert observe(server).other_autoscaler == found
    assert observe(server, "prod/rides").other_autoscaler is None
    server.jobs[0].user_config = {}
    server.config = [{"key": key, "value": value} for key, value in values.items()]
    assert observe(server).other_autoscaler == found


@pytest.mark.covers("apply_review 15")
def test_a_job_that_ends_between_two_questions_is_unknown_not_unreachable(server):
    server.troubles[JOB_PATH] = flink_server.reply_with({"errors": ["NotFoundException: Job not found"]}, 404)
    assert observe(server) == ObservedJob(None, "", {}, None)
    server.troubles = {"/resource-requirements": flink_server.reply_with(GONE, 500)}
    assert observe(server) == ObservedJob(None, "", {}, None)


# replies that cannot be read

JUNK = [
    None, [], {}, 5, "x", {"name": "orders"}, {"name": None, "state": "RUNNING", "vertices": []},
    {"name": "orders", "state": "RUNNING", "vertices": [{"id": None}]},
    {"name": "orders", "state": "RUNNING", "vertices": [None]},
    {"name": "orders", "state": "RUNNING", "vertices": [{"id": SOURCE}, {"id": SOURCE}]},
]  # fmt: skip


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.covers("apply_review 17")
def test_a_reply_that_cannot_be_read_is_one_jobs_refusal(server, junk):
    server.troubles[JOB_PATH] = flink_server.reply_with(junk)
    result = actuator_of(server).observe_all(["prod/orders", "prod/rides"])
    assert result["prod/orders"].problem == "unreadable_reply"
    assert result["prod/rides"].job_id == "b" * 32


@pytest.mark.parametrize("junk", [None, [], {}, {"jobs": None}, {"jobs": "x"}])
@pytest.mark.covers("apply_review 16")
def test_a_list_of_jobs_that_is_none_refuses_each_job(server, junk):
    server.troubles["/jobs/overview"] = flink_server.reply_with(junk)
    assert observe(server).problem == "unreadable_reply"


def test_junk_in_requirements_and_configurations_harms_nothing_else(server):
    server.troubles["/resource-requirements"] = flink_server.reply_with({SOURCE: None, ENRICH: {"parallelism": 1}})
    assert observe(server).problem == "missing_requirement"
    server.troubles = {"/config": flink_server.reply_with([None, {"key": 1}]), "/overview": flink_server.reply_html}
    server.troubles["/jobs/overview"] = lambda request: request.write_json({"jobs": [None, server.jobs[0].reply()]})
    server.troubles = dict(reversed(server.troubles.items()))
    observed = observe(server)
    assert (observed.job_id, observed.free_slots, observed.is_elastic) == ("a" * 32, None, False)


def test_no_reply_is_unknown(server):
    server.troubles["*"] = flink_server.hang
    with pytest.raises(RequestUnknownError, match=r"cluster prod .* did not reply"):
        observe(server)


def test_a_job_without_a_reply_does_not_hold_the_others(server):
    server.troubles[JOB_PATH] = flink_server.hang
    result = actuator_of(server).observe_all(["prod/orders", "prod/rides", "prod/nosuch", "other/rides"])
    assert isinstance(result["prod/orders"], RequestUnknownError)
    assert result["prod/rides"].job_id == "b" * 32
    assert result["prod/nosuch"] == result["other/rides"] == ObservedJob(None, "", {}, None)


def test_fifty_jobs_ask_for_the_list_once():
    jobs = [FakeJob(f"{number:032x}", f"job-{number}") for number in range(50)]
    with serving(FlinkServer(*jobs)) as server:
        actuator = actuator_of(server)
        result = actuator.observe_all([f"prod/job-{number}" for number in range(50)])
        assert [observed.job_id for observed in result.values()] == [job.job_id for job in jobs]
        assert server.asked().count("/jobs/overview") == server.asked().count("/overview") == 1
        first = len(server.asked())
        actuator.observe_all(result)
        assert len(server.asked()) - first == 2 + 2 * 50  # configurations do not change


def test_what_was_observed_of_all_is_used_once_and_then_asked_anew(server):
    actuator = actuator_of(server)
    known = {**actuator.observe_all(["prod/orders"]), "prod/rides": RequestUnknownError("no")}
    server.jobs[0].requested = {SOURCE: 4, ENRICH: 4}
    nothing = JobHistory()
    assert observe_followed(actuator, "prod/orders", nothing, known["prod/orders"]).requested == {SOURCE: 1, ENRICH: 2}
    assert observe_followed(actuator, "prod/orders", nothing).requested == {SOURCE: 4, ENRICH: 4}
    with pytest.raises(RequestUnknownError, match="no"):
        observe_followed(actuator, "prod/rides", nothing, known["prod/rides"])
    assert observe_followed(actuator, "prod/rides", nothing).job_id == "b" * 32


# requests


def send(server, parallelism):
    """Send a request after a look at the job, as a controller does."""
    actuator = actuator_of(server)
    actuator.observe("prod/orders")
    actuator.request("prod/orders", "a" * 32, parallelism)


def test_a_request_names_every_vertex_and_keeps_the_lower_bound_at_one(server):
    send(server, {SOURCE: 3, ENRICH: 4})
    (put,) = [request for request in server.requests if request.method == "PUT"]
    assert put.path == f"{JOB_PATH}/resource-requirements"
    assert json.loads(put.body) == {
        SOURCE: {"parallelism": {"lowerBound": 1, "upperBound": 3}},
        ENRICH: {"parallelism": {"lowerBound": 1, "upperBound": 4}},
    }


@pytest.mark.covers("harm lower-bound")
def test_lower_bounds_that_somebody_has_set_are_told_and_kept(server):
    server.jobs[0].lower = {ENRICH: 2}
    assert observe(server).lower_bounds == {SOURCE: 1, ENRICH: 2}
    send(server, {SOURCE: 3, ENRICH: 4})
    assert server.jobs[0].lower == {SOURCE: 1, ENRICH: 2}
    assert server.jobs[0].requested == {SOURCE: 3, ENRICH: 4}
    with pytest.raises(RequestRefusedError, match="above its upper bound"):
        send(server, {SOURCE: 3, ENRICH: 1})
    server.troubles["/resource-requirements"] = flink_server.reply_with(
        {one: {"parallelism": {"upperBound": 2}} for one in (SOURCE, ENRICH)}
    )
    assert observe(server).problem == "missing_requirement"  # a bound that is not told is not 1


@pytest.mark.parametrize("change", [{"requested": {SOURCE: 1, ENRICH: 5}}, {"lower": {ENRICH: 2}}])
def test_what_somebody_else_asks_for_right_before_a_request_is_not_overwritten(server, change):
    actuator = actuator_of(server)
    actuator.observe("prod/orders")
    for name, value in change.items():
        setattr(server.jobs[0], name, value)
    before = (dict(server.jobs[0].requested), dict(server.jobs[0].lower))
    with pytest.raises(RequestConflictError, match="asked for something else"):
        actuator.request("prod/orders", "a" * 32, {SOURCE: 3, ENRICH: 4})
    assert (server.jobs[0].requested, server.jobs[0].lower) == before
    assert server.asked("PUT") == []
    actuator.observe("prod/orders")  # judged afresh
    actuator.request("prod/orders", "a" * 32, {SOURCE: 3, ENRICH: 4})
    with pytest.raises(RequestConflictError):  # each request follows a look of its own
        actuator.request("prod/orders", "a" * 32, {SOURCE: 4, ENRICH: 4})


def test_a_request_is_not_sent_where_nobody_knows_what_it_would_overwrite(server):
    actuator = actuator_of(server)
    actuator.observe("prod/orders")
    server.troubles["/resource-requirements"] = flink_server.reply_html
    with pytest.raises(RequestConflictError, match="not JSON"):
        actuator.request("prod/orders", "a" * 32, {SOURCE: 3, ENRICH: 4})
    server.troubles["/resource-requirements"] = flink_server.reply_500
    with pytest.raises(RequestConflictError, match="500"):
        actuator.request("prod/orders", "a" * 32, {SOURCE: 3, ENRICH: 4})
    assert server.asked("PUT") == []


@pytest.mark.parametrize(
    ("trouble", "error", "told"),
    [
        (flink_server.reply_with(UNSUPPORTED, 500), RequestRefusedError, "DefaultScheduler does not support"),
        (flink_server.reply_with(GONE, 500), RequestRefusedError, "knows no job"),
        (flink_server.reply_with({"errors": ["not found"]}, 404), RequestRefusedError, "knows no job"),
        (flink_server.reply_with({"errors": ["exceeds its maximum parallelism"]}, 400), RequestRefusedError, "maximum"),
        (flink_server.reply_with({"errors": ["read only"]}, 403), RequestRefusedError, "read only.*check the login"),
        (flink_server.redirect, RequestRefusedError, "redirect"),
        (flink_server.reply_with({"errors": ["slow down"]}, 429), RequestUnknownError, "slow down"),
        (flink_server.reply_with({"errors": ["the job is restarting"]}, 409), RequestUnknownError, "restarting"),
        (flink_server.reply_500, RequestUnknownError, "500"),
        (flink_server.reply_with({}, 503), RequestUnknownError, "503"),
        (flink_server.reply_html, RequestUnknownError, "not JSON"),
        (flink_server.hang, RequestUnknownError, "did not reply"),
        (flink_server.close, RequestUnknownError, "did not reply"),
    ],
)
@pytest.mark.covers("apply_review 15")
def test_an_answer_to_a_request_is_a_refusal_only_where_that_is_certain(server, trouble, error, told):
    server.troubles["/resource-requirements"] = flink_server.on_put(trouble, server)
    with pytest.raises(error, match=told):
        send(server, {SOURCE: 1, ENRICH: 1})
    assert server.asked("PUT") == [f"{JOB_PATH}/resource-requirements"]  # once


def test_nothing_is_sent_to_what_is_no_job_id(server):
    with pytest.raises(RequestRefusedError, match="no id of a job"):
        actuator_of(server).request("prod/orders", "../../jars", {SOURCE: 1})
    assert server.requests == []


def test_a_vertex_that_is_left_out_is_refused_by_flink(server):
    with pytest.raises(RequestRefusedError, match="incomplete"):
        send(server, {SOURCE: 1})


def test_the_settings_open_an_actuator(server):
    settings = Settings(clusters={"prod": Cluster(rest_url=server.url, elastic=True), "files": Cluster()})
    assert open_actuator(settings, "prod").observe("prod/orders").is_elastic
    with pytest.raises(KeyError):
        open_actuator(settings, "files")
