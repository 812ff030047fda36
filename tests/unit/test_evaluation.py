"""The evaluation of a job: how its memory meets a plan, what stands until when, and what speaks against a step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.evaluation.evaluate_job import evaluate_job
from controller.evaluation.form_intention import form_intention
from controller.view.job_view import ActiveTarget, EvaluationState, JobView, name_step, take_snapshot
from controller.view.plan_rows import JobPlan, LoadBand, PolicyMemory
from include.domain.graph import JobGraph, Operator
from include.settings import Planner, Settings
from include.tables.plan_row import PlanRow
from lab.policies.baselines.reactive import ReactiveMemory
from lab.policies.planner.controller_memory import ControllerMemory
from models.control.state import Origin
from models.policies.evaluation.pending_steps import PendingStep
from models.policies.memory import dump, load
from models.policies.observations import MEASURES, Observations
from models.policies.tuning.capacity_history import ObservedCapacity
from models.polling.seen_job import PolledJob

NOW_S = 1_795_000_200
PLANNED_S = NOW_S - 600
RUNNING = {"source": 1, "map": 4}
GRAPH = JobGraph.from_operators([Operator("source", (), 128), Operator("map", ("source",), 128)])
FALL = PendingStep(NOW_S - 300, NOW_S + 3600, {"source": 1, "map": 2}, 1000.0, "as forecast")
LATER = replace(FALL, apply_at_s=NOW_S + 600)
SETTINGS = Settings(planner=Planner(policy="planner"))


def step(due: PendingStep = FALL, step_id: str = "s1") -> PlanRow:
    return PlanRow(
        step_id=step_id,
        apply_at_s=float(due.apply_at_s),
        effective_at_s=due.apply_at_s + 60.0,
        valid_until_s=float(due.valid_until_s),
        parallelism_from=RUNNING,
        parallelism_to=due.parallelism,
        slots_from=4,
        slots=2,
        expected_recovery_s=90.0,
        expected_capacity_per_s=2000.0,
        expected_load_q50_per_s=800.0,
        expected_load_q90_per_s=1000.0,
        reason=due.reason,
    )


def plan(*steps: PlanRow, as_of_s: float = PLANNED_S, **known: Any) -> JobPlan:
    return JobPlan(
        as_of_s=as_of_s,
        steps=steps,
        forecast_version="f",
        observations_until_s=as_of_s,
        **known,
    )


def seen(polled_s: float = NOW_S - 30, **known: Any) -> PolledJob:
    values: dict[str, Any] = {
        "cluster": "c",
        "job": "orders",
        "job_id": "a" * 32,
        "state": "RUNNING",
        "polled_at_ms": round(1000 * polled_s),
        "running": RUNNING,
        "restarting": False,
        "vertex_ids": {"source": "1" * 32, "map": "2" * 32},
        "finished": frozenset(),
        "graph": GRAPH,
        "stops": (),
        "metrics": {},
    }
    return PolledJob(**values | known)


def windows(load_per_s: float, *, latency_ms: float = 0.0, count: int = 4) -> Observations:
    starts = NOW_S - 300 * np.arange(count, 0, -1)
    measures = {name: np.full((count, 2), np.nan) for name in MEASURES}
    for name in ("processing_rate_per_s", "output_rate_per_s"):
        measures[name][:] = load_per_s
    measures["target_data_rate_per_s"][:, 0] = load_per_s
    measures["latency_ms"][:, 0] = latency_ms
    measures["busy_share"][:] = 0.5
    for name in ("true_processing_rate_per_s", "true_output_rate_per_s"):
        measures[name][:] = 2 * load_per_s
    parallelism = np.tile([1, 4], (count, 1))
    return Observations(
        window_start_s=starts, window_s=300, parallelism=parallelism, disturbed=np.zeros(count, bool), **measures
    )


def view(**known: Any) -> JobView:
    return JobView("c", "orders", **known)


def planned(*due: PendingStep, **known: Any) -> dict[str, Any]:
    return {"plan": plan(*[step(one) for one in due]), "left": left(due=due, **known)}


def left(**known: Any) -> PolicyMemory:
    return PolicyMemory("planner", dump(ControllerMemory(**{"planned": True} | known)))


def kept(**known: Any) -> EvaluationState:
    return EvaluationState(PLANNED_S, remembered=left(**known))


def memory_of(state: EvaluationState) -> ControllerMemory:
    assert state.remembered is not None
    return load(ControllerMemory, state.remembered.memory)


def test_a_newer_plan_is_accepted_once_and_a_hold_outlives_it() -> None:
    before = replace(kept(due=(FALL,), held_until_s=NOW_S + 60, back_to=RUNNING), plan_as_of_s=PLANNED_S - 3600)
    met = evaluate_job(view(seen=seen(), observations=windows(500.0), **planned(LATER)), before, SETTINGS, NOW_S)
    memory = memory_of(met)
    assert (memory.due, memory.back_to, memory.held_until_s) == ((LATER,), None, NOW_S + 60)
    assert met.plan_as_of_s == PLANNED_S
    gone = evaluate_job(view(seen=seen(), observations=windows(500.0), **planned(FALL)), kept(), SETTINGS, NOW_S)
    assert gone.standing is None  # its steps were met: the same plan does not bring them back


def test_what_ingestion_has_seen_and_evaluations_have_not_is_learnt_from_the_plan() -> None:
    histories = {"map": (ObservedCapacity(4, (400.0,)),)}
    before = replace(kept(seen_until_s=300.0), plan_as_of_s=0.0)
    met = evaluate_job(view(**planned(LATER, seen_until_s=900.0, histories=histories)), before, SETTINGS, NOW_S)
    memory = memory_of(met)
    assert (memory.seen_until_s, dict(memory.histories)) == (900.0, histories)


@pytest.mark.parametrize(("measure", "odd"), [("target_data_rate_per_s", 1e12), ("latency_ms", 9e5)])
@pytest.mark.covers("harm odd-poll")
def test_one_odd_poll_doubles_a_job_at_most(measure: str, odd: float) -> None:
    """A counter that jumps once, or a backlog that nobody has; two windows that agree are believed."""
    reported = []
    for windows_odd in (1, 2):
        known = windows(1000.0)
        getattr(known, measure)[-windows_odd:, 0] = odd
        met = evaluate_job(view(seen=seen(), observations=known), EvaluationState(), SETTINGS, NOW_S)
        assert met.standing is not None
        reported.append(met.standing)
    assert max(reported[0].wanted[name] / RUNNING[name] for name in RUNNING) <= 2
    assert "until two windows agree" in reported[0].reason
    assert max(reported[1].wanted[name] / RUNNING[name] for name in RUNNING) > 2


@pytest.mark.parametrize(
    "known",
    [
        {},  # never planned for
        {"plan": plan(as_of_s=NOW_S - 300), "left": left(planned=False)},  # no season in the history
        {"plan": plan(step(), as_of_s=NOW_S - 3 * 3600), "left": left(due=(FALL,))},
    ],
)
def test_without_a_usable_plan_the_measured_load_decides(known: dict[str, Any]) -> None:
    met = evaluate_job(view(**known), kept(due=(FALL,), seen_until_s=3.0), SETTINGS, NOW_S)
    memory = memory_of(met)
    assert (memory.due, memory.planned, memory.seen_until_s) == ((), False, 3.0)
    assert met.standing is None


@pytest.mark.parametrize("fraction_s", [0.0, 0.4, -0.4])
def test_a_step_keeps_its_id_whatever_the_fraction_of_its_second(fraction_s: float) -> None:
    """Pending steps have whole seconds, rows of plans have microseconds."""
    known = view(seen=seen(), observations=windows(500.0), **planned(FALL))
    made = replace(step(), apply_at_s=FALL.apply_at_s + fraction_s)
    result = evaluate_job(replace(known, plan=plan(made)), EvaluationState(), SETTINGS, NOW_S)
    assert result.standing is not None
    assert result.standing.step_id == "s1"


def test_a_due_step_stands_until_the_job_runs_so() -> None:
    known = view(seen=seen(), observations=windows(500.0), **planned(FALL))
    first = evaluate_job(known, EvaluationState(), SETTINGS, NOW_S)
    assert first.standing is not None
    assert (first.standing.step_id, first.standing.origin) == ("s1", Origin.PLAN)
    assert dict(first.standing.wanted) == dict(FALL.parallelism)
    again = evaluate_job(known, first, SETTINGS, NOW_S + 300)
    assert again.standing == first.standing  # nothing says that it was carried out
    there = replace(known, seen=seen(NOW_S + 590, running=dict(FALL.parallelism)))
    assert evaluate_job(there, again, SETTINGS, NOW_S + 600).standing is None


def test_a_due_step_is_judged_again_while_it_waits() -> None:
    busy = view(seen=seen(), observations=windows(1500.0), **planned(FALL))  # more than the forecast of the step
    held = evaluate_job(busy, EvaluationState(), SETTINGS, NOW_S)
    assert held.standing is None
    assert FALL in memory_of(held).due
    quiet = evaluate_job(replace(busy, observations=windows(500.0)), held, SETTINGS, NOW_S + 60)
    assert quiet.standing is not None
    busy_again = evaluate_job(busy, quiet, SETTINGS, NOW_S + 120)
    assert busy_again.standing is None or busy_again.standing.origin is Origin.REACTIVE


def test_of_a_job_that_is_not_seen_the_due_step_stands_and_says_so() -> None:
    met = evaluate_job(view(**planned(FALL, LATER)), EvaluationState(), SETTINGS, NOW_S)
    assert met.standing is not None
    assert met.standing.step_id == "s1"
    assert "nothing was seen" in met.standing.reason


@pytest.mark.covers("apply_review 17")
def test_an_evaluation_that_fails_leaves_the_plan_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("lab.policies.planner.planner_policy.PlannerPolicy.evaluate", fail)
    met = evaluate_job(
        view(seen=seen(), observations=windows(1.0), **planned(FALL)), EvaluationState(), SETTINGS, NOW_S
    )
    assert met.standing is not None
    assert "ZeroDivisionError" in met.standing.reason


def test_steps_of_other_policies_stand_as_planned() -> None:
    settings = SETTINGS.model_copy(update={"planner": Planner(policy="need_vector")})
    both = plan(step(FALL, "first"), step(replace(FALL, apply_at_s=NOW_S - 60), "second"), step(LATER, "later"))
    met = evaluate_job(view(plan=both), EvaluationState(), settings, NOW_S)
    assert met.standing is not None
    assert met.standing.step_id == "second"
    wide = step(replace(FALL, parallelism={"source": 1, "map": 3}), "of the same time")
    at_once = evaluate_job(view(plan=plan(step(FALL, "first"), wide)), EvaluationState(), settings, NOW_S).standing
    assert at_once is not None
    assert at_once.step_id == "of the same time"  # the first one ends when the second begins
    assert evaluate_job(view(plan=plan()), EvaluationState(), settings, NOW_S).standing is None
    assert evaluate_job(view(plan=both), EvaluationState(), settings, NOW_S + 7200).standing is None  # valid no more


def test_a_policy_that_reacts_decides_at_the_evaluation_whatever_its_plan_says() -> None:
    """CPU use is 50%, its target 35%: five workers of four would use 40%, six 33%."""
    settings = SETTINGS.model_copy(update={"planner": Planner(policy="reactive")})
    known = {"seen": seen(), "observations": windows(500.0), "plan": plan(step(FALL))}
    met = evaluate_job(view(**known), EvaluationState(), settings, NOW_S)
    assert met.standing is not None
    assert met.standing.origin is Origin.REACTIVE
    assert set(met.standing.wanted.values()) == {8}
    assert met.standing.valid_until_s == NOW_S + settings.planner.timing.apply_every_s
    assert met.remembered is not None
    assert met.remembered.policy == "reactive"
    assert met.is_changed_from(EvaluationState())
    again = evaluate_job(view(**known), met, settings, NOW_S + 300)
    assert again.remembered is not None
    assert len(load(ReactiveMemory, again.remembered.memory).recommended) == 1  # the first is older than its window
    followed = evaluate_job(view(**known), met, Settings(planner=Planner(policy="need_vector")), NOW_S)
    assert followed.remembered is None


@pytest.mark.parametrize(
    "known", [{}, {"seen": seen(NOW_S - 3600)}, {"seen": seen(state="RESTARTING")}, {"observations": None}]
)
def test_of_a_job_that_is_not_seen_to_run_a_policy_that_reacts_wants_nothing(known: dict[str, Any]) -> None:
    settings = SETTINGS.model_copy(update={"planner": Planner(policy="reactive")})
    given = {"observations": windows(500.0), "plan": plan(step(FALL)), **known}
    before = EvaluationState(remembered=PolicyMemory("reactive", dump(ReactiveMemory())))
    met = evaluate_job(view(**given), before, settings, NOW_S)
    assert met.standing is None
    assert met.remembered == before.remembered


@pytest.mark.parametrize("memory", [PolicyMemory("ds2", "of another policy"), PolicyMemory("reactive", "{")])
def test_a_policy_begins_anew_after_another_or_with_a_memory_that_cannot_be_read(memory: PolicyMemory) -> None:
    settings = SETTINGS.model_copy(update={"planner": Planner(policy="reactive")})
    met = evaluate_job(
        view(seen=seen(), observations=windows(500.0)), EvaluationState(remembered=memory), settings, NOW_S
    )
    assert met.standing is not None


def test_a_policy_that_fails_leaves_the_job_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("models.hosting.host.build_live_situation", fail)
    settings = SETTINGS.model_copy(update={"planner": Planner(policy="reactive")})
    before = EvaluationState(remembered=PolicyMemory("reactive", dump(ReactiveMemory())))
    met = evaluate_job(view(seen=seen(), observations=windows(500.0)), before, settings, NOW_S)
    assert met.standing is None
    assert met.remembered == before.remembered


def test_only_fresh_metrics_of_the_known_graph_make_a_snapshot() -> None:
    assert take_snapshot(view(seen=seen()), SETTINGS, NOW_S).running == RUNNING
    assert take_snapshot(view(seen=seen(graph=None), graph=GRAPH), SETTINGS, NOW_S).graph == GRAPH
    for wrong in (None, seen(NOW_S - 3600), seen(graph=None), seen(running={"other": 1})):
        met = evaluate_job(view(seen=wrong, observations=windows(9000.0)), EvaluationState(), SETTINGS, NOW_S)
        assert met.standing is None


def stand(**changes: Any) -> EvaluationState:
    active = ActiveTarget(dict(FALL.parallelism), Origin.PLAN, "s1", "as forecast", NOW_S + 3600.0)
    return EvaluationState(PLANNED_S, replace(active, **changes))


def intend(
    known: JobView, what: EvaluationState, now_s: float = NOW_S, band: LoadBand | None = None
) -> tuple[Any, str]:
    result = form_intention(known, what, SETTINGS, now_s, band)
    return (None, "") if result is None else (result.parallelism, result.objection)


def test_a_step_with_a_band_of_its_own_is_judged_by_that_alone() -> None:
    known, far = view(seen=seen(), observations=windows(500.0), plan=plan(step())), LoadBand(9000.0, 9500.0)
    assert intend(known, stand(), band=far)[1] == "load_outside_band"
    assert intend(known, stand(has_band=True), band=far)[1] == ""
    result = form_intention(known, stand(has_band=True, held_back="the load is at 500/s"), SETTINGS, NOW_S, far)
    assert result is not None
    assert (result.objection, result.objection_detail) == ("outside_band", "the load is at 500/s")


def test_an_intention_names_vertices_by_their_ids() -> None:
    known = view(seen=seen(), observations=windows(500.0), plan=plan(step()))
    assert intend(known, stand()) == ({"1" * 32: 1, "2" * 32: 2}, "")
    assert intend(known, stand(wanted={"source": 1, "gone": 2})) == ({"1" * 32: 1, "gone": 2}, "")
    finished = replace(known, seen=seen(finished=frozenset({"source"})))
    assert intend(finished, stand()) == ({"2" * 32: 2}, "")
    assert intend(known, stand(), NOW_S + 3601) == (None, "")
    assert intend(view(plan=plan(step())), stand()) == (None, "")
    assert intend(known, EvaluationState()) == (None, "")


@pytest.mark.parametrize(
    ("known", "now_s", "band", "objection"),
    [
        ({"plan": plan(step())}, NOW_S, LoadBand(450.0, 550.0), ""),
        ({"plan": plan(step())}, NOW_S, LoadBand(2000.0, 3000.0), "load_outside_band"),
        ({"plan": plan(step())}, NOW_S, LoadBand(10.0, 20.0), "load_outside_band"),
        ({"plan": plan(step(), as_of_s=NOW_S - 3 * 3600)}, NOW_S, None, "stale_plan"),
        ({}, NOW_S, None, "stale_plan"),
    ],
)
def test_what_speaks_against_a_step(known: dict[str, Any], now_s: float, band: LoadBand | None, objection: str) -> None:
    of_job = view(seen=seen(), observations=windows(500.0), **known)
    assert intend(of_job, stand(), now_s, band)[1] == objection


def test_a_step_is_not_sent_on_old_metrics() -> None:
    old = replace(plan(step()), observations_until_s=NOW_S - 4 * 3600.0)
    assert intend(view(seen=seen(), plan=old), stand())[1] == "stale_metrics"
    assert intend(view(seen=seen(), plan=old, observations=windows(500.0)), stand())[1] == ""
    reactive = stand(origin=Origin.REACTIVE)
    assert intend(view(seen=seen(), plan=old), reactive)[1] == ""


def test_the_same_change_has_the_same_name_for_as_long_as_it_is_wanted() -> None:
    known = view(seen=seen())
    first = name_step(known, RUNNING, {"source": 1, "map": 5})
    assert first == name_step(known, dict(reversed(RUNNING.items())), {"map": 5, "source": 1})
    assert first != name_step(known, RUNNING, {"source": 1, "map": 6})
    assert first != name_step(view(seen=seen(job_id="b" * 32)), RUNNING, {"source": 1, "map": 5})


def test_a_remark_alone_is_no_news() -> None:
    before = stand()
    assert not replace(before, remark="it is late").is_changed_from(before)
    assert replace(before, standing=None).is_changed_from(before)
    assert replace(before, remembered=left(held_until_s=5)).is_changed_from(before)


def test_a_late_job_that_is_left_as_it_is_has_a_remark_and_no_intention():
    late = view(seen=seen(), observations=windows(800.0, latency_ms=90_000.0), graph=GRAPH)
    retained = evaluate_job(late, EvaluationState(), SETTINGS, NOW_S)
    assert "a backlog of 90 s" in retained.remark
    assert form_intention(late, retained, SETTINGS, NOW_S, None) is None
    assert not retained.is_changed_from(replace(retained, remark=""))  # the next evaluation finds it out by itself
    calm = evaluate_job(view(seen=seen(), observations=windows(800.0), graph=GRAPH), retained, SETTINGS, NOW_S + 300)
    assert calm.remark == ""


def test_a_small_rise_of_a_single_window_is_left_as_it_is() -> None:
    known = windows(1000.0)
    known.target_data_rate_per_s[-1:, 0] = 3000.0
    met = evaluate_job(view(seen=seen(), observations=known), EvaluationState(), SETTINGS, NOW_S)
    assert met.standing is not None
    assert RUNNING["map"] < met.standing.wanted["map"] < 2 * RUNNING["map"]
    assert "until two windows agree" not in met.standing.reason


def test_a_batch_job_is_left_to_itself_and_its_plan_counts_as_read() -> None:
    batch = seen(job_type="BATCH")
    met = evaluate_job(view(seen=batch, **planned(FALL)), EvaluationState(), SETTINGS, NOW_S)
    assert (met.plan_as_of_s, met.standing) == (PLANNED_S, None)
    assert evaluate_job(view(seen=batch), EvaluationState(), SETTINGS, NOW_S).plan_as_of_s is None


def test_a_memory_that_cannot_be_read_is_told(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(planner=Planner(policy="reactive"))
    known = view(seen=seen(), observations=windows(500.0))
    evaluate_job(known, EvaluationState(), settings, NOW_S)
    assert not caplog.records
    evaluate_job(known, EvaluationState(remembered=PolicyMemory("reactive", "no memory")), settings, NOW_S)
    assert [one.levelname for one in caplog.records] == ["WARNING"]
