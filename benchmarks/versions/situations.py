"""Other clusters than one with one job: many jobs, two of a name, an application cluster, what cannot be rescaled."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.versions import failover, finished_jobs
from benchmarks.versions.observing import observe_running
from benchmarks.versions.results import Results, Seen
from benchmarks.waiting import wait_until
from cli.doctor.cluster import check_cluster
from cli.doctor.findings import Level
from controller.actuators.flink_actuator import FlinkActuator
from include.flink.poller import RestSource
from include.flink.raw_format import Endpoint
from include.settings import Cluster, Settings
from lab.local_flink.build import build_job
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.configuration import Application
from lab.local_flink.load import ENRICH, LoadOptions, daily_trace, submit_load, write_trace

FindFlink = Callable[[str], Path]
OWN, TOO_OLD = "2.1.3", "1.17.2"
ZEROS = "0" * 32
_WITHIN_S = 180.0
_LIGHT = LoadOptions(low_per_s=50.0, high_per_s=100.0, cost_us=5, wait_us=10)


def try_situation(name: str, find_flink: FindFlink, out: Path, results: Results) -> None:
    """Run one of the situations; what is seen goes to the results."""
    version, scene = SITUATIONS[name]
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix="cluster-", ignore_cleanup_errors=True) as folder:
        results.situations[name] = (version, scene(find_flink(version), Path(folder).resolve()))


def _try_many_jobs(flink_home: Path, folder: Path) -> Seen:
    names = [f"job-{number}" for number in range(1, 5)]
    with LocalCluster(
        folder, ClusterOptions.quick(slots=8), flink_home=flink_home, ready_timeout_s=_WITHIN_S
    ) as cluster:
        ids = {name: _submit(cluster, name, flink_home) for name in names}
        actuator = FlinkActuator(cluster.client, "session")
        jobs = [f"session/{name}" for name in names]
        wait_until(lambda: all(observe_running(actuator, job) for job in jobs), _WITHIN_S, "all jobs run")
        before = actuator.observe(jobs[0])
        target = {**before.running, _vertex(cluster, ids[names[0]]): 2}
        actuator.request(jobs[0], ids[names[0]], target)
        wait_until(lambda: actuator.observe(jobs[0]).running == target, _WITHIN_S, "one of the jobs is rescaled")
        others = {name: actuator.observe(f"session/{name}") for name in names[1:]}
        untouched = all(set(one.running.values()) == {1} and one.job_id == ids[name] for name, one in others.items())
        polled = {record.job_id for record in RestSource(cluster.client, "session", time.time).poll().records} - {None}
        text = (
            f"{len(names)} jobs: one poll has {len(polled)} of them; one rescaled, the others keep id and parallelism"
        )
        return Seen(text, untouched and polled == set(ids.values()))


def _try_two_of_a_name(flink_home: Path, folder: Path) -> Seen:
    with LocalCluster(
        folder, ClusterOptions.quick(slots=8), flink_home=flink_home, ready_timeout_s=_WITHIN_S
    ) as cluster:
        first, second = (_submit(cluster, "twice", flink_home) for _ in range(2))
        actuator = FlinkActuator(cluster.client, "session")

        def problem() -> str:
            return actuator.observe("session/twice").problem

        wait_until(problem, _WITHIN_S, "both run")
        named = problem()
        cluster.client.cancel(second)
        wait_until(lambda: actuator.observe("session/twice").job_id == first, _WITHIN_S, "one is left")
        return Seen(f"`{named}` until one of them has ended, then the other is taken", named == "ambiguous_name")


def _try_application(flink_home: Path, folder: Path) -> Seen:
    with _application(flink_home, folder, {}) as cluster:
        actuator = FlinkActuator(cluster.client, "application")
        job = "application/single"
        before = wait_until(lambda: observe_running(actuator, job), _WITHIN_S, "the application's job runs")
        target = {**before.running, _vertex(cluster, ZEROS): 2}
        actuator.request(job, str(before.job_id), target)
        wait_until(lambda: actuator.observe(job).running == target, _WITHIN_S, "it is rescaled")
        poll = RestSource(cluster.client, "application", time.time).poll()
        kinds = {record.kind for record in poll.records}
        text = f"job id {before.job_id}: polled ({len(kinds)} kinds of replies), `enrich` 1 to 2 in place"
        return Seen(text, before.job_id == ZEROS and str(Endpoint.VERTEX_METRICS) in kinds and not poll.faults)


def _try_reactive(flink_home: Path, folder: Path) -> Seen:
    with _application(flink_home, folder, {"scheduler-mode": "reactive"}) as cluster:
        return _see_refusal(cluster, "single", "reactive_mode")


def _try_default_scheduler(flink_home: Path, folder: Path) -> Seen:
    options = ClusterOptions.quick(slots=2, settings={"jobmanager.scheduler": "default"})
    with LocalCluster(folder, options, flink_home=flink_home, ready_timeout_s=_WITHIN_S) as cluster:
        _submit(cluster, "fixed", flink_home)
        return _see_refusal(cluster, "fixed", "default_scheduler")


def _try_too_old(flink_home: Path, folder: Path) -> Seen:
    with LocalCluster(
        folder, ClusterOptions.quick(slots=2), flink_home=flink_home, ready_timeout_s=_WITHIN_S
    ) as cluster:
        _submit(cluster, "old", flink_home)
        return _see_refusal(cluster, "old", "flink_too_old")


def _see_refusal(cluster: LocalCluster, job: str, reason: str) -> Seen:
    """Return what controller and doctor say of a cluster whose jobs cannot be rescaled."""
    actuator = FlinkActuator(cluster.client, "c")
    observed = wait_until(lambda: observe_running(actuator, f"c/{job}"), _WITHIN_S, "the job runs")
    findings = check_cluster("c", Cluster(rest_url=cluster.rest_url, slots_max=2), Settings())
    errors = [one for one in findings if one.level is Level.ERROR and one.check in {"version", "scheduler"}]
    reported = "; ".join(f"{one.check}: {one.text}" for one in errors)
    return Seen(
        f"controller: `{observed.obstacle}` ({observed.obstacle_detail}); doctor: {reported}",
        observed.obstacle == reason and observed.requested is None and bool(errors),
    )


@contextmanager
def _application(flink_home: Path, folder: Path, settings: Mapping[str, str]) -> Iterator[LocalCluster]:
    """Run an application cluster: its JobManager has one job, whose id it is told."""
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / "trace.csv"
    write_trace(trace, daily_trace(_LIGHT.low_per_s, _LIGHT.high_per_s))
    options = LoadOptions(job_name="single", max_parallelism=4)
    application = Application(build_job(flink_home), ZEROS, tuple(options.arguments(trace)))
    cluster_options = ClusterOptions.quick(slots=2, settings=settings, application=application)
    with LocalCluster(folder, cluster_options, flink_home=flink_home, ready_timeout_s=_WITHIN_S) as cluster:
        yield cluster


def _submit(cluster: LocalCluster, name: str, flink_home: Path) -> str:
    options = LoadOptions(job_name=name, low_per_s=50.0, high_per_s=100.0, cost_us=5, wait_us=10)
    return submit_load(cluster.client, cluster.work_dir, options, flink_home)


def _vertex(cluster: LocalCluster, job_id: str) -> str:
    return next(str(one["id"]) for one in cluster.client.job(job_id)["vertices"] if one["name"] == ENRICH)


SITUATIONS: Mapping[str, tuple[str, Callable[[Path, Path], Seen]]] = {
    "session cluster, many jobs": (OWN, _try_many_jobs),
    "two jobs of one name": (OWN, _try_two_of_a_name),
    "application cluster": (OWN, _try_application),
    "reactive mode": (OWN, _try_reactive),
    "default scheduler": (OWN, _try_default_scheduler),
    "Flink before 1.18": (TOO_OLD, _try_too_old),
    "JobManager failover": (OWN, failover.try_failover),
    "history server": (OWN, finished_jobs.try_history_server),
}
"""What is tried -> the version of Flink, and how."""
