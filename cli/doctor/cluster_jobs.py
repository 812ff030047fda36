"""Checks of the jobs of a cluster: checkpoints, metrics, slot sharing, maximum parallelism, names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from cli.doctor.findings import Finding, error, list_names, ok, warning
from cli.doctor.probe import Probe
from include.domain.singletons import SINGLETON_HELP
from include.domain.source_keys import find_source, group_operators, name_nearest
from include.flink import cluster_facts, endpoints
from include.flink.job_states import TERMINAL_STATES
from include.flink.rescale_times import read_rescale_times
from include.flink.versions import Version
from include.settings import Cluster, Settings
from include.short_names import shorten_name

INTERVAL_NOTED_S = 600.0
_NOT_FOUND = 404
_CPU = ("busyTimeMsPerSecond", "accumulateBusyTimeMs")
_NEEDED = ("numRecordsIn", "numRecordsOut")


@dataclass(frozen=True, slots=True)
class ClusterJob:
    """A job that has not ended.

    Attributes:
        job_id, name: of Flink.
        details: reply to ``/jobs/:id``.
        configuration: of the job itself.
        checkpoints: reply to ``/jobs/:id/checkpoints/config``; None where they are off.
        metrics: vertex name -> names of its metrics.
        has_requirements: whether Flink tells its resource requirements.
        tells_configuration: whether Flink tells its own configuration.
        tells_checkpoints: whether Flink tells how it takes checkpoints, or that it takes none.
    """

    job_id: str
    name: str
    details: Mapping[str, Any]
    configuration: Mapping[str, str]
    checkpoints: Mapping[str, Any] | None
    metrics: Mapping[str, Sequence[str]] = field(default_factory=dict)
    has_requirements: bool = False
    tells_configuration: bool = True
    tells_checkpoints: bool = True

    @property
    def vertices(self) -> list[dict[str, Any]]:
        """The vertices of the reply."""
        return list(self.details.get("vertices", []))


def read_jobs(probe: Probe) -> list[ClusterJob]:
    """Return the jobs that have not ended, by name."""
    listed = probe.get_json("/jobs/overview", {}).get("jobs", [])
    running = [one for one in listed if one.get("state") not in TERMINAL_STATES]
    return sorted((_read_job(probe, one) for one in running), key=lambda job: job.name)


def _read_job(probe: Probe, listed: Mapping[str, Any]) -> ClusterJob:
    job_id = str(listed["jid"])
    details = probe.get_json(endpoints.job_path(job_id), {})
    reported = probe.get_json(endpoints.job_path(job_id, "config"), {})
    own = cluster_facts.read_user_configuration(reported)
    checkpoints = probe.get(endpoints.job_path(job_id, "checkpoints/config"))
    is_reported = checkpoints.is_ok or checkpoints.status == _NOT_FOUND  # 404 where they are off
    metrics = {
        str(vertex["name"]): [
            str(one["id"]) for one in probe.get_json(endpoints.vertex_metric_names_path(job_id, str(vertex["id"])), [])
        ]
        for vertex in details.get("vertices", [])
    }
    requirements = probe.get(endpoints.job_path(job_id, "resource-requirements"))
    name, reports = str(listed.get("name", job_id)), cluster_facts.is_user_configuration(reported)
    config = checkpoints.payload if checkpoints.is_ok else None
    return ClusterJob(job_id, name, details, own, config, metrics, requirements.is_ok, reports, is_reported)


def check_names(part: str, jobs: Sequence[ClusterJob]) -> Finding:
    """Check that jobs can be told apart by name, which outlives a redeployment."""
    if not jobs:
        return warning(part, "jobs", "no job runs", "start one, and run the doctor again")
    twice = [name for name, count in Counter(job.name for job in jobs).items() if count > 1]
    if twice:
        return error(part, "jobs", f"two jobs run under the name {list_names(twice)}", "give each a name of its own")
    return ok(part, "jobs", f"{len(jobs)} run: {list_names(job.name for job in jobs)}")


def check_topic_keys(part: str, jobs: Sequence[ClusterJob], cluster: Cluster) -> list[Finding]:
    """Check that the keys of Kafka's topics and of partitions mean sources of jobs that run."""
    known = group_operators(
        (job.name, str(vertex["name"]), str(vertex["id"])) for job in jobs for vertex in job.vertices
    )
    keys = {key: name for name, brokers in cluster.kafka.items() for key in brokers.topics}
    unknown = [key for key in keys if find_source(key, known) is None] if known else []
    result = [
        warning(
            part,
            f"topics of {keys[key]}",
            f'"{key}" is no source of a job that runs: what arrives there is not counted',
            f"{name_nearest(key, known)} under [clusters.<name>.kafka.{keys[key]}] topics, or start the job",
        )
        for key in unknown
    ]
    if keys and not unknown:
        result.append(ok(part, "topics", f"{len(keys)} sources of Kafka are known"))
    result += [
        warning(
            part,
            f'partitions."{key}"',
            "no such source of a job that runs: it is not limited to its partitions",
            f"{name_nearest(key, known)} under [clusters.<name>.partitions], or start the job",
        )
        for key in cluster.partitions
        if known and find_source(key, known) is None
    ]
    return result


def check_job_keys(part: str, name: str, jobs: Sequence[ClusterJob], settings: Settings) -> list[Finding]:
    """Name keys of the settings for jobs of a cluster that do not run, with the nearest of those that do."""
    running = {f"{name}/{job.name}": job.name for job in jobs}
    if not running:
        return []
    result = []
    for section, keys in settings.job_keys.items():
        for key in keys:
            if not key.startswith(f"{name}/") or key in running:
                continue
            near = get_close_matches(key, running, n=1, cutoff=0.5)
            meant = f'write "{near[0]}", or ' if near else ""
            result.append(warning(part, f'{section}."{key}"', "no such job runs here", f"{meant}start the job"))
    return result


def check_checkpoints(
    part: str, job: ClusterJob, configuration: Mapping[str, str] | None = None, version: Version | None = None
) -> Finding:
    """Check that a job has checkpoints: without them a rescale begins with no state and from the sources' start.

    The longest that Flink waits with a rescale is said as well, where the cluster's configuration is known.
    """
    check = f"checkpoints of {job.name}"
    if not job.tells_checkpoints:
        remedy = "let this user read /jobs/:id/checkpoints and /jobs/:id/checkpoints/config"
        return error(part, check, "Flink does not tell them, so nothing is sent to the job", remedy)
    if job.checkpoints is None:
        remedy = "set execution.checkpointing.interval: 60 s (and execution.checkpointing.dir) and redeploy the job"
        return error(part, check, "none are configured: a rescale or failure would lose all state", remedy)
    interval_s = float(job.checkpoints.get("interval", 0)) / 1000.0
    if not 0.0 < interval_s < 1e12:
        remedy = "set execution.checkpointing.interval: 60 s and redeploy the job"
        return error(part, check, "none are taken by themselves: a rescale or failure would lose all state", remedy)
    waits = ""
    if configuration is not None:
        waits = (
            f"; Flink may wait {read_rescale_times(configuration, interval_s, version).total_s:.0f} s with a rescale"
        )
    if interval_s > INTERVAL_NOTED_S:
        text = f"every {interval_s:.0f} s: so much is processed again after a failure{waits}"
        return warning(part, check, text, "set execution.checkpointing.interval: 60 s")
    return ok(part, check, f"every {interval_s:g} s{waits}")


def check_metrics(part: str, job: ClusterJob) -> list[Finding]:
    """Check that every vertex has the metrics from which rates and capacity come, and sources a backlog."""
    check, lacking, silent = f"metrics of {job.name}", [], []
    read_by: list[str] = []
    sources = endpoints.sources_of(job.details)
    for vertex in job.vertices:
        names = set(job.metrics.get(str(vertex["name"]), ()))
        missing = [one for one in _NEEDED if one not in names]
        missing += [] if names.intersection(_CPU) else [_CPU[0]]
        if missing:
            lacking.append(f"{shorten_name(str(vertex['name']))} lacks {', '.join(missing)}")
        if vertex["id"] in sources and not endpoints.available(endpoints.SOURCE_METRICS, names):
            silent.append(shorten_name(str(vertex["name"])))
        if vertex["id"] in sources:
            read_by.append(f"{shorten_name(str(vertex['name']))} by {_describe_counters(names)}")
    if lacking:
        remedy = "are all TaskManagers up, and is metrics.fetcher.update-interval above 0? Then run the doctor again"
        return [error(part, check, "; ".join(lacking[:3]), remedy)]
    reads = f"; the load of {list_names(read_by, 3)}" if read_by else ""
    result = [ok(part, check, f"all needed of {len(job.vertices)} vertices{reads}")]
    if silent:
        text = f"{list_names(silent)} reports no pendingRecords: its backlog is not seen, its load is what it takes in"
        remedy = "use a connector that reports it (Kafka: from the first record on), or name the topic's brokers"
        result.append(warning(part, f"backlog of {job.name}", text, remedy))
    return result


def _describe_counters(names: set[str]) -> str:
    """Return which counters tell what a source takes in: the task's counts with some connectors only."""
    own = [
        name
        for leaf in ("numRecordsIn", "numRecordsOut")
        for name in sorted(names)
        if name.startswith("Source__") and name.endswith(f".{leaf}")
    ]
    if not own:
        return "numRecordsIn of its task alone: where that stands still, its load is not known"
    return f"numRecordsIn of its task, or {shorten_name(own[0], 80)} where that stands still"


def check_slot_sharing(part: str, job: ClusterJob) -> Finding:
    """Check that the job is in one slot-sharing group: only then its slots are its largest parallelism."""
    check = f"slot sharing of {job.name}"
    groups = {one["slotSharingGroupId"] for one in job.vertices if one.get("slotSharingGroupId")}
    if len(groups) > 1:
        text = f"{len(groups)} slot-sharing groups: the job needs more slots than its largest parallelism"
        remedy = "leave out slotSharingGroup(...) in the job, or leave room between slots_max and the cluster's slots"
        return warning(part, check, text, remedy)
    return ok(part, check, "one group")


def check_max_parallelism(part: str, job: ClusterJob, cluster: Cluster) -> Finding:
    """Check that vertices can grow to the most slots that a plan may give."""
    check = f"maximum parallelism of {job.name}"
    limits = {str(one["name"]): int(one.get("maxParallelism", 0)) for one in job.vertices}
    full = [
        str(one["name"]) for one in job.vertices if 1 < int(one.get("maxParallelism", 0)) <= int(one["parallelism"])
    ]
    singles = [name for name, limit in limits.items() if limit == 1]
    if full:
        remedy = "raise pipeline.max-parallelism; this needs a new start from a savepoint that allows it"
        return warning(part, check, f"{list_names(full)} cannot grow any more", remedy)
    if singles and len(singles) < len(limits):
        text = f"{list_names(singles)} has one subtask for good: {SINGLETON_HELP}"
        return ok(part, check, text)
    if singles:
        remedy = "give the records a key to group or join by, and leave setMaxParallelism(1) out"
        return warning(part, check, f"no vertex can grow beyond one subtask: {SINGLETON_HELP}", remedy)
    low = [name for name, limit in limits.items() if 0 < limit < cluster.slots_max]
    if low:
        text = f"{list_names(low)} cannot grow to slots_max = {cluster.slots_max}"
        return ok(part, check, f"{text}: up to {min(limits[name] for name in low)}")
    return ok(part, check, f"at least slots_max = {cluster.slots_max}")
