"""The planner as a whole: one job's schedule from forecast and models."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from situations import change_job, make_situation

from include.domain.graph import JobGraph, Operator
from include.settings import Capacity, Planner
from lab.policies.need_vector.need_vector_policy import derive_conditions
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.policies.protocol import Schedule, Situation
from models.policies.registry import policy
from models.scheduling.demand import SourceForecast

START_S = 1_763_661_600  # 2025-11-20 18:00 UTC
BIN_S = 600
OPTIONS = Planner(capacity=Capacity(target_utilisation=0.8, lower_bound_z=0.0))


def curve(per_instance: float, loss: float = 0.0, sd_share: float = 0.0, p_max: int = 32) -> CapacityCurve:
    p = np.arange(1, p_max + 1)
    mean = per_instance * p / (1 + loss * (p - 1))
    return CapacityCurve(p, mean, sd_share * mean, p.copy(), mean, per_instance)


def situation(rates: np.ndarray, running: dict[str, int], *, spread: float = 0.0) -> Situation:
    """A source that is free of cost, a map of 10,000 records/s per instance and a sink that keeps up with 5,000."""
    graph = JobGraph.from_operators([Operator("src"), Operator("map", ("src",)), Operator("sink", ("map",))])
    models = JobModels(
        {"src": curve(100_000), "map": curve(10_000), "sink": curve(5_000)},
        {"src": 1.0, "map": 0.5, "sink": 1.0},
        RecoveryModel(20.0, 2.0, 40.0, 4.0, 30.0, 5),
        LatencyModel(np.zeros(0), np.zeros(0)),
    )
    quantiles = np.stack([rates * (1 - spread), rates, rates * (1 + spread), rates * (1 + 1.3 * spread)])
    forecast = SourceForecast(START_S, BIN_S, {"src": quantiles})
    return make_situation(START_S, graph, running, models, forecast, 32, OPTIONS)


def decide(found: Situation, parameters: dict[str, object] | None = None) -> Schedule:
    return policy("need_vector", parameters).decide(found, None)[0]


def step_up() -> np.ndarray:
    """Four hours at 24,000/s (map needs 3, sink 3), then 72,000/s (map 9, sink 9)."""
    return np.concatenate([np.full(24, 24_000.0), np.full(120, 72_000.0)])


def test_a_rise_is_sent_ahead_by_the_rescale_and_its_catch_up() -> None:
    schedule = decide(situation(step_up(), {"src": 1, "map": 3, "sink": 3}))
    (decision,) = schedule.decisions
    step = decision.step
    # capacity 90,000/s, load 72,000/s: 20 s + 72 x 20 / 18 = 100 s, and a margin of 60 s
    assert step.effective_at_s == START_S + 24 * BIN_S
    assert step.lead_time_s == 160
    assert dict(zip(schedule.operators, step.parallelism_to, strict=True)) == {"src": 1, "map": 9, "sink": 9}
    assert step.expected.capacity_per_s == pytest.approx(90_000)
    assert step.expected.utilisation == pytest.approx(0.8)
    assert step.expected.recovery_s == pytest.approx(40 + 72_000 * 70 / 18_000)
    assert step.slot_hours_saved == pytest.approx(-6 * 20)
    assert decision.reason == (
        "load q90 rises from 24k/s to 72k/s at 22:00; map needs 9 instead of 3, sink needs 9 instead of 3; "
        "applied 2 min 40 s ahead"
    )


@pytest.mark.covers("flink_waits 4")
def test_where_flink_waits_for_its_own_checkpoints_a_rise_is_sent_an_interval_earlier() -> None:
    result = situation(step_up(), {"src": 1, "map": 3, "sink": 3})
    timing = result.options.timing.model_copy(update={"awaits_checkpoint": True})
    (decision,) = decide(change_job(result, options=result.options.model_copy(update={"timing": timing}))).decisions
    assert decision.step.lead_time_s == 160 + 2 * 30


def test_a_fall_waits_for_the_end_of_the_need() -> None:
    schedule = decide(situation(step_up()[::-1], {"src": 1, "map": 9, "sink": 9}))
    (decision,) = schedule.decisions
    assert decision.step.apply_at_s == decision.step.effective_at_s == START_S + 120 * BIN_S
    assert decision.step.slots == 3
    assert "falls from 72k/s to 24k/s" in decision.reason
    assert "saves 24.0 slot-hours" in decision.reason


def test_what_is_needed_already_is_due_at_once() -> None:
    (decision,) = decide(situation(np.full(144, 72_000.0), {"src": 1, "map": 3, "sink": 3})).decisions
    assert decision.step.apply_at_s == decision.step.effective_at_s == START_S
    assert decision.reason.endswith("due at once")


def test_what_runs_and_is_too_large_is_said_to_be() -> None:
    (decision,) = decide(situation(np.full(144, 24_000.0), {"src": 1, "map": 9, "sink": 9})).decisions
    assert "was too large: sustains 90k/s with 9 slots, of which load q90 uses 27%" in decision.reason
    (fall,) = decide(situation(step_up()[::-1], {"src": 1, "map": 9, "sink": 9})).decisions
    assert "too large" not in fall.reason  # it was needed until then


def test_a_capacity_below_the_load_says_what_was_weighed() -> None:
    found = situation(np.full(144, 24_000.0), {"src": 1, "map": 9, "sink": 9}, spread=0.8)
    costs = found.options.costs.model_copy(update={"late_weight": 0.001, "rescale_weight": 0.0})
    options = found.options.model_copy(update={"costs": costs})
    planner = policy("planner")
    (decision, *_) = planner.decide(change_job(found, options=options), planner.first_memory())[0].decisions
    expected = decision.step.expected
    assert expected.capacity_per_s < expected.load_q90_per_s
    assert (
        "sustains 40k/s, less than load q90: more slots would cost more than the late minutes they prevent"
        in decision.reason
    )


def test_a_job_that_fits_is_held() -> None:
    (decision,) = decide(situation(np.full(144, 24_000.0), {"src": 1, "map": 3, "sink": 3})).decisions
    assert decision.step.is_hold
    assert decision.step.lead_time_s == 0
    assert "which the running parallelism covers" in decision.reason


def test_demand_beyond_every_limit_is_clipped_and_said() -> None:
    (decision,) = decide(situation(np.full(144, 900_000.0), {"src": 8, "map": 3, "sink": 3})).decisions
    assert decision.step.parallelism_to.max() == 32
    assert (
        "clipped to the maximum, which does not cover the load: map (at most 32), sink (at most 32)" in decision.reason
    )
    assert decision.step.expected.p_late == pytest.approx(1.0)
    assert decision.step.expected.recovery_s == float("inf")


def test_an_operator_without_a_model_keeps_its_parallelism() -> None:
    result = situation(step_up(), {"src": 1, "map": 3, "sink": 5})
    capacity = {name: curve for name, curve in result.models.capacity.items() if name != "sink"}
    models = JobModels(capacity, result.models.selectivity, result.models.recovery, result.models.latency)
    schedule = decide(
        make_situation(START_S, result.graph, result.parallelism, models, result.forecast, 32, result.options)
    )
    (decision,) = schedule.decisions
    assert dict(zip(schedule.operators, decision.step.parallelism_to, strict=True))["sink"] == 5
    assert decision.reason.endswith("no capacity model, so parallelism kept: sink")


def test_an_operator_that_falls_while_another_rises_waits_through_the_lead() -> None:
    graph = JobGraph.from_operators([Operator("a"), Operator("b"), Operator("f", ("a",)), Operator("g", ("b",))])
    free = curve(1e6)
    models = JobModels(
        {"a": free, "b": free, "f": curve(10_000), "g": curve(10_000)},
        dict.fromkeys("abfg", 1.0),
        RecoveryModel(20.0, 2.0, 40.0, 4.0, 30.0, 5),
        LatencyModel(np.zeros(0), np.zeros(0)),
    )
    early, late = np.full(24, 40_000.0), np.full(120, 72_000.0)
    rising = np.tile(np.concatenate([early / 5, late]), (4, 1))  # f: 1, then 9
    falling = np.tile(np.concatenate([early, late / 9]), (4, 1))  # g: 5, then 1
    forecast = SourceForecast(START_S, BIN_S, {"a": rising, "b": falling})
    running = {"a": 1, "b": 1, "f": 1, "g": 5}
    schedule = decide(make_situation(START_S, graph, running, models, forecast, 32, OPTIONS))
    (decision,) = schedule.decisions
    assert decision.step.lead_time_s > 0
    assert dict(zip(schedule.operators, decision.step.parallelism_to, strict=True)) == {"a": 1, "b": 1, "f": 9, "g": 5}


rates = st.lists(st.floats(0, 200_000), min_size=1, max_size=144).map(np.array)
running = st.fixed_dictionaries({name: st.integers(1, 40) for name in ("src", "map", "sink")})


@given(rates, running, st.floats(0, 0.5), st.integers(0, 7200), st.floats(0, 50_000))
@settings(max_examples=150, deadline=None)
def test_every_schedule_is_feasible_covers_its_needs_and_is_made_again_the_same(
    load: np.ndarray, parallelism: dict[str, int], spread: float, min_step_s: int, cost: float
) -> None:
    result = situation(load, parallelism, spread=spread)
    worth = {"min_step_s": min_step_s, "rescale_cost_slot_s": cost}
    schedule, again = decide(result, worth), decide(result, worth)
    job = derive_conditions(result)
    covered = np.tile(job.current[:, None], job.need.parallelism.shape[1])
    for decision, same in zip(schedule.decisions, again.decisions, strict=True):
        step = decision.step
        assert decision.reason == same.reason
        assert (step.parallelism_to == same.step.parallelism_to).all()
        assert START_S <= step.apply_at_s <= step.effective_at_s
        assert step.apply_at_s <= step.valid_until_s
        if not step.is_hold:
            assert (step.parallelism_to >= 1).all()
            assert (step.parallelism_to <= job.limits).all()
        assert 0 <= step.expected.p_late <= 1
        # it runs from the moment it is sent: the bin in which that falls is covered too
        covered[:, (step.apply_at_s - START_S) // BIN_S :] = step.parallelism_to[:, None]
        if not step.is_hold and step.effective_at_s != step.apply_at_s:
            assert step.slots >= step.slots_from
    assert (covered >= job.need.parallelism).all()
    for earlier, later in zip(schedule.decisions, schedule.decisions[1:], strict=False):
        assert later.step.effective_at_s - earlier.step.effective_at_s >= min(min_step_s, 3600 * 24)
        assert earlier.step.valid_until_s == later.step.apply_at_s
        assert (earlier.step.parallelism_to == later.step.parallelism_from).all()


def test_an_unknown_policy_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"oracle.*need_vector"):
        policy("oracle")
