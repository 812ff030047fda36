"""Manifests of the controller as a pod of its own: Deployment, who may reach its port, and what Prometheus scrapes."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from include.kubernetes.manifests import APP_LABEL, Manifest, Placement
from include.object_store import local_folder
from include.settings import Settings, SettingsError

PORT = 8090
COMPONENT_LABEL = "app.kubernetes.io/component"
HOME = "/opt/tidewise"  # of the image that Containerfile makes
SETTINGS_FOLDER = "/etc/tidewise"
USER_ID = 10001  # of the image's user


@dataclass(frozen=True, slots=True)
class ControllerPod:
    """What the team decides about the pod.

    Attributes:
        image: made by Containerfile.
        clusters: to control; empty: all that the settings name.
    """

    image: str
    clusters: Sequence[str] = ()


def form_controller(settings: Settings, placement: Placement, pod: ControllerPod) -> dict[str, list[Manifest]]:
    """Return file name -> manifests of the controller."""
    return {
        "controller.yaml": [form_deployment(settings, placement, pod), _form_network_policy(placement)],
        "controller-monitoring.yaml": [_form_pod_monitor(placement, settings)],
    }


def form_deployment(settings: Settings, placement: Placement, pod: ControllerPod) -> Manifest:
    """Return a Deployment of one pod; a second one would wait for the first one's leases.

    The settings are a ConfigMap of the placement's name with ``tidewise.toml``; a Secret of that name, where there is
    one, becomes variables of the environment; folders of the settings are one PersistentVolumeClaim of that name.
    """
    name, folder = placement.name, common_folder(settings)
    mounts = [
        {"name": "settings", "mountPath": SETTINGS_FOLDER, "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},
    ]
    volumes: list[dict[str, Any]] = [
        {"name": "settings", "configMap": {"name": name}},
        {"name": "tmp", "emptyDir": {}},
    ]
    if folder is not None:
        mounts.append({"name": "data", "mountPath": folder})
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": name}})
    chosen = [argument for cluster in pod.clusters for argument in ("--cluster", cluster)]
    probe = {"httpGet": {"path": "/health", "port": "health"}, "periodSeconds": 30, "timeoutSeconds": 5}
    container = {
        "name": "controller",
        "image": pod.image,
        "command": [f"{HOME}/.venv/bin/python", "-m", "controller", "--listen", f"0.0.0.0:{PORT}", *chosen],
        "workingDir": HOME,
        "env": [
            {"name": "TIDEWISE_SETTINGS", "value": f"{SETTINGS_FOLDER}/tidewise.toml"},
            {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
        ],
        "envFrom": [{"secretRef": {"name": name, "optional": True}}],
        "ports": [{"name": "health", "containerPort": PORT}],
        # The first tick comes after the last polls and the models were read: ten minutes are allowed for it.
        "startupProbe": probe | {"failureThreshold": 20},
        "livenessProbe": probe | {"failureThreshold": 3},
        "readinessProbe": probe | {"failureThreshold": 1},
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }
    labels = _labels(placement)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(placement, "controller"),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": name,
                    "terminationGracePeriodSeconds": 90,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": USER_ID,
                        "fsGroup": USER_ID,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container],
                    "volumes": volumes,
                },
            },
        },
    }


def common_folder(settings: Settings) -> str | None:
    """Return the folder of the pod that holds all paths that are folders; None where all are on S3.

    Raises:
        SettingsError: they have no folder in common that a volume could be.
    """
    paths = (settings.paths.raw, settings.paths.lake, settings.paths.out)
    folders = [posixpath.join(HOME, one) for one in paths if local_folder(one) is not None]
    if not folders:
        return None
    result = posixpath.commonpath([posixpath.normpath(one) for one in folders])
    if result in {"/", HOME}:
        raise SettingsError(
            f"paths: {', '.join(folders)} are below no folder of their own: a pod has one volume for them"
        )
    return result


def _form_network_policy(placement: Placement) -> Manifest:
    """Let Prometheus in; probes come from the pod's own node, which every network lets in."""
    prometheus = {"namespaceSelector": {}, "podSelector": {"matchLabels": {APP_LABEL: "prometheus"}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(placement, "controller-port"),
        "spec": {
            "podSelector": {"matchLabels": _labels(placement)},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [prometheus], "ports": [{"protocol": "TCP", "port": PORT}]}],
        },
    }


def _form_pod_monitor(placement: Placement, settings: Settings) -> Manifest:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": _metadata(placement, "controller"),
        "spec": {
            "selector": {"matchLabels": _labels(placement)},
            "podMetricsEndpoints": [{"port": "health", "path": "/metrics", "interval": f"{settings.apply.tick_s}s"}],
        },
    }


def _metadata(placement: Placement, name: str) -> dict[str, Any]:
    return {"name": f"{placement.name}-{name}", "namespace": placement.namespace, "labels": _labels(placement)}


def _labels(placement: Placement) -> dict[str, str]:
    return {APP_LABEL: placement.name, COMPONENT_LABEL: "controller"}
