"""A cluster's budget of slots in the programme's plans: the allocation's path is the plan, and together they fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from situations import change_job, make_situation

from include.settings import Planner
from lab.policies.planner import planner_policy
from models.hosting.memories import recall, store
from models.policies.protocol import Schedule, Situation
from models.policies.situations import assume_untrained
from models.policies.tidewise.programme_memory import PlannedLoad, ProgrammeMemory
from models.policies.tidewise.programme_policy import Programme, price_slots
from models.scheduling.demand import LEVELS, SourceForecast
from models.scheduling.slot_prices import Allocation, SlotPrices, allocate, job_hash, weight_of
from models.scheduling.slot_problem import list_bins
from spark_jobs.plan.slot_budget import FleetProgrammes, JobProgramme
from tests.unit.test_programme_plan import PAST, SHAPE, before, job_with
from tests.unit.test_programme_policy import GRAPH

JOB = job_with(before())
BINS_S = list_bins(JOB.now_s, Planner())
HASHES = [number * 97 + 13 for number in range(6)]
FORECAST = SourceForecast(JOB.now_s - 300 * PAST, 300, {"in": np.tile(SHAPE, (len(LEVELS), 1))})
MEMORY = ProgrammeMemory(planned=PlannedLoad.of(FORECAST))


def situation(seed: int, prices: SlotPrices | None = None) -> Situation:
    models = assume_untrained(GRAPH, JOB.observations)
    offer = SlotPrices.free() if prices is None else prices
    return make_situation(
        JOB.now_s, GRAPH, JOB.running, models, FORECAST, 32, Planner(), JOB.observations, seed, slot_prices=offer
    )


def fleet(weights: list[float]) -> FleetProgrammes:
    problem = price_slots(situation(0), MEMORY)
    assert problem is not None
    rows = [JobProgramme.of(problem, job_hash(seed), weight) for seed, weight in zip(HASHES, weights, strict=True)]
    return FleetProgrammes.of(rows, BINS_S)


def share(budget: int, weights: list[float] | None = None) -> tuple[Allocation, list[Schedule]]:
    """Return the allocation of a budget to six jobs, and the plans that they make of it."""
    weights = weights or [1.0] * len(HASHES)
    result = allocate(fleet(weights).ask, np.full(len(BINS_S) - 1, float(budget)), 0.2 / 32)
    plans = [
        Programme().decide(situation(seed, result.prices.weigh(weight)), MEMORY)[0]
        for seed, weight in zip(HASHES, weights, strict=True)
    ]
    return result, plans


def slots_over_time(plan: Schedule) -> np.ndarray:
    """Return a plan's slots in each bin, a rescale counting for both sides."""
    edges = JOB.now_s + BINS_S
    taken = np.full(len(edges) - 1, 6)
    for step in (one.step for one in plan.decisions):
        if not step.is_hold:
            bins = np.flatnonzero(edges[1:] > step.apply_at_s)
            first = taken[bins[0]]
            taken[bins] = step.slots
            if edges[bins[0]] < step.apply_at_s:
                taken[bins[0]] = max(first, step.slots)
    return taken


def test_without_prices_the_cheapest_path_is_the_plan() -> None:
    free = fleet([1.0] * 6).ask(SlotPrices.free())
    plan = Programme().decide(situation(HASHES[0]), MEMORY)[0]
    np.testing.assert_array_equal(free.slots, 6 * slots_over_time(plan))


def test_the_plans_of_a_cluster_keep_its_budget_and_say_so() -> None:
    wanted = 6 * slots_over_time(Programme().decide(situation(HASHES[0]), MEMORY)[0])
    budget = int(0.9 * wanted.max())
    result, plans = share(budget)
    together = np.sum([slots_over_time(plan) for plan in plans], axis=0)
    assert result.fits
    assert together.max() <= budget < wanted.max()
    assert together.mean() > 0.8 * np.minimum(wanted, budget).mean()
    np.testing.assert_array_equal(result.demand.slots, together)
    assert any("slots are short" in one.reason for plan in plans for one in plan.decisions)


def test_a_job_of_higher_priority_gives_way_last() -> None:
    budget = int(0.85 * 6 * slots_over_time(Programme().decide(situation(HASHES[0]), MEMORY)[0]).max())
    _, plans = share(budget, [weight_of(4), *[1.0] * 5])
    most = [int(slots_over_time(plan).max()) for plan in plans]
    assert most[0] == max(most) > min(most)


def test_an_evaluation_pays_what_its_plan_paid() -> None:
    prices = SlotPrices(np.full(1, 0.2), np.full(1, 0.2), 0.0)
    _, left = Programme().decide(situation(HASHES[0], prices), MEMORY)
    assert recall(Programme(), "programme", store("programme", left), "programme")[0] == left
    policy, busy = Programme(), job_with([*before(), *[5000.0] * 4])
    paid, _ = policy.evaluate(busy, replace(left, due=()))
    free, _ = policy.evaluate(busy, policy.drop_plan(left))
    runs = [sum((one.wanted or busy.running).values()) for one in (paid, free)]
    assert runs[0] < runs[1]
    assert "slots are short" in paid.reason
    assert "slots are short" not in free.reason


def test_jobs_of_both_policies_share_one_budget() -> None:
    known = situation(HASHES[1])
    models = replace(known.models, selectivity=dict.fromkeys(GRAPH.names, 1.0))
    old = planner_policy.price_slots(change_job(known, models=models), planner_policy.PlannerPolicy().first_memory())
    new = price_slots(situation(HASHES[0]), MEMORY)
    assert old is not None
    assert new is not None
    both = FleetProgrammes.of([JobProgramme.of(old, 0.1, 1.0), JobProgramme.of(new, 0.2, 1.0)], BINS_S)
    asked = both.ask(SlotPrices.free()).slots
    alone = [
        FleetProgrammes.of([JobProgramme.of(one, 0.1, 1.0)], BINS_S).ask(SlotPrices.free()).slots for one in (old, new)
    ]
    np.testing.assert_array_equal(asked, alone[0] + alone[1])
    assert alone[1].max() > alone[0].max() == 6  # the planner has no model to plan with
