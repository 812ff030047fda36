"""When a job ran, and at which parallelism, told from its series alone.

A run begins when the job comes to RUNNING.  Its time is that of a sample less the job's own ``runningTime``: a few
milliseconds early, by the time that the scrape took, so one value is kept for all samples of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from include.flink.job_states import RUNNING
from include.metric_sources.prometheus.client import Floats
from include.metric_sources.prometheus.measurements import JobMeasurements
from include.metric_sources.prometheus.targets import Target

_STATES = {
    "restartingTime": "RESTARTING",
    "failingTime": "FAILING",
    "cancellingTime": "CANCELLING",
    "createdTime": "CREATED",
    "initializingTime": "INITIALIZING",
}
_STOPPED = ("RESTARTING", "FAILING", "CANCELLING")
# Two samples of one run differ by the time that scrapes took; where the restarts were counted, they may be slow.
_SAME_RUN_MS = 2_000.0
_SLOW_SCRAPE_MS = 60_000.0
_OPEN = -1.0  # no restarts are counted


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run that earlier raw lines tell of: when it began, epoch ms, and vertex id -> parallelism."""

    running_ms: int
    parallelism: Mapping[str, int] = field(default_factory=dict)

    def began_at(self, start_ms: float) -> bool:
        """Whether this is the run that began then, as far as a sample can tell."""
        return abs(self.running_ms - start_ms) <= _SAME_RUN_MS


@dataclass(frozen=True, slots=True)
class JobSteps:
    """What the JobManagers tell of a job, step by step.

    Attributes:
        times_s: (steps,) when the sample was scraped, NaN without one.
        values: metric -> (steps,).
        states: Flink's state, empty without a sample.
        running_ms: (steps,) when the run of the step began; of the last one before where the job does not run; NaN
            where it is not known.
        stopped_ms: (steps,) when it left RUNNING, NaN where no sample says so.
    """

    times_s: Floats
    values: Mapping[str, Floats]
    states: Sequence[str]
    running_ms: Floats
    stopped_ms: Floats


def newest_target(targets: Sequence[Target], steps: int) -> tuple[Floats, dict[str, Floats]]:
    """Return the times and values of the target whose sample is the newest, step by step."""
    times = np.full(steps, np.nan)
    values: dict[str, Floats] = {}
    for target in targets:
        is_newer = np.isfinite(target.times_s) & ~(times >= target.times_s)
        times = np.where(is_newer, target.times_s, times)
        for name, own in target.values.items():
            values[name] = np.where(is_newer, own, values.get(name, np.full(steps, np.nan)))
    return times, values


def follow_job(job: JobMeasurements, grid_s: Floats, max_age_s: float, known: Sequence[RecordedRun] = ()) -> JobSteps:
    """Return what its series, and its runs in other raw lines, tell of a job at the (steps,) times asked for."""
    times, values = newest_target(job.managers, len(grid_s))
    times = np.where(grid_s - times <= max_age_s, times, np.nan)
    ran_ms = _first_positive(values, ("runningTime", "uptime"), len(grid_s))
    is_there = np.isfinite(times)
    states = [_state(values, step, ran_ms) if is_there[step] else "" for step in range(len(grid_s))]
    is_running = np.array([state == RUNNING for state in states])
    restarts = values.get("numRestarts", np.full(len(grid_s), _OPEN))
    running_ms = _run_starts(np.where(is_running, 1000 * times - ran_ms, np.nan), restarts, known, 1000 * grid_s[0])
    stopped = _stopped_ms(values, times, states)
    return JobSteps(times, values, states, running_ms, stopped)


def _first_positive(values: Mapping[str, Floats], names: Sequence[str], steps: int) -> Floats:
    result = np.full(steps, np.nan)
    for name in names:
        own = values.get(name)
        if own is not None:
            result = np.where(np.isfinite(result) | ~(own > 0), result, own)
    return result


def _state(values: Mapping[str, Floats], step: int, ran_ms: Floats) -> str:
    if ran_ms[step] > 0:
        return RUNNING
    for metric, state in _STATES.items():
        own = values.get(metric)
        if own is not None and own[step] > 0:
            return state
    return "RESTARTING"  # a job that its JobManager shows and that does not run is being brought back


def _run_starts(estimates_ms: Floats, restarts: Floats, known: Sequence[RecordedRun], first_ms: float) -> Floats:
    """Return (steps,) one start for all samples of a run: the known one, else the latest estimate."""
    runs: list[tuple[float, list[int]]] = []
    counted = _OPEN
    for step in np.flatnonzero(np.isfinite(estimates_ms)).tolist():
        estimate, count = float(estimates_ms[step]), float(restarts[step])
        if runs:
            apart = abs(estimate - runs[-1][0])
            is_same = apart <= _SAME_RUN_MS or (count == counted != _OPEN and apart <= _SLOW_SCRAPE_MS)
            if is_same:
                runs[-1] = (max(runs[-1][0], estimate), [*runs[-1][1], step])
                counted = count
                continue
        runs.append((estimate, [step]))
        counted = count
    result = np.full(len(estimates_ms), np.nan)
    for start, steps in runs:
        result[steps] = next((run.running_ms for run in known if run.began_at(start)), round(start))
    earlier = [run.running_ms for run in known if run.running_ms <= first_ms]
    return _fill_forward(result, float(max(earlier, default=np.nan)))


def _fill_forward(values: Floats, first: float) -> Floats:
    """Fill gaps by the value before; those at the start by ``first``."""
    places = np.where(np.isfinite(values), np.arange(len(values)), -1)
    last: npt.NDArray[np.int64] = np.maximum.accumulate(places)
    return np.where(last >= 0, values[np.maximum(last, 0)], first)


def _stopped_ms(values: Mapping[str, Floats], times_s: Floats, states: Sequence[str]) -> Floats:
    """Return (steps,) when a job that is stopped left RUNNING; the first sample of a stop tells it for the others."""
    result = np.full(len(times_s), np.nan)
    metrics = {state: metric for metric, state in _STATES.items() if state in _STOPPED}
    for step, state in enumerate(states):
        own = values.get(metrics.get(state, ""))
        if own is None or not own[step] > 0:
            continue
        is_same = step > 0 and states[step - 1] == state and np.isfinite(result[step - 1])
        result[step] = result[step - 1] if is_same else round(1000 * times_s[step] - own[step])
    return result
