"""A controller over the REST double with a clock that a test turns: no time passes by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from flink_rescaling import RescalingJob
from flink_server import FlinkServer, serving
from single_job import control_job

from controller.actuators.flink_actuator import FlinkActuator
from controller.decisions.job_control import JobControl
from controller.log.control_log import LogEntry
from include.flink.client import FlinkClient
from models.control.case import Action, OutcomeCheck
from models.control.limits import Limits
from models.control.state import Intention, JobHistory, Mode, Origin
from models.policies.memory import dump, load

SOURCE, ENRICH = "1" * 32, "2" * 32
BEGAN_S = 1_795_000_000.0


@dataclass
class World:
    """A job on a cluster, and a controller that ticks once a minute.

    Attributes:
        server, job: what runs.
        limits: of the job.
        wanted: parallelism of both vertices; None: nothing.
        ahead_s: the controller's clock, of Flink's.
    """

    server: FlinkServer
    job: RescalingJob
    clock_s: list[float]
    limits: Limits = field(default_factory=lambda: Limits(mode=Mode.AUTO, cooldown_s=0.0))
    wanted: int | None = None
    ahead_s: float = 0.0
    origin: Origin = Origin.PLAN
    entries: list[LogEntry] = field(default_factory=list)
    history: str = ""
    outcome: OutcomeCheck = field(default_factory=OutcomeCheck)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start a controller that has asked nothing yet."""
        client = FlinkClient(self.server.url, cluster="prod", retries=0, read_timeout_s=2.0)
        self.actuator = FlinkActuator(client, "prod", clock=self.now)

    def now(self) -> float:
        return self.clock_s[0]

    # the log, as a table keeps it

    def append_all(self, entries: list[LogEntry]) -> None:
        self.entries += entries
        self.history = dump(entries[-1].history)

    def read_last(self, job: str) -> LogEntry | None:
        return self.entries[-1] if self.entries else None

    def read_history(self, job: str) -> JobHistory:
        return load(JobHistory, self.history) if self.history else JobHistory()

    def read_open(self) -> dict[str, LogEntry]:
        return {one.job: one for one in self.entries[-1:] if one.history.in_flight is not None}

    # what happens

    def tick(self) -> Action:
        desired = None
        if self.wanted is not None:
            target = {SOURCE: self.wanted, ENRICH: self.wanted}
            desired = Intention(target, self.origin, f"step-{self.wanted}", "tested", self.now() + 7200)
        controller = JobControl(self.actuator, self, lambda: None, lambda: self.now() + self.ahead_s)
        return control_job(controller, "prod/orders", desired, lambda: self.limits, self.outcome)

    def pass_s(self, seconds: float) -> None:
        """Let time go on."""
        self.clock_s[0] += seconds
        self.job.follow(self.now())

    def ticks(self, minutes: float) -> list[str]:
        """Tick every minute; returns the reasons, each once in a row."""
        reported: list[str] = []
        for _ in range(round(minutes)):
            self.pass_s(60)
            reason = self.tick().reason
            reported += [] if reported[-1:] == [reason] else [reason]
        return reported

    @property
    def puts(self) -> int:
        return len(self.server.asked("PUT"))


@contextmanager
def controlled(job: RescalingJob | None = None, version: str = "2.1.3", run_s: float = 700.0) -> Iterator[World]:
    """Run a job for a while, and then a controller that has taken it over."""
    job = job or RescalingJob()
    if not job.began_s:
        job.began_s = BEGAN_S
        job.__post_init__()
    job.waits = version >= "1.20"
    clock_s = [BEGAN_S]
    with serving(FlinkServer(job, clock=lambda: clock_s[0])) as server:
        server.version, server.free_slots = version, 8
        world = World(server, job, clock_s)
        world.pass_s(run_s)
        assert world.tick().reason == "new_job_id"
        yield world
