"""The programme as a policy, hosted as in production: memories as text, rules for real jobs, reasons."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from programme_line import GRAPH, NARROW, noisy, run, snapshot, window
from situations import make_situation

from include.settings import Planner
from models.hosting.host import HostedPolicy, HostMemory, Plan, evaluate_hosted
from models.hosting.memories import store
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.protocol import PastLoads
from models.policies.situations import assume_untrained
from models.policies.tidewise.past_law import learn_past_loads
from models.policies.tidewise.programme_choice import find_age
from models.policies.tidewise.programme_memory import PlannedLoad, ProgrammeMemory
from models.policies.tidewise.programme_policy import Programme
from models.programme.capacity_belief import BacklogChange, CapacityBelief, measure_capacity_error
from models.programme.load_paths import DAY
from models.scheduling.demand import LEVELS, SourceForecast


def test_it_grows_when_short_and_shrinks_when_idle() -> None:
    short, _ = run([*noisy(7000.0), 9500.0, 9600.0], lag_s=90.0)
    assert short.wanted is not None
    assert 9 <= short.wanted["map"] <= 32
    idle, _ = run(noisy(3000.0))
    assert idle.wanted is not None
    assert 3 <= idle.wanted["map"] <= 6
    fits, _ = run(noisy(7000.0))
    assert fits.wanted is None
    assert "8 slots stay" in fits.reason


def test_an_operator_whose_buffers_fill_is_asked_for_what_is_sent_to_it() -> None:
    """10,300/s are sent to an operator of 8,000/s, and nothing is pending yet: 129%, not exactly loaded."""
    running, hosted, memory = (8, 8, 8), HostedPolicy.of("programme", Programme()), HostMemory()
    flow, busy = np.array([10_300.0, 8000.0, 8000.0]), np.array([0.26, 1.0, 0.33])
    filling = {
        "processing_rate_per_s": flow,
        "output_rate_per_s": flow * [1.0, 1.0, 0.0],
        "busy_share": busy,
        "idle_share": 1.0 - busy,
    }
    rows = [window(at, load, running) for at, load in enumerate(noisy(6500.0))]
    rows += [window(len(rows) + at, 10_300.0, running, **filling) for at in range(2)]
    for until in range(1, len(rows) + 1):
        job = snapshot(rows[max(until - 6, 0) : until], running)
        decision, memory = evaluate_hosted(hosted, memory, job.now_s, job, None)
    assert decision.wanted is not None
    assert decision.wanted["map"] > 8


@pytest.mark.parametrize(("stands", "is_named"), [(500_000.0, True), (40_000.0, False), (0.0, False)])
def test_a_backlog_that_stands_is_named_and_moves_nothing(stands: float, is_named: bool) -> None:
    running, hosted, memory = (8, 8, 8), HostedPolicy.of("programme", Programme()), HostMemory()
    rows = [window(at, load, running) for at, load in enumerate(noisy(6500.0))]
    for until in range(1, len(rows) + 1):
        seen = snapshot(rows[max(until - 6, 0) : until], running)
        pending = np.where(np.isnan(seen.observations.pending_records), np.nan, stands)
        waiting = np.zeros_like(pending)
        job = replace(
            seen, observations=replace(seen.observations, pending_records=pending, outstanding_records=waiting)
        )
        decision, memory = evaluate_hosted(hosted, memory, job.now_s, job, None)
    assert decision.wanted == {"in": 2, "map": 7, "out": 3}  # as without any
    assert ("standing_backlog: 500,000 records stay pending at in" in decision.reason) is is_named


def test_a_new_job_rises_at_once_and_never_falls_before_its_load_is_known() -> None:
    short, _ = run([9500.0], lag_s=90.0)
    assert short.wanted is not None
    assert short.wanted["map"] > 8
    assert "too little was seen of its load yet, so its latest windows alone decide" in short.reason
    idle, memory = run([1000.0])
    assert idle.wanted is None
    assert idle.reason == "too little was seen of its load yet"
    again, same = run([1000.0], restarts=True)
    assert (again, store("programme", memory.policy)) == (idle, store("programme", same.policy))


def test_a_backlog_that_no_size_works_off_is_named_and_takes_nothing_away() -> None:
    """The machine gives 4,000/s to map at 4 as at 8 and 16, while 6,000/s arrive."""
    memory, decision, rows = ProgrammeMemory(), ReactiveDecision(None, ""), []
    sizes = [(8, 16, 8)] * 6 + [(8, 4, 8)] * 6 + [(8, 8, 8)] * 12
    for at, running in enumerate(sizes):
        most = {"processing_rate_per_s": np.array([4000.0] * 3), "output_rate_per_s": np.array([4000.0, 4000.0, 0.0])}
        most["true_processing_rate_per_s"] = np.array([40_000.0, 4000.0, 24_000.0])
        rows.append(window(at, 6000.0, running, 60.0 * (at + 1), busy_share=np.array([0.1, 1.0, 0.2]), **most))
        decision, memory = Programme().evaluate(snapshot(rows[-6:], running, slots_max=16), memory)
        assert min((decision.wanted or {"map": running[1]})["map"], running[1]) == running[1]
    assert "; more slots bring nothing: the machines" in decision.reason


def test_its_memory_as_text_decides_the_same_and_stays_small() -> None:
    loads = noisy(5000.0, 40, 0.2)
    decision, memory = run(loads)
    again, same = run(loads, restarts=True)
    assert decision == again
    assert store("programme", memory.policy) == store("programme", same.policy)
    assert len(store("programme", memory.policy) or "") < 20_000


def test_reasons_are_its_own_figures() -> None:
    decision, _ = run(noisy(3000.0))
    assert decision.reason.startswith("8 -> ")
    for part in (
        " slots: load up to ",
        " slot-hours; ",
        " expected in 1 h 50 min",
        "/s for 2 h (",
        "carry",
        "staying costs",
        " slot-hours more by",
    ):
        assert part in decision.reason
    assert run(noisy(3000.0))[0].reason == decision.reason


def test_a_restarting_job_is_enlarged_for_its_backlog() -> None:
    decision, _ = run(noisy(7400.0), up=False, restarting=True)
    assert decision.wanted is not None
    assert decision.wanted["map"] > 8
    waits, _ = run(noisy(7400.0), up=False)
    assert waits.wanted is None


def test_a_job_whose_load_is_not_counted_is_left_alone() -> None:
    blind = {name: np.full(3, np.nan) for name in ("target_data_rate_per_s", "processing_rate_per_s")}
    rows = [window(at, 100.0, (8, 8, 8), **blind) for at in range(6)]
    decision, _ = Programme().evaluate(snapshot(rows, (8, 8, 8)), ProgrammeMemory())
    assert decision.wanted is None
    assert "load_unseen" in decision.reason


@pytest.mark.parametrize("load", [6000.0, 14_000.0])
def test_an_operator_that_cannot_grow_does_not_decide(load: float) -> None:
    """At its limit of 4 it is short of any of these loads; the others get what they need and no more."""
    rows = [window(at, value, (3, 4, 3), 600.0) for at, value in enumerate(noisy(load))]
    memory, decision = ProgrammeMemory(), ReactiveDecision(None, "")
    for at in range(len(rows)):
        job = snapshot(rows[max(at - 5, 0) : at + 1], (3, 4, 3), graph=NARROW)
        decision, memory = Programme().evaluate(job, memory)
    assert "map cannot grow and is short" in decision.reason
    wanted = decision.wanted or {"in": 3, "map": 4, "out": 3}
    assert wanted["map"] == 4
    assert max(wanted.values()) <= 8


def test_a_plan_leaves_the_load_that_it_expects() -> None:
    job = snapshot([window(at, 5000.0, (8, 8, 8)) for at in range(6)], (8, 8, 8))
    forecast = SourceForecast(job.now_s, 300, {"in": np.tile(np.linspace(5000.0, 9000.0, 288), (len(LEVELS), 1))})
    models = assume_untrained(GRAPH, job.observations)
    asked = make_situation(job.now_s, GRAPH, job.running, models, forecast, 32, Planner(), job.observations)
    _, left = Programme().decide(asked, ProgrammeMemory())
    hosted = HostedPolicy.of("programme", Programme())
    _, after = evaluate_hosted(hosted, HostMemory(), job.now_s, job, Plan(float(job.now_s), left=left))
    planned = after.policy.planned
    assert planned == PlannedLoad.of(forecast)
    path = planned.total(job.now_s // 300 + 143)
    assert path is not None
    assert path[0] == pytest.approx(7000.0, rel=0.01)
    assert planned.total(job.now_s // 300 + 288) is None


def law_of(steps: int, since: int = 0) -> str:
    """Return the law of a load that was seen for so many steps."""
    at = np.arange(since, since + steps)
    return learn_past_loads([PastLoads(at, 1000.0 + 500.0 * np.sin(at / DAY * 2 * np.pi))])[0].law


@pytest.mark.parametrize(("seen", "is_taken"), [(24, True), (3 * DAY - 12, False)])
def test_a_job_that_was_evaluated_before_its_history_was_known_goes_on_with_the_plan_s_law(
    seen: int, is_taken: bool
) -> None:
    own, left = law_of(seen, 3 * DAY - seen), law_of(3 * DAY)
    after = Programme().accept_plan(ProgrammeMemory(law=own), ProgrammeMemory(law=left))
    assert (after.law == left, after.law == own) == (is_taken, not is_taken)


def test_a_backlog_counts_by_its_records() -> None:
    """An hour's records of a burst that is over are more than a minute of the load now."""
    rows = [window(0, 100.0, (8, 8, 8)), window(1, 100.0, (8, 8, 8), 90.0)]
    rows[1]["pending_records"] = np.array([3.6e5, np.nan, np.nan])
    job = snapshot(rows, (8, 8, 8))
    assert find_age(job, 100.0, is_stuck=False) == pytest.approx(3600.0)
    assert find_age(job, 1e5, is_stuck=False) == 90.0  # few of the load now, but late
    assert find_age(job, 100.0, is_stuck=True) == 0.0


def test_the_backlog_measures_the_capacity() -> None:
    true, model, load = 950.0, 1000.0, 980.0
    changes = [
        BacklogChange(
            30.0 * load + 300 * (load - true) * at, 30.0 * load + 300 * (load - true) * (at + 1), 300.0, load, at
        )
        for at in range(1, 6)
    ]
    known = measure_capacity_error(CapacityBelief(), changes, model, 0.05)
    assert model * np.exp(known.error) == pytest.approx(true, rel=0.01)
    assert known.share < 0.3
    assert measure_capacity_error(known, changes, model, 0.05) == known  # no window counts twice
    idle = [BacklogChange(0.0, 0.0, 300.0, load, at) for at in range(1, 6)]
    assert measure_capacity_error(CapacityBelief(), idle, model, 0.05).error == 0.0  # no evidence against the model
    assert measure_capacity_error(CapacityBelief(), idle, 900.0, 0.05).error > 0.03  # what is processed is believed
