"""A simulated job whose raw replies go through the pipeline's own code, and whose rescales the pipeline decides."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from controller.evaluation.evaluate_job import evaluate_job
from controller.view.job_view import EvaluationState, JobView
from include.flink.raw_format import Endpoint, RawRecord
from include.settings import Settings
from lab.simulation.fleet import pack
from lab.simulation.rest.job_timeline import TimeOrigin
from lab.simulation.rest.lines import LineWriter
from lab.simulation.samples import SampleRecorder
from lab.simulation.spec import JobSpec
from lab.simulation.state import FleetState, Restart, RestartKind, begin_restart
from lab.simulation.step import advance
from models.arrays import Floats, Ints
from models.policies.observations import Observations
from models.polling.poll_history import PollHistory

CLUSTER = "sim"
WINDOW_S, POLL_S, STEP_S = 300, 60, 10
EARLY_MS = 1000  # the last poll of a window comes so long before its end
LATE_S = 2.0  # a request leaves so long after the decision, so that its stop lies in the window after it


@dataclass
class SimulatedJob:
    """One job of the queueing model; time 0 of the simulation is ``EARLY_MS`` before ``start_s``.

    Args:
        spec: of the job, without noise.
        first: (O,) parallelism.
        start_s: epoch seconds of the first window.
        downtime_s: of every rescale.
        shows_backlog: whether its sources have ``pendingRecords``.
    """

    spec: JobSpec
    first: Ints
    start_s: int
    downtime_s: float = 45.0
    shows_backlog: bool = True
    restarts: list[Restart] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fleet = pack([replace(self.spec, record_bytes=math.inf)])  # a replay has no buffers either
        self.state = FleetState.running(self.fleet, self.first[None], np.zeros(self.fleet.shape))

    def run_window(self, rates_per_s: Floats) -> list[RawRecord]:
        """Run one window at rates (O,), 0 for operators that are no sources; return the replies of its polls."""
        recorder = SampleRecorder(self.fleet, WINDOW_S // POLL_S)
        for step in range(WINDOW_S // STEP_S):
            began = self.state.time_s
            flow = advance(self.fleet, self.state, rates_per_s[None], np.ones(self.fleet.shape), float(STEP_S))
            recorder.add(began, flow)
            if (step + 1) * STEP_S % POLL_S == 0:
                recorder.poll((step + 1) * STEP_S // POLL_S - 1, self.state)
        origin = TimeOrigin(CLUSTER, 1000 * self.start_s - EARLY_MS, (1000 * self.start_s - 86_400_000,))
        writer = LineWriter(self.fleet, recorder.samples, self.restarts, origin)
        lines = writer.hour(range(WINDOW_S // POLL_S), cluster_wide=False)
        return [self._read(line) for line in lines]

    def rescale(self, target: Ints) -> None:
        """Stop the job with a savepoint and bring it back with another parallelism, (O,)."""
        now_s = self.state.time_s  # as in a replay, it stands still from the decision on; Flink tells of it later
        made = begin_restart(self.fleet, self.state, 0, RestartKind.RESCALE, at_s=now_s, target=target, noise=0.0)
        until_s = now_s + self.downtime_s
        self.state.down_until[0], self.state.trigger_next[0] = until_s, until_s + self.fleet.interval_s[0]
        self.restarts.append(replace(made, down_from_s=now_s + LATE_S, down_until_s=until_s + LATE_S))

    def _read(self, line: str) -> RawRecord:
        record = RawRecord(**json.loads(line))
        if self.shows_backlog or record.kind != Endpoint.VERTEX_METRICS:
            return record
        retained = [one for one in json.loads(record.body) if not one["id"].endswith("pendingRecords")]
        return replace(record, body=json.dumps(retained))


@dataclass(frozen=True)
class Decided:
    """A change of parallelism that was carried out."""

    at_s: int
    parallelism: tuple[int, ...]
    reason: str = field(compare=False, default="")


@dataclass
class Pipeline:
    """The controller's evaluations of one job, from raw replies; without a cluster to send to.

    Args:
        job: it is about.
        settings: of the run.
        cooldown_s: no change within so long of the last one, as a replay has it.
    """

    job: SimulatedJob
    settings: Settings
    cooldown_s: float = 0.0
    kept: EvaluationState = field(default_factory=EvaluationState)
    decided: list[Decided] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.history = PollHistory({CLUSTER: WINDOW_S}, polls=round(3600 * 2.5 / POLL_S))
        self._rescaled_s = -np.inf

    def run_window(self, rates_per_s: Floats) -> int:
        """Run the job through a window and take in its replies; return when it ended, epoch seconds."""
        faults = self.history.add(self.job.run_window(rates_per_s))
        assert not faults, faults
        return self.job.start_s + round(self.job.state.time_s)

    def observations(self, now_s: float) -> Observations:
        """Return the windows that ended by a time."""
        return self.history.windows(now_s).observations(0)

    def view(self, now_s: int, **known: object) -> JobView:
        """Return what an evaluation starts from."""
        (observed,) = self.history.jobs()
        values = {"seen": observed, "observations": self.observations(now_s), "graph": observed.graph, **known}
        return JobView(CLUSTER, self.job.spec.name, **values)  # type: ignore[arg-type]

    def evaluate(self, now_s: int, **known: object) -> None:
        """Evaluate the job and carry out what is wanted where a replay would."""
        self.kept = evaluate_job(self.view(now_s, **known), self.kept, self.settings, now_s)
        active = self.kept.standing
        if active is None or now_s > active.valid_until_s:
            return
        self._carry_out(now_s, active.wanted, active.reason)

    def _carry_out(self, now_s: int, wanted: Mapping[str, int], reason: str) -> None:
        names = self.job.spec.graph().names
        current = self.job.state.parallelism[0]
        limits = [min(one.max_parallelism, self.job.spec.slots_max) for one in self.job.spec.operators]
        target = np.clip([wanted.get(name, int(p)) for name, p in zip(names, current, strict=True)], 1, limits)
        is_up = bool(self.job.state.is_up(self.job.state.time_s)[0])
        if (target == current).all() or not is_up or now_s - self._rescaled_s < self.cooldown_s:
            return
        self.job.rescale(target.astype(np.int64))
        self._rescaled_s = now_s
        self.decided.append(Decided(now_s, tuple(target.tolist()), reason))
