"""The programme's plan and what becomes of its steps: sent within their band, held back with the figure outside it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from situations import make_situation

from include.domain.graph import JobGraph, Operator
from include.domain.slots import count_paid
from include.settings import Planner
from models.hosting.host import HostedPolicy, HostMemory, Plan, evaluate_hosted
from models.hosting.memories import recall, store
from models.policies.evaluation.pending_steps import PendingStep
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import PastLoads, Schedule
from models.policies.situations import assume_untrained
from models.policies.tidewise.planned_steps import PlannedStep, StepMeasurement, find_outside
from models.policies.tidewise.programme_memory import PlannedLoad, ProgrammeMemory, StepCount
from models.policies.tidewise.programme_policy import Programme
from models.scheduling.demand import LEVELS, SourceForecast
from models.scheduling.step_band import StepBand
from tests.unit.test_programme_policy import GRAPH, noisy, snapshot, window

PAST = 24
SHAPE = np.concatenate([np.linspace(3500.0, 5000.0, PAST), np.full(12, 5000.0), np.full(276, 9000.0)])
"""Two hours that the law has seen to come as forecast, one more, and a rise."""
HOSTED = HostedPolicy.of("programme", Programme())


def job_with(loads: list[float], running: int = 6, lag_s: float = 0.0) -> Snapshot:
    rows = [window(at, load, (running,) * 3) for at, load in enumerate(loads)]
    rows[-1] = window(len(loads) - 1, loads[-1], (running,) * 3, lag_s)
    return snapshot(rows[-24:], (running,) * 3)


def before() -> list[float]:
    """Return the loads up to the plan, which follow the forecast within a percent."""
    return list((SHAPE[:PAST] * np.exp(0.01 * np.random.default_rng(2).standard_normal(PAST))).tolist())


def plan(job: Snapshot, path: np.ndarray = SHAPE) -> tuple[Schedule, ProgrammeMemory]:
    forecast = SourceForecast(job.now_s - 300 * PAST, 300, {"in": np.tile(path, (len(LEVELS), 1))})
    models = assume_untrained(GRAPH, job.observations)
    asked = make_situation(job.now_s, GRAPH, job.running, models, forecast, 32, Planner(), job.observations)
    asked = replace(asked, job=replace(asked.job, taskmanager_slots=job.taskmanager_slots))
    return Programme().decide(asked, ProgrammeMemory(planned=PlannedLoad.of(forecast)))  # the plan before said so, too


def meet(
    later: list[float], *, lag_s: float = 0.0, running: int = 6
) -> tuple[ReactiveDecision, HostMemory, PlannedStep]:
    """Return what is decided when the first step of a plan is due, after loads of up to then, and that step."""
    _, left = plan(job_with(before()))
    due = left.due[0]
    made_s = job_with(before()).now_s
    count = (due.step.apply_at_s - made_s) // 300
    job = job_with([*before(), *later[:count]], running, lag_s)
    memory = HostMemory(policy=left, plan_as_of_s=float(made_s))
    return *evaluate_hosted(HOSTED, memory, due.step.apply_at_s, job, Plan(float(made_s), left=left)), due


def test_its_steps_are_explained_by_its_own_figures_and_their_bands() -> None:
    job = job_with(before())
    schedule, left = plan(job)
    first = schedule.decisions[0]
    assert first.step.slots_from == 6
    assert 9 <= first.step.slots <= 12
    assert job.now_s + 2400 <= first.step.apply_at_s <= job.now_s + 3600
    for part in (
        f"6 -> {first.step.slots} slots: load up to ",
        ", prevents ",
        "carry",
        "staying costs",
        " late minutes expected in ",
        "as planned while",
    ):
        assert part in first.reason
    assert first.band is not None
    assert first.band.load_low_per_s < 9000.0
    times = [one.step.apply_at_s for one in schedule.decisions]
    assert times == sorted(times)
    ends = [one.step.valid_until_s for one in schedule.decisions]
    assert ends == [*times[1:], job.now_s + 86400]
    assert [one.step.parallelism for one in left.due][:1] == [
        dict(zip(GRAPH.names, first.step.parallelism_to.tolist(), strict=True))
    ]


@pytest.mark.parametrize("slots", [1, 4])
def test_beside_each_step_are_the_next_sizes_that_pay_more_and_fewer_slots(slots: int) -> None:
    job = replace(job_with(before()), taskmanager_slots=slots)
    schedule, _ = plan(job)
    assert len(schedule.decisions) > 0
    for one in schedule.decisions:
        step, hours = one.step, (one.step.valid_until_s - one.step.apply_at_s) / 3600
        assert step.expected.late_minutes is not None
        assert one.safer is not None
        assert one.cheaper is not None
        for near in (one.safer, one.cheaper):
            assert near.slots == near.parallelism.max()
            paid = count_paid(near.slots, slots) - count_paid(step.slots, slots)
            assert near.slot_hours_more == pytest.approx(paid * hours)
        assert one.safer.slot_hours_more > 0 > one.cheaper.slot_hours_more
        assert one.safer.late_minutes <= step.expected.late_minutes <= one.cheaper.late_minutes


def test_the_same_input_gives_the_same_plan_and_text() -> None:
    job = job_with(before())
    (first, left), (again, same) = plan(job), plan(job)
    assert [one.reason for one in first.decisions] == [one.reason for one in again.decisions]
    text = store("programme", left) or ""
    assert text == store("programme", same)
    assert recall(Programme(), "programme", text, "programme") == (left, "")
    assert len(text) < 20_000


def test_a_job_that_fits_its_load_holds() -> None:
    schedule, left = plan(job_with(noisy(5000.0, PAST)), np.full(312, 5000.0))
    assert len(schedule.decisions) == 1
    assert schedule.decisions[0].step.is_hold
    assert "6 slots stay: load up to " in schedule.decisions[0].reason
    assert left.due == ()


def test_a_due_step_goes_out_while_the_load_is_within_its_band() -> None:
    decision, memory, due = meet(noisy(5000.0, 20))
    assert decision.due == due.step
    assert decision.wanted == due.step.parallelism
    assert memory.policy.count == StepCount(1, 1)
    job = job_with([*before(), *noisy(5000.0, 13)], due.slots)
    again, after = evaluate_hosted(HOSTED, memory, job.now_s, job, None)
    assert again.due is None
    assert after.policy.count == StepCount(1, 1)


@pytest.mark.parametrize(
    ("load", "lag_s", "running", "figure"),
    [
        (2500.0, 0.0, 6, "the load is at 2.5k/s, its band is "),
        (5000.0, 900.0, 6, " s old, its band is at most "),
    ],
)
def test_outside_its_band_the_figure_is_named(load: float, lag_s: float, running: int, figure: str) -> None:
    decision, memory, due = meet(noisy(load, 20, 0.01), lag_s=lag_s, running=running)
    assert memory.policy.count == StepCount(1, 0)
    assert f"the plan's {due.slots} slots at " in decision.reason
    assert " stays out: " in decision.reason
    assert figure in decision.reason
    if decision.wanted is None:
        assert figure in decision.held_back
        assert decision.due == due.step
    else:
        assert decision.due is None


KEEPS = "the backlog does not fall, or a fall was a loss lately"


def test_each_figure_outside_its_band_is_named_and_none_within() -> None:
    before_s, target = {"in": 1, "map": 6}, {"in": 1, "map": 10}
    pending = PendingStep(0, 600, target, 9900.0, "why")
    due = PlannedStep(pending, before_s, 10, StepBand(4000.0, 9000.0, 0.0, 30.0), 9900.0, 0.05)
    measured = StepMeasurement(5000.0, 0.0, (6, 10), (math.log(5900.0), math.log(9900.0)), (0.5, 0.02), 0.05)
    graph = JobGraph((Operator("in"), Operator("map", ("in",))))
    assert find_outside(due, graph, before_s, measured, 0.4) == ""
    assert find_outside(due, graph, {"in": 6, "map": 6}, measured, 0.4) == ""  # of the same slots
    fall = replace(due, running=target, step=replace(pending, parallelism=before_s), slots=6, capacity_per_s=5900.0)
    growing = replace(measured, keeps_slots=True)
    assert find_outside(due, graph, before_s, growing, 0.4) == ""
    assert find_outside(fall, graph, target, replace(measured, excess=(0.0, 0.02)), 0.4) == ""
    assert find_outside(fall, graph, target, replace(growing, excess=(0.0, 0.02)), 0.4) == KEEPS
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"load_per_s": 9100.0}, "the load is at 9.1k/s, its band is 4k to 9k/s"),
        ({"age_s": 31.0}, "the backlog is 31 s old, its band is at most 30 s old"),
        (
            {"log_capacity": (8.6, math.log(9500.0))},
            "it carries 9.5k/s with 10 slots, 9.9k/s were planned with, its band is 3%",
        ),
        ({"spread": 0.08}, "the load may be off by 8% in an hour, 5% was planned with, its band is a factor of 1.35"),
        (
            {"excess": (0.0, 0.3)},
            "it would cost 0.75 times a rescale's price more than what the load as measured asks for, its band is 0.15",
        ),
    )
    for changed, figure in cases:
        assert find_outside(due, graph, before_s, replace(measured, **changed), 0.4) == figure
    for running in ({"in": 1, "map": 7}, {"in": 7, "map": 6}, {"in": 1, "map": 5}, {"in": 6, "map": 5}):
        assert find_outside(due, graph, running, measured, 0.4) == "the job does not run as it was planned from"


@pytest.mark.parametrize("sees", [True, False])
def test_a_step_that_frees_no_slot_is_no_reason_to_stop_the_job(sees: bool) -> None:
    """Planned from another size: with the step the widest operator stays, the others only get less."""
    _, memory, due = meet(noisy(2500.0, 20, 0.01), running=8)
    narrower = {**dict.fromkeys(GRAPH.names, 2), "map": 8}
    step = replace(due, step=replace(due.step, parallelism=narrower), slots=8)
    job = job_with(before(), running=8)
    at_s = job.now_s if sees else job.now_s + 24 * 3600
    step = replace(step, step=replace(step.step, apply_at_s=at_s - 60, valid_until_s=at_s + 600))
    job = replace(job, now_s=at_s)
    decision, after = Programme().evaluate(job, replace(memory.policy, due=(step,)))
    assert decision.due is None
    assert decision.wanted != narrower
    assert after.due == ()
    grows = replace(step, step=replace(step.step, parallelism={**narrower, "map": 9}), slots=9)
    if not sees:
        assert Programme().evaluate(job, replace(memory.policy, due=(grows,)))[0].due == grows.step


def test_a_job_that_is_not_seen_gets_the_step_as_planned() -> None:
    job = job_with(before())
    _, left = plan(job)
    due = left.due[0].step
    made = Plan(float(job.now_s), left=left, expires_s=job.now_s + 7200.0)
    early, memory = evaluate_hosted(HOSTED, HostMemory(), due.apply_at_s - 300, None, made)
    assert early.wanted is None
    decision, after = evaluate_hosted(HOSTED, memory, due.apply_at_s, None, made)
    assert decision.due == due
    assert "nothing was seen of the job lately" in decision.reason
    assert after.policy.count == StepCount(1, 1)
    blind = replace(job, now_s=due.apply_at_s)
    assert evaluate_hosted(HOSTED, memory, due.apply_at_s, blind, made)[0].due == due
    expired, _ = evaluate_hosted(HOSTED, memory, job.now_s + 7201, None, made)
    assert expired.wanted is None


def test_a_newer_plan_replaces_the_steps_of_the_last() -> None:
    job = job_with(before())
    _, left = plan(job)
    _, memory = evaluate_hosted(HOSTED, HostMemory(), job.now_s, job, Plan(1.0, left=left))
    assert memory.policy.due == left.due
    _, calm = plan(job_with(noisy(5000.0, PAST)), np.full(312, 5000.0))
    _, after = evaluate_hosted(HOSTED, memory, job.now_s, job, Plan(2.0, left=calm))
    assert after.policy.due == ()
    _, kept = evaluate_hosted(HOSTED, memory, job.now_s, job, Plan(1.0, left=calm))
    assert kept.policy.due == left.due


def test_a_new_job_is_planned_by_what_its_load_did_before() -> None:
    """A day and a half of a wave between 2,000 and 8,000 records/s, of which yesterday tells what comes."""
    wave = 5000.0 + 3000.0 * np.sin(2 * np.pi * np.arange(3 * 288) / 288)
    job = job_with(wave[408:432].tolist(), 6)
    forecast = SourceForecast(job.now_s, 300, {"in": np.tile(wave[432:720], (len(LEVELS), 1))})
    models, newest = assume_untrained(GRAPH, job.observations), job.now_s // 300 - 1
    asked = make_situation(job.now_s, GRAPH, job.running, models, forecast, 32, Planner(), job.observations)
    past = PastLoads(np.arange(newest - 431, newest + 1), wave[:432])
    schedule, left = Programme().decide(replace(asked, past_loads=past), ProgrammeMemory())
    assert "(yesterday's shape at the measured height)" in schedule.decisions[0].reason
    slots = [one.step.slots for one in schedule.decisions]
    assert (max(slots), min(slots)) == (8, 3)
    again, same = Programme().decide(replace(asked, past_loads=past), left)  # what is remembered counts
    assert (same.law, len(again.decisions)) == (left.law, len(schedule.decisions))
