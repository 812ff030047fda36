"""A real Flink cluster whose jobs a real operator manages, and the controller's actuator for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local_kubernetes import LocalApi, running_api_server, running_operator
from single_job import control_job
from waiting import wait_until

from controller.actuators.actuator import RequestUnknownError
from controller.actuators.flink_actuator import FlinkActuator
from controller.actuators.operator_actuator import OperatorActuator
from controller.actuators.resource_directory import ResourceDirectory
from controller.decisions.job_control import JobControl
from controller.log.control_log import LogEntry
from include.kubernetes.job_resource import DEPLOYMENT, SESSION_JOB
from include.settings.kubernetes import Kubernetes
from lab.local_flink.build import ENTRY_CLASS, build_job
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.load import LoadOptions, daily_trace, write_trace
from models.control.case import Action
from models.control.limits import Limits
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin

SESSION, NAME = "flink", "orders"
JOB = f"live/{NAME}"
LIMITS = Limits(mode=Mode.AUTO, cooldown_s=0.0, confirm_timeout_s=90.0, foreign_change_hold_s=3600.0)
OPTIONS = LoadOptions(job_name=NAME, low_per_s=50, high_per_s=100)


@dataclass
class StoredLog:
    """The controller's log in memory."""

    entries: list[LogEntry] = field(default_factory=list)

    def append(self, entry: LogEntry) -> None:
        self.entries.append(entry)

    def append_all(self, entries: list[LogEntry]) -> None:
        self.entries.extend(entries)

    def read_last(self, job: str) -> LogEntry | None:
        return self.entries[-1] if self.entries else None

    def read_history(self, job: str) -> JobHistory:
        return self.entries[-1].history if self.entries else JobHistory()

    def read_open(self) -> dict[str, LogEntry]:
        return {one.job: one for one in self.entries[-1:] if one.history.in_flight is not None}


@dataclass
class OperatorWorld:
    """What the tests act on.

    Attributes:
        api: of Kubernetes.
        flink: the cluster that the operator's jobs run on.
        operator_log: file of the operator.
        limits: of the job.
    """

    api: LocalApi
    flink: LocalCluster
    operator_log: Path
    log: StoredLog = field(default_factory=StoredLog)
    limits: Limits = LIMITS

    def actuator(self, token: str = "admin-token", *, allows_upgrade: bool = False) -> OperatorActuator:
        api = self.api.resources(token)
        directory = ResourceDirectory(api, Kubernetes(kind="FlinkSessionJob", deployment=SESSION))
        return OperatorActuator(FlinkActuator(self.flink.client, "live"), api, directory, allows_upgrade=allows_upgrade)

    def tick(self, actuator: Any, parallelism: Mapping[str, int] | None = None, step: str = "step") -> Action:
        """Let a controller decide once."""
        now_s = time.time()
        wanted = None
        if parallelism is not None:
            wanted = Intention(dict(parallelism), Origin.PLAN, step, "tested", now_s + 600)
        return control_job(JobControl(actuator, self.log, lambda: None, time.time), JOB, wanted, lambda: self.limits)

    def settle(self, actuator: Any) -> ObservedJob:
        """Wait until the job runs and the operator has dealt with all; the controller takes it as it is then."""
        wait_for(lambda: is_settled(self, actuator), 180, self)
        self.log.entries.clear()
        action = self.tick(actuator)
        assert action.reason == "new_job_id", action
        return actuator.observe(JOB)

    def resource(self) -> dict[str, Any]:
        return dict(self.api.resources().read_resource(SESSION_JOB, NAME) or {})

    def edit(self, configuration: Mapping[str, str | None] | None = None, **spec: Any) -> None:
        """Change the resource as a person with kubectl does."""
        changed = {**spec, **({} if configuration is None else {"flinkConfiguration": dict(configuration)})}
        self.api.custom().patch_namespaced_custom_object(
            *("flink.apache.org", "v1beta1", "default", "flinksessionjobs", NAME),
            {"spec": changed},
            field_manager="kubectl-edit",
        )


def is_settled(world: OperatorWorld, actuator: Any) -> bool:
    observed = actuator.observe(JOB)
    return bool(observed.running) and observed.runs_at(observed.requested) and observed.obstacle in {"", "not_in_place"}


def wait_for(condition: Callable[[], bool], seconds: float, world: OperatorWorld | None = None) -> None:
    def is_met() -> bool:
        try:
            return condition()
        except RequestUnknownError:  # Flink tells nothing of a job that it is still preparing
            return False

    if not wait_until(is_met, seconds):
        tail = world.operator_log.read_text()[-4000:] if world else ""
        raise AssertionError(f"not within {seconds:g} s\n{tail}")


@contextmanager
def operator_world(work_dir: Path) -> Iterator[OperatorWorld]:
    """Run everything, with one session job RUNNING at parallelism 1."""
    with (
        running_api_server(work_dir / "kube") as api,
        LocalCluster(work_dir / "flink", ClusterOptions.quick()) as flink,
        running_operator(api, work_dir / "operator") as operator_log,
    ):
        world = OperatorWorld(api, flink, operator_log)
        _create_session(world)
        _create_job(world, work_dir)
        yield world


def _create_session(world: OperatorWorld) -> None:
    port = world.flink.rest_url.rsplit(":", 1)[-1]
    spec = {
        "image": "flink:2.1",
        "flinkVersion": "v2_1",
        "serviceAccount": "flink",
        "mode": "native",
        "flinkConfiguration": {"rest.port": port, "jobmanager.scheduler": "adaptive"},
        "jobManager": {"resource": {"memory": "1024m", "cpu": 1}},
        "taskManager": {"resource": {"memory": "1024m", "cpu": 1}},
    }
    _create(world, "flinkdeployments", DEPLOYMENT, SESSION, spec)
    apps = f"/apis/apps/v1/namespaces/default/deployments/{SESSION}"
    result: list[dict[str, Any]] = []

    def is_created() -> bool:
        try:
            result.append(world.api.call("GET", apps))
        except Exception:
            return False
        return True

    wait_for(is_created, 120, world)
    status = {  # nothing starts pods here: the Flink cluster is this machine's
        **dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"), 1),
        "observedGeneration": result[-1]["metadata"]["generation"],
        "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}],
    }
    world.api.call("PATCH", f"{apps}/status", {"status": status}, "application/merge-patch+json")


def _create_job(world: OperatorWorld, work_dir: Path) -> None:
    trace = work_dir / "trace.csv"
    write_trace(trace, daily_trace(OPTIONS.low_per_s, OPTIONS.high_per_s))
    job = {
        "jarURI": f"file://{build_job()}",
        "entryClass": ENTRY_CLASS,
        "args": OPTIONS.arguments(trace),
        "parallelism": 1,
        "upgradeMode": "stateless",
        "state": "running",
    }
    _create(world, "flinksessionjobs", SESSION_JOB, NAME, {"deploymentName": SESSION, "job": job})


def _create(world: OperatorWorld, plural: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
    body = {"apiVersion": "flink.apache.org/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}
    world.api.custom().create_namespaced_custom_object("flink.apache.org", "v1beta1", "default", plural, body)
