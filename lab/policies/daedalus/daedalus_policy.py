"""Daedalus as a policy: monitor, analyse, plan, execute at every evaluation, over what it knows of the job."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lab.policies.daedalus.daedalus_memory import DaedalusMemory
from lab.policies.daedalus.daedalus_options import DaedalusOptions
from lab.policies.daedalus.load_forecast import forecast_by_differences, forecast_by_line
from lab.policies.daedalus.scale_out import ScaleOutOutlook, choose_workers
from lab.policies.job_windows import PolicyWindows
from models.policies.immediate_change import hold, rescale_now
from models.policies.protocol import Schedule, Situation


class Daedalus:
    """The fewest workers that hold the load of the next minutes and recover from the change within a time.

    Deviation: what the paper waits for between two changes was not in the text at hand.

    Args:
        options: the settings.
    """

    def __init__(self, options: DaedalusOptions | None = None) -> None:
        self._options = options or DaedalusOptions()

    def first_memory(self) -> DaedalusMemory:
        """Return the memory of a job that was never decided on."""
        return DaedalusMemory()

    def decide(self, situation: Situation, memory: DaedalusMemory) -> tuple[Schedule, DaedalusMemory]:
        """Return a change now or none."""
        options, at_s, observations = self._options, situation.as_of_s, situation.observations
        new = observations if memory.read_until_s is None else observations.since(memory.read_until_s)
        running = max(situation.parallelism.values())
        known = memory.learn(PolicyWindows.of(situation.graph, new)).meet(running, at_s)
        if not known.lines or not known.load_per_s:
            return hold(situation, "Daedalus knows no capacity yet"), known
        known, ahead = self._forecast(known, observations.window_s)
        outlook = ScaleOutOutlook((known.load_per_s[-1], *ahead), observations.window_s, known.waiting)
        workers = choose_workers(
            known.lines,
            outlook,
            running=running,
            slots_max=situation.slots_max,
            recovery=situation.models.recovery,
            options=options,
        )
        reason = f"{workers} workers hold up to {max(outlook.load_per_s):,.0f} records/s and recover in time"
        since_s = at_s - known.changed_s if known.changed_s is not None else np.inf
        wait_s = options.settle_s if workers > running else max(options.settle_s, options.scale_in_wait_s)
        if workers == running:
            return hold(situation, reason), known
        if since_s < wait_s:
            return hold(situation, f"{reason}; the last change is less than {wait_s} s ago"), known
        return rescale_now(situation, dict.fromkeys(situation.graph.names, workers), reason), replace(
            known, asked_s=at_s
        )

    def _forecast(self, memory: DaedalusMemory, window_s: int) -> tuple[DaedalusMemory, tuple[float, ...]]:
        """Return the load of each window ahead, and the memory that will judge the forecast by differences."""
        steps, load = max(1, round(self._options.forecast_s / window_s)), np.array(memory.load_per_s)
        ahead = tuple(forecast_by_differences(load, steps).tolist())
        known = memory if memory.expected else replace(memory, expected=ahead, windows_since=0)
        if memory.error <= self._options.error_max:
            return known, ahead
        return known, tuple(forecast_by_line(load, steps).tolist())
