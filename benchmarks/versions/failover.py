"""Two JobManagers under ZooKeeper: the leader is killed, the other takes over at another address."""

from __future__ import annotations

from pathlib import Path

from benchmarks.versions.flink_processes import running_beside, running_zookeeper
from benchmarks.versions.observing import observe_running
from benchmarks.versions.results import Seen
from benchmarks.waiting import wait_until
from controller.actuators.actuator import RequestUnknownError
from controller.actuators.flink_actuator import FlinkActuator
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.configuration import JOB_MANAGER
from lab.local_flink.job_client import JobClient
from lab.local_flink.load import LoadOptions, submit_load

_WITHIN_S = 180.0
_JOB = "failover/orders"


def try_failover(flink_home: Path, folder: Path) -> Seen:
    """Return what is seen through the address of either JobManager before and after the leader's death."""
    with running_zookeeper(flink_home, folder / "zookeeper") as quorum:
        options = ClusterOptions.quick(slots=2, settings=_high_availability(quorum, folder))
        with (
            LocalCluster(folder / "first", options, flink_home=flink_home, ready_timeout_s=_WITHIN_S) as cluster,
            running_beside(JOB_MANAGER, flink_home, folder / "second", options, {}) as other_url,
        ):
            load = LoadOptions(low_per_s=50.0, high_per_s=100.0, cost_us=5, wait_us=10)
            job_id = submit_load(cluster.client, cluster.work_dir, load, flink_home)
            first = FlinkActuator(cluster.client, "failover")
            second = FlinkActuator(JobClient(other_url), "failover")
            wait_until(lambda: _runs(first, job_id), _WITHIN_S, "the job runs")
            wait_until(lambda: _runs(second, job_id), _WITHIN_S, "the standby answers for the leader")
            cluster.kill_jobmanager()
            is_silent = wait_until(lambda: _is_silent(first), _WITHIN_S, "the leader's address is silent")
            wait_until(lambda: _runs(second, job_id), _WITHIN_S, "the other JobManager runs the job")
            before = second.observe(_JOB)
            target = dict.fromkeys(before.running, 2)
            second.request(_JOB, job_id, target)
            wait_until(lambda: second.observe(_JOB).running == target, _WITHIN_S, "it is rescaled there")
            text = (
                "the standby's address answers for the leader, before and after; the job keeps its id and is rescaled "
                "there; the dead leader's address gives `no_reply`: give `rest_url` an address that leads to any "
                "JobManager (a service), or change it in the settings, which the controller reads again"
            )
            return Seen(text, is_silent and before.job_id == job_id)


def _high_availability(quorum: str, folder: Path) -> dict[str, str]:
    return {
        "high-availability.type": "zookeeper",
        "high-availability.zookeeper.quorum": quorum,
        "high-availability.storageDir": (folder / "ha").as_uri(),
        "high-availability.zookeeper.client.session-timeout": "10 s",
    }


def _runs(actuator: FlinkActuator, job_id: str) -> bool:
    observed = observe_running(actuator, _JOB)
    return observed is not None and observed.job_id == job_id


def _is_silent(actuator: FlinkActuator) -> bool:
    try:
        actuator.observe(_JOB)
    except RequestUnknownError:
        return True
    return False
