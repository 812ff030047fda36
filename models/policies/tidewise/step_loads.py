"""The loads of a job's sources by steps of the law of its load."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.domain.graph import JobGraph
from models.observing.windows import BACKPRESSURED_ABOVE
from models.policies.observations import Observations
from models.programme.load_paths import STEP_S


@dataclass(frozen=True, slots=True)
class StepLoad:
    """The load of a step.

    Attributes:
        at: number of the step.
        load_per_s: all sources together.
        is_least: backpressure hid the rest.
    """

    at: int
    load_per_s: float
    is_least: bool


def list_step_loads(graph: JobGraph, windows: Observations, since: int) -> list[StepLoad]:
    """Return the loads of the steps after ``since`` that have ended, oldest first.

    A window in which one source shows neither what arrives nor what it takes in tells nothing.
    """
    if not len(windows):
        return []
    sources = [graph.position(name) for name in graph.sources]
    arrived, taken = windows.target_data_rate_per_s[:, sources], windows.processing_rate_per_s[:, sources]
    with np.errstate(invalid="ignore"):
        held_up = windows.backpressured_share[:, sources] > BACKPRESSURED_ABOVE
    hidden = np.asarray(np.any(np.isnan(arrived) & held_up, axis=1))
    load = np.where(np.isfinite(arrived), arrived, taken).sum(axis=1)
    ends_s = windows.window_start_s + windows.window_s
    steps = (ends_s - 1) // STEP_S
    ended = int(ends_s[-1]) // STEP_S - 1
    result = []
    for at in np.unique(steps[np.isfinite(load) & (steps > since) & (steps <= ended)]).tolist():
        rows = np.flatnonzero((steps == at) & np.isfinite(load))
        result.append(StepLoad(at, float(load[rows].mean()), bool(hidden[rows].any())))
    return result
