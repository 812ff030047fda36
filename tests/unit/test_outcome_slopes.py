"""A rescale is judged by whether the backlog falls since, not by how much had piled up until it ran."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from models.control.case import Case, OutcomeCheck, Verb
from models.control.limits import Limits
from models.control.outcome import Measurements, judge_outcome
from models.control.reconcile import reconcile
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin, Request

NOW_S = 1_000_000.0
ONE, TWO, FIVE = {"join": 1, "sink": 1}, {"join": 2, "sink": 1}, {"join": 5, "sink": 1}
ROSE = Request("step", "j", TWO, ONE, ONE, NOW_S - 534, NOW_S + 106, settle_s=113.0)
CONFIRMED_S = NOW_S - 234
OVERLOADED = Measurements(NOW_S - 564, 878.0, 1000.0, 0.26, 28.0, 0)
CATCHES_UP = Measurements(NOW_S, 1174.0, 1000.0, 0.51, 88.0, 0)  # 300 s piled up until the rise was carried out
NO_HARM = OutcomeCheck(False, "the rescale did no harm")
WORSE = OutcomeCheck(True, "records wait for 88 s")


def test_a_rise_that_works_the_backlog_off_is_judged_at_its_end_and_no_harm() -> None:
    assert judge_outcome(ROSE, CONFIRMED_S, OVERLOADED, CATCHES_UP) == OutcomeCheck()
    for caught_up in ({"lag_s": 20.0}, {"until_s": CONFIRMED_S + 3600}):
        assert judge_outcome(ROSE, CONFIRMED_S, OVERLOADED, replace(CATCHES_UP, **caught_up)) == NO_HARM


@pytest.mark.parametrize(("slope_per_s", "is_worse"), [(-200.0, None), (19.0, False), (141.0, False), (143.0, True)])
def test_the_slope_of_all_that_is_outstanding_counts_where_it_is_known(slope_per_s: float, is_worse: bool) -> None:
    """What the sources take in may fill buffers: by their own figures this backlog falls by 174/s."""
    before = replace(OVERLOADED, backlog_slope_per_s=122.0)
    after = replace(CATCHES_UP, backlog_slope_per_s=slope_per_s)
    assert judge_outcome(ROSE, CONFIRMED_S, before, after).is_worse is is_worse


@pytest.mark.parametrize(
    ("target", "capacity_per_s", "is_worse"),
    [
        (TWO, 800.0, False),  # two slots carry as much as one did: each less, both no less
        (TWO, 700.0, True),
        ({"join": 1, "sink": 2}, 700.0, True),
        ({"join": 1, "sink": 2}, 730.0, False),
    ],
)
def test_a_slot_that_carries_less_is_harm_where_the_backlog_stays(
    target: dict[str, int], capacity_per_s: float, is_worse: bool
) -> None:
    before = replace(OVERLOADED, backlog_slope_per_s=0.0, capacity_per_s={"join": 800.0})
    after = replace(
        CATCHES_UP, backlog_slope_per_s=0.0, throughput_per_s=700.0, capacity_per_s={"join": capacity_per_s}
    )
    request = replace(ROSE, target=target)
    assert judge_outcome(request, CONFIRMED_S, before, after).is_worse is is_worse


def test_a_fall_keeps_the_capacity_of_each_slot() -> None:
    fell = replace(ROSE, target=ONE, before=TWO, running_before=TWO)
    before = replace(OVERLOADED, backlog_slope_per_s=0.0, capacity_per_s={"join": 800.0, "sink": 900.0})
    for capacity_per_s, is_worse in ((400.0, False), (350.0, True)):
        of_join = {"join": capacity_per_s}
        after = replace(CATCHES_UP, backlog_slope_per_s=0.0, throughput_per_s=700.0, capacity_per_s=of_join)
        assert judge_outcome(fell, CONFIRMED_S, before, after).is_worse is is_worse


@pytest.mark.parametrize(
    ("throughput_per_s", "is_worse"),
    [
        (990.0, False),  # it stands still
        (900.0, False),  # it grows as before: too little, and not for the rescale
        (850.0, True),
    ],
)
def test_a_rise_after_which_the_backlog_grows_faster_is_worse(throughput_per_s: float, is_worse: bool) -> None:
    after = replace(CATCHES_UP, throughput_per_s=throughput_per_s)
    assert judge_outcome(ROSE, CONFIRMED_S, OVERLOADED, after).is_worse is is_worse


def test_less_throughput_is_no_harm_where_less_arrives_and_the_backlog_falls() -> None:
    after = replace(CATCHES_UP, throughput_per_s=700.0, arriving_per_s=500.0)
    assert judge_outcome(ROSE, CONFIRMED_S, OVERLOADED, after) == OutcomeCheck()
    stands = judge_outcome(ROSE, CONFIRMED_S, OVERLOADED, replace(after, arriving_per_s=700.0))
    assert stands.is_worse is True


def test_of_a_source_without_arrivals_the_throughput_tells() -> None:
    unknown = replace(OVERLOADED, arriving_per_s=math.nan)
    for throughput_per_s, is_worse in ((1174.0, False), (700.0, True)):
        after = replace(CATCHES_UP, throughput_per_s=throughput_per_s, arriving_per_s=math.nan)
        assert judge_outcome(ROSE, CONFIRMED_S, unknown, after).is_worse is is_worse


def test_of_a_source_without_arrivals_the_slope_tells() -> None:
    unknown = replace(OVERLOADED, arriving_per_s=math.nan)
    after = replace(CATCHES_UP, arriving_per_s=math.nan)
    assert judge_outcome(ROSE, CONFIRMED_S, unknown, replace(after, backlog_slope_per_s=-200.0)) == OutcomeCheck()
    grows = judge_outcome(ROSE, CONFIRMED_S, unknown, replace(after, backlog_slope_per_s=200.0))
    assert grows.is_worse is True  # how it grew before is not known: then it stood still


def test_a_backlog_that_still_falls_after_an_hour_is_no_harm_though_a_slot_carries_less() -> None:
    before = replace(OVERLOADED, capacity_per_s={"join": 800.0})
    after = replace(CATCHES_UP, until_s=CONFIRMED_S + 3600, capacity_per_s={"join": 600.0})
    assert judge_outcome(ROSE, CONFIRMED_S, before, after) == NO_HARM
    stands = replace(after, backlog_slope_per_s=0.0)
    assert judge_outcome(ROSE, CONFIRMED_S, replace(before, backlog_slope_per_s=0.0), stands).is_worse is True


def judged(outcome: OutcomeCheck, desired: dict[str, int] | None) -> Case:
    history = JobHistory(
        "j", known_requested=TWO, last_good=ONE, to_judge=ROSE, confirmed_at_s=CONFIRMED_S, last_change_at_s=CONFIRMED_S
    )
    wish = None if desired is None else Intention(desired, Origin.REACTIVE, "more", "it is late", NOW_S + 60)
    observed = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
    return Case(NOW_S, wish, observed, history, Limits(mode=Mode.AUTO), outcome)


def test_nothing_is_taken_back_of_which_the_evaluation_wants_more() -> None:
    waits = reconcile(judged(WORSE, FIVE))
    assert (waits.verb, waits.reason) == (Verb.WAIT, "cooldown")
    later = judged(WORSE, FIVE)
    later = replace(later, history=replace(later.history, last_change_at_s=None))
    assert reconcile(later).request.target == FIVE
    at_its_most = replace(later, limits=Limits(mode=Mode.AUTO, slots_max=2))
    assert reconcile(at_its_most).reason == "as_desired"
    for desired in (None, ONE, {"join": 2, "sink": 2}):
        back = reconcile(judged(WORSE, desired))
        assert (back.reason, back.request.target) == ("worse_than_before", ONE)


def test_a_job_that_fails_since_is_taken_back_though_more_is_wanted() -> None:
    failing = judge_outcome(ROSE, CONFIRMED_S, OVERLOADED, replace(CATCHES_UP, restarts=2))
    assert reconcile(judged(failing, FIVE)).request.target == ONE
