"""The bound of one seed of a replay: what no policy can do without, and the schedule of the bound's own choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from include.utc import DAY_S
from lab.replay.bound.best_path import follow_choices
from lab.replay.bound.known_run import KnownRun
from lab.replay.bound.programme import FINE, BoundProgramme, build_ages_s
from lab.replay.bound.window_run import StopState
from lab.replay.conditions import Conditions
from lab.replay.drivers import ScheduleDriver
from lab.replay.pipeline_state import find_first_parallelism
from lab.replay.random_draws import RandomDraws
from lab.replay.scores import SEGMENTS, find_span
from lab.replay.tick_snapshot import TickSnapshot
from lab.replay.workload import Workload
from models.arrays import Floats, Ints

DENSE_SHARE = 1.25
"""The grid is fine up to so many times the oldest age that the bound's own policy meets."""
COARSE_FINE = 60
"""Ages up to the lag target of a run whose bound is wanted soon."""
_DENSE_UNTIL_S = 600.0  # of such a run


@dataclass(frozen=True, slots=True)
class Bound:
    """What is known of a seed in hindsight.

    Attributes:
        least: segment -> cost below which no policy comes.
        schedule: follows the choices that cost hardly more.
    """

    least: Mapping[str, float]
    schedule: ScheduleDriver


def solve_bound(workload: Workload, seed: int, conditions: Conditions) -> Bound:
    """Return the bound of a replay with one seed.

    The bound of a segment that begins later is the least value of any state there, whatever was paid before.

    Args:
        workload: job and load.
        seed: of the draws.
        conditions: of the run.
    """
    spec, cadence = workload.spec, conditions.cadence
    windows = len(workload.rates_per_s) // cadence.steps
    draws = RandomDraws.from_seed(seed, windows, len(spec.operators), cadence, conditions.disturbances)
    known = KnownRun.build(workload, draws, conditions)
    first_slots = int(find_first_parallelism(workload).max())
    day = min(windows, DAY_S // cadence.window_s)
    spans = {segment: find_span(segment, windows, cadence.window_s) for segment in SEGMENTS}
    begins = {segment: span.start for segment, span in spans.items() if 0 < span.start < windows}
    joined = BoundProgramme(known, conditions.prices, joins_ages=True)
    path, oldest_s = follow_choices(joined, joined.solve(), first_slots)
    # The grid is fine where the job is: each window rounds down again.
    ages_s = build_ages_s(known.lag_target_s, FINE, DENSE_SHARE * oldest_s)
    programme = BoundProgramme(known, conditions.prices, joins_ages=False, ages_s=ages_s)
    checkpoint = programme.find_checkpoint(StopState().until_s, 0)
    solution = programme.solve(least_at=tuple(begins.values()))
    least = {segment: solution.least[begin] for segment, begin in begins.items()}
    least["all"] = float(solution.first.up[checkpoint, first_slots - 1, 0])
    least["first_day"] = float(programme.solve(day).first.up[checkpoint, first_slots - 1, 0])
    return Bound(least, _schedule_path(workload, path, first_slots, conditions))


@dataclass(frozen=True, slots=True)
class LeastCost:
    """The bound of a whole run, and what it was solved on.

    Attributes:
        least: cost below which no policy comes.
        schedule: follows the choices that cost hardly more; None where they were not asked for.
        ages_s: (A,) the grid.
    """

    least: float
    schedule: ScheduleDriver | None
    ages_s: Floats


def solve_least(workload: Workload, seed: int, conditions: Conditions, ages_s: Floats | None = None) -> LeastCost:
    """Return the bound of a whole run, on a grid of ages that is coarser than that of :func:`solve_bound`.

    Ages are rounded down, so a coarser grid makes it lower, and a bound all the same.

    Args:
        workload: job and load.
        seed: of the draws.
        conditions: of the run.
        ages_s: the grid of another run with nearly the same capacities; None to find it, with the schedule.
    """
    spec, cadence = workload.spec, conditions.cadence
    windows = len(workload.rates_per_s) // cadence.steps
    draws = RandomDraws.from_seed(seed, windows, len(spec.operators), cadence, conditions.disturbances)
    known = KnownRun.build(workload, draws, conditions)
    first_slots = int(find_first_parallelism(workload).max())
    schedule = None
    if ages_s is None:
        joined = BoundProgramme(known, conditions.prices, joins_ages=True)
        path, oldest_s = follow_choices(joined, joined.solve(), first_slots)
        ages_s = build_ages_s(known.lag_target_s, COARSE_FINE, min(DENSE_SHARE * oldest_s, _DENSE_UNTIL_S))
        schedule = _schedule_path(workload, path, first_slots, conditions)
    programme = BoundProgramme(known, conditions.prices, joins_ages=False, ages_s=ages_s)
    checkpoint = programme.find_checkpoint(StopState().until_s, 0)
    least = float(programme.solve().first.up[checkpoint, first_slots - 1, 0])
    return LeastCost(least, schedule, ages_s)


def _schedule_path(workload: Workload, path: Ints, first_slots: int, conditions: Conditions) -> ScheduleDriver:
    cadence, changes = conditions.cadence, np.flatnonzero(np.diff(path, prepend=first_slots))
    parallelism = np.tile(path[changes, None], (1, len(workload.spec.operators)))
    ahead_s = cadence.round_to_ticks(conditions.disturbances.mean_wait_s)
    times_s = workload.start_s + changes * cadence.window_s
    return ScheduleDriver(times_s, workload.spec.graph().names, parallelism, ahead_s)


@dataclass(frozen=True, slots=True)
class BoundDriver:
    """Follows the schedule of each seed's own bound.

    Attributes:
        bounds: seed -> its bound.
    """

    bounds: Mapping[int, Bound] = field(default_factory=dict)

    def first_memory(self) -> None:
        """Return no memory."""

    def tick(self, snapshot: TickSnapshot, memory: None) -> tuple[Mapping[str, int] | None, None]:
        """Return the configuration of this time."""
        return self.bounds[snapshot.seed].schedule.tick(snapshot, memory)
