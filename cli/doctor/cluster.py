"""All checks of one Flink cluster, in the order in which they build on each other."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from cli.doctor.cluster_access import (
    check_address,
    check_clock,
    check_latency,
    check_version,
    find_skew_s,
)
from cli.doctor.cluster_jobs import (
    ClusterJob,
    check_checkpoints,
    check_job_keys,
    check_max_parallelism,
    check_metrics,
    check_names,
    check_slot_sharing,
    check_topic_keys,
    read_jobs,
)
from cli.doctor.cluster_setup import (
    check_autoscaler,
    check_keys,
    check_rescale_history,
    check_scheduler,
    check_slots,
    check_stale_metrics,
    read_configuration,
)
from cli.doctor.connecting import open_probe
from cli.doctor.findings import Finding, error
from cli.doctor.probe import Probe, ProbeError
from cli.doctor.stops import check_stops, read_stops
from include.flink import endpoints
from include.flink.credentials import SecretError
from include.flink.versions import read_version
from include.settings import Cluster, Settings

FETCH_S = 0.5  # the JobManager fetches metrics only after it was asked for some
FIXED_REQUESTS, REQUESTS_PER_JOB = 3, 4


def check_cluster(
    name: str, cluster: Cluster, settings: Settings, sleep: Callable[[float], None] = time.sleep
) -> list[Finding]:
    """Return the findings of a cluster; an address that does not answer ends them."""
    part = f"cluster {name}"
    try:
        probe = open_probe(str(cluster.rest_url), cluster.connection)
    except SecretError as problem:
        return [error(part, "secret", str(problem), f"correct [clusters.{name}.connection]")]
    config, first = check_address(part, probe)
    if config is None:
        return [first]
    try:
        probe.get("/jobs/metrics")
        sleep(FETCH_S)
        return [first, *_check_inside(name, probe, config, cluster, settings)]
    except ProbeError as problem:
        return [first, error(part, problem.check, str(problem), problem.remedy)]


def _check_inside(
    name: str,
    probe: Probe,
    config: dict[str, Any],
    cluster: Cluster,
    settings: Settings,
) -> list[Finding]:
    part, configuration, jobs = f"cluster {name}", read_configuration(probe), read_jobs(probe)
    version = read_version(config.get("flink-version"))
    try:
        stops = read_stops(settings, name, datetime.now(UTC))
    except Exception:  # a lake that cannot be read is a finding of its own
        stops = {}
    overview = probe.get("/overview")
    own = {job.name: job.configuration for job in jobs}
    reported = {job.name: job.has_requirements for job in jobs}
    details = [probe.get(endpoints.job_path(job.job_id), again=True) for job in jobs[:1]]
    skew_s = find_skew_s(probe.get("/config"), *details)
    return [
        check_version(part, config),
        check_scheduler(part, configuration, reported),
        *check_autoscaler(part, configuration, own, [job.name for job in jobs if not job.tells_configuration]),
        *check_keys(part, configuration, version),
        *check_rescale_history(part, configuration, version),
        check_stale_metrics(part, configuration),
        *check_stops(part, stops, configuration, triggers_checkpoint=settings.apply.trigger_checkpoint),
        check_slots(part, overview.payload if overview.is_ok else {}, configuration, cluster),
        check_clock(part, skew_s, cluster, settings.ingest),
        check_latency(part, probe, count_requests(jobs), cluster),
        check_names(part, jobs),
        *check_topic_keys(part, jobs, cluster),
        *check_job_keys(part, name, jobs, settings),
        *(
            finding
            for job in jobs
            for finding in (
                check_checkpoints(part, job, configuration, version),
                *check_metrics(part, job),
                check_slot_sharing(part, job),
                check_max_parallelism(part, job, cluster),
            )
        ),
    ]


def count_requests(jobs: list[ClusterJob]) -> int:
    """Return how many requests a poll of the cluster takes."""
    return FIXED_REQUESTS + sum(REQUESTS_PER_JOB + len(job.vertices) for job in jobs)
