"""Chart and compose file run what the manifests run: the same pod, names that meet, one port for one process."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

from include.settings import Settings
from tools.helm_chart import FILE, PAGE_PORT, form_pod

DEPLOY = Path(__file__).parents[2] / "deploy"


def fill(text: str) -> str:
    for key, value in {
        ".Release.Name": "tidewise",
        ".Release.Namespace": "apps",
        ".Values.image": "tidewise:1",
    }.items():
        text = text.replace(f"{{{{ {key} }}}}", value)
    return text


def test_the_template_is_what_the_manifests_are() -> None:
    assert (DEPLOY.parent / FILE).read_text() == form_pod(), "make docs"
    deployment, policy = yaml.safe_load_all(fill(form_pod()))
    controller, page = deployment["spec"]["template"]["spec"]["containers"]
    assert PAGE_PORT not in " ".join(controller["command"])
    assert controller["volumeMounts"] == page["volumeMounts"]
    assert {deployment["metadata"]["namespace"], policy["metadata"]["namespace"]} == {"apps"}


def test_what_the_pod_refers_to_is_in_the_chart() -> None:
    values = yaml.safe_load((DEPLOY / "helm" / "values.yaml").read_text())
    text = (DEPLOY / "helm" / "templates" / "settings.yaml").read_text()
    text = text.replace("{{ .Values.settings | quote }}", repr(values["settings"])).replace(
        "{{ .Values.storage }}", values["storage"]
    )
    made = {one["kind"]: one for one in yaml.safe_load_all(fill(text))}
    pod = next(yaml.safe_load_all(fill(form_pod())))["spec"]["template"]["spec"]
    assert made["ServiceAccount"]["metadata"]["name"] == pod["serviceAccountName"]
    assert list(made["ConfigMap"]["data"]) == ["tidewise.toml"]
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert made["PersistentVolumeClaim"]["metadata"]["name"] == volumes["data"]["persistentVolumeClaim"]["claimName"]
    assert made["ConfigMap"]["metadata"]["name"] == volumes["settings"]["configMap"]["name"]
    assert Settings.model_validate(tomllib.loads(values["settings"])).limits.mode == "dry-run"


def test_the_compose_file_runs_the_same_two() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    pod = next(yaml.safe_load_all(fill(form_pod())))["spec"]["template"]["spec"]
    for container in pod["containers"]:
        modules = services[container["name"]]["command"][1:3]
        assert modules == container["command"][1:3]
        assert (
            services[container["name"]]["environment"].items()
            <= {one["name"]: one["value"] for one in container["env"]}.items()
        )
    assert services["page"]["command"][-1] == PAGE_PORT
