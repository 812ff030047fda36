"""A fleet driven by hand: run for a while, read the metrics of that window, rescale, fail; for experiments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lab.simulation.fleet import pack
from lab.simulation.queueing import fetch_wait_s
from lab.simulation.randomness import job_generator
from lab.simulation.spec import JobSpec
from lab.simulation.state import FleetState, Restart, RestartKind, begin_restart
from lab.simulation.step import advance
from models.arrays import Floats, Ints
from models.policies.observations import Observations


@dataclass(frozen=True, slots=True)
class TestbedWindow:
    """Metrics of one window, what the REST source would give; all (J, O), NaN where Flink measures nothing.

    Attributes:
        start_s, seconds: when it began and how long it was.
        parallelism: at its end.
        in_per_s, out_per_s: observed rates of whole operators, means over the window; a source's input is what it takes
            in, an output the sum over the tails of the chain.
        target_per_s: records that arrived at sources, NaN elsewhere.
        busy, backpressured, idle: shares of the time of a mean subtask.
        true_in_per_s, true_out_per_s: rates over busy time, Eq. 5 and 6 of DS2, with the measurement noise.
        backlog: records that wait at sources at the end, NaN elsewhere.
        latency_ms: age of what waits at a source at the end, fetching included; NaN elsewhere.
        up: (J,) whether the job ran through the whole window.
    """

    start_s: float
    seconds: float
    parallelism: Ints
    in_per_s: Floats
    out_per_s: Floats
    target_per_s: Floats
    busy: Floats
    backpressured: Floats
    idle: Floats
    true_in_per_s: Floats
    true_out_per_s: Floats
    backlog: Floats
    latency_ms: Floats
    up: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


class Testbed:
    """Simulated jobs that an experimenter drives.

    Args:
        specs: the jobs.
        parallelism: (J, O) at the start.
        step_s: length of a step of the queueing model.
        seed: of measurement noise and downtimes.
        measurement_noise: relative standard deviation of a window's true rates (capacity as it is measured).
        has_buffers: whether records wait between operators, as they do in Flink; simulators of papers have no buffers.
    """

    __test__ = False  # not a test, whatever its name

    def __init__(
        self,
        specs: Sequence[JobSpec],
        parallelism: Ints,
        *,
        step_s: float = 1.0,
        seed: int = 0,
        measurement_noise: float = 0.0,
        has_buffers: bool = True,
    ) -> None:
        self.fleet = pack(specs if has_buffers else [replace(spec, record_bytes=math.inf) for spec in specs])
        self.state = FleetState.running(self.fleet, parallelism, np.zeros(self.fleet.shape))
        self.restarts: list[Restart] = []
        self._step_s = step_s
        self._noise = measurement_noise
        self._draws = [job_generator(seed, spec.name, "testbed") for spec in specs]

    @property
    def time_s(self) -> float:
        """Seconds since the start."""
        return self.state.time_s

    def run(self, rate_per_s: Floats, seconds: float | None = None) -> TestbedWindow:
        """Run for a while and return the metrics of that window.

        Args:
            rate_per_s: (J, O) constant source rates for ``seconds``, or (steps, J, O), one row per step.
            seconds: length with constant rates; a multiple of the step.
        """
        rates = np.asarray(rate_per_s, float)
        if rates.ndim == 2:
            rates = np.broadcast_to(rates, (round((seconds or self._step_s) / self._step_s), *rates.shape))
        state, fleet = self.state, self.fleet
        began, before = state.time_s, {name: getattr(state, name).copy() for name in ("emitted", "due_records")}
        sums, quiet = np.zeros((6, *fleet.shape)), np.ones(fleet.shape)
        for rate in rates:
            flow = advance(fleet, state, rate, quiet, self._step_s)
            sums += (flow.in_per_s, flow.through_per_s, flow.working, flow.busy, flow.backpressured, flow.idle)
        return self._window(began, state.due_records - before["due_records"], sums / len(rates))

    def rescale(self, job: int, parallelism: Ints, downtime_s: float | None = None) -> Restart:
        """Stop a job with a savepoint and bring it back with another parallelism, (O,).

        The downtime is drawn from the job's description unless it is given.
        """
        return self._restart(job, RestartKind.RESCALE, np.asarray(parallelism, np.int64), downtime_s)

    def fail(self, job: int, downtime_s: float | None = None, parallelism: Ints | None = None) -> Restart:
        """Kill a job; it comes back and replays from its last completed checkpoint.

        It comes back as it was, or with another parallelism, (O,), as in Flink's reactive mode.
        """
        target = self.state.parallelism[job].copy() if parallelism is None else np.asarray(parallelism, np.int64)
        return self._restart(job, RestartKind.FAILURE, target, downtime_s)

    def set_capacity(self, job: int, operator: int, curve_per_s: Floats) -> None:
        """Give an operator another capacity from now on: contention, slow disks, a throttled machine.

        Args:
            job: index in the fleet.
            operator: index in the job.
            curve_per_s: (P + 1,) C(p) in records/s for p = 0..P, monotone, P as in the fleet.
        """
        self.fleet.curves[job, operator] = curve_per_s

    def drain(self, job: int) -> None:
        """Drop a job's backlog, as an experiment does that judges steady states only."""
        self.state.backlog[job] = 0.0

    def _restart(self, job: int, kind: RestartKind, target: Ints, downtime_s: float | None) -> Restart:
        noise = float(self._draws[job].normal(0.0, self.fleet.specs[job].downtime_noise))
        at = self.state.time_s
        restart = begin_restart(self.fleet, self.state, job, kind, at_s=at, target=target, noise=noise)
        if downtime_s is not None:
            until = at + downtime_s
            self.state.down_until[job] = until
            self.state.trigger_next[job] = until + self.fleet.interval_s[job]
            restart = replace(restart, down_until_s=until)
        self.restarts.append(restart)
        return restart

    def _window(self, began_s: float, due_records: Floats, means: Floats) -> TestbedWindow:
        state, fleet = self.state, self.fleet
        seconds = state.time_s - began_s
        rate, through, working, busy, backpressured, idle = means
        factor = np.ones(fleet.shape)
        if self._noise:
            for job, draws in enumerate(self._draws):
                factor[job] = np.maximum(1.0 + self._noise * draws.standard_normal(fleet.shape[1]), 0.05)
        with np.errstate(divide="ignore", invalid="ignore"):
            capacity = np.where(busy > 0.0, rate / busy, np.nan) * factor
            arrived = np.where(fleet.is_source, due_records / seconds, np.nan)
            backlog = np.where(fleet.is_source, state.backlog - state.buffered, np.nan)
            waiting_s = np.where(arrived > 0.0, state.backlog / arrived, 0.0)
            waiting_s += fetch_wait_s(fleet.fetch_delay_s, working)[:, None]
        return TestbedWindow(
            start_s=began_s,
            seconds=seconds,
            parallelism=state.parallelism.copy(),
            in_per_s=rate,
            out_per_s=through * fleet.output_ratio,
            target_per_s=arrived,
            busy=busy,
            backpressured=backpressured,
            idle=idle,
            true_in_per_s=capacity,
            true_out_per_s=capacity * fleet.output_ratio,
            backlog=backlog,
            latency_ms=np.where(fleet.is_source, 1000.0 * waiting_s, np.nan),
            up=(state.down_until <= began_s) | (state.down_from >= state.time_s),
        )


def observations(windows: Sequence[TestbedWindow], job: int, operators: int) -> Observations:
    """Return windows of equal length of one job as a policy sees them in ``silver.observations``."""

    def stack(name: str) -> Floats:
        return np.array([getattr(window, name)[job, :operators] for window in windows], float)

    return Observations(
        window_start_s=np.array([round(window.start_s) for window in windows], np.int64),
        window_s=round(windows[0].seconds),
        parallelism=stack("parallelism").astype(np.int64),
        processing_rate_per_s=stack("in_per_s"),
        output_rate_per_s=stack("out_per_s"),
        true_processing_rate_per_s=stack("true_in_per_s"),
        true_output_rate_per_s=stack("true_out_per_s"),
        target_data_rate_per_s=stack("target_per_s"),
        busy_share=stack("busy"),
        idle_share=stack("idle"),
        backpressured_share=stack("backpressured"),
        pending_records=stack("backlog"),
        latency_ms=stack("latency_ms"),
        disturbed=np.array([not window.up[job] for window in windows]),
    )
