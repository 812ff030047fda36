"""The client's part on a real API server: versions, conflicts, field managers, rights (docs/kubernetes.md, Tests)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from kubernetes.dynamic import DynamicClient
from local_kubernetes import find_part, running_api_server

from cli.doctor.findings import Level
from cli.doctor.kubernetes import check_resources
from include.kubernetes.controller_manifests import ControllerPod, form_controller
from include.kubernetes.events import form_event
from include.kubernetes.faults import ApiConflictError, ApiError, ApiRefusedError
from include.kubernetes.job_resource import SESSION_JOB, read_job_resource
from include.kubernetes.manifests import Placement, form_manifests
from include.kubernetes.overrides import OVERRIDES, form_patch
from include.settings import Cluster, Settings
from include.settings.kubernetes import Kubernetes

A, B = "a" * 32, "b" * 32
NAME, RELEASE = "orders", "apps"  # a job's resource, and the namespace of a release of the chart
ROOT = Path(__file__).parents[2]
CHART, TOML = ROOT / "deploy" / "helm", ROOT / "tidewise.toml"
CLUSTER = Cluster(rest_url="http://x:1", actuator="kubernetes", kubernetes={"kind": SESSION_JOB})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_api_server(tmp_path_factory.mktemp("kube")) as running:
        job = {"jarURI": "file:///job.jar", "parallelism": 1, "upgradeMode": "stateless", "state": "running"}
        body = {
            "apiVersion": "flink.apache.org/v1beta1",
            "kind": SESSION_JOB,
            "metadata": {"name": NAME},
            "spec": {"deploymentName": "session", "job": job, "flinkConfiguration": {"rest.port": "8081"}},
        }
        running.custom().create_namespaced_custom_object(
            "flink.apache.org", "v1beta1", "default", "flinksessionjobs", body
        )
        yield running


def patch_of(found, count):
    version = found["metadata"]["resourceVersion"]
    return form_patch(found["spec"].get("flinkConfiguration", {}), {A: count, B: 1}, version, frozenset({A, B}))


def test_a_patch_changes_the_map_alone_under_our_name(server):
    api = server.resources()
    before = api.read_resource(SESSION_JOB, NAME)
    after = api.patch_resource(SESSION_JOB, NAME, patch_of(before, 2))
    assert after["spec"]["flinkConfiguration"] == {"rest.port": "8081", OVERRIDES: f"{A}:2,{B}:1"}
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    managers = {one["manager"]: one["fieldsV1"] for one in after["metadata"]["managedFields"]}
    assert list(managers["tidewise"]["f:spec"]["f:flinkConfiguration"]) == [f"f:{OVERRIDES}"]


def test_an_old_resource_version_is_a_conflict_and_changes_nothing(server):
    api = server.resources()
    old = api.read_resource(SESSION_JOB, NAME)
    server.call(
        "PATCH",
        f"/apis/flink.apache.org/v1beta1/namespaces/default/flinksessionjobs/{NAME}",
        {"metadata": {"annotations": {"touched": "yes"}}},
        "application/merge-patch+json",
    )
    with pytest.raises(ApiConflictError) as reported:
        api.patch_resource(SESSION_JOB, NAME, patch_of(old, 5))
    assert reported.value.status == 409
    assert api.read_resource(SESSION_JOB, NAME)["spec"] == old["spec"]
    api.patch_resource(SESSION_JOB, NAME, patch_of(api.read_resource(SESSION_JOB, NAME), 5))


def test_what_is_not_there_is_none_and_what_is_forbidden_is_refused(server):
    assert server.resources().read_resource(SESSION_JOB, "nobody") is None
    with pytest.raises(ApiRefusedError) as reported:
        server.resources("nobody-token").list_resources(SESSION_JOB)
    assert reported.value.status == 403
    with pytest.raises(ApiError, match="401"):
        server.resources("no-token-at-all").list_resources(SESSION_JOB)


def test_the_role_that_is_written_is_enough_and_no_more(server):
    api = server.resources("tidewise-token")
    (before,) = [one for one in check_resources("o", CLUSTER, api) if one.check == "rights"]
    assert before.level is Level.ERROR
    # The login is the service account of the namespace that the rights are written for.
    for manifests in form_manifests("prod", CLUSTER, Placement(namespace="default")).values():
        for one in manifests:
            if "v1" in one["apiVersion"].split("/")[-1:] and not one["apiVersion"].startswith("monitoring"):
                server.apply(one)
    after = check_resources("o", CLUSTER, api)
    assert [one.level for one in after if one.check == "rights"] == [Level.OK]
    result = api.read_resource(SESSION_JOB, NAME)
    api.patch_resource(SESSION_JOB, NAME, patch_of(result, 3))
    api.create_event(form_event(read_job_resource(result), "RescaleRequested", "a: 1 -> 3", 1e9, is_warning=False))
    (event,) = server.call("GET", "/api/v1/namespaces/default/events")["items"]
    assert event["involvedObject"]["uid"] == result["metadata"]["uid"]
    assert event["reportingComponent"] == "tidewise"
    with pytest.raises(ApiRefusedError):
        server.resources("nobody-token").create_event(event)
    assert not api.may("delete", "flinksessionjobs")
    assert not api.may("create", "flinksessionjobs")
    assert not api.may("get", "secrets", "")
    assert not api.may("patch", "flinkdeployments")


def test_all_pages_of_a_long_list_are_read(server, monkeypatch):
    monkeypatch.setattr("include.kubernetes.api._PAGE", 2)
    for number in range(4):
        body = dict(server.resources().read_resource(SESSION_JOB, NAME) or {})
        body["metadata"] = {"name": f"more-{number}"}
        server.custom().create_namespaced_custom_object(
            "flink.apache.org", "v1beta1", "default", "flinksessionjobs", body
        )
    assert len(server.resources().list_resources(SESSION_JOB)) == 5


def test_an_api_server_that_is_gone_is_told_without_credentials(server, tmp_path):
    from include.kubernetes.api import open_api

    text = server.kubeconfig().read_text().replace(server.url, "https://127.0.0.1:1")
    (tmp_path / "kubeconfig").write_text(text)
    with pytest.raises(ApiError) as reported:
        open_api(Kubernetes(kubeconfig=str(tmp_path / "kubeconfig"))).list_resources(SESSION_JOB)
    assert "admin-token" not in str(reported.value)


def check(server, manifest):
    """Apply on the server's side what changes nothing: a field that Kubernetes does not know is refused."""
    resource = DynamicClient(server.client).resources.get(api_version=manifest["apiVersion"], kind=manifest["kind"])
    path = resource.path(name=manifest["metadata"]["name"], namespace=manifest["metadata"]["namespace"])
    options = "dryRun=All&fieldManager=tidewise&force=true&fieldValidation=Strict"
    reply = server.call("PATCH", f"{path}?{options}", manifest, "application/apply-patch+yaml")
    assert reply["metadata"]["name"] == manifest["metadata"]["name"]


def test_the_api_server_accepts_every_manifest_of_kinds_that_it_has(server):
    settings = Settings(clusters={"prod": CLUSTER})
    placement = Placement(namespace="default")
    files = form_controller(settings, placement, ControllerPod("tidewise:1", ["prod"]))
    files |= form_manifests("prod", CLUSTER, placement)
    foreign = ("flink.", "monitoring.", "argoproj.")  # of operators that this server does not have
    manifests = [one for file in files.values() for one in file if not one["apiVersion"].startswith(foreign)]
    assert {one["kind"] for one in manifests} == {
        *("Deployment", "NetworkPolicy", "ServiceAccount", "Role", "RoleBinding", "Service")
    }
    for one in manifests:
        check(server, one)
    deployment = manifests[0]
    with pytest.raises(Exception, match="replica"):
        check(server, {**deployment, "spec": {**deployment["spec"], "replica": 1}})


@pytest.fixture
def helm(server):
    """Run Helm on the chart; returns what it prints."""
    program = str(find_part("HELM", "helm"))
    if RELEASE not in {one["metadata"]["name"] for one in server.call("GET", "/api/v1/namespaces")["items"]}:
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": RELEASE}})

    def run(verb, *arguments):
        chart = [] if verb == "uninstall" else [str(CHART), "--set", "image=tidewise:1"]
        command = [program, verb, "tidewise", *chart, *arguments, "--namespace", RELEASE]
        command += ["--kubeconfig", str(server.kubeconfig())]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    return run


def test_the_api_server_accepts_the_chart_and_a_namespace_of_restricted_pods_its_pod(server, helm):
    made = {one["kind"]: one for one in yaml.safe_load_all(helm("template")) if one}
    assert set(made) == {"ConfigMap", "Deployment", "NetworkPolicy", "PersistentVolumeClaim", "ServiceAccount"}
    for one in made.values():
        check(server, one)
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "strict", "labels": label}})
    spec, path = made["Deployment"]["spec"]["template"]["spec"], "/api/v1/namespaces/strict/pods?dryRun=All"
    assert server.call("POST", path, {"metadata": {"name": "one"}, "spec": spec})["metadata"]["name"] == "one"
    with pytest.raises(Exception, match="runAsNonRoot"):
        server.call("POST", path, {"metadata": {"name": "two"}, "spec": {**spec, "securityContext": {}}})


def test_helm_installs_upgrades_and_removes_the_chart_and_what_was_learnt_stays(server, helm):
    assert "port-forward" in helm("install")
    assert "REVISION: 2" in helm("upgrade", "--set-file", f"settings={TOML}")
    deployments, own = "/apis/apps/v1/namespaces/apps/deployments", "/api/v1/namespaces/apps"
    (deployed,) = server.call("GET", deployments)["items"]
    names = [one["name"] for one in deployed["spec"]["template"]["spec"]["containers"]]
    assert names == ["controller", "page"]
    settings = server.call("GET", f"{own}/configmaps/tidewise")["data"]["tidewise.toml"]
    assert settings == TOML.read_text()
    helm("uninstall")
    assert not server.call("GET", deployments)["items"]
    (volume,) = server.call("GET", f"{own}/persistentvolumeclaims")["items"]
    assert volume["metadata"]["name"] == "tidewise"
