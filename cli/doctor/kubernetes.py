"""Checks of a cluster under the Kubernetes operator: login, rights, resources, in-place rescales, autoscaler."""

from __future__ import annotations

from typing import Protocol

from cli.doctor.findings import Finding, Level, error, list_names, ok, warning
from controller.actuators.resource_directory import read_resources
from include.kubernetes.api import ResourceApi, open_api
from include.kubernetes.faults import ApiError
from include.kubernetes.job_resource import GROUP, JobResource, find_upgrade_reason
from include.kubernetes.manifests import EVENTS, Placement, form_rights, list_rights
from include.settings import Cluster

_APPLY = "apply the rbac.yaml that `tidewise manifests` writes"


class AccessReviewApi(ResourceApi, Protocol):
    """An API server that also tells what its login may do."""

    def may(self, verb: str, plural: str, group: str = GROUP) -> bool:
        """Return whether the login may do something in the namespace."""


def check_operator(name: str, cluster: Cluster) -> list[Finding]:
    """Return the findings of a cluster whose actuator is the Kubernetes operator."""
    part = f"operator of {name}"
    try:
        api = open_api(cluster.kubernetes)
    except ApiError as problem:
        remedy = f"set [clusters.{name}.kubernetes] kubeconfig, or run as a pod with a service account"
        return [error(part, "login", str(problem), remedy)]
    return check_resources(part, cluster, api)


def check_resources(part: str, cluster: Cluster, api: AccessReviewApi) -> list[Finding]:
    """Return the findings of rights and resources; an API server that does not reply ends them."""
    try:
        rights = check_rights(part, cluster, api)
        if any(one.level is Level.ERROR for one in rights):
            return rights
        resources, unreadable = read_resources(api, cluster.kubernetes)
    except ApiError as problem:
        return [error(part, "API server", str(problem), "correct kubeconfig, context and namespace; is it up?")]
    findings = list(rights)
    for name, why in unreadable.items():
        reported = f"{cluster.kubernetes.kind} {name}: {why}"
        findings.append(error(part, "resource", reported, "correct its map of overrides"))
    if not resources:
        where = f"namespace {cluster.kubernetes.namespace} has no {cluster.kubernetes.kind}"
        return [*findings, warning(part, "resources", where, "correct kubernetes.namespace, kind or deployment")]
    return [*findings, *(finding for one in resources for finding in check_resource(part, one, cluster))]


def check_rights(part: str, cluster: Cluster, api: AccessReviewApi) -> list[Finding]:
    """Check that the login may do what the actuator asks for (SelfSubjectAccessReview), and no more than that."""
    role = form_rights(cluster, Placement())[1]
    needed = [(verb, plural) for verb, plural in list_rights(role["rules"]) if plural != EVENTS]
    missing = [f"{verb} {plural}" for verb, plural in needed if not api.may(verb, plural)]
    if missing:
        return [error(part, "rights", f"the login may not {list_names(missing)}", _APPLY)]
    findings = [ok(part, "rights", list_names(f"{verb} {plural}" for verb, plural in needed))]
    if any(api.may("delete", plural) for _, plural in needed):
        findings.append(ok(part, "rights", f"the login may delete jobs as well, which Tidewise never does; {_APPLY}"))
    if any(EVENTS in rule["resources"] for rule in role["rules"]) and not api.may("create", EVENTS, ""):
        text = "the login may not create events: kubectl describe does not show what Tidewise asked for"
        findings.append(warning(part, "events", text, _APPLY))
    return findings


def check_resource(part: str, resource: JobResource, cluster: Cluster) -> list[Finding]:
    """Check that a job is rescaled in place, and by one of the two only."""
    in_place = f"in-place rescale of {resource.name}"
    # What the resource does not name, Flink's own configuration does; that is a check of the cluster.
    reason = find_upgrade_reason(resource, "adaptive")
    if reason is None:
        findings = [ok(part, in_place, f"Flink {resource.flink_version}, {resource.mode}")]
    else:
        text = f"{reason}: the operator would stop and start the job for each step"
        level = warning if cluster.kubernetes.full_upgrade else error
        findings = [level(part, in_place, text, "correct that, or accept the cost: kubernetes.full_upgrade = true")]
    return [*findings, _check_autoscaler(part, resource, cluster)]


def _check_autoscaler(part: str, resource: JobResource, cluster: Cluster) -> Finding:
    check, acting = f"autoscaler of {resource.name}", resource.autoscaler
    if cluster.kubernetes.mode == "guide":
        if acting is not None:
            return ok(part, check, "on, as mode guide needs it")
        remedy = f'write job.autoscaler.enabled: "true" into spec.flinkConfiguration of {resource.title}'
        return error(part, check, 'off, but kubernetes.mode = "guide" leaves acting to it', remedy)
    if acting is None:
        return ok(part, check, "does not act")
    remedy = (
        'write job.autoscaler.enabled: "false" (or job.autoscaler.scaling.enabled: "false", which keeps its metrics) '
        f'into spec.flinkConfiguration of {resource.title}, or set kubernetes.mode = "guide"'
    )
    return error(part, check, "acts: both would rescale the job", remedy)
