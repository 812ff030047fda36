"""Schedules of slots: windows on the wall clock, what contradicts them, and that plans and control keep within."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from situations import make_situation

from controller.limits.operator_limits import limit_by_schedules
from include.settings import Planner, SettingsError, check_settings
from include.settings.slot_schedules import SlotSchedule
from lab.policies.planner.planner_policy import PlannerPolicy
from models.control.case import Case, Verb
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.state import JobHistory, Mode, ObservedJob
from models.hosting.host import HostMemory, Plan, evaluate_hosted
from models.policies.immediate_change import name_schedules
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import Schedule
from models.policies.situations import assume_untrained
from models.policies.tidewise.programme_memory import PlannedLoad, ProgrammeMemory
from models.policies.tidewise.programme_policy import Programme
from models.scheduling.demand import LEVELS, SourceForecast
from models.scheduling.slot_bounds import BoundedWindow, SlotBounds
from tests.unit.test_programme_plan import HOSTED, PAST, job_with
from tests.unit.test_programme_policy import GRAPH, noisy

DAY = {"cron": "0 8 * * 1-5", "duration_s": 36_000, "slots_min": 12}
BERLIN = SlotSchedule(cron="30 2 * * *", duration_s=3600, time_zone="Europe/Berlin", slots_min=4)


def refuse(**jobs: dict[str, Any]) -> str:
    with pytest.raises(SettingsError) as refused:
        accept(**jobs)
    return str(refused.value)


def accept(**jobs: dict[str, Any]) -> Any:
    named = {f"prod/{job}": limits for job, limits in jobs.items()}
    return check_settings({"clusters": {"prod": {"slots_total": 20, "slots_max": 16}}, "limits": {"jobs": named}})


@pytest.mark.parametrize(
    ("jobs", "says"),
    [
        ({"a": {"schedules": {"day": {**DAY, "slots_max": 8}}}}, "slots_min = 12 is above slots_max = 8"),
        ({"a": {"schedules": {"day": {**DAY, "slots_min": 17}}}}, "is above clusters.prod.slots_max = 16"),
        ({"a": {"slots_max": 10, "schedules": {"day": DAY}}}, 'is above limits.jobs."prod/a".slots_max = 10'),
        (
            {"a": {"slots_min": 4, "schedules": {"night": {"cron": "0 22 * * *", "duration_s": 3600, "slots_max": 2}}}},
            'is below limits.jobs."prod/a".slots_min = 4',
        ),
        (
            {"a": {"schedules": {"day": DAY, "noon": {"cron": "0 12 * * 1", "duration_s": 3600, "slots_max": 8}}}},
            "both are on at Mon 12:00 UTC",
        ),
        ({"a": {"schedules": {"day": DAY}}, "b": {"schedules": {"day": DAY}}}, "come to 24 at Mon 08:00 UTC"),
        ({"a": {"schedules": {"day": DAY}}, "b": {"slots_min": 9, "schedules": {}}}, "clusters.prod.slots_total is 20"),
        ({"a": {"schedules": {"day": {**DAY, "cron": "0 8 * * *", "duration_s": 86_400}}}}, "would never end"),
        ({"a": {"schedules": {"day": {**DAY, "time_zone": "Europe/Bonn"}}}}, "is no IANA time zone"),
        ({"a": {"schedules": {"day": {**DAY, "ends_at": "2026-12-01T00:00:00"}}}}, "has no time zone"),
        ({"a": {"schedules": {"day": {"cron": "0 8 * * *", "duration_s": 3600}}}}, "says nothing of slots"),
    ],
)
def test_a_schedule_that_cannot_be_kept_is_refused_by_name(jobs: dict[str, Any], says: str) -> None:
    message = refuse(**jobs)
    assert says in message
    assert 'limits.jobs."prod/a"' in message


def test_windows_that_never_meet_do_not_contradict_each_other() -> None:
    sunday = {"cron": "0 9 * * 0", "duration_s": 36_000, "slots_min": 12}
    accept(a={"schedules": {"day": DAY}}, b={"schedules": {"rest": sunday}})
    accept(a={"schedules": {"day": DAY, "rest": {**sunday, "slots_min": 1, "slots_max": 4}}})


@pytest.mark.parametrize(
    ("day", "begins"),
    [
        ((2026, 3, 28), datetime(2026, 3, 28, 1, 30, tzinfo=UTC)),
        ((2026, 3, 29), datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),  # 02:30 is left out: 03:30 by the clock
        ((2026, 3, 30), datetime(2026, 3, 30, 0, 30, tzinfo=UTC)),
        ((2026, 10, 25), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),  # 02:30 comes twice: with the first
        ((2026, 10, 26), datetime(2026, 10, 26, 1, 30, tzinfo=UTC)),
    ],
)
def test_a_window_follows_the_wall_clock_and_lasts_as_time_passes(day: tuple[int, int, int], begins: datetime) -> None:
    midnight = datetime(*day, tzinfo=UTC)
    windows = BERLIN.list_windows(midnight, midnight + timedelta(hours=12))
    assert windows == [(begins, begins + timedelta(hours=1))]


def test_no_window_is_on_after_its_end() -> None:
    ends = BERLIN.model_copy(update={"ends_at": datetime(2026, 11, 3, 2, 0, tzinfo=UTC)})
    windows = ends.list_windows(datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 9, tzinfo=UTC))
    assert [end.isoformat() for _, end in windows] == ["2026-11-02T02:30:00+00:00", "2026-11-03T02:00:00+00:00"]


def test_configurations_come_within_the_slots_and_operators_that_a_window_asks_for() -> None:
    span = BoundedWindow("day", 0.0, 1.0, 8, 10, {"b": (2, 3)})
    rows, groups, limits = np.array([[4, 4], [12, 1], [9, 3]]), ("x", "x"), np.array([32, 32])
    assert span.bring_within(rows, ("a", "b"), groups, limits).tolist() == [[8, 3], [10, 2], [9, 3]]
    assert span.find_within(rows, ("a", "b"), groups).tolist() == [False, False, True]
    assert span.bring_within(rows[:1], ("a", "b"), groups, np.array([5, 32])).tolist()[0][0] == 5


def bounded(job: Snapshot, after_s: float, lasts_s: float, least: int = 1, most: int = 2**31) -> Snapshot:
    begin_s = job.now_s + after_s
    return replace(job, bounds=SlotBounds((BoundedWindow("day", begin_s, begin_s + lasts_s, least, most),)))


def plan(job: Snapshot, policy: str) -> Schedule:
    path = np.tile(np.full(312, 5000.0), (len(LEVELS), 1))
    forecast = SourceForecast(job.now_s - 300 * PAST, 300, {"in": path})
    models = assume_untrained(GRAPH, job.observations)
    asked = make_situation(
        *(job.now_s, GRAPH, job.running, models, forecast, 32, Planner(), job.observations), bounds=job.bounds
    )
    if policy == "planner":
        return name_schedules(PlannerPolicy().decide(asked, PlannerPolicy().first_memory())[0], job.bounds)
    made, _ = Programme().decide(asked, ProgrammeMemory(planned=PlannedLoad.of(forecast)))
    return name_schedules(made, job.bounds)


@pytest.mark.parametrize(
    ("policy", "least", "most"), [("programme", 12, 2**31), ("programme", 1, 3), ("planner", 12, 2**31)]
)
def test_a_plan_keeps_within_a_schedule_and_says_so(policy: str, least: int, most: int) -> None:
    job = job_with(noisy(5000.0, PAST))
    usual = plan(job, policy)
    begin_s, end_s = job.now_s + 4 * 3600, job.now_s + 8 * 3600
    made = plan(bounded(job, 4 * 3600, 4 * 3600, least, most), policy)

    def slots_at(schedule: Schedule, at_s: float) -> int:
        done = [one.step for one in schedule.decisions if one.step.apply_at_s <= at_s and not one.step.is_hold]
        return done[-1].slots if done else 6

    inside = [slots_at(made, at_s) for at_s in np.arange(begin_s + 300, end_s - 300, 300)]
    assert all(least <= slots <= most for slots in inside), inside
    assert any(not least <= slots_at(usual, at_s) <= most for at_s in (begin_s + 3600, end_s - 3600))
    steps = [one for one in made.decisions if begin_s - 1200 <= one.step.effective_at_s < end_s]
    assert steps
    assert all("schedule day asks for" in one.reason for one in steps)
    assert slots_at(made, end_s + 3 * 3600) == slots_at(usual, end_s + 3 * 3600)  # and goes back after it


def test_an_evaluation_keeps_within_a_schedule_that_is_on_and_says_so() -> None:
    job = bounded(job_with(noisy(5000.0, PAST)), -600, 7200, least=12)
    decision, _ = evaluate_hosted(HOSTED, HostMemory(), job.now_s, job, Plan(float(job.now_s)))
    assert decision.wanted is not None
    assert max(decision.wanted.values()) >= 12
    assert "schedule day asks for at least 12 slots until" in decision.reason


NOW_S = datetime(2026, 11, 25, 12, tzinfo=UTC).timestamp()  # a Wednesday
TWO = {"a": 2, "b": 2}


def limits_now(schedule: dict[str, Any], names: tuple[str, ...] = ("map", "sink")) -> Limits:
    bounds = SlotBounds.of({"day": SlotSchedule.model_validate(schedule)}, NOW_S, NOW_S + 1)
    return limit_by_schedules(Limits(mode=Mode.AUTO), bounds, dict(zip(names, TWO, strict=True)), NOW_S)


def test_the_controller_brings_a_job_within_its_schedule_whatever_its_policy() -> None:
    limits = limits_now(DAY)
    observed = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=20)
    action = reconcile(Case(NOW_S, None, observed, JobHistory(job_id="j", known_requested=TWO), limits))
    assert (action.verb, str(action.reason)) == (Verb.RESCALE, "schedule")
    assert action.request is not None
    assert max(action.request.target.values()) == 12
    assert "schedule day asks for at least 12 slots until 18:00" in action.detail
    within = replace(observed, running=action.request.target, requested=action.request.target)
    history = JobHistory(job_id="j", known_requested=action.request.target)
    assert str(reconcile(Case(NOW_S, None, within, history, limits)).reason) == "as_desired"


def test_operators_of_a_schedule_are_bounded_by_name_and_an_unknown_one_holds_the_job() -> None:
    asked = {**DAY, "slots_min": None, "operators": {"sink": {"parallelism_min": 3, "parallelism_max": 5}}}
    limits = limits_now(asked)
    assert (limits.operator_min, limits.operator_max) == ({"b": 3}, {"b": 5})
    held = limits_now(asked, names=("map", "other"))
    assert held.is_held
    assert "schedule day names the operators ['sink']" in held.hold_reason


def test_a_schedule_that_is_not_on_limits_nothing() -> None:
    assert limits_now({**DAY, "cron": "0 20 * * *", "duration_s": 3600}) == Limits(mode=Mode.AUTO)
