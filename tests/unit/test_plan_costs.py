"""Plans by two models on one job's days: the same ones cost the same, worse ones more; the sample is by a seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from include.domain.graph import JobGraph, Operator
from include.settings import Settings
from lab.advice import plan_costs
from lab.advice.plan_costs import OtherStep, PlanCosts, compare_plans, draw_days, sample_jobs, summarise_costs
from lab.backtest.subject import BIN_S, DAY_BINS, HistoryError, Subject
from lab.stages.plan_costs.costs_log import add_plan_costs
from lab.stages.plan_costs.fleet_costs import decode, encode, summarise
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel

START_S = 1_767_225_600  # 2026-01-01


def curve(per_s: float) -> CapacityCurve:
    p = np.arange(1, 33)
    return CapacityCurve(p, per_s * p, 0.0 * p, p.copy(), per_s * p, per_s)


def models_with(per_s: float) -> JobModels:
    recovery, latency = RecoveryModel(40.0, 5.0, 90.0, 5.0, 30.0, 5), LatencyModel(np.zeros(0), np.zeros(0))
    return JobModels({"src": curve(1e6), "map": curve(per_s)}, {"src": 1.0, "map": 1.0}, recovery, latency)


def subject(days: float) -> Subject:
    hours = np.arange(round(days * DAY_BINS)) * BIN_S / 3600.0
    load = 60_000.0 + 40_000.0 * np.sin((hours - 8.0) * np.pi / 12.0)
    graph = JobGraph((Operator("src"), Operator("map", ("src",))))
    return Subject("eu", "orders", graph, models_with(10_000.0), 32, START_S, load[:, None])


SAME = PlanCosts(1, np.full((2, 2), 200.0), *np.full((3, 2), 5.0), [])
STEP = OtherStep(START_S, "champion", {"src": 1, "map": 4}, {"src": 1, "map": 8})
OTHER = PlanCosts(1, np.array([[200.0, 320.0], [390.0, 400.0]]), *np.full((3, 2), 5.0), [STEP])


@pytest.fixture(scope="module")
def compared() -> tuple[PlanCosts, PlanCosts]:
    """A day by the same models, and by ones that take capacities for half of what they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_costs, "REPLAYED_DAYS", 1)
        job, settings = subject(9.0), Settings()
        return compare_plans(job, job.models, settings), compare_plans(job, models_with(5_000.0), settings)


@pytest.mark.long
def test_the_same_models_give_the_same_steps_and_costs(compared) -> None:
    same, _ = compared
    assert (same.days, same.difference, same.other_steps) == (1, 0.0, [])
    assert summarise(1, [(("eu", "orders"), same)]).sentence.startswith("no difference: every step of 1 job would")


@pytest.mark.long
def test_models_that_underestimate_take_more_slots_on_a_replica_of_the_others(compared) -> None:
    _, other = compared
    on_champions = other.cost[0]
    assert on_champions[1] > 1.2 * on_champions[0]  # it pays for slots that the job does not need
    on_challengers = other.cost[1]  # where the controller mends what the champion's plans lack
    assert on_challengers[1] / on_challengers[0] < 1.1
    assert other.slot_hours[1] > other.slot_hours[0]
    first = other.other_steps[0]
    assert first.champion != first.challenger
    assert {one.replica for one in other.other_steps} == {"champion", "challenger"}


def test_what_is_written_is_read_again_and_listed() -> None:
    other = OTHER
    again = decode(encode(other))
    assert (again.difference, again.other_steps) == (other.difference, list(other.other_steps))
    shown = summarise(2, [(("eu", "orders"), again)])
    assert len(shown.other_steps) == len(other.other_steps)
    assert list(shown.costs["job"]) == ["orders"]
    assert "on 1 of 2 jobs" in shown.sentence
    assert shown.measures.keys() == {"plans/difference", "plans/low", "plans/high", "plans/jobs"}
    assert "none of 3 jobs could be compared" in summarise(3, []).sentence


def test_a_second_try_replaces_the_sentence_in_the_description() -> None:
    note = "**Gate**: passed.\n\nModels of 2 jobs.\n\n**Errors**: none."
    first = add_plan_costs(note, "+1.0% against the champion's")
    gate, costs, models, errors = first.split("\n\n")
    assert [gate, models, errors] == note.split("\n\n")
    assert costs.startswith("**What plans would have cost** in the week before, by these models: +1.0% against the")
    assert add_plan_costs(first, "no difference") == add_plan_costs(note, "no difference")


def test_less_than_five_days_are_refused() -> None:
    job = subject(4.9)
    with pytest.raises(HistoryError, match=r"4\.9 days of history, 5 are needed"):
        compare_plans(job, job.models, Settings())


def test_the_interval_is_of_the_jobs_that_were_drawn() -> None:
    same, other = SAME, OTHER
    few = summarise_costs([same, other])
    assert (few.jobs, few.low, few.high) == (2, 0.0, other.difference)
    many = summarise_costs([same] * 10 + [other] * 10)
    assert many.low < many.mean < many.high
    assert many.mean == pytest.approx(few.mean)
    nothing = replace(same, cost=np.zeros((2, 2)))
    assert summarise_costs([nothing]).jobs == 0


def test_a_sample_is_the_same_for_the_same_night_and_another_for_the_next() -> None:
    jobs = [("eu", f"job-{number}") for number in range(200)]
    tonight = sample_jobs(jobs, 50, "2026-11-20")
    assert len(set(tonight)) == 50
    assert tonight == sample_jobs(jobs[::-1], 50, "2026-11-20")
    assert tonight != sample_jobs(jobs, 50, "2026-11-21")
    assert sample_jobs(jobs, 0, "2026-11-20") == []


def test_the_days_are_of_the_last_week_and_the_same_ones_for_a_job() -> None:
    ends = set()
    for number in range(60):
        job = replace(subject(20.0), job=f"job-{number}")
        drawn = draw_days(job)
        assert len(draw_days(job).rates_per_s) == len(drawn.rates_per_s)
        ends.add((len(job.rates_per_s) - len(drawn.rates_per_s)) / DAY_BINS)
    assert ends == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}
    assert len(draw_days(subject(5.0)).rates_per_s) == 5 * DAY_BINS
