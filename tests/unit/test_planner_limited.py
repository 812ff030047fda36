"""An operator that cannot grow, or whose demand is not known, must not decide the size of the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from situations import change_job, make_situation

from include.domain.graph import JobGraph, Operator
from include.domain.singletons import SINGLETON_HELP
from include.settings import Capacity, Planner
from lab.policies.need_vector.needs import compute_needs
from lab.scheduling.cost_model import CurrentState, avoidable_overload, compute_costs, headroom
from lab.scheduling.planner_settings import PlannerSettings
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.policies.observations import MEASURES, Observations
from models.policies.protocol import Schedule, Situation
from models.policies.registry import policy
from models.policies.tidewise.capacity_doubts import find_doubts
from models.scheduling.candidates import list_candidates
from models.scheduling.demand import LEVELS, Demand, SourceForecast
from models.scheduling.expectation import Outlook
from models.scheduling.need import CapacityBounds, upper_limits
from models.scheduling.shortage import explain_limit

START_S = 1_763_661_600  # 2025-11-20 18:00 UTC
RECOVERY = RecoveryModel(20.0, 2.0, 40.0, 4.0, 30.0, 5)
SLOTS = 16


def curve(per_instance: float, p_max: int = SLOTS) -> CapacityCurve:
    p = np.arange(1, p_max + 1)
    mean = per_instance * p
    return CapacityCurve(p, mean.astype(float), 0.05 * mean, p.copy(), mean.astype(float), per_instance)


def nexmark_q5(
    load_per_s: float,
    running: dict[str, int],
    *,
    singleton_per_s: float = 10.0,
    partitions: int | None = None,
    slots_max: int = SLOTS,
) -> Situation:
    """A source, an aggregate of 213 records/s in each subtask, and a maximum over all that cannot be split."""
    graph = JobGraph.from_operators(
        [
            Operator("source", partitions=partitions),
            Operator("aggregate", ("source",)),
            Operator("maximum", ("aggregate",), max_parallelism=1),
        ]
    )
    models = JobModels(
        {"source": curve(1000.0), "aggregate": curve(213.0), "maximum": curve(singleton_per_s)},
        {"source": 1.0, "aggregate": 1.0, "maximum": 1.0},
        RECOVERY,
        LatencyModel(np.zeros(0), np.zeros(0)),
    )
    load = np.full(144, load_per_s)
    forecast = SourceForecast(START_S, 600, {"source": np.stack([0.97 * load, load, 1.03 * load, 1.04 * load])})
    return make_situation(START_S, graph, running, models, forecast, slots_max, Planner())


def plan(found: Situation) -> Schedule:
    return policy("planner", None).decide(found, policy("planner", None).first_memory())[0]


def last_of(schedule: Schedule) -> dict[str, int]:
    return dict(zip(schedule.operators, schedule.decisions[-1].step.parallelism_to.tolist(), strict=True))


@pytest.mark.parametrize("aggregates", [1, 3, 5])
def test_an_operator_that_cannot_grow_and_seems_short_does_not_shrink_the_others(aggregates: int) -> None:
    schedule = plan(nexmark_q5(540.0, {"source": 1, "aggregate": aggregates, "maximum": 1}))
    assert last_of(schedule)["aggregate"] >= 3  # 540 of 213 in each
    assert last_of(schedule)["maximum"] == 1


def test_a_job_beside_a_short_singleton_is_planned_as_one_without_it() -> None:
    short = plan(nexmark_q5(540.0, {"source": 1, "aggregate": 9, "maximum": 1}))
    ample = plan(nexmark_q5(540.0, {"source": 1, "aggregate": 9, "maximum": 1}, singleton_per_s=1e6))
    assert last_of(short) == last_of(ample)
    assert 3 <= last_of(short)["aggregate"] < 9


def test_load_above_all_slots_takes_all_slots() -> None:
    assert last_of(plan(nexmark_q5(9000.0, {"source": 1, "aggregate": 4, "maximum": 1}, slots_max=6)))["aggregate"] == 6


def test_the_reason_names_what_is_short_and_what_would_help() -> None:
    reason = plan(nexmark_q5(540.0, {"source": 1, "aggregate": 3, "maximum": 1})).decisions[0].reason
    assert "maximum cannot grow and is short" in reason
    assert SINGLETON_HELP in reason
    assert "which the running parallelism covers" not in reason
    assert "aggregate cannot grow" not in reason


@pytest.mark.parametrize(
    ("operator", "limit", "said"),
    [
        (Operator("one", max_parallelism=1), 1, SINGLETON_HELP),
        (Operator("one", partitions=4), 4, "more partitions"),
        (Operator("one", ("a",), max_parallelism=8), 8, "pipeline.max-parallelism"),
        (Operator("one", ("a",)), 8, "slots_max"),
    ],
)
def test_each_limit_has_its_own_remedy(operator: Operator, limit: int, said: str) -> None:
    assert said in explain_limit(operator, limit)


def test_a_source_ends_at_its_partitions() -> None:
    result = nexmark_q5(3000.0, {"source": 6, "aggregate": 4, "maximum": 1}, partitions=2)
    assert upper_limits(result.graph, SLOTS).tolist() == [2, SLOTS, 1]
    schedule = plan(result)
    assert last_of(schedule)["source"] == 2
    assert last_of(schedule)["aggregate"] >= 15
    assert "it reads 2 partitions" in schedule.decisions[-1].reason
    assert schedule.decisions[-1].step.expected.capacity_per_s <= 2000.0 + 1e-6


def bounds(per_instance: float, p_max: int = SLOTS) -> CapacityBounds:
    mean = per_instance * np.arange(1.0, p_max + 1)
    return CapacityBounds(mean, 0.05 * mean, 0.93 * mean)


def partly_known() -> Demand:
    """Two operators of 1,000/s, and one of which nobody knows what it gets."""
    load = np.tile(1000.0 * np.array([0.97, 1.0, 1.03, 1.04])[:, None], (1, 3))
    rates = np.stack([load, load, np.full_like(load, np.nan)], axis=1)
    return Demand(0, 600, ("source", "map", "branch"), load, rates)


def test_unknown_demand_keeps_the_parallelism_and_limits_nothing() -> None:
    demand = partly_known()
    known = {"source": bounds(500.0), "map": bounds(200.0), "branch": bounds(1.0)}
    current, limits = np.array([4, 8, 3]), np.full(3, SLOTS)
    need = compute_needs(demand, known, current, limits, PlannerSettings(capacity=Capacity(target_utilisation=0.8)))
    assert (need.parallelism[2] == 3).all()
    assert not need.short.any()
    assert need.unknown == ("branch",)
    candidates = list_candidates(demand, known, current, limits)
    assert (candidates[:, 2] == 3).all()
    outlook = Outlook(demand, known, RECOVERY, 1.28)
    costs = compute_costs(outlook, candidates, CurrentState(0, SLOTS, 0.0), PlannerSettings())
    assert np.isfinite(costs.bin_cost).all()
    assert np.isfinite(costs.switch).all()
    expected = outlook.expect(current, 0, 3)
    assert expected.capacity_per_s == pytest.approx(1600.0)
    assert 0.0 <= expected.p_late < 0.01
    alone = replace(demand, operators=("branch",), rates_per_s=demand.rates_per_s[:, 2:])
    assert Outlook(alone, known, RECOVERY, 1.28).expect(np.array([3]), 0, 3).capacity_per_s == np.inf


def test_lateness_that_no_size_changes_is_left_out_and_what_is_lost_counts() -> None:
    load = np.tile(np.array([97.0, 100.0, 103.0, 104.0])[:, None], (1, 1))
    known = {"wide": bounds(50.0, 4), "single": bounds(10.0, 1), "half": bounds(25.0, 2)}
    demand = Demand(0, 600, tuple(known), load, np.repeat(load[:, None], 3, axis=1))
    outlook = Outlook(demand, known, RECOVERY, 1.28)
    result = avoidable_overload(outlook, np.array([[4, 1, 2], [1, 1, 2], [4, 1, 1]]))[0]
    assert result[0] == pytest.approx(0.0, abs=1e-9)
    assert result[1] == pytest.approx(1.0, abs=1e-3)
    assert result[2] == pytest.approx(1.0, abs=1e-3)  # half of what its limit would process
    assert headroom(outlook, np.array([[4, 1, 2]]), 0.5)[0, 0] == pytest.approx(2.0)


def test_a_capacity_below_what_is_processed_is_doubtful() -> None:
    result = nexmark_q5(540.0, {"source": 1, "aggregate": 3, "maximum": 1})
    processed = np.tile([540.0, 540.0, 500.0], (2, 1))
    observed = Observations(
        window_start_s=np.array([START_S - 600, START_S - 300]),
        window_s=300,
        parallelism=np.tile([1, 3, 1], (2, 1)),
        disturbed=np.zeros(2, bool),
        **dict.fromkeys(MEASURES, processed),
    )
    schedule = plan(change_job(result, observations=observed))
    assert "capacity of maximum is doubtful: it processes 500/s" in schedule.decisions[0].reason
    outlook = Outlook(
        Demand(0, 600, ("a",), np.ones((len(LEVELS), 1)), np.ones((len(LEVELS), 1, 1))),
        {"a": bounds(9.0)},
        RECOVERY,
        1.0,
    )
    assert find_doubts(outlook, np.array([1]), Observations.nothing(1)) == ()
