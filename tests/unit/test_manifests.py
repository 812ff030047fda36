"""What `tidewise manifests` writes, and what of the operator the doctor finds; the real API server is in tests/live."""

from __future__ import annotations

import json
import tomllib

import pytest
import yaml

from cli import manifests
from cli.doctor.findings import Level
from cli.doctor.kubernetes import check_operator, check_resources
from controller.command import parse_arguments
from controller.health_server import PATHS, parse_address
from include.kubernetes.controller_manifests import ControllerPod, form_deployment
from include.kubernetes.faults import ApiError
from include.kubernetes.manifests import Placement, form_manifests, list_rights
from include.kubernetes.overrides import OVERRIDES
from include.kubernetes.schemas import SchemaError, check_resource
from include.settings import Cluster, Settings

SETTINGS = """
[clusters.Prod]
rest_url = "http://flink-rest.flink:8081"
actuator = "kubernetes"
kubernetes = { namespace = "flink", kind = "FlinkSessionJob", deployment = "session" }
prometheus.url = "http://prometheus:9090"
kafka.main.bootstrap_servers = "one:9092,two:9093"
[clusters.other]
rest_url = "http://other:8081"
"""


@pytest.fixture
def written(tmp_path, monkeypatch, capsys):
    (tmp_path / "tidewise.toml").write_text(SETTINGS)
    monkeypatch.setenv("TIDEWISE_SETTINGS", str(tmp_path / "tidewise.toml"))
    assert manifests.main(["--out", str(tmp_path / "out")]) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["Prod"]
    files = (tmp_path / "out" / "Prod").glob("*.yaml")
    return {path.name: list(yaml.safe_load_all(path.read_text())) for path in files}


def test_the_role_may_do_what_the_actuator_does_and_nothing_else(written):
    account, role, binding = written["rbac.yaml"]
    assert list_rights(role["rules"]) == [
        ("get", "flinksessionjobs"),
        ("list", "flinksessionjobs"),
        ("patch", "flinksessionjobs"),
        ("create", "events"),
        ("get", "flinkdeployments"),
    ]
    assert (role["metadata"]["namespace"], account["metadata"]["namespace"]) == ("flink", "tidewise")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "tidewise", "namespace": "tidewise"}]


def test_a_cluster_that_is_only_observed_gets_no_right_to_change():
    role = form_manifests("c", Cluster(rest_url="http://x:1", actuator="none"), Placement())["rbac.yaml"][1]
    assert list_rights(role["rules"]) == [("get", "flinkdeployments"), ("list", "flinkdeployments")]


def test_the_network_policy_names_every_port_of_the_settings(written):
    (policy,) = written["network-policy.yaml"]
    assert [port["port"] for port in policy["spec"]["egress"][1]["ports"]] == [443, 6443, 8081, 9090, 9092, 9093]
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy["spec"]


def test_argo_leaves_alone_what_is_written(written):
    (application,) = written["argocd-application.yaml"]
    (ignored,) = application["spec"]["ignoreDifferences"]
    assert ignored["jsonPointers"] == [f"/spec/flinkConfiguration/{OVERRIDES}"]
    assert ignored["managedFieldsManagers"] == ["tidewise"]
    assert application["spec"]["syncPolicy"]["syncOptions"] == ["RespectIgnoreDifferences=true"]


def test_the_monitor_finds_the_service_that_is_written_with_it(written):
    service, monitor = written["monitoring.yaml"]
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    assert service["spec"]["ports"][0]["name"] == monitor["spec"]["endpoints"][0]["port"]
    (deployment,) = written["flink-configuration.yaml"]
    port = deployment["spec"]["flinkConfiguration"]["metrics.reporter.prom.port"]
    assert service["spec"]["ports"][0]["port"] == int(port)


def test_resources_are_held_against_the_operators_schemas(written):
    (deployment,) = written["flink-configuration.yaml"]
    check_resource(deployment)
    with pytest.raises(SchemaError, match="flinkVersion"):
        check_resource({**deployment, "spec": {"flinkVersion": "v9_9"}})
    with pytest.raises(SchemaError, match="flinkConfig"):
        check_resource({**deployment, "spec": {"flinkConfig": {}}})


@pytest.mark.parametrize(("options", "told"), [(["--cluster", "x"], "no cluster x"), ([], "actuator")])
def test_without_a_cluster_it_says_what_to_write(options, told, tmp_path, monkeypatch, capsys):
    (tmp_path / "t.toml").write_text('[clusters.other]\nrest_url = "http://other:8081"\n')
    monkeypatch.setenv("TIDEWISE_SETTINGS", str(tmp_path / "t.toml"))
    assert manifests.main(["--out", str(tmp_path / "out"), *options]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def write_controller(tmp_path, monkeypatch, paths, *options):
    (tmp_path / "tidewise.toml").write_text(f'{paths}\n[clusters.other]\nrest_url = "http://other:8081"\n')
    monkeypatch.setenv("TIDEWISE_SETTINGS", str(tmp_path / "tidewise.toml"))
    code = manifests.main(["--out", str(tmp_path / "out"), "--image", "registry/tidewise:1", *options])
    files = (tmp_path / "out").glob("*.yaml")
    return code, {path.name: list(yaml.safe_load_all(path.read_text())) for path in files}


def test_the_controllers_pod_listens_where_it_is_probed_and_scraped(tmp_path, monkeypatch):
    code, files = write_controller(tmp_path, monkeypatch, "", "--cluster", "other")
    assert code == 0
    deployment, policy = files["controller.yaml"]
    (monitor,) = files["controller-monitoring.yaml"]
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert parse_arguments(container["command"][3:]).cluster == ["other"]
    assert parse_address(container["command"][4])[1] == container["ports"][0]["containerPort"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": PATHS[0], "port": container["ports"][0]["name"]}
    (scraped,) = monitor["spec"]["podMetricsEndpoints"]
    assert (scraped["path"], scraped["port"]) == (PATHS[1], container["ports"][0]["name"])
    assert policy["spec"]["ingress"][0]["from"]  # without it, from everywhere
    assert policy["spec"]["ingress"][0]["ports"][0]["port"] == container["ports"][0]["containerPort"]
    for selector in (deployment["spec"]["selector"], policy["spec"]["podSelector"], monitor["spec"]["selector"]):
        assert selector["matchLabels"] == pod["metadata"]["labels"]
    assert pod["metadata"]["labels"].items() >= {"app.kubernetes.io/name": "tidewise"}.items()
    # One controller at a time, and never as root.
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]["type"]) == (1, "Recreate")
    assert pod["spec"]["securityContext"]["runAsNonRoot"]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("", "/opt/tidewise/out"),
        ('[paths]\nraw = "/data/t/raw"\nlake = "/data/t/lake"\nout = "/data/t/out"', "/data/t"),
        ('[paths]\nraw = "s3://b/raw"\nlake = "s3://b/lake"\nout = "/data/t/out"', "/data/t/out"),
        ('[paths]\nraw = "s3://b/raw"\nlake = "s3://b/lake"\nout = "s3://b/out"', None),
    ],
)
def test_folders_of_the_settings_are_one_volume(paths, expected):
    settings = Settings(paths=tomllib.loads(paths).get("paths", {}))
    deployment = form_deployment(settings, Placement(), ControllerPod("tidewise:1"))
    spec = deployment["spec"]["template"]["spec"]
    mounts = {one["name"]: one["mountPath"] for one in spec["containers"][0]["volumeMounts"]}
    assert mounts.get("data") == expected
    assert {one["name"] for one in spec["volumes"]} == set(mounts)


def test_folders_without_one_in_common_are_refused_by_name(tmp_path, monkeypatch, capsys):
    paths = '[paths]\nraw = "/raw"\nlake = "/lake"\nout = "/out"'
    code, files = write_controller(tmp_path, monkeypatch, paths)
    assert (code, files) == (1, {})
    assert "/raw, /lake, /out are below no folder of their own" in capsys.readouterr().err


# the doctor


class GivenApi:
    """An API server that tells what a test gives it."""

    def __init__(self, configuration=None, *, refused=(), version="v2_1"):
        self.configuration, self.refused, self.version = configuration or {}, refused, version

    def may(self, verb, plural, group="flink.apache.org"):
        # The group counts: events are of the core group, and of no other.
        return verb != "delete" and verb not in self.refused and (group == "") == (plural == "events")

    def list_resources(self, kind):
        return [self.read_resource(kind, "orders")]

    def read_resource(self, kind, name):
        dealt_with = json.dumps({"spec": {"flinkConfiguration": self.configuration}})
        return {
            "kind": kind,
            "metadata": {"name": name, "namespace": "flink", "generation": 1},
            "spec": {"flinkVersion": self.version, "flinkConfiguration": self.configuration},
            "status": {"observedGeneration": 1, "reconciliationStatus": {"lastReconciledSpec": dealt_with}},
        }

    def patch_resource(self, kind, name, patch):
        raise AssertionError("the doctor changes nothing")


ACTING = {"job.autoscaler.enabled": "true"}


@pytest.mark.parametrize(
    ("options", "kubernetes", "check", "remedy"),
    [
        ({"refused": ("patch",)}, {}, "rights", "tidewise manifests"),
        ({"configuration": ACTING}, {}, "autoscaler of orders", 'job.autoscaler.scaling.enabled: "false"'),
        ({}, {"mode": "guide"}, "autoscaler of orders", 'job.autoscaler.enabled: "true"'),
        ({"version": "v1_17"}, {}, "in-place rescale of orders", "full_upgrade"),
        ({"configuration": {"jobmanager.scheduler": "default"}}, {}, "in-place rescale of orders", "full_upgrade"),
    ],
)
def test_the_doctor_finds_the_fault_and_says_what_to_do(options, kubernetes, check, remedy):
    cluster = Cluster(rest_url="http://x:1", actuator="kubernetes", kubernetes=kubernetes)
    faults = [one for one in check_resources("operator", cluster, GivenApi(**options)) if one.level is Level.ERROR]
    assert [one.check for one in faults] == [check]
    assert remedy in faults[0].remedy


def test_a_role_of_before_events_is_a_warning_and_no_error():
    cluster = Cluster(rest_url="http://x:1", actuator="kubernetes")
    faults = [one for one in check_resources("o", cluster, GivenApi(refused=("create",))) if one.level is not Level.OK]
    assert [(one.check, one.level) for one in faults] == [("events", Level.WARNING)]
    assert "tidewise manifests" in faults[0].remedy


def test_the_doctor_finds_nothing_where_all_is_well():
    cluster = Cluster(rest_url="http://x:1", actuator="kubernetes")
    assert {one.level for one in check_resources("operator", cluster, GivenApi())} == {Level.OK}
    guide = Cluster(rest_url="http://x:1", actuator="kubernetes", kubernetes={"mode": "guide"})
    assert {one.level for one in check_resources("operator", guide, GivenApi(ACTING))} == {Level.OK}


def test_the_doctor_names_a_login_that_is_none(tmp_path):
    cluster = Cluster(rest_url="http://x:1", actuator="kubernetes", kubernetes={"kubeconfig": str(tmp_path / "no")})
    (fault,) = check_operator("prod", cluster)
    assert (fault.level, fault.check) == (Level.ERROR, "login")
    assert "kubeconfig" in fault.remedy


def test_an_api_server_that_does_not_reply_ends_the_checks(monkeypatch):
    def fail(*_):
        raise ApiError("no route")

    monkeypatch.setattr(GivenApi, "list_resources", fail)
    cluster = Cluster(rest_url="http://x:1", actuator="kubernetes")
    assert check_resources("operator", cluster, GivenApi())[-1].check == "API server"
