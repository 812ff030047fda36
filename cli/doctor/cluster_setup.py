"""Checks of a cluster's configuration: scheduler, reactive mode, autoscalers, stale metrics, slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.doctor.findings import Finding, error, list_names, ok, warning
from cli.doctor.probe import Probe
from include.flink import cluster_facts
from include.flink.versions import RESCALE_HISTORY_KEY, RESCALE_HISTORY_SINCE, Version, find_unread_keys
from include.settings import Cluster
from models.scheduling.figures import format_count

OVERRIDES = "pipeline.jobvertex-parallelism-overrides"


def read_configuration(probe: Probe) -> dict[str, str]:
    """Return the JobManager's configuration; empty where it may not be read."""
    return cluster_facts.read_configuration(probe.get_json("/jobmanager/config", []))


def check_scheduler(part: str, configuration: Mapping[str, str], requirements: Mapping[str, bool]) -> Finding:
    """Check that the adaptive scheduler runs: no other one changes the parallelism of a running job.

    ``requirements``: job -> whether Flink tells its resource requirements, as it does with that scheduler.
    """
    if cluster_facts.is_reactive(configuration):
        text = "reactive mode: Flink gives a job every slot that it finds"
        return error(
            part, "scheduler", text, "remove scheduler-mode and set jobmanager.scheduler: adaptive; restart Flink"
        )
    named = configuration.get("jobmanager.scheduler", "default").lower()
    refused = [job for job, reported in requirements.items() if not reported]
    if named != "adaptive" and (not requirements or refused):
        text = f"jobmanager.scheduler is {named}, which cannot rescale a running job"
        remedy = (
            "set jobmanager.scheduler: adaptive in Flink's configuration and restart it; until then plans are advice"
        )
        return error(part, "scheduler", text, remedy)
    if refused:
        text = f"Flink tells no resource requirements of {', '.join(refused)}"
        return error(part, "scheduler", text, "is it a batch job? Only streaming jobs can be rescaled")
    return ok(part, "scheduler", "adaptive")


def check_autoscaler(
    part: str, configuration: Mapping[str, str], jobs: Mapping[str, Mapping[str, Any]], untold: Sequence[str] = ()
) -> list[Finding]:
    """Check that nothing else rescales the jobs.

    ``jobs`` has the configuration of each of its own, ``untold`` names those that do not tell theirs.
    """
    every = {"the cluster": configuration, **jobs}
    scaled = [name for name, one in every.items() if cluster_facts.active_autoscaler(one) is not None]
    if scaled:
        text = f"the Kubernetes operator's autoscaler is on ({', '.join(scaled)}): both would rescale the same jobs"
        remedy = (
            'set job.autoscaler.enabled: "false" (or job.autoscaler.scaling.enabled: "false", which keeps its metrics) '
            "in spec.flinkConfiguration of the FlinkDeployment"
        )
        return [error(part, "autoscaler", text, remedy)]
    silent = [*([] if configuration else ["the cluster"]), *untold]
    if silent:
        text = f"nobody knows: {list_names(silent)} does not tell its configuration, so nothing is sent to its jobs"
        return [error(part, "autoscaler", text, "let this user read /jobmanager/config and /jobs/:id/config")]
    findings = [ok(part, "autoscaler", "none can be seen; the operator's hides its keys from release 1.8 on")]
    if any(OVERRIDES in one or any(key.startswith("kubernetes.operator.") for key in one) for one in every.values()):
        text = "the Kubernetes operator manages it: what is set through REST is lost with the next upgrade of the job"
        remedy = 'write actuator = "kubernetes" (docs/kubernetes.md): requests then go through its resources'
        findings.append(warning(part, "operator", text, remedy))
    return findings


def check_keys(part: str, configuration: Mapping[str, str], version: Version | None) -> list[Finding]:
    """Check that the version reads the keys that are set: what it does not know it passes over in silence."""
    unread = {} if version is None else find_unread_keys(configuration, version)
    if version is None or not unread:
        return []
    text = f"Flink {version[0]}.{version[1]} does not read {', '.join(sorted(unread))}"
    names = [f"write {name} for {key}" for key, name in sorted(unread.items()) if name is not None]
    return [warning(part, "renamed keys", text, "; ".join(names) or "take them out")]


def check_rescale_history(part: str, configuration: Mapping[str, str], version: Version | None) -> list[Finding]:
    """Say whether Flink keeps the times of rescales, which it can from 2.3 on."""
    if version is None or version < RESCALE_HISTORY_SINCE:
        return []
    retained = configuration.get(RESCALE_HISTORY_KEY, "0")
    if not retained.isdigit() or int(retained) == 0:
        text = f"none: with {RESCALE_HISTORY_KEY}: 100 the times of rescales would be exact"
        return [ok(part, "rescale history", text)]
    return [ok(part, "rescale history", f"the last {retained} of each job")]


def check_stale_metrics(part: str, configuration: Mapping[str, str]) -> Finding:
    """Check for how long Flink repeats old metrics after it has lost a TaskManager."""
    if not configuration:
        return warning(part, "configuration", "/jobmanager/config cannot be read", "let this user read it")
    set_to = configuration.get("web.timeout")
    if set_to is None:
        text = "web.timeout is 10 min: for so long Flink repeats old metrics after it lost a TaskManager"
        return warning(part, "web.timeout", text, "set web.timeout: 20000 (milliseconds) in Flink's configuration")
    return ok(part, "web.timeout", set_to)


def check_slots(part: str, overview: Mapping[str, Any], configuration: Mapping[str, str], cluster: Cluster) -> Finding:
    """Check that a plan cannot ask for more slots than there are, unless the cluster adds some."""
    total = int(overview.get("slots-total", 0))
    text = (
        f"{format_count(total, 'slot')}, {overview.get('slots-available', '?')} free; slots_max = {cluster.slots_max}"
    )
    if cluster.elastic or (cluster.elastic is None and cluster_facts.is_elastic(configuration)):
        return ok(part, "slots", f"{text}; the cluster adds TaskManagers by itself")
    if cluster.slots_max > total:
        remedy = f"write slots_max = {max(total, 1)}, or elastic = true where the cluster adds TaskManagers by itself"
        return warning(part, "slots", text, remedy)
    return ok(part, "slots", text)
