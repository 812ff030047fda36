"""``python -m tools.helm_chart``: write the chart's pod from `tidewise manifests`, with the page beside it."""

from __future__ import annotations

from pathlib import Path

from cli.manifests import to_yaml
from include.kubernetes.controller_manifests import HOME, ControllerPod, form_controller
from include.kubernetes.manifests import Placement
from include.settings import Settings

FILE = Path("deploy") / "helm" / "templates" / "controller.yaml"
PAGE_PORT = "8091"  # the controller has the port that is the page's elsewhere
OF_PAGE = ("image", "workingDir", "env", "envFrom", "securityContext", "volumeMounts")


def form_pod() -> str:
    """Return Deployment and policy as a template of Helm, with the page, which only a port-forward reaches."""
    placement = Placement("{{ .Release.Namespace }}", "{{ .Release.Name }}")
    manifests = form_controller(Settings(), placement, ControllerPod("{{ .Values.image }}"))["controller.yaml"]
    containers = manifests[0]["spec"]["template"]["spec"]["containers"]
    shared = {key: containers[0][key] for key in OF_PAGE}
    command = [f"{HOME}/.venv/bin/python", "-m", "cli.console", "page", "--port", PAGE_PORT]
    containers.append({"name": "page", "command": command, **shared})
    return "# Written by `make docs`.\n" + to_yaml(manifests)


if __name__ == "__main__":
    FILE.write_text(form_pod(), encoding="utf-8")
