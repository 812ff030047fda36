"""Manifests for a cluster that runs under Kubernetes: rights, network, and what the team's own chart needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from include.kubernetes.job_resource import DEPLOYMENT, GROUP, PLURALS, SESSION_JOB, VERSION
from include.kubernetes.overrides import FIELD_MANAGER, OVERRIDES
from include.settings import Cluster

Manifest = dict[str, Any]
APP_LABEL = "app.kubernetes.io/name"
REPORTER_PORT = 9249
_API_PORTS = {443, 6443}  # of the API server
EVENTS = "events"
MIN_PARALLELISM = "job.autoscaler.vertex.min-parallelism"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where Tidewise itself runs.

    Attributes:
        namespace: of its pods.
        name: of its service account, and value of its pods' label ``app.kubernetes.io/name``.
    """

    namespace: str = "tidewise"
    name: str = "tidewise"


def form_manifests(cluster_name: str, cluster: Cluster, placement: Placement) -> dict[str, list[Manifest]]:
    """Return file name -> manifests for a cluster."""
    return {
        "rbac.yaml": form_rights(cluster, placement),
        "network-policy.yaml": [form_network_policy(cluster_name, cluster, placement)],
        "monitoring.yaml": form_monitoring(cluster_name, cluster),
        "flink-configuration.yaml": [form_reporter_patch(cluster)],
        "argocd-application.yaml": [form_argo_patch(cluster)],
    }


def form_rights(cluster: Cluster, placement: Placement) -> list[Manifest]:
    """Return the account, and a role with what the actuator asks for and nothing else.

    Jobs are read and, where they are acted on, patched, with an event on each; nothing else is created, nothing is
    deleted, and no Secret is read.
    """
    own = cluster.kubernetes
    verbs = ["get", "list", *(["patch"] if cluster.actuator == "kubernetes" else [])]
    rules = [{"apiGroups": [GROUP], "resources": [PLURALS[own.kind]], "verbs": verbs}]
    if cluster.actuator == "kubernetes":  # what was asked for is shown by kubectl describe
        rules.append({"apiGroups": [""], "resources": [EVENTS], "verbs": ["create"]})
    if own.kind == SESSION_JOB:  # the session cluster tells Flink's version and scheduler
        rules.append({"apiGroups": [GROUP], "resources": [PLURALS[DEPLOYMENT]], "verbs": ["get"]})
    account = {"kind": "ServiceAccount", "name": placement.name, "namespace": placement.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": placement.name}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(placement.name, placement.namespace)},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": _metadata(placement.name, own.namespace),
            "rules": rules,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": _metadata(placement.name, own.namespace),
            "subjects": [account],
            "roleRef": role,
        },
    ]


def form_network_policy(cluster_name: str, cluster: Cluster, placement: Placement) -> Manifest:
    """Return a policy under which Tidewise's pods reach what the settings name, and nobody reaches them."""
    ports = {_port_of(url) for url in (cluster.rest_url, cluster.prometheus.url) if url is not None}
    for kafka in cluster.kafka.values():
        ports |= {int(server.rsplit(":", 1)[1]) for server in kafka.bootstrap_servers.split(",") if ":" in server}
    named = [{"protocol": "TCP", "port": port} for port in sorted(ports | _API_PORTS)]
    dns = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(f"{placement.name}-{cluster_name.lower()}", placement.namespace),
        "spec": {
            "podSelector": {"matchLabels": {APP_LABEL: placement.name}},
            "policyTypes": ["Ingress", "Egress"],
            "egress": [{"ports": dns}, {"ports": named}],
        },
    }


def form_monitoring(cluster_name: str, cluster: Cluster) -> list[Manifest]:
    """Return a Service and a ServiceMonitor by which Prometheus scrapes Flink's reporter."""
    namespace, own = cluster.kubernetes.namespace, cluster.kubernetes.deployment
    selector = {"type": "flink-native-kubernetes", **({} if own is None else {"app": own})}
    metadata = _metadata(f"{own or cluster_name.lower()}-metrics", namespace)
    port = {"name": "metrics", "port": REPORTER_PORT, "targetPort": REPORTER_PORT}
    endpoint = {"port": "metrics", "interval": f"{cluster.prometheus.step_s}s", "honorLabels": True}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"clusterIP": "None", "selector": selector, "ports": [port]},
        },
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": metadata,
            "spec": {"selector": {"matchLabels": metadata["labels"]}, "endpoints": [endpoint]},
        },
    ]


def form_reporter_patch(cluster: Cluster) -> Manifest:
    """Return what the FlinkDeployment of the team's chart has to set: adaptive scheduler and metrics reporter."""
    configuration = {
        "jobmanager.scheduler": "adaptive",
        "metrics.reporters": "prom",
        "metrics.reporter.prom.factory.class": "org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
        "metrics.reporter.prom.port": str(REPORTER_PORT),
        "web.timeout": "20000",
    }
    if cluster.kubernetes.mode == "act":
        configuration["job.autoscaler.scaling.enabled"] = "false"
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": DEPLOYMENT,
        "metadata": {
            "name": cluster.kubernetes.deployment or "NAME-OF-YOUR-DEPLOYMENT",
            "namespace": cluster.kubernetes.namespace,
        },
        "spec": {"flinkConfiguration": configuration},
    }


def form_argo_patch(cluster: Cluster) -> Manifest:
    """Return what an Argo CD Application has to set so that its self-heal does not take back what Tidewise writes."""
    own = cluster.kubernetes
    key = OVERRIDES if own.mode == "act" else MIN_PARALLELISM
    ignored = {
        "group": GROUP,
        "kind": own.kind,
        "namespace": own.namespace,
        "jsonPointers": [f"/spec/flinkConfiguration/{key}"],
        "managedFieldsManagers": [FIELD_MANAGER],
    }
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "NAME-OF-YOUR-APPLICATION"},
        "spec": {
            "ignoreDifferences": [ignored],
            "syncPolicy": {"syncOptions": ["RespectIgnoreDifferences=true"]},
        },
    }


def _metadata(name: str, namespace: str) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "labels": {APP_LABEL: name}}


def _port_of(url: str) -> int:
    result = urlsplit(url)
    return result.port or {"http": 80, "https": 443}[result.scheme]


def list_rights(rules: list[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return (verb, resource) of every right that a role's rules give."""
    return [(verb, name) for rule in rules for name in rule["resources"] for verb in rule["verbs"]]
