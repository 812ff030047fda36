"""A controller in a scenario that a test tells step by step: a real actuator and a JobManager that replies as Flink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from flink_model import MemoryLog
from flink_server import FakeJob, FlinkServer
from single_job import control_job

from controller.actuators.flink_actuator import FlinkActuator
from controller.decisions.job_control import NOT_JUDGED, JobControl
from include.flink.client import FlinkClient
from models.control.case import Action, OutcomeCheck
from models.control.limits import Limits
from models.control.state import Intention, JobHistory, Mode, Origin

JOB = "prod/orders"
SOURCE, ENRICH = "1" * 32, "2" * 32
LIMITS = Limits(mode=Mode.AUTO, cooldown_s=0.0, foreign_change_hold_s=4 * 3600.0)


class OwnLog(MemoryLog):
    """The log of the only controller."""

    def append_all(self, entries, writer: int = 1) -> None:
        super().append_all(entries, writer)


@dataclass
class Scenario:
    """One job and one controller.

    Attributes:
        server: the cluster.
        now_s: the time.
        wanted: what the reactive controller wants, None for nothing.
    """

    server: FlinkServer
    now_s: float = 1_000_000.0
    limits: Limits = LIMITS
    wanted: Mapping[str, int] | None = None
    outcome: OutcomeCheck = NOT_JUDGED
    log: OwnLog = field(default_factory=OwnLog)
    ticks: int = 0

    def __post_init__(self) -> None:
        client = FlinkClient(self.server.url, cluster="prod", retries=0, read_timeout_s=1.5, total_timeout_s=2.0)
        self.server.clock = lambda: self.now_s
        self.actuator = FlinkActuator(client, "prod", clock=lambda: self.now_s)
        assert self.tick().reason == "new_job_id"

    @property
    def flink(self) -> FakeJob:
        return self.server.jobs[0]

    @property
    def history(self) -> JobHistory:
        return self.log.read_history(JOB)

    def tick(self, after_s: float = 60.0, number: int = 1) -> Action:
        """Let some time pass, and the controller decide."""
        self.now_s += after_s
        self.ticks += 1
        desired = None
        if self.wanted is not None:
            name = f"step-{self.ticks}"
            desired = Intention(dict(self.wanted), Origin.REACTIVE, name, "tested", self.now_s + 600.0)
        controller = JobControl(self.actuator, self.log, lambda: None, lambda: self.now_s)
        return control_job(controller, JOB, desired, lambda: self.limits, self.outcome)

    def follow(self) -> Action:
        """Let time pass until a request has its end: Flink may wait, for its configuration says how long."""
        for _ in range(60):
            action = self.tick()
            if action.reason != "in_flight":
                return action
        raise AssertionError("a request is in flight for an hour")

    def put(self, upper: Mapping[str, int], lower: Mapping[str, int] | None = None, *, runs: bool = True) -> None:
        """Ask for something as a person does."""
        ran = dict(self.flink.parallelism)
        body = {
            one: {"parallelism": {"lowerBound": (lower or {}).get(one, 1), "upperBound": count}}
            for one, count in upper.items()
        }
        status, _ = self.server._put_requirements(self.flink, body)
        assert status == 200
        if not runs:
            self.flink.parallelism = ran

    def fills_nothing(self) -> None:
        """Let the cluster accept requests, and run what it ran before."""
        ran = dict(self.flink.parallelism)

        def act(request) -> None:
            status, content = self.server._reply(request)
            if request.method == "PUT":
                self.flink.parallelism = dict(ran)
            request.write_json(content, status)

        self.server.troubles["/resource-requirements"] = act

    def meets(self, trouble: Callable) -> None:
        """Let requests meet a trouble; questions are replied to."""
        from flink_server import on_put

        self.server.troubles["/resource-requirements"] = on_put(trouble, self.server)

    def heals(self) -> None:
        self.server.troubles.clear()

    @property
    def puts(self) -> int:
        return len(self.server.asked("PUT"))


def both(count: int) -> dict[str, int]:
    return {SOURCE: count, ENRICH: count}
