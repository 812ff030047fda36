"""A model of Flink that does everything a cluster may do, and a log of a controller that may die at any effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from change_ledger import CONTROLLER, DEPLOYMENT, PERSON, Asked, ChangeLedger

from controller.actuators.actuator import Actuator, RequestConflictError, RequestRefusedError, RequestUnknownError
from controller.leases.lease import LeaseLostError
from controller.log.control_log import LogEntry
from models.control.readiness import Checkpoints, Failure, MemoryUsage, Readiness
from models.control.state import JobHistory, ObservedJob
from models.policies.memory import dump, load

SLOTS = 8
LATE_S = 400.0
# What a deployment may look like: vertices -> slot-sharing group, and upper limits of parallelism.
GRAPHS = (
    ({"a": "default", "b": "default"}, {}),
    ({"a": "default", "c": "own", "d": "default"}, {"d": 5}),
)


class KilledError(BaseException):
    """The controller was killed between two effects."""


@dataclass
class FlinkModel:
    """A job under the adaptive scheduler.

    Attributes:
        manner: what the next request meets.
        late: requests on their way: (arrives at, job id, parallelism).
        sent: requests that left the controller: (true time, parallelism).
        lower: lower bounds that a person has set; Flink's own are 1.
        ledger: who asked for what.
        judged: what the job was asked for when a controller looked last.
        others: slots of other jobs of the cluster.
        tells_free: whether the cluster says how many slots are free.
        problem: why the job cannot be told from others, or its replies not be read.
        finished: vertices that have come to an end.
        checkpoints: what its checkpoints are like: ``fine``, ``savepoint``, ``off``, ``failing``, ``untold``.
        heap_share: of the fullest TaskManager.
        breaks_at: parallelism of a vertex from which on the job fails again and again.
        failures: that it remembers.
    """

    now_s: float = 1_000_000.0
    job_id: str = "job-1"
    graph: int = 0
    requested: dict[str, int] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    state: str = "RUNNING"
    slots: int = SLOTS
    manner: str = "accept"
    is_silent: bool = False
    is_elastic: bool | None = False
    tells_free: bool = True
    others: int = 0
    other_autoscaler: str | None = None
    problem: str = ""
    finished: frozenset[str] = frozenset()
    late: list[tuple[float, str, dict[str, int]]] = field(default_factory=list)
    sent: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    checkpoints: str = "fine"
    heap_share: float = 0.5
    breaks_at: int = 10**6
    failures: list[Failure] = field(default_factory=list)
    lower: dict[str, int] = field(default_factory=dict)
    ledger: ChangeLedger = field(default_factory=ChangeLedger)
    judged: Asked | None = None
    running_since_s: float = 0.0

    def __post_init__(self) -> None:
        self.requested = dict.fromkeys(self.vertices, 2)
        self.recover()
        self.note(DEPLOYMENT)

    @property
    def vertices(self) -> list[str]:
        return list(GRAPHS[self.graph][0])

    @property
    def asked(self) -> dict[str, int]:
        """What the job is to run at, as far as anybody can tell from outside."""
        return self.requested

    @property
    def told(self) -> Asked:
        """The same with what else anybody can read."""
        return Asked(dict(self.asked), dict(self.lower))

    def note(self, by: str) -> None:
        """Note in the ledger who has changed what the job is asked for."""
        self.ledger.note(self.now_s, by, self.told)

    def open_actuator(self) -> Actuator:
        return self

    def tell_job(self) -> ObservedJob:
        if self.problem:
            return ObservedJob(None, "", {}, None, problem=self.problem)
        remaining = {vertex: count for vertex, count in self.running.items() if vertex not in self.finished}
        running = remaining if self.state == "RUNNING" else {}
        groups, most = GRAPHS[self.graph]
        observed = ObservedJob(
            self.job_id,
            self.state,
            running,
            dict(self.requested),
            max_parallelism=most,
            slot_sharing_group=groups,
            is_elastic=self.is_elastic,
            other_autoscaler=self.other_autoscaler,
            lower_bounds={vertex: self.lower.get(vertex, 1) for vertex in self.requested},
            running_since_s=self.running_since_s,
        )
        taken = observed.slots_of(self.running)
        free = 0 if self.is_elastic else max(self.slots - taken, 0)
        return ObservedJob(
            **{name: getattr(observed, name) for name in observed.__slots__}
            | {"free_slots": free if self.tells_free else None, "cluster_slots_used": observed.slots + self.others}
        )

    def observe(self, job: str) -> ObservedJob:
        if self.is_silent:
            raise RequestUnknownError("no reply")
        observed = self.tell_job()
        if not self.problem:
            self.judged = self.told
            self.ledger.show(self.told, observed.running)
        return observed

    def inspect(self, job: str, job_id: str) -> Readiness:
        if self.is_silent or self.checkpoints == "untold":
            return Readiness(unknown="no reply")
        reported = Checkpoints(
            interval_s=None if self.checkpoints == "off" else 60.0,
            completed_at_s=self.now_s - 30,
            is_failing=self.checkpoints == "failing",
            savepoints=int(self.checkpoints == "savepoint"),
            state_bytes=1_000_000,
        )
        autoscaler = self.other_autoscaler
        failures = tuple(self.failures)
        return Readiness(reported, MemoryUsage(self.heap_share, 0.0), failures, self.now_s, other_autoscaler=autoscaler)

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...]:
        return tuple(self.failures)

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        pass

    def request(self, job: str, job_id: str, parallelism: dict[str, int]) -> None:
        manner, self.manner = self.manner, "accept"
        if job_id == self.job_id and self.judged != self.told:  # as the actuator compares right before
            raise RequestConflictError("somebody else was quicker")
        self.sent.append((self.now_s, dict(parallelism)))
        if job_id != self.job_id:
            raise RequestRefusedError("no such job")
        if any(count < self.lower.get(vertex, 1) for vertex, count in parallelism.items()):
            raise RequestRefusedError("The lower bound is above the upper bound")
        if manner == "refuse":
            raise RequestRefusedError("not today")
        if manner == "lose":
            raise RequestUnknownError("connection reset")
        if manner == "late":
            self.late.append((self.now_s + LATE_S, job_id, dict(parallelism)))
            raise RequestUnknownError("timed out")
        before = dict(self.running)
        self._ask(parallelism, CONTROLLER, fills=manner != "ignore")
        if manner == "half":
            self.running = {vertex: (before[vertex] + count + 1) // 2 for vertex, count in self.running.items()}
        if manner == "accept_silently":
            raise RequestUnknownError("timed out")

    def _ask(self, parallelism: dict[str, int], by: str, *, fills: bool) -> None:
        self.requested = dict(parallelism)
        self.lower = {vertex: count for vertex, count in self.lower.items() if count <= parallelism.get(vertex, 0)}
        self.note(by)
        is_mended = bool(self.failures) and self.state == "RESTARTING" and max(self.requested.values()) < self.breaks_at
        if fills and (self.state == "RUNNING" or is_mended):
            self.running_since_s = self.now_s if is_mended else self.running_since_s
            self.state = "RUNNING"
            self._fill()

    def _fill(self) -> None:
        """Run at what is requested, or at as much of it as there are slots; or fail, twice at once."""
        if max(self.requested.values()) >= self.breaks_at:
            self.state = "RESTARTING"
            self.failures += [Failure(self.now_s + second, "no reader", "no reader") for second in (1, 2)]
            del self.failures[:-16]
            return
        groups, ran = GRAPHS[self.graph][0], dict(self.running)
        cap = max(self.requested.values())
        while True:
            self.running = {vertex: min(count, cap) for vertex, count in self.requested.items()}
            largest: dict[str, int] = {}
            for vertex, count in self.running.items():
                largest[groups[vertex]] = max(largest.get(groups[vertex], 0), count)
            if cap == 1 or sum(largest.values()) <= self.slots:
                self.running_since_s = self.running_since_s if ran == self.running else self.now_s
                return
            cap -= 1

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
        for at_s, job_id, parallelism in [one for one in self.late if one[0] <= self.now_s]:
            self.late.remove((at_s, job_id, parallelism))
            if job_id == self.job_id:
                self._ask(parallelism, CONTROLLER, fills=True)

    def rescale_by_person(self, counts: list[int]) -> None:
        self._ask(dict(zip(self.vertices, counts, strict=False)), PERSON, fills=True)

    def take_back_by_person(self) -> None:
        """Let a person ask for what was in force before a controller's last change."""
        changes = self.ledger.changes
        places = [place for place, one in enumerate(changes) if one.by == CONTROLLER and place]
        if places and set(changes[places[-1] - 1].asked.upper) == set(self.vertices):
            self._ask(dict(changes[places[-1] - 1].asked.upper), PERSON, fills=True)

    def repeat_by_person(self, place: int) -> None:
        """Let a person ask for what a controller has asked for, or tried to, some time."""
        tried = [target for _, target in self.sent if set(target) == set(self.vertices)]
        if tried:
            self._ask(dict(tried[-1 - place % len(tried)]), PERSON, fills=True)

    def set_lower_by_person(self, count: int) -> None:
        """Let a person set a lower bound, or take it away."""
        vertex = self.vertices[0]
        bound = min(count, self.requested[vertex])
        self.lower = {vertex: bound} if bound > 1 else {}
        self.note(PERSON)

    def fail(self) -> None:
        self.state = "RESTARTING"

    def recover(self) -> None:
        if self.state != "RUNNING":
            self.running_since_s = self.now_s
        self.state = "RUNNING"
        self._fill()

    def redeploy(self, number: int, graph: int, parallelism: int | Mapping[str, int]) -> None:
        self.job_id, self.graph = f"job-{number}", graph
        is_one = isinstance(parallelism, int)
        self.requested = dict.fromkeys(self.vertices, parallelism) if is_one else dict(parallelism)
        self.lower, self.finished = {}, frozenset()
        self.recover()
        self.note_deployment()

    def note_deployment(self, by: str = DEPLOYMENT) -> None:
        self.ledger.deploy()
        self.note(by)


@dataclass
class MemoryLog:
    """The log as a list of texts, as a table keeps them.

    Attributes:
        lease: fencing number of the controller that may write.
        effects_left: so many edges of effects are reached before the controller dies.
        interrupt: what happens at an edge, and at which one.
    """

    entries: list[LogEntry] = field(default_factory=list)
    histories: dict[str, str] = field(default_factory=dict)
    lease: int = 1
    effects_left: int = 10**9
    interrupt: tuple[int, Callable[[], None]] | None = None
    edges: int = 0

    def append_all(self, entries: Sequence[LogEntry], writer: int) -> None:
        self.spend()
        if writer != self.lease:
            raise LeaseLostError
        self.entries.extend(entries)
        self.histories |= {entry.job: dump(entry.history) for entry in entries}
        self.spend()

    def read_last(self, job: str) -> LogEntry | None:
        return next((entry for entry in reversed(self.entries) if entry.job == job), None)

    def read_history(self, job: str) -> JobHistory:
        text = self.histories.get(job)
        return JobHistory() if text is None else load(JobHistory, text)

    def read_open(self) -> dict[str, LogEntry]:
        result = {job: self.read_last(job) for job in self.histories}
        return {
            job: entry for job, entry in result.items() if entry is not None and entry.history.in_flight is not None
        }

    def begin(self, effects: int, interrupt: tuple[int, Callable[[], None]] | None) -> None:
        self.effects_left, self.interrupt, self.edges = effects, interrupt, 0

    def spend(self, *, may_change: bool = True) -> None:
        """Count an effect's edge; there the controller may die, and the world change."""
        self.effects_left -= 1
        if self.effects_left < 0:
            raise KilledError
        if self.interrupt is not None and self.edges == self.interrupt[0] and may_change:
            self.interrupt[1]()
        self.edges += 1
