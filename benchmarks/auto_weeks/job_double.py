"""A job of the simulator as Flink's adaptive scheduler runs it: requirements, slots, checkpoints, stops, deployments.

Since 1.20 a rescale begins with a checkpoint that is completed after its slots were there, at the latest after three
intervals; it rests after the one before, and takes less than all slots only after a while. A stop takes its time, and
what was processed since the checkpoint was triggered is processed again.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.auto_weeks.slots import Slots
from include.utc import DAY_S
from lab.simulation.capacity import find_needed_parallelism
from lab.simulation.change_times import FETCH_S
from lab.simulation.fleet import pack
from lab.simulation.randomness import capacity_noise
from lab.simulation.rest.template import Ids, hash_to_id
from lab.simulation.samples import SampleRecorder
from lab.simulation.spec import JobSpec
from lab.simulation.state import NEVER, FleetState, Restart, RestartKind, begin_restart
from lab.simulation.step import advance
from models.arrays import Floats

STEP_S = FETCH_S  # metrics are as old as the last step
COOLDOWN_S, STABILISES_S, DELAYS = 30.0, 60.0, 3  # Flink's defaults; the last are intervals of checkpoints
LATE_S = 60.0
CLUSTER = "weeks"


@dataclass(frozen=True, slots=True)
class Second:
    """What a step shows, at its end (epoch seconds): slots that run (0: down), are asked for, are there, are needed.

    ``is_late`` is whether records wait for longer than :data:`LATE_S`.
    """

    at_s: float
    running: int
    asked: int
    there: int
    needed: int
    is_late: bool


@dataclass(slots=True)
class Deployment:
    """A stop with a savepoint, and the job that is submitted then.

    Attributes:
        stops_s, submits_s, runs_s: epoch seconds.
        asked: parallelism of the new job, by operator.
    """

    stops_s: float
    submits_s: float
    runs_s: float
    asked: tuple[int, ...]
    has_stopped: bool = False
    is_submitted: bool = False


@dataclass
class JobDouble:
    """The job; one thread at a time uses it.

    Args:
        spec: of the job.
        rates_per_s: (steps, O) that arrive at sources.
        start_s: epoch seconds.
        first: parallelism of each operator.
        seed: of noise, downtimes and slots.
        per_manager: slots of a TaskManager.
    """

    spec: JobSpec
    rates_per_s: Floats
    start_s: float
    first: tuple[int, ...]
    seed: int
    per_manager: int = 4
    seconds: list[Second] = field(default_factory=list)
    job_ids: list[str] = field(default_factory=list)
    restarts: list[Restart] = field(default_factory=list)
    deployment: Deployment | None = None

    def __post_init__(self) -> None:
        self.fleet = pack([self.spec])
        steps, width = self.rates_per_s.shape
        self._noise = capacity_noise(self.spec, width, steps, STEP_S, self.seed)
        self.state = FleetState.running(self.fleet, np.array([self.first]), self.rates_per_s[:1])
        self.recorder = SampleRecorder(self.fleet, 1)
        self._draws = random.Random(f"downtimes {self.seed}")
        slots = random.Random(f"slots {self.seed}")
        self.slots = Slots(slots, self.per_manager, -(-max(self.first) // self.per_manager))
        self.vertices = Ids.of(CLUSTER, self.spec).vertices
        self._submit(self.start_s - 3 * DAY_S, self.first)
        self._waits_for: tuple[tuple[int, ...], float] | None = None  # parallelism, and from when on

    @property
    def now_s(self) -> float:
        """Epoch seconds at the end of the last step."""
        return self.start_s + self.state.time_s

    @property
    def job_id(self) -> str:
        """Id of the job that runs, or ran last."""
        return self.job_ids[-1]

    @property
    def is_listed(self) -> bool:
        """Whether there is a job that has not ended."""
        return self.deployment is None or not self.deployment.has_stopped or self.deployment.is_submitted

    @property
    def is_up(self) -> bool:
        """Whether the job runs."""
        return bool(self.state.is_up(self.state.time_s)[0])

    @property
    def running(self) -> tuple[int, ...]:
        """Parallelism of each operator; while the job is down, that with which it comes back."""
        return tuple(self.state.parallelism[0].tolist())

    def ask(self, upper: Mapping[str, int], lower: Mapping[str, int]) -> None:
        """Take resource requirements, by vertex id."""
        self.asked = tuple(upper[vertex] for vertex in self.vertices)
        self.lower = tuple(lower[vertex] for vertex in self.vertices)

    def trigger_checkpoint(self) -> None:
        """Begin a checkpoint, unless one is in progress."""
        self.state.trigger_next[0] = min(float(self.state.trigger_next[0]), self.state.time_s)

    def lose_manager(self, until_s: float) -> None:
        """Lose a TaskManager, with which a job that runs fails."""
        self.slots.lose(until_s)
        if self.is_up and self.is_listed:
            self._stop(RestartKind.FAILURE)

    def deploy(self, savepoint_s: float, gap_s: float, starts_s: float, asked: tuple[int, ...]) -> None:
        """Stop the job with a savepoint that takes so long, and submit it again after a gap."""
        stops_s = self.now_s + savepoint_s
        self.deployment = Deployment(stops_s, stops_s + gap_s, stops_s + gap_s + starts_s, asked)

    def advance(self) -> None:
        """Go on by a step."""
        self._deploy_on()
        if self.is_listed:
            running = max(self.running) if self.is_up else 0
            self.slots.follow(self.now_s, max(self.asked), running)
            self._scale()
        step, began_s = len(self.seconds), self.state.time_s
        rate = self.rates_per_s[step : step + 1]
        flow = advance(self.fleet, self.state, rate, self._noise[step : step + 1], STEP_S)
        self.recorder.add(began_s, flow)
        self.recorder.poll(0, self.state)
        self.seconds.append(self._look(rate))

    def _look(self, rate: Floats) -> Second:
        need = find_needed_parallelism(self.fleet.curves, (self.fleet.mean_gain @ rate[..., None])[..., 0], 1.0)
        arrives_per_s = np.where(self.fleet.is_source, rate, 0.0)
        age_s = np.divide(self.state.backlog, arrives_per_s, out=np.zeros_like(rate), where=arrives_per_s > 0.0).max()
        running = max(self.running) if self.is_up and self.is_listed else 0
        return Second(self.now_s, running, max(self.asked), self.slots.count, int(need.max()), bool(age_s > LATE_S))

    def _scale(self) -> None:
        """Let the job run at what it is asked for, as far as there are slots."""
        target = tuple(min(count, max(self.slots.count, 1)) for count in self.asked)
        if not self.is_up:  # it comes back with what is there then
            self.state.parallelism[0] = target
            if not self.slots.count:
                self.state.down_until[0] = max(self.state.down_until[0], self.state.time_s + STEP_S)
        elif target == self.running:
            self._waits_for = None
        else:
            if self._waits_for is None or self._waits_for[0] != target:
                rests_s = max(float(self.state.down_until[0]) + COOLDOWN_S - self.state.time_s, 0.0)
                is_part = max(target) < max(self.asked)
                self._waits_for = target, self.state.time_s + rests_s + STABILISES_S * is_part
            ready_s = self._waits_for[1]
            checkpoint = self.state.checkpoints[0, 0]
            is_forced = self.state.time_s - ready_s >= DELAYS * self.spec.checkpoint_interval_s
            if checkpoint[0] + checkpoint[1] >= ready_s or is_forced:
                self._stop(RestartKind.RESCALE)
                self.state.parallelism[0] = target

    def _stop(self, kind: RestartKind) -> None:
        noise, now_s = self._draws.gauss(0.0, self.spec.downtime_noise), self.state.time_s
        target = self.state.parallelism[0].copy()
        self.restarts.append(begin_restart(self.fleet, self.state, 0, kind, at_s=now_s, target=target, noise=noise))
        self._waits_for = None

    def _deploy_on(self) -> None:
        """Carry out what is due of a deployment."""
        one, state = self.deployment, self.state
        if one is None:
            return
        if not one.has_stopped and self.now_s >= one.stops_s and self.is_up:
            self._stop(RestartKind.RESCALE)
            late_s = self.now_s - one.stops_s  # a job that is down cannot take a savepoint
            one.submits_s, one.runs_s, one.has_stopped = one.submits_s + late_s, one.runs_s + late_s, True
            state.down_until[0] = one.runs_s - self.start_s
            state.trigger_next[0] = state.down_until[0] + self.spec.checkpoint_interval_s
        elif one.has_stopped and not one.is_submitted and self.now_s >= one.submits_s:
            self._submit(self.now_s, one.asked)
            starts_s = one.runs_s - one.submits_s
            state.down_from[0] = state.time_s - starts_s  # so that it is shown as CREATED
            state.restarts[0], state.failures[0] = 0, 0
            one.is_submitted, self.restarts = True, []
        elif one.is_submitted and self.is_up:
            state.down_from[0], self.deployment = NEVER, None

    def _submit(self, at_s: float, asked: tuple[int, ...]) -> None:
        self.submitted_s, self.asked, self.lower = at_s, asked, (1,) * len(asked)
        self.job_ids.append(hash_to_id(CLUSTER, self.spec.name, str(len(self.job_ids))))
        # Checkpoints are numbered from the job's submission, with the savepoint that it was begun from.
        self.state.completed[0] = math.ceil((at_s - self.start_s) / self.spec.checkpoint_interval_s) + 1
