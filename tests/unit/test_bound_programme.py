"""The bound of a replay: against every schedule of tiny problems through the real engine, and by its properties."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replayed_line import MONDAY, workload

from lab.replay.bound.known_run import KnownRun
from lab.replay.bound.programme import BoundProgramme
from lab.replay.bound.solve_bound import Bound, BoundDriver, solve_bound
from lab.replay.candidate_policies import CandidatePolicy, build_candidates
from lab.replay.conditions import AT_ONCE, Conditions, Disturbances, Prices
from lab.replay.drivers import ScheduleDriver
from lab.replay.random_draws import RandomDraws
from lab.replay.replay_run import ReplayResult, ReplayRun
from lab.replay.scores import compute_score
from lab.replay.workload import Workload
from lab.simulation.spec import JobSpec, OperatorSpec
from models.arrays import Floats

SLOTS, WINDOWS = 3, 4
TINY = JobSpec(
    "tiny",
    (
        OperatorSpec("work", (), 100.0, contention=0.05),
        OperatorSpec("sink", ("work",), 1000.0, contention=0.0, selectivity=0.0),
    ),
    slots_max=SLOTS,
)
TWO = JobSpec(
    "two",
    (
        OperatorSpec("left", (), 400.0, contention=0.0),
        OperatorSpec("right", (), 400.0, contention=0.0),
        OperatorSpec("join", ("left", "right"), 100.0, contention=0.05, selectivity=0.0),
    ),
    slots_max=SLOTS,
)
# The sink has enough with the one subtask that it begins with; from some window on it has two, so that a rescale need
# not change the slots.
SCHEDULES = list(itertools.product(itertools.product(range(1, SLOTS + 1), repeat=WINDOWS), range(WINDOWS + 1)))


def tiny(means_per_s: tuple[float, ...], spec: JobSpec = TINY) -> Workload:
    steps = np.repeat(means_per_s, 30)[:, None]
    shares = [1.0] if len(spec.source_names) == 1 else [0.7, 0.3]
    return Workload(spec, MONDAY, 10, steps * shares)


def conditions(*, failure_at_s: tuple[float, ...] = (), stop_s: tuple[float, float] = (30.0, 60.0)) -> Conditions:
    return Conditions(disturbances=replace(AT_ONCE, failure_at_s=failure_at_s, rescale_downtime_s=stop_s))


def costs(result: ReplayResult, slots_max: int, prices: Prices) -> Floats:
    whole = slice(0, len(result.ledger.slots))
    scores = [
        compute_score(result.ledger, row, whole, window_s=300, slots_max=slots_max, prices=prices)
        for row in range(len(result.names))
    ]
    return np.array([score.cost for score in scores])


def find_cheapest(load: Workload, known: Conditions) -> float:
    """Return the least cost of all schedules, each run by the engine."""
    names = load.spec.graph().names
    times_s = MONDAY + 300 * np.arange(WINDOWS)
    drivers = []
    for path, changed_from in SCHEDULES:
        parallelism = np.repeat(np.array(path)[:, None], len(names), axis=1)
        parallelism[:, -1] = 1 + (np.arange(WINDOWS) >= changed_from)
        drivers.append(ScheduleDriver(times_s, names, parallelism))
    candidates = [CandidatePolicy(str(place), driver, True) for place, driver in enumerate(drivers)]
    return float(costs(ReplayRun(load, candidates, (0,), known).run(), SLOTS, known.prices).min())


LOADS = [(80.0, 230.0, 90.0, 90.0), (150.0, 260.0, 60.0, 60.0), (90.0, 110.0, 180.0, 60.0)]
CASES = [
    conditions(),
    conditions(failure_at_s=(610.0,)),
    conditions(failure_at_s=(331.0, 890.0)),  # within a rescale that begins with the window; one that lasts on
    conditions(failure_at_s=(320.0,), stop_s=(400.0, 500.0)),  # rescales over more than a window
]


@pytest.mark.parametrize("known", CASES)
@pytest.mark.parametrize("means_per_s", LOADS)
def test_the_bound_is_the_cost_of_the_best_of_all_schedules(means_per_s: tuple[float, ...], known: Conditions) -> None:
    load = tiny(means_per_s)
    bound, cheapest = solve_bound(load, 0, known).least["all"], find_cheapest(load, known)
    assert bound <= cheapest + 1e-9
    assert bound >= 0.97 * cheapest


@pytest.mark.parametrize("slots_wait_s", [0.0, 600.0])
@pytest.mark.parametrize("means_per_s", LOADS)
def test_the_bound_knows_the_times_that_changes_take(means_per_s: tuple[float, ...], slots_wait_s: float) -> None:
    """Changes that come within windows may come cheaper than those that come with them, by no more than half a percent.

    Slots that take ten minutes are asked for, and paid, before the load that needs them.
    """
    known = Conditions(disturbances=Disturbances(failure_at_s=(), slots_wait_s=slots_wait_s))
    load = tiny(means_per_s)
    bound, cheapest = solve_bound(load, 0, known).least["all"], find_cheapest(load, known)
    assert (0.85 if slots_wait_s == 0 else 0.9 - 1e-9) * cheapest <= bound <= 1.005 * cheapest
    at_once = solve_bound(load, 0, Conditions(disturbances=Disturbances(failure_at_s=()))).least["all"]
    assert bound == at_once if slots_wait_s == 0 else bound >= at_once


def test_of_several_sources_the_bound_is_not_above_any_schedule() -> None:
    known = conditions(failure_at_s=(700.0,))
    load = tiny(LOADS[0], TWO)
    bound, cheapest = solve_bound(load, 0, known).least["all"], find_cheapest(load, known)
    assert 0.9 * cheapest <= bound <= cheapest + 1e-9


def test_a_load_that_one_slot_carries_costs_one_slot() -> None:
    quiet = replace(conditions(), disturbances=replace(Disturbances(), failures_per_day=0, capacity_noise=0.0))
    least = solve_bound(tiny((50.0,) * WINDOWS), 0, quiet).least
    assert least["all"] == pytest.approx(WINDOWS * 5 * 0.2 / SLOTS)
    assert least["all"] == least["first_day"]


@cache
def solve_line(scale: float) -> float:
    load = workload(0.15)
    known = Conditions()
    scaled = replace(load, rates_per_s=scale * load.rates_per_s)
    draws = RandomDraws.from_seed(3, 43, 3, known.cadence, known.disturbances)
    programme = BoundProgramme(KnownRun.build(scaled, draws, known), known.prices, joins_ages=False)
    return float(programme.solve().first.up[0, 7, 0])


@settings(max_examples=6, deadline=None)
@given(st.sampled_from((0.7, 0.85, 1.0, 1.15)), st.sampled_from((0.7, 0.85, 1.0, 1.15)))
def test_more_load_never_costs_less(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert solve_line(low) <= solve_line(high) + 1e-9


def test_values_grow_with_the_age_of_the_oldest_record_and_of_the_checkpoint() -> None:
    known = conditions(failure_at_s=(800.0,))
    load = tiny(LOADS[2])
    draws = RandomDraws.from_seed(0, WINDOWS, 2, known.cadence, known.disturbances)
    up = BoundProgramme(KnownRun.build(load, draws, known), known.prices, joins_ages=False).solve().first.up
    assert (np.diff(up, axis=2) >= -1e-9).all()
    assert (np.diff(up, axis=0) >= -1e-9).all()
    assert up[-1].max() > up[0].min()


def test_no_policy_is_below_the_bound_and_its_own_is_just_above() -> None:
    known, load = Conditions(disturbances=AT_ONCE), workload(0.25)
    bounds: dict[int, Bound] = {seed: solve_bound(load, seed, known) for seed in (1,)}
    others = build_candidates(["ds2", "clairvoyant"], load, known)
    own = CandidatePolicy("bound", BoundDriver(bounds), True)
    result = ReplayRun(load, [own, *others], (1,), known).run()
    least = np.array([bounds[seed].least["all"] for seed in result.seeds])
    ratios = costs(result, load.spec.slots_max, known.prices) / least
    assert (ratios >= 1.0 - 1e-9).all()
    assert ratios[0] <= 1.015
    assert ratios[1:].min() > ratios[0]
