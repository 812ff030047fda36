"""The nominal trajectory: its first decision is the programme's, its bands are where that would decide the same."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from models.programme.horizon import STEPS, spread_levels
from models.programme.load_outlook import LoadOutlook, LoadReference
from models.programme.problem import CostTerms, Sizes
from models.programme.programme import solve_programme
from models.programme.trajectory import DAY_STEPS, SolvedDay, Trajectory

SHAPE = (0, 0, 7, 0, 0, 0, 0, 1)
SLOTS = np.array([8.0, 4.0, 6.0, 10.0, 12.0])
TERMS = CostTerms(0.2 / 32, 0.4, 0.46, 60.0, 40.0, 60.0, 30.0, 1 / 288)
CAPACITY = 1000.0


def outlook(loads: np.ndarray) -> LoadOutlook:
    """Return an outlook of a day that follows a forecast's shape, with a spread of 4% to 12%."""
    sd = 0.04 + 0.08 * np.minimum(np.arange(288) / 96, 1.0)
    return LoadOutlook(np.log(loads), sd, 0.02, 1.0, 0.98, 0.0, SHAPE, LoadReference("champion", 1.0), 0.05)


def sizes(running: float, steps: tuple[int, ...]) -> Sizes:
    order = np.argsort(running != SLOTS, kind="stable")
    slots = SLOTS[order]
    return Sizes(slots, np.log(np.repeat(CAPACITY * slots[:, None], len(steps), axis=1)), np.full(len(slots), 0.03))


def follow(running: float, loads: np.ndarray, age_s: float = 0.0, **changed: float) -> Trajectory:
    """Return the trajectory of a day under other terms."""
    seen, rows = outlook(loads), sizes(running, DAY_STEPS)
    terms = replace(TERMS, **changed)
    return SolvedDay.solve(rows, spread_levels(seen, DAY_STEPS), seen, terms, age_s).follow(0.0)


def day(
    running: float, loads: np.ndarray, age_s: float = 0.0, *, avoids_lateness: bool = False
) -> list[tuple[int, float, float]]:
    """Return (evaluation, slots before, slots after) of the steps of a day."""
    seen, rows = outlook(loads), sizes(running, DAY_STEPS)
    levels = spread_levels(seen, DAY_STEPS)
    made = SolvedDay.solve(rows, levels, seen, TERMS, age_s).follow(0.0, avoids_lateness=avoids_lateness)
    return [(one.first, rows.slots[one.place_from], rows.slots[one.place_to]) for one in made.turns]


def decide(running: float, loads: np.ndarray) -> float:
    """Return the slots that an evaluation chooses."""
    seen, rows = outlook(loads), sizes(running, STEPS)
    values = solve_programme(rows, spread_levels(seen), SHAPE, 0.0, TERMS).values
    best = 1 + int(values.go[1:].argmin())
    return float(rows.slots[best] if values.go[best] < values.stay else running)


def test_the_steps_of_a_day_cover_it() -> None:
    assert sum(DAY_STEPS) == 288


@pytest.mark.parametrize("load", [2000.0, 4800.0, 7000.0, 7900.0, 9500.0])
def test_its_first_decision_is_that_of_an_evaluation(load: float) -> None:
    flat = np.full(288, load)
    steps = day(8.0, flat)
    now = steps[0][2] if steps and steps[0][0] == 0 else 8.0
    assert now == decide(8.0, flat)


def test_a_ramp_is_met_before_it_comes_and_left_after_it() -> None:
    loads = np.full(288, 3500.0)
    loads[100:180] = 9000.0
    steps = day(6.0, loads)
    up = next(one for one in steps if one[2] > one[1])
    down = next(one for one in steps if one[0] > up[0] and one[2] < one[1])
    assert 90 <= up[0] <= 100
    assert up[2] >= 10
    assert 180 <= down[0] <= 188
    assert down[2] <= 6
    assert [before for _, before, _ in steps[1:]] == [after for _, _, after in steps[:-1]]


@pytest.mark.parametrize("begin", [60, 62, 150])
def test_a_plan_is_not_late_where_the_load_that_is_expected_tells(begin: int) -> None:
    """A little above the capacity may be waited for, on the expected load it is two rescales instead of one."""
    loads = np.full(288, 7000.0)
    loads[begin:] = 8500.0
    (late, *_, last) = day(8.0, loads)
    assert late[0] > begin
    assert (late[2], last[2]) == (12.0, 10.0)
    ((first, *slots),) = day(8.0, loads, avoids_lateness=True)
    assert begin - 4 < first <= begin
    assert slots == [8.0, 10.0]


@pytest.mark.parametrize("slots_wait_s", [0.0, 600.0, 900.0])
def test_a_rise_is_asked_for_before_its_load_by_what_its_slots_take_to_come(slots_wait_s: float) -> None:
    """Its band is of the load of that time, so that it is not held back because what it precedes is not there yet."""
    loads = np.full(288, 3500.0)
    loads[30:60] = 9000.0
    made = follow(4.0, loads, slots_wait_s=slots_wait_s)
    up, down = made.turns[0], made.turns[-1]
    assert 30 - slots_wait_s / 300 - 2 <= up.first <= 30 - slots_wait_s / 300
    assert (up.wait_s, down.wait_s) == (slots_wait_s, 0.0)
    if slots_wait_s:
        assert up.band.load_low_per_s < 3500.0 < up.band.load_high_per_s
    assert 60 <= down.first <= 64


def test_within_its_band_the_programme_decides_the_same() -> None:
    loads = np.full(288, 3500.0)
    loads[6:] = 9000.0
    seen, rows = outlook(loads), sizes(6.0, DAY_STEPS)
    made = SolvedDay.solve(rows, spread_levels(seen, DAY_STEPS), seen, TERMS, 0.0).follow(0.0)
    turn = made.turns[0]
    target, band = rows.slots[turn.place_to], turn.band
    assert band.load_low_per_s < loads[turn.first] < band.load_high_per_s
    assert band.age_low_s == 0.0

    def decide_at(load_per_s: float) -> float:
        """Return what an evaluation decides when the step is due and the load is off by a factor."""
        return decide(6.0, np.pad(loads[turn.first :], (0, turn.first), mode="edge") * load_per_s / loads[turn.first])

    for share in (0.2, 0.5, 0.8):
        inside = band.load_low_per_s + share * (
            min(band.load_high_per_s, 1.5 * band.load_low_per_s) - band.load_low_per_s
        )
        assert decide_at(inside) == target
    assert decide_at(0.85 * band.load_low_per_s) != target
    if math.isfinite(band.load_high_per_s):
        assert decide_at(1.15 * band.load_high_per_s) != target


def test_a_tolerance_widens_the_band() -> None:
    loads = np.full(288, 3500.0)
    loads[40:] = 9000.0
    seen, rows = outlook(loads), sizes(6.0, DAY_STEPS)
    levels = spread_levels(seen, DAY_STEPS)
    solved = SolvedDay.solve(rows, levels, seen, TERMS, 0.0)
    narrow, wide = (solved.follow(one).turns[0].band for one in (0.0, 0.06))
    assert wide.load_low_per_s <= narrow.load_low_per_s
    assert wide.load_high_per_s > narrow.load_high_per_s
    assert wide.age_high_s >= narrow.age_high_s


def test_a_backlog_is_worked_off_with_more_and_then_given_back() -> None:
    steps = day(8.0, np.full(288, 7600.0), age_s=900.0)
    assert steps[0][0] == 0
    assert steps[0][2] > 8.0
    assert min(after for _, _, after in steps[1:]) < steps[0][2]


def test_an_idle_job_without_a_change_has_no_step() -> None:
    assert not day(4.0, np.full(288, 2000.0))
