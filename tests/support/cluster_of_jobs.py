"""Several jobs on one cluster over the REST double, and a controller: slots that no running job holds are free."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from controlled_flink import BEGAN_S, ENRICH, SOURCE
from flink_server import FakeJob, FlinkServer, Request, serving
from scenario import OwnLog

from controller.actuators.flink_actuator import FlinkActuator
from controller.decisions.job_control import JobControl, JobTask
from include.flink.client import FlinkClient
from models.control.case import OutcomeCheck
from models.control.limits import Limits
from models.control.state import Intention, Mode, Origin

AUTO = Limits(mode=Mode.AUTO, cooldown_s=0.0)


class ClusterServer(FlinkServer):
    """A cluster of ``total`` slots; jobs that do not run hold none of them."""

    total = 8

    def _reply(self, request: Request) -> tuple[int, object]:
        status, content = super()._reply(request)
        if request.path == "/overview" and isinstance(content, dict):
            taken = sum(max(job.parallelism.values()) for job in self.jobs if job.state == "RUNNING")
            content |= {"slots-total": self.total, "slots-available": max(self.total - taken, 0)}
        return status, content

    @property
    def asked_slots(self) -> int:
        """What the jobs are asked for, all together."""
        return sum(max(job.requested.values()) for job in self.jobs)


@dataclass
class Cluster:
    """Jobs of two operators each, and a controller of which a test says when it ticks."""

    server: ClusterServer
    limits: Limits = AUTO
    now_s: float = BEGAN_S
    log: OwnLog = field(default_factory=OwnLog)
    outcomes: dict[str, OutcomeCheck] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.server.clock = lambda: self.now_s
        client = FlinkClient(self.server.url, cluster="prod", retries=0, read_timeout_s=20.0)
        self.actuator = FlinkActuator(client, "prod", clock=lambda: self.now_s)
        self.tick(**dict.fromkeys(job.name for job in self.server.jobs))

    def job(self, name: str) -> FakeJob:
        return next(job for job in self.server.jobs if job.name == name)

    def tick(self, origin: Origin = Origin.REACTIVE, **wanted: int | None) -> dict[str, str]:
        """Decide on some jobs a minute later; returns the reasons."""
        self.now_s += 60
        tasks = [
            JobTask(
                f"prod/{name}",
                None if count is None else self._want(name, count, origin),
                lambda: self.limits,
                self.outcomes.get(name, OutcomeCheck()),
            )
            for name, count in wanted.items()
        ]
        known = self.actuator.observe_all([task.job for task in tasks])
        result = JobControl(self.actuator, self.log, lambda: None, lambda: self.now_s).control_jobs(tasks, known)
        return {job.partition("/")[2]: action.reason for job, action in result.items()}

    def _want(self, name: str, count: int, origin: Origin) -> Intention:
        return Intention(
            {SOURCE: count, ENRICH: count}, origin, f"{name}-{self.now_s:.0f}", "tested", self.now_s + 7200
        )

    @property
    def sent(self) -> list[int]:
        """The slots of each request that the cluster has seen."""
        bodies = [json.loads(one.body) for one in self.server.requests if one.method == "PUT"]
        return [max(bound["parallelism"]["upperBound"] for bound in body.values()) for body in bodies]


@contextmanager
def cluster_of(total: int, limits: Limits = AUTO, **slots: int) -> Iterator[Cluster]:
    """Run jobs, name -> parallelism, on a cluster of so many slots."""
    jobs = [
        FakeJob(f"{number:032x}", name, parallelism={SOURCE: count, ENRICH: count})
        for number, (name, count) in enumerate(slots.items(), 10)
    ]
    with serving(ClusterServer(*jobs)) as server:
        assert isinstance(server, ClusterServer)
        server.total = total
        yield Cluster(server, limits)
