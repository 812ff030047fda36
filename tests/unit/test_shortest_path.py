"""The programme is exact, its candidates cover what they say, its costs follow the load, prices keep a budget."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overload import overload_probability
from scipy.special import ndtri

from include.domain.graph import JobGraph, Operator
from lab.policies.spread_selectivity import spread_selectivity
from lab.scheduling.cost_model import CurrentState, compute_costs, headroom, late_time_s
from lab.scheduling.planner_settings import PlannerCosts, ReactiveSettings
from lab.scheduling.planner_settings import PlannerSettings as Options
from models.bundle.job_models import CapacityCurve, RecoveryModel
from models.scheduling.candidates import list_candidates
from models.scheduling.demand import LEVELS, SourceForecast, demand
from models.scheduling.expectation import Outlook
from models.scheduling.need import job_bounds, upper_limits
from models.scheduling.shortest_path import drop_dominated, find_shortest_paths
from models.scheduling.slot_prices import SlotDemand, SlotPrices, allocate

GRAPH = JobGraph.from_operators((Operator("src"), Operator("map", ("src",)), Operator("sink", ("map",))))
RECOVERY = RecoveryModel(45.0, 5.0, 125.0, 10.0, 30.0, 5)


def outlook_of(median_per_s: np.ndarray, spread: float = 0.1, sd_share: float = 0.02) -> Outlook:
    quantiles = np.array([median_per_s * (1 + spread * ndtri(level)) for level in LEVELS])
    asked = demand(GRAPH, spread_selectivity(GRAPH, {"map": 1.0}), SourceForecast(0, 600, {"src": quantiles}))
    p = np.arange(1, 33)
    curves = {}
    for name, slope in {"src": 2000.0, "map": 1000.0, "sink": 1500.0}.items():
        mean = slope * p / (1 + 0.02 * (p - 1))
        curves[name] = CapacityCurve(p, mean, sd_share * mean, p, mean, slope)
    bounds = job_bounds(GRAPH, curves, upper_limits(GRAPH, 32), Options())
    return Outlook(asked, bounds, RECOVERY, 1.28)


def brute_force(stage: np.ndarray, switch: np.ndarray, start: int) -> float:
    bins, count = stage.shape
    best = np.inf
    for path in itertools.product(range(count), repeat=bins):
        before, cost = start, 0.0
        for t, at in enumerate(path):
            cost += stage[t, at] + (switch[t, at] if at != before else 0.0)
            before = at
        best = min(best, cost)
    return best


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_programme_is_exact(seed):
    draws = np.random.default_rng(seed)
    stage, switch = draws.exponential(size=(2, 5, 4)), draws.exponential(size=(2, 5, 4))
    start = draws.integers(0, 4, size=2)
    result = find_shortest_paths(stage, switch, start)
    for job in range(2):
        assert result.cost[job] == pytest.approx(brute_force(stage[job], switch[job], int(start[job])))
        before, cost = int(start[job]), 0.0
        for t, at in enumerate(result.choice[job]):
            cost += stage[job, t, at] + (switch[job, t, at] if at != before else 0.0)
            before = int(at)
        assert cost == pytest.approx(result.cost[job])


def test_among_equals_nothing_changes():
    result = find_shortest_paths(np.ones((1, 6, 3)), np.zeros((1, 6, 3)), np.array([2]))
    assert (result.choice == 2).all()


def test_candidates_are_nested_and_hold_the_running_one_first():
    outlook = outlook_of(np.linspace(3000.0, 15_000.0, 144))
    current = np.array([3, 9, 4])
    result = list_candidates(outlook.demand, outlook.bounds, current, upper_limits(GRAPH, 32))
    assert (result[0] == current).all()
    ladder = result[1:]
    assert len(ladder) <= 64
    assert (np.diff(ladder, axis=0) >= 0).all()
    assert {int(row.max()) for row in result} == set(range(1, 33))
    assert (
        ladder[-1]
        == [
            np.searchsorted(outlook.bounds["src"].lower_per_s, outlook.bounds["map"].lower_per_s[-1]) + 1,
            32,
            ladder[-1][2],
        ]
    ).all()


def test_overload_follows_load_and_capacity():
    outlook = outlook_of(np.full(4, 8000.0), spread=0.1, sd_share=0.0)
    config = np.array([[6, 9, 7], [16, 16, 16]])
    result = overload_probability(outlook, config)
    mean = outlook.bounds["map"].mean_per_s[8]
    from scipy.stats import norm

    assert result[0, 0] == pytest.approx(norm.sf((mean - 8000.0) / 800.0), rel=0.05)
    assert (result[:, 1] < 1e-6).all()


def test_capacity_doubt_raises_the_risk():
    config = np.array([[6, 11, 8]])
    sure = overload_probability(outlook_of(np.full(4, 8000.0), 0.02, 0.0), config)
    unsure = overload_probability(outlook_of(np.full(4, 8000.0), 0.02, 0.1), config)
    assert (unsure > sure).all()


def test_a_failure_is_late_for_as_long_as_its_backlog_lasts():
    # 125 s down, replay of 30 s: 60 s old after 30 s, 155 s old when it runs again, 95 s to work off at half a second
    assert late_time_s(125.0, 30.0, np.array([1.5]), 60.0)[0] == pytest.approx(95.0 + 95.0 / 0.5)
    assert late_time_s(45.0, 0.0, np.array([1.1]), 60.0)[0] == 0.0


def test_headroom_is_of_the_tightest_operator():
    outlook = outlook_of(np.full(2, 5000.0))
    result = headroom(outlook, np.array([[4, 10, 8]]), 0.5)
    assert result[0, 0] == pytest.approx(
        min(outlook.bounds["src"].mean_per_s[3], outlook.bounds["map"].mean_per_s[9]) / 5000.0
    )


def test_without_a_net_a_dearer_lateness_buys_more_slots():
    outlook = outlook_of(np.full(144, 8000.0))
    limits = upper_limits(GRAPH, 32)
    current = np.array([8, 8, 8])
    configurations = list_candidates(outlook.demand, outlook.bounds, current, limits)

    def slots(weight: float) -> float:
        costs = compute_costs(
            outlook,
            configurations,
            CurrentState(0, 32, 0.0),
            Options(costs=PlannerCosts(late_weight=weight), reactive=ReactiveSettings(rescales_for_catch_up=False)),
        )
        stage = costs.bin_cost + (costs.slot_price * costs.minutes)[:, None] * costs.slots
        path = find_shortest_paths(stage[None], costs.switch[None], np.zeros(1, int)).choice[0]
        return float(costs.slots[path].mean())

    assert slots(0.04) < slots(0.4) < slots(4.0)


def test_a_change_must_promise_a_multiple_of_its_price():
    # Waves that are worth their rescales by little, waves that are worth them by much.
    t = np.arange(144)
    outlook = outlook_of(9000.0 + np.where(t < 72, 1500.0, 5000.0) * np.sin(2 * np.pi * t / 12))
    configurations = list_candidates(outlook.demand, outlook.bounds, np.array([8, 10, 8]), upper_limits(GRAPH, 32))

    def changes(margin: float) -> tuple[int, int]:
        costs = compute_costs(
            outlook, configurations, CurrentState(0, 32, 0.0), Options(costs=PlannerCosts(rescale_margin=margin))
        )
        path = find_shortest_paths(costs.cost_per_bin()[None], costs.switch[None], np.zeros(1, int)).choice[0]
        at = np.flatnonzero(np.diff(path))
        return int((at < 72).sum()), int((at >= 72).sum())

    eager, patient = changes(1.0), changes(3.0)
    assert patient[0] < eager[0]
    assert patient[1] > 0
    assert changes(1e6) == (0, 0)


def test_prices_keep_a_budget_and_cost_little():
    draws = np.random.default_rng(5)
    jobs, bins, slots = 12, 24, np.arange(1, 11)
    load = 4 + 3 * np.sin(np.arange(bins) / 4)[None, :] + draws.normal(0, 0.5, size=(jobs, bins))
    late = 2.0 / (1 + np.exp(4 * (slots[None, None, :] - load[:, :, None])))
    switch = np.full((jobs, bins, len(slots)), 0.1)

    number = draws.random(jobs)

    def ask(offer: SlotPrices) -> SlotDemand:
        own = late + 0.1 * slots
        path = find_shortest_paths(own + offer.of(number)[:, :, None] * slots, switch, np.full(jobs, 4)).choice
        return SlotDemand(slots[path].sum(axis=0), float(np.take_along_axis(own, path[:, :, None], axis=2).sum()))

    free = ask(SlotPrices(np.zeros(bins), np.zeros(bins), 0.0))
    budget = np.full(bins, 0.85 * free.slots.max())
    result = allocate(ask, budget, 0.1)
    assert result.fits
    assert (result.demand.slots <= budget).all()
    assert free.cost < result.demand.cost < 1.2 * free.cost
    assert allocate(ask, np.full(bins, 1e9), 0.1).rounds == 1
    assert not allocate(ask, np.full(bins, jobs - 1.0), 0.1).fits


def test_candidates_that_are_left_out_are_on_no_cheapest_path():
    generator = np.random.default_rng(20261121)
    excluded = 0
    for _ in range(40):
        slots = np.sort(generator.integers(1, 12, 6))
        own = generator.uniform(0, 1, (5, 6)) + 0.3 * slots
        switch = generator.uniform(0, 0.5, (5, 6))
        retained = drop_dominated(own, switch, slots)
        excluded += 6 - len(retained)
        assert retained[0] == 0
        for price in (0.0, 0.2, *generator.uniform(0, 2, (3, 5, 1))):
            priced = own + price * slots
            whole = find_shortest_paths(priced[None], switch[None], np.zeros(1, np.int64))
            part = find_shortest_paths(
                priced[None][:, :, retained], switch[None][:, :, retained], np.zeros(1, np.int64)
            )
            assert part.cost == pytest.approx(whole.cost)
            assert (retained[part.choice] == whole.choice).all()
    assert excluded > 40
