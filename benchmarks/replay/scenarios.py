"""Loads, disturbances and times that changes take, made from a trace: ``--scenario NAME``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.replay.replay_cases import ReplayCase
from benchmarks.replay.replay_jobs import PEAK_SHARE
from benchmarks.replay.replay_traces import DAY_BINS, Trace
from lab.replay.conditions import AT_ONCE, Disturbances
from models.arrays import Floats

HOUR_BINS = DAY_BINS // 24
NEW_JOB_HISTORY_H, NEW_JOB_H = 2, 24
_NOTICED_S = Disturbances().failure_noticed_s


def keep_load(values: Floats) -> Floats:
    """Return the load as it is."""
    return values


def change_level(values: Floats) -> Floats:
    """Return a load that rises to 1.8 times itself in the middle, from one bin to the next."""
    changed = values.copy()
    changed[len(values) // 2 :] *= 1.8
    return changed


def grow(values: Floats) -> Floats:
    """Return a load that grows steadily to three times itself."""
    return np.asarray(values * np.linspace(1.0, 3.0, len(values)))


def add_flash_crowds(values: Floats) -> Floats:
    """Return a load with a crowd of 45 minutes every second day, at another hour each, up to 1.5 times the peak.

    A crowd comes within a quarter of an hour and leaves within half an hour.
    """
    shape = np.concatenate([np.linspace(0.0, 1.0, 4)[1:], np.ones(3), np.linspace(1.0, 0.0, 6)])
    crowded, height = values.copy(), 1.5 * float(values.max())
    for day in range(1, len(values) // DAY_BINS, 2):
        first = day * DAY_BINS + (7 * day % 24) * HOUR_BINS
        span = slice(first, first + len(shape))
        part = crowded[span]
        crowded[span] = part + shape[: len(part)] * np.maximum(height - part, 0.0)
    return crowded


def cut_new_job(values: Floats) -> Floats:
    """Return a day and two hours from two hours before a morning: what a job is like that was started just now."""
    first = 6 * HOUR_BINS
    return values[first : first + (NEW_JOB_HISTORY_H + NEW_JOB_H) * HOUR_BINS]


def _downtimes(seconds: float) -> Disturbances:
    # A failure is noticed first; then the job comes back as after a rescale.
    return replace(
        Disturbances(),
        rescale_downtime_s=(seconds, seconds),
        failure_downtime_s=_NOTICED_S + seconds,
        failure_noticed_s=_NOTICED_S,
    )


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is made of a trace, and what happens to the job.

    Attributes:
        about: one line.
        load: (n,) values of a trace -> those of the scenario.
        peak_share: of the slots that the peak needs.
        disturbances: of the run.
    """

    about: str
    load: Callable[[Floats], Floats] = keep_load
    peak_share: float = PEAK_SHARE
    disturbances: Disturbances = field(default_factory=Disturbances)

    def apply(self, name: str, trace: Trace) -> Trace:
        """Return the trace of the scenario, named after both."""
        return Trace(f"{trace.name}+{name}", trace.start_s, self.load(trace.values), (*trace.notes, self.about))


SCENARIOS: Mapping[str, Scenario] = {
    "level_change": Scenario("the load rises to 1.8 times itself in the middle of the trace", change_level),
    "growth": Scenario("the load grows steadily to three times itself", grow),
    "flash_crowd": Scenario("a crowd of 1.5 times the peak every second day, for 45 minutes", add_flash_crowds),
    "saturation": Scenario("the peak needs 110% of the slots", peak_share=1.1),
    "new_job": Scenario("a job that was started two hours before a day's busy hours", cut_new_job),
    "failures_0": Scenario("no failure", disturbances=replace(Disturbances(), failures_per_day=0)),
    "failures_1": Scenario("a failure a day, as in the other tables"),
    "failures_5": Scenario("five failures a day", disturbances=replace(Disturbances(), failures_per_day=5)),
    "downtime_10s": Scenario("every rescale and restart takes 10 s", disturbances=_downtimes(10.0)),
    "downtime_45s": Scenario("every rescale and restart takes 45 s", disturbances=_downtimes(45.0)),
    "downtime_10min": Scenario("every rescale and restart takes 10 minutes", disturbances=_downtimes(600.0)),
    "at_once": Scenario("a rescale waits for nothing and takes 30 to 60 s", disturbances=AT_ONCE),
    **{
        f"slots_{wait_s}s": Scenario(
            f"slots that are missing come {wait_s} s after they are asked for",
            disturbances=Disturbances(slots_wait_s=float(wait_s)),
        )
        for wait_s in (0, 60, 180, 600)
    },
    **{
        f"checkpoint_{interval_s}s": Scenario(
            f"a checkpoint every {interval_s} s, which a rescale waits for",
            disturbances=Disturbances(checkpoint_interval_s=float(interval_s)),
        )
        for interval_s in (60, 180)
    },
    **{
        f"taskmanagers_{slots}": Scenario(
            f"whole TaskManagers of {slots} slots are paid", disturbances=Disturbances(taskmanager_slots=slots)
        )
        for slots in (4, 8)
    },
}
"""Name -> scenario."""


def apply_scenario(case: ReplayCase, name: str) -> ReplayCase:
    """Return a case under a scenario."""
    scenario = SCENARIOS[name]
    conditions = replace(case.conditions, disturbances=scenario.disturbances)
    trace = scenario.apply(name, case.trace)
    return replace(case, trace=trace, conditions=conditions, peak_share=scenario.peak_share)
