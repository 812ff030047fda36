"""Which actuator a cluster gets, and that one without leave or login sends nothing."""

from __future__ import annotations

import pytest
from flink_server import FakeJob, FlinkServer, serving
from pydantic import ValidationError

from controller.actuators.actuator import RequestRefusedError, RequestUnknownError
from controller.actuators.choose_actuator import ReadOnlyActuator, choose_terms, open_cluster_actuator
from controller.actuators.flink_actuator import FlinkActuator
from controller.actuators.guide_actuator import GuideActuator, express_as_least
from controller.actuators.operator_actuator import OperatorActuator
from include.settings import Cluster, Settings

JOB, TARGET = "prod/orders", {"1" * 32: 2, "2" * 32: 2}
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: planted-token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


@pytest.fixture
def server():
    with serving(FlinkServer(FakeJob())) as running:
        yield running


@pytest.fixture
def kubeconfig(tmp_path):
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    return str(tmp_path / "kubeconfig")


def settings_of(server, **cluster):
    return Settings(clusters={"prod": Cluster(rest_url=server.url, **cluster)})


def test_without_a_choice_requests_go_to_flinks_rest_api(server):
    actuator = open_cluster_actuator(settings_of(server), "prod")
    assert isinstance(actuator, FlinkActuator)
    actuator.observe(JOB)
    actuator.request(JOB, "a" * 32, TARGET)
    assert server.jobs[0].requested == TARGET


def test_none_observes_and_sends_nothing(server):
    actuator = open_cluster_actuator(settings_of(server, actuator="none"), "prod")
    assert isinstance(actuator, ReadOnlyActuator)
    assert actuator.observe(JOB).job_id == actuator.observe_all([JOB])[JOB].job_id == "a" * 32
    before = dict(server.jobs[0].requested)
    with pytest.raises(RequestRefusedError, match="none"):
        actuator.request(JOB, "a" * 32, TARGET)
    assert server.jobs[0].requested == before


def test_without_a_login_nothing_is_known_and_nothing_sent(server, tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    for kubernetes in ({}, {"kubeconfig": str(tmp_path / "missing")}):
        actuator = open_cluster_actuator(settings_of(server, actuator="kubernetes", kubernetes=kubernetes), "prod")
        for question in (lambda to=actuator: to.observe(JOB), lambda to=actuator: to.observe_all([JOB])):
            with pytest.raises(RequestUnknownError, match="cluster prod: "):
                question()
        with pytest.raises(RequestRefusedError):
            actuator.request(JOB, "a" * 32, TARGET)
        assert actuator.inspect(JOB, "a" * 32).checkpoints is None
        assert "cluster prod: " in actuator.inspect(JOB, "a" * 32).unknown
        assert actuator.read_failures(JOB, "a" * 32) is None


@pytest.mark.parametrize(("mode", "kind"), [("act", OperatorActuator), ("guide", GuideActuator)])
def test_under_the_operator_it_acts_or_guides(server, kubeconfig, mode, kind):
    settings = settings_of(server, actuator="kubernetes", kubernetes={"kubeconfig": kubeconfig, "mode": mode})
    actuator = open_cluster_actuator(settings, "prod")
    assert type(actuator) is kind
    assert (choose_terms(settings, "prod") is express_as_least) == (mode == "guide")
    with pytest.raises(RequestUnknownError) as reported:  # nothing listens there
        actuator.observe_all([JOB])
    assert "planted-token" not in str(reported.value)


@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        ({"actuator": "kubernetes"}, "needs rest_url"),
        ({"actuator": "helm"}, "actuator"),
        ({"kubernetes": {"namespace": "Not A Name"}}, "no name of a Kubernetes resource"),
        ({"kubernetes": {"kind": "Deployment"}}, "FlinkDeployment"),
        ({"kubernetes": {"context": "x"}}, "context needs kubeconfig"),
        ({"kubernetes": {"resources": {"orders": "a/b"}}}, "no name of a Kubernetes resource"),
    ],
)
def test_settings_that_cannot_work_are_refused(cluster, told):
    with pytest.raises(ValidationError, match=told):
        Cluster(**cluster)
