"""The reactive controller: overload that piles up, backlogs worth enlarging for, jobs without a plan."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from include.domain.graph import JobGraph, Operator
from include.settings import Costs, Planner
from lab.policies.planner.controller_memory import ControllerMemory
from lab.policies.planner.reactive_controller import accept_plan, decide_reactively, decide_without_windows
from lab.scheduling.planner_settings import PlannerSettings, ReactiveSettings
from models.policies.evaluation.pending_steps import PendingStep
from models.policies.job_snapshot import Snapshot
from models.policies.memory import dump, load
from models.policies.observations import MEASURES, Observations

GRAPH = JobGraph.from_operators([Operator("source"), Operator("map", ("source",))])
RUNNING = {"source": 1, "map": 8}
ABILITY_PER_S = 8000.0  # of `map` at 8
WIDER = {"source": 3, "map": 23}  # what a backlog of 140 s at 5% of headroom is worked off with


def snapshot(now_s: int, load_per_s: float, lag_s: float = 0.0, *, slots: int = 8, disturbed: bool = False) -> Snapshot:
    running = {"source": math.ceil(slots / 8), "map": slots}
    processed = np.full((2, 2), load_per_s)
    capacity = np.column_stack([np.full(2, 1e6), np.full(2, ABILITY_PER_S * slots / 8)])
    values = dict.fromkeys(MEASURES, processed) | {
        "true_processing_rate_per_s": capacity,
        "true_output_rate_per_s": capacity,
        "busy_share": np.minimum(processed / capacity, 1.0),
        "idle_share": np.maximum(1.0 - processed / capacity, 0.0),
        "backpressured_share": np.zeros((2, 2)),
        "latency_ms": np.array([[0.0, np.nan], [1000.0 * lag_s, np.nan]]),
    }
    observed = Observations(
        window_start_s=np.array([now_s - 600, now_s - 300]),
        window_s=300,
        parallelism=np.tile(list(running.values()), (2, 1)),
        disturbed=np.array([False, disturbed]),
        **values,
    )
    return Snapshot(now_s, GRAPH, running, True, observed, 32, Planner())


def test_a_planned_job_is_enlarged_when_records_pile_up_and_not_before():
    planned = ControllerMemory(planned=True)
    assert decide_reactively(snapshot(600, 8500.0, lag_s=5.0), planned)[0].wanted is None
    reported, _ = decide_reactively(snapshot(600, 8500.0, lag_s=30.0), planned)
    assert reported.wanted == {"source": 1, "map": 10}  # 8,500 / 0.9 of 1,000 an instance
    assert "106%" in reported.reason
    assert decide_reactively(snapshot(600, 9500.0), planned)[0].wanted is not None  # so much is no waver of one window


def test_a_backlog_is_worked_off_enlarged_and_the_job_comes_back():
    memory = decide_reactively(snapshot(600, 7600.0), ControllerMemory(planned=True))[1]  # 5% of headroom
    reported, memory = decide_reactively(snapshot(1200, 7600.0, lag_s=140.0, disturbed=True), memory)
    assert reported.wanted == WIDER
    assert (memory.back_to, memory.enlarged_to) == (RUNNING, WIDER)
    reported, memory = decide_reactively(snapshot(1500, 7600.0, lag_s=90.0, slots=23), memory)
    assert reported.wanted is None
    reported, memory = decide_reactively(snapshot(1800, 7600.0, lag_s=1.0, slots=23), memory)
    assert reported.wanted == RUNNING
    assert memory.back_to is None


def test_a_backlog_is_worked_off_with_what_costs_least():
    """Slots that are dear are taken sparingly, those that cost nothing all."""
    memory = decide_reactively(snapshot(600, 7600.0), ControllerMemory(planned=True))[1]
    asked = []
    for weight in (0.0, 0.2, 1.0):
        behind = snapshot(1200, 7600.0, lag_s=140.0, disturbed=True)
        reported, _ = decide_reactively(replace(behind, options=Planner(costs=Costs(resource_weight=weight))), memory)
        asked.append(reported.wanted["map"])
    assert asked == [32, 23, 14]


def test_with_head_room_a_backlog_is_left_to_itself():
    memory = decide_reactively(snapshot(600, 4000.0), ControllerMemory(planned=True))[1]
    assert decide_reactively(snapshot(1200, 4000.0, lag_s=140.0, disturbed=True), memory)[0].wanted is None


def test_a_new_plan_takes_the_place_of_the_way_back():
    memory = replace(ControllerMemory(), back_to=RUNNING, planned=True)
    assert accept_plan(memory, ()).back_to is None


def looks(loads: list[float], slots: int, every_s: int = 300) -> list[int | None]:
    """Return the slots that each look at a job without a plan asks for, were nothing done about it."""
    memory, asked = ControllerMemory(), []
    for turn, load_per_s in enumerate(loads):
        reported, memory = decide_reactively(snapshot(600 + every_s * turn, load_per_s, slots=slots), memory)
        asked.append(reported.wanted and max(reported.wanted.values()))
    return asked


def test_without_a_plan_a_fall_waits_until_it_would_have_paid_for_itself():
    """28 slots for 300 s cost 0.875, more than two rescales; four slots cost as much after 32 min."""
    assert looks([3000.0] * 3, slots=32) == [None, 4, 4]  # 3,000 / 0.85
    assert looks([3000.0] * 8, slots=8) == [None] * 7 + [4]


def test_without_a_plan_a_job_keeps_what_its_peaks_need():
    asked = looks([3000.0, 3000.0, 5500.0] * 12, slots=12)  # 5,500 / 0.85 is 7 slots
    assert set(asked) == {None, 7}
    assert asked.index(7) == 8  # 5 slots fewer since the third look


def test_without_a_plan_no_fall_is_sent_while_a_job_is_late():
    _, memory = decide_reactively(snapshot(600, 3000.0, slots=12), ControllerMemory())
    assert decide_reactively(snapshot(9000, 3000.0, lag_s=70.0, slots=12), memory)[0].wanted is None
    assert decide_reactively(snapshot(9000, 3000.0, lag_s=30.0, slots=12), memory)[0].wanted is not None


def test_without_a_plan_what_was_not_seen_is_no_lull():
    _, memory = decide_reactively(snapshot(600, 3000.0, slots=12), ControllerMemory())
    _, memory = decide_without_windows(memory, 4800)
    assert decide_reactively(snapshot(9000, 3000.0, slots=12), memory)[0].wanted is None


def test_an_enlarging_that_was_refused_is_forgotten():
    """Else the job would be sent back, when the backlog is gone, to what it has left by a plan's step meanwhile."""
    memory = decide_reactively(snapshot(600, 7600.0), ControllerMemory(planned=True))[1]
    _, memory = decide_reactively(snapshot(1200, 7600.0, lag_s=140.0, disturbed=True), memory)
    reported, memory = decide_reactively(snapshot(1500, 7600.0, slots=12), memory)
    assert reported.wanted is None
    assert (memory.back_to, memory.enlarged_to) == (None, None)


def test_a_job_that_stands_still_is_left_alone():
    stopped = replace(snapshot(600, 9900.0, lag_s=100.0), up=False)
    assert decide_reactively(stopped, ControllerMemory(planned=True))[0].wanted is None


def test_a_job_that_restarts_after_a_failure_comes_back_enlarged():
    memory = decide_reactively(snapshot(600, 7600.0), ControllerMemory(planned=True))[1]  # 5% of headroom
    down = replace(snapshot(1200, 7600.0), up=False)
    assert decide_reactively(down, memory)[0].wanted is None
    reported, after = decide_reactively(replace(down, restarting=True), memory)
    wider = {"source": 3, "map": 19}  # fewer than for 140 s
    assert reported.wanted == wider
    assert "restarts after a failure; its backlog of some 120 s" in reported.reason  # 90 s of downtime, 30 s once more
    assert (after.back_to, after.enlarged_to) == (RUNNING, wider)
    assert decide_reactively(replace(down, restarting=True), after)[0].wanted is None  # once
    for off in ({"rescales_for_catch_up": False}, {"rescales_while_restarting": False}):
        assert (
            decide_reactively(
                replace(down, restarting=True, options=PlannerSettings(reactive=ReactiveSettings(**off))), memory
            )[0].wanted
            is None
        )
    reported, after = decide_reactively(snapshot(1800, 7600.0, slots=19), after)
    assert reported.wanted == RUNNING


def test_a_job_that_restarts_with_head_room_is_left_to_itself():
    memory = decide_reactively(snapshot(600, 4000.0), ControllerMemory(planned=True))[1]
    reported, after = decide_reactively(replace(snapshot(1200, 4000.0), up=False, restarting=True), memory)
    assert (reported.wanted, after.back_to) == (None, None)
    assert "not worth" in reported.reason


def test_a_fall_waits_until_the_job_is_no_longer_late():
    low = {"source": 1, "map": 5}
    due = (PendingStep(600, 4200, low, 9e9, "the load falls", load_before_most_per_s=9e9),)
    memory = decide_reactively(snapshot(300, 4000.0), ControllerMemory(planned=True))[1]
    reported, after = decide_reactively(snapshot(600, 4000.0, lag_s=90.0), replace(memory, due=due))
    assert (reported.wanted, after.due) == (None, due)
    assert decide_reactively(snapshot(900, 4000.0, lag_s=30.0), after)[0].wanted == low


def test_the_memory_survives_its_table():
    due = (PendingStep(600, 1200, {"source": 1, "map": 2}, 200.0, "the load falls", load_before_most_per_s=900.0),)
    _, memory = decide_reactively(snapshot(600, 7600.0), ControllerMemory(due=due, planned=True, back_to=RUNNING))
    assert load(ControllerMemory, dump(memory)) == memory


def test_after_an_overload_no_fall_is_sent_for_a_while():
    due = (PendingStep(900, 90_000, {"source": 1, "map": 4}, 9e9, "the load falls", load_before_most_per_s=9e9),)
    holds = PlannerSettings(reactive=ReactiveSettings(hold_s=3600))
    reported, memory = decide_reactively(
        replace(snapshot(600, 8500.0, lag_s=30.0), options=holds), ControllerMemory(planned=True)
    )
    assert reported.wanted is not None
    memory = accept_plan(memory, due)
    assert decide_reactively(snapshot(1200, 3000.0, slots=9), memory)[0].wanted is None
    late = 600 + holds.reactive.hold_s
    assert decide_reactively(snapshot(late, 3000.0, slots=9), memory)[0].wanted == due[0].parallelism


def test_no_fall_is_sent_to_what_the_load_would_overload():
    """The forecast lets the load fall at once after an event; it has not fallen."""
    low = {"source": 1, "map": 5}  # never seen: 5/8 of what 8 do
    due = (PendingStep(600, 4200, low, 2000.0, "the load falls", load_before_most_per_s=9e9),)
    memory = ControllerMemory(due=due, planned=True)
    reported, after = decide_reactively(snapshot(600, 6000.0), memory)
    assert reported.wanted is None
    assert after.due == due
    assert decide_reactively(snapshot(600, 4000.0), memory)[0].wanted == low


def test_a_job_does_not_go_back_to_what_the_load_has_outgrown():
    memory = decide_reactively(snapshot(600, 7600.0), ControllerMemory(planned=True))[1]
    _, memory = decide_reactively(snapshot(1200, 7600.0, lag_s=140.0, disturbed=True), memory)
    unread = replace(snapshot(1500, 12_000.0), running=WIDER)
    reported, memory = decide_reactively(unread, memory)  # its windows are those of before
    assert reported.wanted is None
    assert memory.back_to == RUNNING
    reported, memory = decide_reactively(snapshot(1800, 12_000.0, slots=23), memory)
    assert reported.wanted == {"source": 1, "map": 14}  # 12,000 / 0.9 of 1,000 an instance
    assert memory.back_to is None
    assert "outgrown" in reported.reason


@pytest.mark.parametrize("planned", [False, True])
def test_a_job_with_a_side_output_needs_what_its_branches_get(planned: bool):
    """What the vertex before them sends is the sum over both: a branch is sized for its own records, not for all."""
    graph = JobGraph.from_operators(
        [Operator("source"), Operator("route", ("source",)), Operator("big", ("route",)), Operator("small", ("route",))]
    )
    taken = np.tile([1000.0, 1000.0, 900.0, 100.0], (2, 1))
    capacity = np.tile([1e5, 2000.0, 1500.0, 200.0], (2, 1))  # each busy for half of its time, or little more
    of_source = np.array([[1.0, np.nan, np.nan, np.nan]] * 2)
    values = dict.fromkeys(MEASURES, taken) | {
        "true_processing_rate_per_s": capacity,
        "true_output_rate_per_s": capacity,
        "target_data_rate_per_s": 1000.0 * of_source,
        "busy_share": taken / capacity,
        "idle_share": 1.0 - taken / capacity,
        "backpressured_share": np.zeros((2, 4)),
        "pending_records": 0.0 * of_source,
        "latency_ms": 0.0 * of_source,
    }
    running = {"source": 1, "route": 1, "big": 3, "small": 2}
    observed = Observations(
        window_start_s=np.array([0, 300]),
        window_s=300,
        parallelism=np.tile(list(running.values()), (2, 1)),
        disturbed=np.zeros(2, bool),
        **values,
    )
    reported, memory = decide_reactively(
        Snapshot(600, graph, running, True, observed, 32, Planner()), ControllerMemory(planned=planned)
    )
    assert reported.wanted is None, reported.reason
    assert memory.shares == pytest.approx({"source": 1.0, "route": 1.0, "big": 0.9, "small": 0.1})


def test_a_late_job_that_is_left_as_it_is_is_not_left_without_a_word():
    memory = decide_reactively(snapshot(600, 4000.0), ControllerMemory(planned=True))[1]
    reported, _ = decide_reactively(snapshot(900, 4000.0, lag_s=90.0), memory)
    assert reported.wanted is None
    assert reported.reason.endswith("; a backlog of 90 s is left to the running configuration")
    assert reported.remark == "a backlog of 90 s is left to the running configuration"
    assert decide_reactively(snapshot(900, 4000.0), memory)[0].remark == ""
