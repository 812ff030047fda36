"""DS2 as a policy over observed windows: each window is one policy interval of its scaling manager."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from include.domain.graph import JobGraph
from lab.policies.described_changes import describe_changes
from lab.policies.ds2.ds2_memory import ManagerState
from lab.policies.ds2.ds2_options import ManagerOptions
from lab.policies.ds2.optimum import OperatorRates
from lab.policies.ds2.scaling_manager import ManagerDecision, PolicyInterval, advance
from models.arrays import Ints
from models.policies.immediate_change import hold, rescale_now
from models.policies.observations import MEASURES, Observations
from models.policies.protocol import Schedule, Situation
from models.policies.window_means import hides_demand, mean_per_operator
from models.scheduling.need import upper_limits
from models.topology import measure_edge_ratios

_LEAST_FREE_SHARE = 1e-3  # a source that is held up all the time takes in nothing: its rate is not divided by nothing
# Windows that overlap a restart are left out; the one after it still holds the catching up.
DEFAULT = ManagerOptions(warm_up_intervals=1)

_WHY = {
    "between intervals": "DS2 waits for the end of its policy interval",
    "warm-up": "DS2 ignores the first intervals after a reconfiguration",
    "activation": "DS2 waits for as many decisions as its activation time asks for",
    "minor": "DS2 finds the running parallelism right, or off by a minor change only",
    "rejected before": "DS2 asks for a configuration that it rolled back at this target rate",
    "limit": "DS2 stopped scaling: its last reconfigurations improved almost nothing",
}


class Ds2:
    """DS2's scaling manager.

    Deviation: a policy interval is no shorter than a window.  Of several intervals that came in since the last decision
    only the latest can lead to a reconfiguration; the others count towards warm-up and activation.  Windows that a
    restart disturbed, or that show another parallelism than the running one, are left out (DS2 clears its metrics at a
    rescale).

    The target of a source that is held up by backpressure, and of which nobody tells what arrives, is its true
    processing rate, as in DS2 without given source rates: what it would take in if nothing held it up.

    Args:
        options: the manager's settings; with shared workers the whole job has one number of workers.
    """

    def __init__(self, options: ManagerOptions = DEFAULT) -> None:
        self.options = options

    def first_memory(self) -> ManagerState:
        """Return the memory of a job that was never decided on."""
        return ManagerState()

    def decide(self, situation: Situation, memory: ManagerState) -> tuple[Schedule, ManagerState]:
        """Return the manager's step at the end of the latest window, and its memory.

        Raises:
            DemandError: the forecast, from which the expectation is made, cannot be used.
        """
        fresh = _usable(situation, memory)
        if not len(fresh):
            return hold(situation, "DS2 has no new undisturbed window of the running parallelism"), memory
        options = replace(self.options, policy_interval_s=max(self.options.policy_interval_s, float(fresh.window_s)))
        ceiling = dict(
            zip(situation.graph.names, upper_limits(situation.graph, situation.slots_max).tolist(), strict=True)
        )
        step = ManagerDecision("between intervals")
        intervals = _divide(fresh, memory.last_call_s, options.policy_interval_s)
        for number, windows in enumerate(intervals):
            interval = interval_of(situation.graph, _average(windows), 0, situation.parallelism)
            is_latest = number == len(intervals) - 1
            step, memory = advance(options, situation.graph, interval, memory, ceiling=ceiling, is_latest=is_latest)
        if step.parallelism is None:
            return hold(situation, _WHY[step.outcome]), memory
        return rescale_now(situation, step.parallelism, _sentence(situation, step)), memory


def interval_of(graph: JobGraph, observations: Observations, row: int, running: Mapping[str, int]) -> PolicyInterval:
    """Return one window as a policy interval.

    Args:
        graph: the job, in whose order the observations are.
        observations: the windows.
        row: which of them.
        running: operator -> parallelism, for an operator that the window does not show.
    """
    parallelism = np.where(
        observations.parallelism[row] > 0, observations.parallelism[row], [running[name] for name in graph.names]
    )
    target, taken = observations.target_data_rate_per_s[row], observations.processing_rate_per_s[row]
    rates = {
        name: OperatorRates(
            int(parallelism[place]),
            float(observations.true_processing_rate_per_s[row, place]),
            float(observations.true_output_rate_per_s[row, place]),
        )
        for place, name in enumerate(graph.names)
    }
    achieved, backlog = dict[str, float](), dict[str, float]()
    hidden = bool(hides_demand(observations, graph)[row])
    for name in graph.sources:
        place = graph.position(name)
        wanted = float(target[place])
        if not math.isfinite(wanted):
            wanted = _unhindered_per_s(observations, row, place) if hidden else float(taken[place])
        rates[name] = OperatorRates(rates[name].parallelism, math.nan, wanted)
        achieved[name] = float(taken[place])
        pending = float(observations.pending_records[row, place])
        backlog[name] = pending if math.isfinite(pending) else 0.0
    window = observations.rows(np.array([row]))
    ratios = measure_edge_ratios(graph, window.processing_rate_per_s, window.output_rate_per_s, window.idle_share)
    end_s = float(observations.window_start_s[row] + observations.window_s)
    return PolicyInterval(end_s, rates, achieved, backlog, ratios)


def _unhindered_per_s(observations: Observations, row: int, place: int) -> float:
    """Return what a source would take in if no backpressure held it up, Eq. 1 of DS2.

    Where its useful time is not measured it is taken to be all the time in which it was not held up.
    """
    true = float(observations.true_processing_rate_per_s[row, place])
    taken, held_up = observations.processing_rate_per_s[row, place], observations.backpressured_share[row, place]
    free = 1.0 - min(float(held_up), 1.0) if math.isfinite(held_up) else 1.0
    return true if math.isfinite(true) else float(taken) / max(free, _LEAST_FREE_SHARE)


def _divide(fresh: Observations, since_s: float | None, interval_s: float) -> list[Observations]:
    """Return the windows of each policy interval that is over, oldest first."""
    result, first = list[Observations](), 0
    for row, began_s in enumerate(fresh.window_start_s.tolist()):
        end_s = float(began_s + fresh.window_s)
        if since_s is None or end_s - since_s >= interval_s:
            result.append(fresh.rows(np.arange(first, row + 1)))
            first, since_s = row + 1, end_s
    return result


def _average(windows: Observations) -> Observations:
    """Return one window with the means of several, which ends with the last of them and has its backlog."""
    if len(windows) == 1:
        return windows
    last = windows.rows(np.array([len(windows) - 1]))
    means: dict[str, Any] = {name: mean_per_operator(getattr(windows, name))[None] for name in MEASURES}
    return replace(last, **means | {"pending_records": last.pending_records})


def _usable(situation: Situation, memory: ManagerState) -> Observations:
    """Return the windows that the manager has not read and may use."""
    observations = situation.observations
    fresh = observations if memory.last_call_s is None else observations.since(memory.last_call_s)
    running = np.array([situation.parallelism[name] for name in situation.graph.names], np.int64)
    as_now: Ints = np.flatnonzero(~fresh.disturbed & _shows(fresh, running))
    return fresh.rows(as_now)


def _shows(observations: Observations, running: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return (W,) whether a window shows no other parallelism than the running one."""
    if not len(observations):
        return np.zeros(0, np.bool_)
    return np.asarray(((observations.parallelism == running) | (observations.parallelism < 1)).all(axis=1))


def _sentence(situation: Situation, step: ManagerDecision) -> str:
    changes = describe_changes(situation, step.parallelism or {})
    if step.outcome == "roll-back":
        return f"DS2 rolls back a reconfiguration after which the job achieved less of its target rate: {changes}"
    return f"DS2's true rates ask for another parallelism: {changes}"
