"""The programme against enumeration and simulation, and what must hold of it whatever the figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from models.programme.error_shapes import Weights, cumulate, transition, weigh_shapes
from models.programme.horizon import EVALUATIONS, STEPS, LoadLevels, spread_levels
from models.programme.load_outlook import LoadOutlook, LoadReference
from models.programme.problem import CostsToGo, CostTerms, Problem, Sizes
from models.programme.programme import solve_programme
from models.programme.waits import BestChanges
from models.programme.window_tables import (
    GRID,
    WORK_OFF,
    find_places,
    list_ages,
    run_step,
    run_steps,
    weigh_age,
    weigh_ages,
)

NORMAL: Weights = (8, 0, 0, 0, 0, 0, 0, 0)
MIXED: Weights = (4, 0, 3, 0, 0, 0, 0, 1)
TERMS = CostTerms(
    slot_price=0.2 / 32,
    late_price=0.4,
    rescale_price=0.46,
    late_after_s=60.0,
    rescale_s=45.0,
    restart_s=125.0,
    lost_s=35.0,
    failures_per_step=1 / 288,
)


def outlook(load: float = 1e5, sd: float = 0.03, noise: float = 0.02) -> LoadOutlook:
    spread = sd * np.sqrt(np.minimum(np.arange(1, 97), 40))
    return LoadOutlook(
        np.full(96, np.log(load)), spread, noise, 1.0, 0.98, 1.0, MIXED, LoadReference("", 0.0), float("nan")
    )


def sizes(count: int = 14, per_slot: float = 1e4, running: int = 12) -> Sizes:
    slots = np.array([running, *range(5, 5 + 2 * count, 2)], float)
    return Sizes(slots, np.repeat(np.log(per_slot * slots)[:, None], len(STEPS), axis=1), np.full(len(slots), 0.04))


def answer(age_s: float = 0.0, load: float = 1e5, **changed: float) -> CostsToGo:
    return solve_programme(sizes(), spread_levels(outlook(load)), MIXED, age_s, replace(TERMS, **changed)).values


@pytest.mark.parametrize("ratio", [-0.3, -0.04, 0.0, 0.06, 0.4])
@pytest.mark.parametrize(("down_s", "lost_s"), [(0.0, 0.0), (45.0, 0.0), (125.0, 35.0)])
def test_a_step_is_what_a_simulation_of_it_gives(ratio: float, down_s: float, lost_s: float) -> None:
    late, ends = run_step(down_s, lost_s, 60.0)
    ages, place = np.array(list_ages(60.0)), int(find_places(np.array(ratio)))
    rise = 1 - np.exp(-GRID[place])
    for row, begin in enumerate(ages[:7]):
        age, late_s, tick = begin + lost_s, 0.0, 0.25
        for now in np.arange(0.0, 300.0, tick):
            age = max(age + tick * (1.0 if now < down_s else rise), 0.0)
            late_s += tick * (age > 60.0)
        assert late[place, row] == pytest.approx(late_s / 60, abs=0.02)
        assert ends[place, row] @ ages == pytest.approx(age, abs=0.5)


def test_one_age_is_weighed_like_many() -> None:
    ages = np.array(list_ages(60.0))
    every = np.concatenate([ages, np.random.default_rng(3).uniform(0.0, 1.2 * ages[-1], 200)])
    together = weigh_ages(np.minimum(every, ages[-1]), ages)
    assert np.array_equal([weigh_age(one, ages) for one in every.tolist()], together)


def test_a_stop_longer_than_a_step_is_late_for_all_of_it() -> None:
    late, ends = run_step(600.0, 0.0, 60.0)
    assert late[:, 0] == pytest.approx(9.0)  # ten minutes, of which the first one is not late yet
    assert ends[:, 0] @ np.array(list_ages(60.0)) == pytest.approx(600.0)


@pytest.mark.parametrize(
    ("wait_s", "slots_wait_s", "per_taskmanager"),
    [(0.0, 0.0, 1), (240.0, 0.0, 1), (60.0, 120.0, 1), (0.0, 300.0, 1), (30.0, 200.0, 4), (20.0, 400.0, 4)],
)
def test_it_is_what_enumeration_gives_of_a_tiny_problem(
    wait_s: float, slots_wait_s: float, per_taskmanager: int
) -> None:
    chances = (np.array([[0.2, 0.5, 0.3]]), np.array([[0.7, 0.3, 0.0], [0.1, 0.8, 0.1], [0.0, 0.4, 0.6]]))
    levels = LoadLevels((1, 1), np.log(np.array([[0.8e5, 1.0e5, 1.3e5], [0.7e5, 1.0e5, 1.6e5]])), chances)
    few = Sizes(
        np.array([9.0, 11.0, 15.0]), np.log(np.array([[0.9e5] * 2, [1.1e5] * 2, [1.5e5] * 2])), np.full(3, 0.03)
    )
    terms = replace(TERMS, wait_s=wait_s, slots_wait_s=slots_wait_s, taskmanager_slots=per_taskmanager)
    values = solve_programme(few, levels, NORMAL, 45.0, terms).values
    ages = np.array(list_ages(60.0))
    paid = {1: (9, 11, 15), 4: (12, 12, 16)}[per_taskmanager]
    # The transient is coded to the nearest power of e^0.2.
    sd = float(np.exp(np.rint(np.log(0.03) * 5) / 5).round(5))
    most = round(2 * TERMS.rescale_price / TERMS.late_price, 2)
    stay_table = run_steps(0.0, sd, NORMAL, 60.0, (1 / 288, 125.0, 35.0), 1, most)
    go_table = run_steps(45.0, sd, NORMAL, 60.0, (0.0, 125.0, 35.0), 1, most)
    Follow = Callable[[int, int, int, int], float]

    def average(
        step: int, size: int, level: int, age: int, table: tuple[np.ndarray, np.ndarray], follow: Follow
    ) -> float:
        """Return the cost of a step and of what follows, over the load of the step."""
        total = TERMS.slot_price * paid[size] * 5
        for after, chance in enumerate(chances[step][level]):
            place = int(find_places(levels.log_load[step, after] - few.log_capacity[size, step]))
            ends = table[1][place, age]
            later = sum(float(ends[then]) * follow(step + 1, size, after, then) for then in np.flatnonzero(ends))
            total += float(chance) * (TERMS.late_price * float(table[0][place, age]) + later)
        return total

    def find_place(step: int, size: int, level: int) -> int:
        load = float(chances[step][level] @ levels.log_load[step])
        return int(find_places(load - few.log_capacity[size, step]))

    def go(step: int, size: int, others: list[int], level: int, age: int, rest_s: float, waited_s: float) -> float:
        """Return the cost of changing to the cheapest of some sizes once what is waited for is there."""
        if step == 2:
            return TERMS.late_price * WORK_OFF / 60 * max(float(ages[age]) - 60.0, 0.0)
        if rest_s >= 300 and others:

            def wait_on(step: int, size: int, level: int, age: int) -> float:
                return go(step, size, others, level, age, rest_s - 300, waited_s + 300)

            return average(step, size, level, age, stay_table, wait_on)
        late, ends = (one[find_place(step, size, level), age] for one in run_step(0.0, 0.0, 60.0, rest_s))
        best = 0.0
        for then in np.flatnonzero(ends):
            new = TERMS.slot_price * waited_s / 60
            each = [
                average(step, other, level, int(then), go_table, expect) + new * (paid[other] - paid[size])
                for other in others
            ]
            best += float(ends[then]) * min(each, default=1e9)
        return TERMS.late_price * float(late) + best

    def expect(step: int, size: int, level: int, age: int) -> float:
        if step == 2:
            return TERMS.late_price * WORK_OFF / 60 * max(float(ages[age]) - 60.0, 0.0)
        stay = average(step, size, level, age, stay_table, expect)
        missing = [other for other in range(3) if paid[other] > paid[size]]
        rise = go(step, size, missing, level, age, wait_s + slots_wait_s, 0.0)
        fall = go(step, size, [other for other in range(3) if other not in missing], level, age, wait_s, 0.0)
        return min(stay, TERMS.rescale_price + min(rise, fall))

    weights = weigh_ages(np.array(45.0), ages)
    begins = np.flatnonzero(weights)
    assert values.stay == pytest.approx(
        sum(weights[age] * average(0, 0, 0, age, stay_table, expect) for age in begins), rel=1e-5
    )
    for size in range(3):
        waits_s = terms.find_wait_s(9.0, float(few.slots[size]))
        expected = sum(weights[age] * go(0, 0, [size], 0, int(age), waits_s, 0.0) for age in begins)
        assert values.go[size] == pytest.approx(expected + TERMS.rescale_price, rel=1e-5)


@pytest.mark.parametrize("per_taskmanager", [1, 4, 8])
def test_the_cheapest_rise_and_fall_are_those_of_all_sizes(per_taskmanager: int) -> None:
    terms = replace(TERMS, slots_wait_s=180.0, taskmanager_slots=per_taskmanager)
    problem = Problem(sizes(), spread_levels(outlook()), MIXED, terms)
    go = np.random.default_rng(5).random((len(problem.paid_slots), 3, 2), np.float32)
    falls, rises = BestChanges(problem).find_cheapest(go)
    for place, paid in enumerate(problem.paid_slots):
        fits = problem.paid_slots <= paid
        assert np.array_equal(falls[place], go[fits].min(axis=0))
        assert np.array_equal(rises[place], go[~fits].min(axis=0, initial=1e9))


def test_what_piles_up_until_a_change_is_in_the_size_that_is_chosen() -> None:
    def chosen(wait_s: float) -> float:
        return float(sizes().slots[1 + answer(20.0, 1.5e5, wait_s=wait_s).go[1:].argmin()])

    assert chosen(300.0) > chosen(0.0)


def test_costs_rise_with_age_load_and_prices() -> None:
    for low, high in [
        *(({"age_s": before}, {"age_s": after}) for before, after in ((0.0, 70.0), (70.0, 400.0), (400.0, 5000.0))),
        ({"load": 0.9e5}, {"load": 1.1e5}),
        *(({name: 1.0}, {name: 1.5}) for name in ("slot_price", "late_price", "rescale_price")),
    ]:
        before, after = answer(**low), answer(**high)
        assert before.stay <= after.stay + 1e-3
        assert (before.go <= after.go + 1e-3).all()


def test_more_load_and_dearer_lateness_never_choose_less() -> None:
    def chosen(**changed: float) -> float:
        return float(sizes().slots[1:][answer(**changed).go[1:].argmin()])

    assert chosen(load=0.8e5) <= chosen() <= chosen(load=1.4e5)
    assert chosen(late_price=0.1) <= chosen() <= chosen(late_price=4.0)
    assert chosen(slot_price=0.02) <= chosen() <= chosen(slot_price=0.001)


@pytest.mark.parametrize("age_s", [900.0, 3600.0, 20_000.0])
@pytest.mark.parametrize("load", [1e5, 3.5e5, 1e6])
def test_a_hopeless_job_loses_no_slots(age_s: float, load: float) -> None:
    """Beyond the grid, and where the widest size is overloaded as well: at least what the load needs, or all."""
    values = answer(age_s=age_s, load=load)
    best = float(sizes().slots[1:][values.go[1:].argmin()])
    assert best * 1e4 >= min(load, 1e4 * sizes().slots.max())


def test_a_restarting_job_is_enlarged_without_a_stop_of_its_own() -> None:
    down, up = answer(age_s=90.0, down_s=75.0), answer(age_s=90.0)
    wide = int(sizes().slots.argmax())
    assert down.stay - down.go[wide] > up.stay - up.go[wide]


def test_shapes_are_distributions_of_unit_variance() -> None:
    for weights in (NORMAL, MIXED, (0, 0, 0, 0, 0, 0, 4, 4)):
        grid, total = cumulate(weights)
        middle, mass = (grid[1:] + grid[:-1]) / 2, np.diff(total)
        assert mass.min() >= 0
        assert mass @ middle == pytest.approx(0.0, abs=0.05)
        assert mass @ middle**2 == pytest.approx(1.0, abs=0.3)
        chance = transition(weights, (-2.0, -0.5, 0.5, 2.0, 6.0), 0.8)
        assert chance.sum(axis=1) == pytest.approx(1.0)


def test_a_heavy_tail_is_never_given_up() -> None:
    certain = np.zeros(8)
    certain[0] = 5000.0  # as if weeks of errors had been normal
    weights = weigh_shapes(certain)
    assert sum(weights) == 8
    assert weights[7] >= 1


def test_a_heavy_tail_is_kept_where_five_other_shapes_have_larger_remainders() -> None:
    eighths = np.array([2.84, 1.84, 0.84, 0.84, 0.84])  # 7.2 of 8; the heavy tail has 0.8, the least remainder
    weights = weigh_shapes(np.array([*np.log(eighths), -5000.0, -5000.0, -5000.0]))
    assert weights == (2, 2, 1, 1, 1, 0, 0, 1)


def test_the_horizon_is_seven_hours() -> None:
    assert sum(STEPS) == EVALUATIONS == 86
