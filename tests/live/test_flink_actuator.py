"""The actuator on a real Flink cluster: what it sees, what it sends, and through TLS with logins."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from live_flink import LiveFlink, job_on
from planted_secrets import HEADER, connection_values, find_secrets, plant
from proxies import server_context, tls_gateway
from waiting import wait_until

from controller.actuators.actuator import RequestRefusedError
from controller.actuators.flink_actuator import FlinkActuator, open_actuator
from controller.decisions.job_control import JobControl, JobTask
from include.metric_sources.collection import collect_for
from include.settings import check_settings
from lab.local_flink.load import AGGREGATE, ENRICH, SINK, SOURCE, LoadOptions, submit_load
from models.control.limits import Limits
from models.control.state import Intention, JobHistory, Mode, Origin

pytestmark = pytest.mark.e2e
LIGHT = {"low_per_s": 50.0, "high_per_s": 100.0}
JOB = "live/actuated"


@pytest.fixture(scope="module")
def job(local_cluster) -> Iterator[LiveFlink]:
    with job_on(local_cluster, LoadOptions(job_name="actuated", **LIGHT)) as flink:
        yield flink


@pytest.fixture
def actuator(job) -> FlinkActuator:
    return FlinkActuator(job.client, "live")


def vertex_ids(flink: LiveFlink) -> dict[str, str]:
    return {vertex["name"]: vertex["id"] for vertex in flink.client.job(flink.job_id)["vertices"]}


class Log:
    """The controller's log in memory."""

    def __init__(self) -> None:
        self.entries, self.history = [], JobHistory()

    def append_all(self, entries) -> None:
        self.entries += entries
        self.history = entries[-1].history

    def read_last(self, job):
        return self.entries[-1] if self.entries else None

    def read_history(self, job) -> JobHistory:
        return self.history

    def read_open(self):
        return {one.job: one for one in self.entries[-1:] if one.history.in_flight is not None}


def test_a_job_is_seen_as_it_is(job, actuator):
    observed = actuator.observe(JOB)
    ids = vertex_ids(job)
    assert set(ids) == {SOURCE, ENRICH, AGGREGATE, SINK}
    assert (observed.job_id, observed.state, observed.problem) == (job.job_id, "RUNNING", "")
    assert observed.running == observed.requested == dict.fromkeys(ids.values(), 1)
    assert observed.max_parallelism == dict.fromkeys(ids.values(), 128)
    assert len(set(observed.slot_sharing_group.values())) == 1
    assert "default" not in observed.slot_sharing_group.values()  # Flink names the group
    assert observed.slots_of(observed.running) == 1
    assert 0 <= observed.free_slots < 8
    assert (observed.is_elastic, observed.other_autoscaler) == (False, None)


def test_the_controller_rescales_and_confirms(job, actuator):
    """The whole loop, as a tick does it: observe all, decide, ask anew, send; then follow until it runs."""
    before = actuator.observe(JOB)
    enrich = vertex_ids(job)[ENRICH]
    target = {**before.running, enrich: 2}
    wanted = Intention(target, Origin.PLAN, "step-1", "tested", time.time() + 600)
    log, limits = Log(), Limits(mode=Mode.AUTO, cooldown_s=0.0)

    def tick():
        task = JobTask(JOB, wanted, lambda: limits)
        return JobControl(actuator, log, lambda: None, time.time).control_jobs([task], actuator.observe_all([JOB]))[JOB]

    assert tick().reason == "new_job_id"
    reasons = ["no_checkpoint"]  # the job has just begun
    while reasons[-1] == "no_checkpoint" and len(reasons) < 60:
        reasons.append(tick().reason)
        time.sleep(0.5)
    assert reasons[-1] == "plan"
    assert wait_until(lambda: tick().verb == "confirm", 60)
    assert actuator.observe(JOB).running == target
    decided = [one.action.verb for one in log.entries if not one.answer and one.action.reason != "no_checkpoint"]
    assert decided == ["wait", "rescale", "confirm"]
    assert log.history.last_good == before.running
    assert tick().reason == "as_desired"


@pytest.mark.covers("apply_review 14")
def test_two_jobs_of_one_name_are_refused_until_one_ends(job, actuator):
    client = job.client
    second = submit_load(client, job.cluster.work_dir, LoadOptions(job_name="actuated", **LIGHT))
    assert wait_until(lambda: client.job(second)["state"] == "RUNNING", 60)
    observed = actuator.observe(JOB)
    assert (observed.job_id, observed.problem) == (None, "ambiguous_name")
    client.cancel(second)
    assert wait_until(lambda: actuator.observe(JOB).job_id == job.job_id, 60)


@pytest.mark.covers("apply_review 5")
@pytest.mark.covers("apply_review 19 finished vertex")
def test_vertices_of_one_name_and_finished_ones(local_cluster):
    options = LoadOptions(job_name="warmed-up", warm_up_sources=2, **LIGHT)
    with job_on_finishing(local_cluster, options) as flink:
        actuator = FlinkActuator(flink.client, "live")
        vertices = flink.client.job(flink.job_id)["vertices"]
        assert [vertex["name"] for vertex in vertices].count("Source: warm-up") == 2
        finished = {vertex["id"] for vertex in vertices if vertex["name"].endswith(("warm-up", "warm-up orders"))}
        assert wait_until(lambda: len(actuator.observe("live/warmed-up").running) == 4, 60)
        observed = actuator.observe("live/warmed-up")
        assert set(observed.requested) - set(observed.running) == finished
        (enrich,) = [vertex["id"] for vertex in vertices if vertex["name"] == ENRICH]
        assert flink.client.checkpoints(flink.job_id)["counts"]["failed"] == 0
        target = {**observed.requested, enrich: 2}
        actuator.request("live/warmed-up", flink.job_id, target)
        wanted = {vertex: count for vertex, count in target.items() if vertex not in finished}
        assert wait_until(lambda: actuator.observe("live/warmed-up").running == wanted, 90)
        assert actuator.observe("live/warmed-up").requested == target


def job_on_finishing(cluster, options):
    """Run a job; some of its vertices may have finished before all of them run at the same time."""
    return job_on(cluster, options, is_up=lambda job: job["state"] == "RUNNING")


@pytest.mark.covers("apply_review 15")
def test_unknown_jobs_are_unknown(job, actuator):
    assert actuator.observe("live/nosuch").job_id is None
    nobody = "0" * 32
    with pytest.raises(RequestRefusedError, match="knows no job"):
        actuator.request("live/nosuch", nobody, dict.fromkeys(vertex_ids(job).values(), 1))
    ended = submit_load(job.client, job.cluster.work_dir, LoadOptions(job_name="ended", **LIGHT))
    assert wait_until(lambda: actuator.observe("live/ended").running, 60)
    asked = actuator.observe("live/ended").requested
    job.client.cancel(ended)
    assert wait_until(lambda: job.client.job(ended)["state"] == "CANCELED", 60)
    assert actuator.observe("live/ended").job_id is None
    with pytest.raises(RequestRefusedError, match="knows no job"):
        actuator.request("live/ended", ended, asked)


@pytest.mark.covers("apply_review 17")
def test_a_request_without_a_vertex_is_refused_by_flink_and_changes_nothing(job, actuator):
    before = actuator.observe(JOB).requested
    with pytest.raises(RequestRefusedError, match="incomplete, missing job vertex"):
        actuator.request(JOB, job.job_id, {vertex_ids(job)[ENRICH]: 3})
    actuator.observe(JOB)  # each request follows a look
    with pytest.raises(RequestRefusedError, match="maximum parallelism"):
        actuator.request(JOB, job.job_id, dict.fromkeys(before, 1000))
    assert actuator.observe(JOB).requested == before


def test_collecting_and_rescaling_through_mutual_tls_with_a_token(job, tmp_path, monkeypatch, caplog):
    planted = plant(tmp_path / "secrets")
    for name, value in planted.environment().items():
        monkeypatch.setenv(name, value)
    wanted = {"Authorization": f"Bearer {planted.secrets['bearer']}", HEADER: planted.secrets["header"]}
    context = server_context(planted.authority, wants_client=True)
    with tls_gateway(job.rest_url, context, lambda headers: wanted.items() <= headers.items()) as gateway:
        cluster = {"rest_url": gateway.url, "connection": connection_values(planted)}
        settings = check_settings({"paths": {"raw": str(tmp_path / "raw")}, "clusters": {"live": cluster}})
        delivery = collect_for(settings, 0.0)
        assert delivery.records > 8
        assert delivery.refused == {}
        actuator = open_actuator(settings, "live")
        before = actuator.observe(JOB)
        enrich = vertex_ids(job)[ENRICH]
        target = {**before.requested, enrich: 3 - before.requested[enrich]}
        actuator.request(JOB, job.job_id, target)
        assert wait_until(lambda: actuator.observe(JOB).running == target, 90)
        assert "PUT" in {request.method for request in gateway.requests}
    assert find_secrets(planted, [tmp_path, job.cluster.work_dir / "log"], {"log": caplog.text}) == []
