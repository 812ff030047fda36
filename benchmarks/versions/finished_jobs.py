"""A history server: what of a finished job it tells, and that nothing is ever sent through it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.versions.flink_processes import LOOPBACK, running_beside
from benchmarks.versions.results import Seen
from benchmarks.waiting import wait_until
from controller.actuators.actuator import RequestUnknownError
from controller.actuators.flink_actuator import FlinkActuator
from include.flink.faults import FlinkError
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.job_client import JobClient
from lab.local_flink.load import LoadOptions, submit_load

_HISTORY_SERVER = "org.apache.flink.runtime.webmonitor.history.HistoryServer"
_WITHIN_S = 180.0
_LEAVES = ("", "exceptions", "checkpoints", "config")


def try_history_server(flink_home: Path, folder: Path) -> Seen:
    """Return what the history server tells of a job that was cancelled."""
    archive = (folder / "archive").as_uri()
    (folder / "archive").mkdir(parents=True, exist_ok=True)
    options = ClusterOptions.quick(slots=2, settings={"jobmanager.archive.fs.dir": archive})
    own = {
        "historyserver.web.address": LOOPBACK,
        "historyserver.web.port": "{port}",
        "historyserver.web.tmpdir": str(folder / "web"),
        "historyserver.archive.fs.dir": archive,
        "historyserver.archive.fs.refresh-interval": "1 s",
    }
    with LocalCluster(folder / "cluster", options, flink_home=flink_home, ready_timeout_s=_WITHIN_S) as cluster:
        load = LoadOptions(low_per_s=50.0, high_per_s=100.0, cost_us=5, wait_us=10)
        job_id = submit_load(cluster.client, cluster.work_dir, load, flink_home)
        cluster.client.wait_for_parallelism(job_id, {}, timeout_s=_WITHIN_S)
        with running_beside(_HISTORY_SERVER, flink_home, folder / "server", options, own) as url:
            client = JobClient(url)
            cluster.client.cancel(job_id)
            wait_until(lambda: _state(client, job_id), _WITHIN_S, "the history server lists the job")
            state = _state(client, job_id)
            reported = [leaf or "job" for leaf in _LEAVES if client.transport.get(_path(job_id, leaf)).ok]
            observed = _observe(FlinkActuator(client, "finished"))
    text = f"{state}; it tells {', '.join(reported)}; the controller finds {observed}, so nothing is sent through it"
    return Seen(text, state == "CANCELED" and len(reported) == len(_LEAVES) and observed != "a job to act on")


def _path(job_id: str, leaf: str) -> str:
    return f"/jobs/{job_id}/{leaf}" if leaf else f"/jobs/{job_id}"


def _state(client: JobClient, job_id: str) -> str:
    try:
        jobs = client.jobs().get("jobs", [])
    except FlinkError:
        return ""
    return next((str(one["state"]) for one in jobs if one["jid"] == job_id), "")


def _observe(actuator: FlinkActuator) -> str:
    try:
        observed = actuator.observe("finished/orders")
    except RequestUnknownError:
        return "`no_reply`"
    if observed.problem:
        return f"`{observed.problem}`"
    return "`unknown_job`" if observed.job_id is None else "a job to act on"
