"""Clocks that are set, the controller's or the cluster's: holds last, requests are followed, late jobs are helped."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from control_entries import NOW_S, TWO
from job_world import AUTO, JOB, World

from include.utc import DAY_S, HOUR_S
from models.control.case import Case, Verb
from models.control.clock_steps import align_times
from models.control.reconcile import reconcile
from models.control.state import BlockedTarget, Intention, JobHistory, ObservedJob, Origin, Request

FOUR = {"a": 4, "b": 4}


@pytest.fixture
def world(tmp_path):
    (tmp_path / "lake").mkdir()
    made = World(tmp_path)
    made.tick()
    for count in (4, 6):
        assert made.tick(count).verb is Verb.RESCALE
        assert made.tick(count).verb is Verb.CONFIRM
    return made


def set_own_clock(world: World, ahead_s: float) -> None:
    world.now_s += ahead_s
    world.cluster_ahead_s -= ahead_s


def measure_hold_s(world: World) -> float:
    """Return how long a person's change is respected, in true seconds: by the cluster's clock, which is right."""
    began_s = world.now_s + world.cluster_ahead_s
    while world.tick(6, pass_s=300.0).reason in {"held", "clock_differs"}:
        assert world.now_s + world.cluster_ahead_s < began_s + DAY_S
    return world.now_s + world.cluster_ahead_s - began_s


@pytest.mark.covers("harm clock-set")
@pytest.mark.parametrize("ahead_h", [0.0, 0.05, 1.0, 2.83, 26.0])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_clock_that_is_set_ahead_does_not_shorten_a_person_s_hold(world, ahead_h: float, is_restarted: bool) -> None:
    world.asked = {"a": 5, "b": 5}
    assert world.tick(6).reason == "foreign_change"
    set_own_clock(world, ahead_h * HOUR_S)
    if is_restarted:
        world.restart()
    if ahead_h > 3:  # a plan waits until the clock is right
        for _ in range(3):
            assert world.tick(6).reason == "held"
        set_own_clock(world, -ahead_h * HOUR_S)
    assert measure_hold_s(world) >= 4 * HOUR_S - 360


@pytest.mark.parametrize("ahead_h", [-30.0, -4.0, 4.0])
def test_the_cluster_s_clock_neither_ends_a_hold_nor_adds_more_than_another(world, ahead_h: float) -> None:
    world.asked = {"a": 5, "b": 5}
    assert world.tick(6).reason == "foreign_change"
    world.cluster_ahead_s = ahead_h * HOUR_S
    held = 0
    while world.tick(None, pass_s=300.0).reason == "held":
        held += 1
    assert 46 <= held <= 96


def observed(hours: float, **changed: object) -> ObservedJob:
    made = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8, told_at_s=NOW_S + hours * HOUR_S)
    return replace(made, **changed)


@pytest.mark.parametrize("hours", [-300.0, -4.0, 4.0, 300.0])
@pytest.mark.parametrize(
    ("origin", "has_blackouts", "is_sent"),
    [
        (Origin.REACTIVE, False, True),  # an overloaded job is helped
        (Origin.PIN, False, True),
        (Origin.REACTIVE, True, False),  # nobody knows whether a blackout is on
        (Origin.PLAN, False, False),
    ],
)
def test_by_a_wrong_clock_what_needs_no_hour_of_the_day_goes_on(
    hours: float, origin: Origin, has_blackouts: bool, is_sent: bool
) -> None:
    limits = replace(AUTO, has_blackouts=has_blackouts, pin_all=4 if origin is Origin.PIN else None)
    wanted = Intention(FOUR, origin, "more", "late", NOW_S + 600)
    case = Case(NOW_S, wanted, observed(hours), JobHistory("j", known_requested=TWO), limits)
    action = reconcile(case)
    assert (action.verb is Verb.RESCALE, action.reason == "clock_differs") == (is_sent, not is_sent)


@pytest.mark.parametrize("hours", [-4.0, 0.0, 4.0])
def test_a_request_is_followed_to_its_end_whatever_the_cluster_s_clock_says(hours: float) -> None:
    sent = Request("step", "j", FOUR, TWO, TWO, NOW_S - 400, NOW_S - 10, arrived_at_s=NOW_S - 390)
    flying = JobHistory("j", in_flight=sent, known_requested=TWO)
    runs = Case(NOW_S, None, observed(hours, running=FOUR, requested=FOUR), flying, AUTO)
    assert reconcile(runs).verb is Verb.CONFIRM
    unfilled = replace(runs, observed=observed(hours, requested=FOUR))
    assert (reconcile(unfilled).verb, reconcile(unfilled).reason) == (Verb.ROLL_BACK, "not_filled")


def test_times_move_with_the_controller_s_clock_and_with_no_other() -> None:
    sent = Request(
        "step", "j", FOUR, TWO, TWO, NOW_S - 30, NOW_S + 270, forced_at_s=NOW_S + 9, slots_came_at_s=math.inf
    )
    lifted = BlockedTarget(FOUR, math.inf, "id")
    known = JobHistory(
        "j", in_flight=sent, request_times_s=(NOW_S - 30,), blocked=(lifted,), held_until_s=NOW_S + 60, ahead_s=2.0
    )
    for ahead_s in (2.0, 40.0, -50.0):  # the time that a reply takes
        assert align_times(known, NOW_S - ahead_s, NOW_S, AUTO) == known
    assert align_times(known, None, NOW_S, AUTO) == known
    new = align_times(replace(known, ahead_s=None), NOW_S - 9e5, NOW_S, AUTO)
    assert new == replace(known, ahead_s=9e5)  # it was so already
    far = replace(known, ahead_s=None, held_until_s=NOW_S + 1e6)
    assert align_times(far, NOW_S, NOW_S, AUTO).held_until_s == NOW_S + 1e6
    later = align_times(known, NOW_S, NOW_S + 902, AUTO)
    assert later.ahead_s == 902
    assert later.request_times_s == (NOW_S + 870,)
    assert later.held_until_s == NOW_S + 960
    assert later.blocked == (lifted,)
    moved = later.in_flight
    assert moved is not None
    assert (moved.sent_at_s, moved.deadline_s) == (NOW_S + 870, NOW_S + 1170)
    assert (moved.forced_at_s, moved.slots_came_at_s, moved.arrived_at_s) == (NOW_S + 909, math.inf, None)
    back = align_times(later, NOW_S + 60, NOW_S + 60, AUTO)
    assert (back.ahead_s, back.request_times_s) == (0.0, (NOW_S + 60,))  # at most a wait from now
    assert back.in_flight is not None
    assert (back.in_flight.sent_at_s, back.in_flight.deadline_s) == (NOW_S + 60, NOW_S + 360)
    assert back.in_flight.slots_came_at_s == math.inf
    came = replace(later, in_flight=replace(moved, slots_came_at_s=NOW_S + 880))
    bound = align_times(came, NOW_S + 60, NOW_S + 60, AUTO).in_flight
    assert bound is not None
    assert bound.slots_came_at_s == NOW_S + 60


@pytest.mark.parametrize("ahead_s", [-4 * HOUR_S, 90.0, 4 * HOUR_S])
def test_an_overloaded_job_is_helped_while_the_cluster_s_clock_is_off(world, ahead_s: float) -> None:
    world.cluster_ahead_s = ahead_s
    world.now_s += HOUR_S
    case = world.log.read_last(JOB).case
    wanted = Intention({"a": 8, "b": 8}, Origin.REACTIVE, "more", "late", world.now_s + 600)
    history = align_times(world.log.read_history(JOB), world.now_s + ahead_s, world.now_s, AUTO)
    asked = replace(case, now_s=world.now_s, desired=wanted, observed=world.observe(JOB), history=history)
    assert reconcile(asked).verb is Verb.RESCALE
