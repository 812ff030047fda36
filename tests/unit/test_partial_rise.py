"""A rise that does not fit as a whole: the part that fits is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.control.case import Case, Verb
from models.control.limits import Limits
from models.control.partial_rise import grow_within
from models.control.reconcile import reconcile
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin

NOW_S = 1_000_000.0
RUNNING = {"source": 1, "join": 1, "sink": 1}
WANTED = {"source": 2, "join": 16, "sink": 4}
OBSERVED = ObservedJob("j", "RUNNING", RUNNING, RUNNING, free_slots=5)
CASE = Case(
    NOW_S,
    Intention(WANTED, Origin.REACTIVE, "step", "load uses 300%", NOW_S + 600),
    OBSERVED,
    JobHistory(job_id="j", known_requested=RUNNING),
    Limits(mode=Mode.AUTO),
)


def test_what_fits_of_a_reactive_rise_is_asked_for() -> None:
    action = reconcile(CASE)
    assert action.verb is Verb.RESCALE
    assert dict(action.request.target) == {"source": 2, "join": 6, "sink": 4}
    assert "5 of the 15 slots are to be had now" in action.detail


def test_what_fits_as_a_whole_is_not_cut() -> None:
    action = reconcile(replace(CASE, observed=replace(OBSERVED, free_slots=15)))
    assert dict(action.request.target) == WANTED
    assert "to be had" not in action.detail


@pytest.mark.parametrize("origin", [Origin.REACTIVE, Origin.PLAN, Origin.RESTORE])
@pytest.mark.covers("flink_waits 10")
def test_whoever_but_a_person_wants_a_rise_gets_the_part_that_fits(origin: Origin) -> None:
    action = reconcile(replace(CASE, desired=replace(CASE.desired, origin=origin)))
    assert dict(action.request.target) == {"source": 2, "join": 6, "sink": 4}
    assert (action.reason, action.request.step_id) == (str(origin), "step")


def test_a_pin_is_sent_as_a_whole_or_refused() -> None:
    pinned = replace(CASE, limits=replace(CASE.limits, pin_all=8))
    assert reconcile(pinned).reason == "no_free_slots"
    assert reconcile(replace(pinned, observed=replace(OBSERVED, free_slots=7))).reason == "pin"


@pytest.mark.covers("flink_waits 9")
def test_free_slots_that_nobody_knows_are_none() -> None:
    for origin in Origin:
        unknown = replace(
            CASE, desired=replace(CASE.desired, origin=origin), observed=replace(OBSERVED, free_slots=None)
        )
        assert (reconcile(unknown).verb, reconcile(unknown).reason) == (Verb.REFUSE, "free_slots_unknown")
        elastic = replace(unknown, observed=replace(OBSERVED, free_slots=None, is_elastic=True))
        assert dict(reconcile(elastic).request.target) == WANTED


@pytest.mark.covers("flink_waits 10")
def test_a_part_that_lets_no_more_through_is_no_rise() -> None:
    """Both groups lack the same, and one slot is free: whichever gets it, the other holds the job back as before."""
    groups = {"source": "a", "join": "b", "sink": "b"}
    observed = replace(OBSERVED, slot_sharing_group=groups, free_slots=1)
    wanted = replace(CASE.desired, parallelism={"source": 16, "join": 16, "sink": 1})
    assert reconcile(replace(CASE, observed=observed, desired=wanted)).reason == "no_free_slots"
    two = replace(observed, free_slots=2)
    assert dict(reconcile(replace(CASE, observed=two, desired=wanted)).request.target) == {
        "source": 2,
        "join": 2,
        "sink": 1,
    }


@pytest.mark.parametrize("origin", [Origin.REACTIVE, Origin.PIN, Origin.PLAN])
def test_where_nothing_fits_it_is_refused(origin: Origin) -> None:
    case = replace(CASE, desired=replace(CASE.desired, origin=origin), observed=replace(OBSERVED, free_slots=0))
    assert (reconcile(case).verb, reconcile(case).reason) == (Verb.REFUSE, "no_free_slots")


def test_the_budget_of_the_cluster_counts_as_well() -> None:
    limits = Limits(mode=Mode.AUTO, cluster_slots_max=10)
    case = replace(CASE, limits=limits, observed=replace(OBSERVED, cluster_slots_used=8))
    assert reconcile(case).request.target["join"] == 3
    unknown = replace(case, observed=replace(OBSERVED, cluster_slots_used=None))
    assert reconcile(unknown).reason == "budget_unknown"


def test_of_several_groups_the_vertex_that_lacks_most_is_first() -> None:
    groups = {"source": "a", "join": "b", "sink": "c"}
    observed = replace(OBSERVED, slot_sharing_group=groups)
    part = grow_within(RUNNING, WANTED, observed, observed.slots + 5)
    assert part == {"source": 1, "join": 5, "sink": 2}


COUNTS = st.integers(1, 40)


@given(st.tuples(COUNTS, COUNTS, COUNTS), st.tuples(COUNTS, COUNTS, COUNTS), st.integers(0, 60), st.booleans())
def test_a_part_is_within_what_is_free_and_between_what_runs_and_what_is_wanted(
    now: tuple[int, ...], wanted: tuple[int, ...], free: int, grouped: bool
) -> None:
    running, target = dict(zip("abc", now, strict=True)), dict(zip("abc", wanted, strict=True))
    observed = ObservedJob("j", "RUNNING", running, running, slot_sharing_group={"a": "x"} if grouped else {})
    part = grow_within(running, target, observed, observed.slots + free)
    assert observed.slots_of(part) <= observed.slots + free
    assert all(running[one] <= part[one] <= max(target[one], running[one]) for one in "abc")
