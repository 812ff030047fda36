"""Running a fleet over time under a controller."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.simulation.capacity import find_needed_parallelism
from lab.simulation.control import FleetController, FleetSnapshot
from lab.simulation.fleet import Fleet
from lab.simulation.randomness import capacity_noise
from lab.simulation.restarts import RestartSchedule
from lab.simulation.samples import GAUGE_S, SampledMetrics, SampleRecorder
from lab.simulation.spec import SpecError
from lab.simulation.state import FleetState, Restart
from lab.simulation.step import advance
from models.arrays import Floats, Ints

DECIDE_S = 300.0


@dataclass(frozen=True, slots=True)
class SimulatedHistory:
    """A finished run: samples, restarts in order of time, and the state it ended in."""

    samples: SampledMetrics
    restarts: tuple[Restart, ...]
    final: FleetState


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Length of a step, period of the polls, seed, and where in the week (seconds from Monday 00:00) the run begins."""

    step_s: float = 60.0
    poll_s: float = 300.0
    week_s: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for period, name in ((self.poll_s, "poll_s"), (DECIDE_S, "the time between decisions"), (GAUGE_S, "a minute")):
            if period % self.step_s:
                raise SpecError(f"step_s = {self.step_s} must divide {name} = {period} s")


def simulate(
    fleet: Fleet, rates_per_s: Floats, first: Ints, controller: FleetController, options: RunOptions
) -> SimulatedHistory:
    """Run a fleet.

    Args:
        fleet: the jobs.
        rates_per_s: (steps, J, O) records per second arriving at the sources in each step, 0 elsewhere.
        first: (J, O) parallelism at the start.
        controller: decides every five minutes.
        options: step, polls, seed.

    Returns:
        Samples at every poll (the first one ``poll_s`` after the start), restarts, final state.
    """
    steps, width = rates_per_s.shape[0], fleet.shape[1]
    per_poll, per_decision = round(options.poll_s / options.step_s), round(DECIDE_S / options.step_s)
    noise = np.stack([capacity_noise(s, width, steps, options.step_s, options.seed) for s in fleet.specs], axis=1)
    state = FleetState.running(fleet, first, rates_per_s[0])
    recorder = SampleRecorder(fleet, steps // per_poll)
    restarts = RestartSchedule(fleet, steps * options.step_s, options.seed)
    busy = np.zeros(fleet.shape)
    for step in range(steps):
        if step and step % per_decision == 0:
            snapshot = _observe(state, busy / per_decision, rates_per_s[step - 1], options.week_s)
            restarts.ask(state, controller(snapshot), snapshot.up)
            busy[:] = 0.0
        restarts.begin(state, options.step_s, rates_per_s[step], noise[step])
        began = state.time_s
        flow = advance(fleet, state, rates_per_s[step], noise[step], options.step_s)
        busy += flow.busy
        recorder.add(began, flow)
        if (step + 1) % per_poll == 0:
            recorder.poll(step // per_poll, state)
    return SimulatedHistory(recorder.samples, restarts.restarts, state)


def _observe(state: FleetState, busy: Floats, rate_per_s: Floats, week_s: int) -> FleetSnapshot:
    lag_s = np.divide(state.backlog, rate_per_s, out=np.zeros_like(state.backlog), where=rate_per_s > 0.0).max(axis=1)
    return FleetSnapshot(
        time_s=state.time_s,
        week_s=(week_s + state.time_s) % (7 * 24 * 3600.0),
        parallelism=state.parallelism,
        busy=busy,
        lag_s=lag_s,
        up=state.is_up(state.time_s),
        settled_s=state.time_s - state.down_until,
    )


def find_fitting_parallelism(fleet: Fleet, source_rates_per_s: Floats, utilisation: float) -> Ints:
    """Return (J, O) the parallelism that carries source rates (J, O) at a utilisation, within the jobs' bounds."""
    load = np.matmul(fleet.mean_gain, source_rates_per_s[..., None])[..., 0]
    return np.minimum(find_needed_parallelism(fleet.curves, load, utilisation), fleet.p_max)
