"""One version of Flink: a job is polled, rescaled, refused a wish, loses its TaskManager and comes back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.chaos.controllers import Controllers
from benchmarks.chaos.log_rows import LogRow, LogRows
from benchmarks.versions.results import Results
from benchmarks.versions.run_settings import SETTLE_S, SLOTS, WINDOW_S, VersionSettings
from benchmarks.waiting import NotReachedError, wait_until
from cli.doctor.cluster import check_cluster
from cli.doctor.findings import Level
from include.flink.faults import FlinkError, FlinkRefusedError
from include.flink.raw_format import Endpoint
from include.flink.versions import RESCALE_HISTORY_KEY, RESCALE_HISTORY_SINCE, read_version
from include.settings import Cluster, Settings
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.job_client import JobClient
from lab.local_flink.load import ENRICH, LoadOptions, submit_load
from tools.raw_records import read_records

# One subtask of `enrich` waits 1 ms per record: it cannot process 1,400 records a second, however fast the machine is.
LOAD = LoadOptions(job_name="orders", low_per_s=1400.0, high_per_s=1400.0, cost_us=5, wait_us=1000, max_parallelism=64)
_STARTS_S, _DECIDES_S = 180.0, 300.0
_RUNS_ON_S = SETTLE_S + 4 * WINDOW_S  # after the last stop: the plan needs windows that no stop disturbs


def cluster_name(version: str) -> str:
    """Return the name of a version's cluster in the settings."""
    return "flink_" + version.replace(".", "_")


def try_version(version: str, flink_home: Path, settings: VersionSettings, results: Results) -> None:
    """Run the scene; what is seen goes to the results."""
    name, out = cluster_name(version), settings.out / version
    options = ClusterOptions.quick(slots=SLOTS, settings={RESCALE_HISTORY_KEY: "50"})
    with LocalCluster(out / "flink", options, flink_home=flink_home, ready_timeout_s=_STARTS_S) as cluster:
        client = cluster.client
        job_id = submit_load(client, cluster.work_dir, LOAD, flink_home)
        client.wait_for_parallelism(job_id, {}, timeout_s=_STARTS_S)
        settings.write(name, cluster.rest_url)
        with _controlling(settings, out) as log:
            _watch_applied(version, log, client, job_id, results)
            settings.write(name, cluster.rest_url, pin=(LOAD.job_name, {ENRICH: SLOTS + 2}))
            _watch_refused(version, log, results)
            settings.write(name, cluster.rest_url)
            _lose_task_manager(version, cluster, job_id, results)
        _note_flinks_refusal(version, client, job_id, results)
        _note_collected(version, settings, cluster.rest_url, results)
        _note_history(version, client, job_id, results)
    settings.write()


@contextmanager
def _controlling(settings: VersionSettings, out: Path) -> Iterator[LogRows]:
    controllers = Controllers(settings.environment, out / "controller.log", out / "clock")
    try:
        process = controllers.start()
        yield LogRows(settings.out / "lake")
        controllers.end(process)
    finally:
        controllers.kill_all()


def _rows(log: LogRows, job_id: str, since_s: float = 0.0) -> list[LogRow]:
    return [row for row in log.of_job(LOAD.job_name, since_s) if row.job_id == job_id]


def _watch_applied(version: str, log: LogRows, client: JobClient, job_id: str, results: Results) -> None:
    """Wait until the controller has rescaled the job by what it measured, and Flink runs so."""

    def find_confirmed() -> list[LogRow]:
        return [row for row in _rows(log, job_id) if row.verb == "confirm"]

    last = wait_until(find_confirmed, _DECIDES_S, f"{version}: a rescale is confirmed")[-1]
    sent = [row for row in _rows(log, job_id) if row.sends and row.step_id == last.step_id]
    running = client.wait_for_parallelism(job_id, {}, timeout_s=_STARTS_S).parallelism
    took_s = last.decided_at_s - sent[0].decided_at_s
    text = f"`enrich` 1 to {running[ENRICH]} ({sent[0].origin}), confirmed {took_s:.0f} s after it was sent"
    results.note(version, "applied step", text, is_right=running[ENRICH] > 1)


def _watch_refused(version: str, log: LogRows, results: Results) -> None:
    since_s = time.time()

    def find_refused() -> list[LogRow]:
        return [row for row in log.of_job(LOAD.job_name, since_s) if row.verb == "refuse"]

    row = wait_until(find_refused, _DECIDES_S, f"{version}: a pin beyond the slots is refused")[-1]
    results.note(version, "refused", f"`{row.reason}`: {row.detail}", is_right=row.reason == "no_free_slots")


def _note_flinks_refusal(version: str, client: JobClient, job_id: str, results: Results) -> None:
    """Send a request that leaves out vertices, which Flink has to refuse."""
    try:
        client.put_resource_requirements(job_id, dict(list(client.upper_bounds(job_id).items())[:1]))
        status = 200
    except FlinkRefusedError as error:
        status = error.status
    text = f"{status} to a request without all vertices"
    results.note(version, "refused by Flink", text, is_right=status == 400)


def _lose_task_manager(version: str, cluster: LocalCluster, job_id: str, results: Results) -> None:
    client = cluster.client
    before = client.wait_for_parallelism(job_id, {}, timeout_s=_STARTS_S).parallelism
    killed_s = time.monotonic()
    cluster.kill_taskmanager()
    wait_until(lambda: not _running(client, job_id), _STARTS_S, f"{version}: the job stops without its TaskManager")
    noticed_s = time.monotonic() - killed_s
    cluster.start_taskmanager()
    wait_until(lambda: _running(client, job_id), _STARTS_S, f"{version}: the job runs again")
    back_s = time.monotonic() - killed_s
    after = client.wait_for_parallelism(job_id, {}, timeout_s=_STARTS_S).parallelism
    failures = _count_failures(client, job_id)
    undisturbed = f"{version}: the job runs {_RUNS_ON_S} s without a further rescale"
    wait_until(lambda: _run_time_s(client, job_id) >= _RUNS_ON_S, _STARTS_S, undisturbed)
    text = f"noticed after {noticed_s:.0f} s, RUNNING again {back_s:.0f} s after the kill, `enrich` at {after[ENRICH]}"
    results.note(version, "lost TaskManager", text, is_right=failures > 0 and set(after) == set(before))


def _running(client: JobClient, job_id: str) -> dict[str, int]:
    try:
        return client.running_parallelism(job_id)
    except FlinkError:
        return {}


def _run_time_s(client: JobClient, job_id: str) -> float:
    """Return for how long the job has run since its last stop; 0 while it does not run."""
    try:
        job = client.job(job_id)
    except FlinkError:
        return 0.0
    return (job["now"] - job["timestamps"]["RUNNING"]) / 1000.0 if job["state"] == "RUNNING" else 0.0


def _count_failures(client: JobClient, job_id: str) -> int:
    result: Any = client.transport.get_json(f"/jobs/{job_id}/exceptions")
    return len(result.get("exceptionHistory", {}).get("entries", []))


def _note_collected(version: str, settings: VersionSettings, rest_url: str, results: Results) -> None:
    files = sorted((settings.out / "raw" / f"cluster={cluster_name(version)}").rglob("*.jsonl.gz"))
    records = [record for file in files for record in read_records(file)]
    kinds = {record.kind for record in records if record.status == 200}
    needed = {str(kind) for kind in Endpoint} - {str(Endpoint.KAFKA_OFFSETS), str(Endpoint.RESCALE)}
    findings = check_cluster(cluster_name(version), Cluster(rest_url=rest_url, slots_max=SLOTS), Settings())
    errors = [f"{one.check}: {one.text}" for one in findings if one.level is Level.ERROR]
    reported = f"doctor: {'; '.join(errors)}" if errors else f"doctor: {len(findings)} checks without an error"
    text = f"{len(records):,} replies in {len(files)} polls; {reported}"
    results.note(version, "collect", text, is_right=not errors and needed <= kinds)


def _note_history(version: str, client: JobClient, job_id: str, results: Results) -> None:
    known = read_version(version)
    if known is None or known < RESCALE_HISTORY_SINCE:
        results.note(version, "rescale history", "none before 2.3")
        return
    result = json.loads(client.transport.get(f"/jobs/{job_id}/rescales/history").body)
    reported = [f"{one['triggerCause']} {one['terminalState']}" for one in result]
    results.note(version, "rescale history", f"{len(result)}: {', '.join(reported)}", is_right=len(result) > 1)


__all__ = ["NotReachedError", "cluster_name", "try_version"]
