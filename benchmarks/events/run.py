"""An event on a tuning trace, replayed with what people said of it beforehand and without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.replay.replay_jobs import read_job
from benchmarks.replay.replay_traces import BIN_S, Trace
from include.utc import DAY_S, HOUR_S
from lab.replay.candidate_policies import build_candidates
from lab.replay.conditions import Conditions
from lab.replay.replay_run import ReplayRun
from lab.replay.scores import Score, compute_score
from lab.replay.workload import Workload
from models.arrays import Bools
from models.forecasting.known_events import KnownEvent

JOB = "wordcount"
AROUND_H = 3.0  # before and after an event, within which what it costs is counted
WIDTH = 1.25  # of the range that people give, as where the settings have none


@dataclass(frozen=True, slots=True)
class Occasion:
    """A load that is so many times itself for some hours.

    Attributes:
        day, hour: when it begins, counted from the beginning of the trace.
        hours: how long it lasts.
        most: the largest factor that is compared; its peak needs 70% of the slots.
    """

    day: int = 4
    hour: float = 10.0
    hours: float = 3.0
    most: float = 3.0

    def begin_s(self, start_s: int) -> float:
        """Return when it begins, epoch seconds, on a load that begins at a time."""
        return start_s + self.day * DAY_S + self.hour * HOUR_S

    def find_during(self, start_s: int, step_s: int, steps: int) -> Bools:
        """Return (T,) which steps of a load lie in it."""
        since_s = start_s + step_s * np.arange(steps) - self.begin_s(start_s)
        return np.asarray((since_s >= 0) & (since_s < self.hours * HOUR_S))

    def build_workload(self, trace: Trace, comes: float, step_s: int) -> Workload:
        """Return the load of a trace with the occasion, of which some factor comes.

        The load is scaled for the largest factor, whatever comes, so that all runs of a trace have the same slots.
        """
        during = self.find_during(trace.start_s, BIN_S, len(trace.values))
        largest = replace(trace, values=np.where(during, self.most * trace.values, trace.values))
        whole = read_job(JOB).build_workload(largest, step_s)
        inside = self.find_during(trace.start_s, step_s, len(whole.rates_per_s))
        return replace(whole, rates_per_s=whole.rates_per_s * np.where(inside, comes / self.most, 1.0)[:, None])

    def announce(self, start_s: int, factor: float) -> KnownEvent:
        """Return what people say of it beforehand."""
        begin_s = self.begin_s(start_s)
        return KnownEvent("event", begin_s, begin_s + self.hours * HOUR_S, factor / WIDTH, factor, factor * WIDTH)


def replay_occasion(
    trace: Trace,
    occasion: Occasion,
    policies: Sequence[str],
    seeds: Sequence[int],
    *,
    comes: float,
    announced: float | None,
) -> Mapping[tuple[str, int], Score]:
    """Return (policy, seed) -> what the hours around the occasion took.

    Args:
        trace: without it.
        occasion: when it is.
        policies: names of candidates.
        seeds: of each.
        comes: the factor that comes; 1 for nothing.
        announced: the factor that people said would come; None where they said nothing.
    """
    cadence = Conditions().cadence
    workload = occasion.build_workload(trace, comes, cadence.step_s)
    sources = workload.spec.graph().sources
    known = () if announced is None else (occasion.announce(trace.start_s, announced),)
    conditions = Conditions(events=dict.fromkeys(sources, known))
    result = ReplayRun(workload, build_candidates(policies, workload, conditions), seeds, conditions).run()
    begin_s = occasion.begin_s(trace.start_s) - trace.start_s
    first = round((begin_s - AROUND_H * HOUR_S) / cadence.window_s)
    span = slice(first, first + round((occasion.hours + 2 * AROUND_H) * HOUR_S / cadence.window_s))
    return {
        (name, seed): compute_score(
            result.ledger,
            row,
            span,
            window_s=cadence.window_s,
            slots_max=workload.spec.slots_max,
            prices=conditions.prices,
        )
        for row, (name, seed) in enumerate(zip(result.names, result.seeds, strict=True))
    }
