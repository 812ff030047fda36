"""Single operators of a job: ranges, those that are left alone, and jobs that come first where slots are short."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from flink_model import MemoryLog
from willing_flink import WillingFlink

from controller.decisions.job_control import JobControl, JobTask
from controller.limits.operator_limits import limit_operators
from include.settings import JobLimits, SettingsError, check_settings
from models.control.bounds import bound_target
from models.control.case import Case, OutcomeCheck, Verb
from models.control.limits import Limits
from models.control.partial_rise import fit_rise
from models.control.reconcile import reconcile
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin, Request

NOW_S = 1_000_000.0
AUTO = Limits(mode=Mode.AUTO)


def bound(wanted: dict[str, int], now: dict[str, int], limits: Limits, **changes: Any) -> dict[str, int]:
    return bound_target(wanted, ObservedJob("j", "RUNNING", now, now, **changes), limits)


@pytest.mark.parametrize(
    ("limits", "wanted", "bounded"),
    [
        ({"operator_max": {"a": 5}}, {"a": 9, "b": 9}, {"a": 5, "b": 9}),
        ({"operator_min": {"a": 3}}, {"a": 1, "b": 1}, {"a": 3, "b": 1}),
        ({"operator_min": {"a": 6}, "step_up_max_slots": 1}, {"a": 1, "b": 1}, {"a": 5, "b": 1}),  # in steps
        ({"operator_max": {"a": 2}, "step_down_max_slots": 1}, {"a": 4, "b": 4}, {"a": 3, "b": 4}),
        ({"operator_max": {"a": 5}, "slots_min": 8}, {"a": 1, "b": 1}, {"a": 5, "b": 8}),
        ({"operator_max": {"a": 5, "b": 5}, "slots_min": 8}, {"a": 1, "b": 1}, {"a": 5, "b": 5}),
        ({"operator_min": {"a": 3}, "slots_max": 2}, {"a": 3, "b": 9}, {"a": 3, "b": 3}),  # it takes three slots anyway
        ({"left_alone": ("a",)}, {"a": 9, "b": 9}, {"a": 4, "b": 9}),
        ({"left_alone": ("a",)}, {"a": 1, "b": 1}, {"a": 4, "b": 1}),
        ({"left_alone": ("a",), "slots_max": 2}, {"a": 1, "b": 9}, {"a": 4, "b": 4}),
        ({"left_alone": ("a",), "slots_min": 6}, {"a": 1, "b": 1}, {"a": 4, "b": 6}),
        ({"left_alone": ("zz",)}, {"a": 1, "b": 1}, {"a": 1, "b": 1}),
    ],
)
def test_ranges_and_operators_left_alone(
    limits: dict[str, Any], wanted: dict[str, int], bounded: dict[str, int]
) -> None:
    assert bound(wanted, {"a": 4, "b": 4}, replace(AUTO, **limits)) == bounded


def test_no_vertex_comes_below_its_lower_bound() -> None:
    lower = {"lower_bounds": {"a": 3, "b": 1}}
    assert bound({"a": 1, "b": 1}, {"a": 4, "b": 4}, AUTO, **lower) == {"a": 3, "b": 1}
    assert bound({"a": 4, "b": 4}, {"a": 4, "b": 4}, replace(AUTO, slots_max=2), **lower) == {"a": 3, "b": 3}
    assert bound({"a": 2, "b": 2}, {"a": 4, "b": 4}, replace(AUTO, pin_all=2), **lower) == {"a": 3, "b": 2}


def test_an_operator_that_is_left_alone_keeps_its_bound_though_it_is_not_filled() -> None:
    alone = replace(AUTO, left_alone=("a",))
    observed = ObservedJob("j", "RUNNING", {"a": 4, "b": 4}, {"a": 8, "b": 4}, free_slots=1)
    assert bound_target({"a": 9, "b": 9}, observed, alone) == {"a": 8, "b": 9}
    known = JobHistory(job_id="j", known_requested=observed.requested)
    wanted = Intention({"a": 8, "b": 9}, Origin.REACTIVE, "s", "", math.inf)
    part = fit_rise(wanted, Case(NOW_S, wanted, observed, known, alone))
    assert part.parallelism == {"a": 8, "b": 5}
    judged = Request("s", "j", {"a": 8, "b": 4}, {"a": 2, "b": 2}, {"a": 2, "b": 2}, NOW_S - 900, NOW_S - 720)
    worse = replace(known, to_judge=judged, last_good={"a": 2, "b": 2})
    back = reconcile(Case(NOW_S, None, observed, worse, alone, OutcomeCheck(True, "late")))
    assert (back.verb, back.request.target) == (Verb.ROLL_BACK, {"a": 8, "b": 2})


OPERATORS = {"Source: x": {"parallelism_min": 2, "parallelism_max": 6}, "sink": {"left_alone": True}}


def test_the_settings_name_operators_and_the_job_has_vertices() -> None:
    of_job = JobLimits.model_validate({"operators": OPERATORS})
    result = limit_operators(AUTO, of_job, {"Source: x": "v1", "sink": "v2", "other": "v3"})
    assert (result.operator_min, result.operator_max, result.left_alone) == ({"v1": 2}, {"v1": 6}, ("v2",))
    assert not result.is_held
    missing = limit_operators(replace(AUTO, hold_reason="x"), of_job, {"sink": "v2"})
    assert (missing.is_held, missing.hold_reason) == (
        True,
        "x; the limits name the operators ['Source: x']; the job has ['sink']",
    )
    assert limit_operators(AUTO, JobLimits(), {}) == AUTO


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"operators": {"x": {"parallelism_min": 4, "parallelism_max": 3}}}, "write parallelism_min = 3 or less"),
        ({"operators": {"x": {"parallelism_min": 9}}, "slots_max": 8}, "above slots_max = 8"),
        ({"operators": {"x": {"left_alone": True, "parallelism_max": 3}}}, "exclude each other"),
        ({"operators": {"x": {"left_alone": True}}, "pin": 3}, "contradicts pin = 3"),
        ({"operators": {"x": {"left_alone": True}}, "pin": {"x": 3}}, "contradicts pin = 3"),
        ({"operators": {"x": {"parallelism_max": 2}}, "pin": {"x": 3}}, 'pin = 3 is outside operators."x", 1 to 2'),
        ({"operators": {"x": {"parallelism_min": 0}}}, "parallelism_min"),
        ({"operators": {"": {}}}, "must not be empty"),
        ({"priority": 1001}, "priority"),
    ],
)
def test_limits_of_operators_that_cannot_be_are_refused(limits: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told.replace("(", r"\(")):
        check_settings({"clusters": {"c": {}}, "limits": {"jobs": {"c/j": limits}}})


def test_operators_cannot_be_limited_where_the_operator_has_one_number_for_all() -> None:
    guide = {"rest_url": "http://h:1", "actuator": "kubernetes", "kubernetes": {"mode": "guide"}}
    given = {"clusters": {"c": guide}, "limits": {"jobs": {"c/j": {"operators": {"x": {"left_alone": True}}}}}}
    with pytest.raises(SettingsError, match="sets one parallelism for all operators"):
        check_settings(given)


class Cluster(WillingFlink):
    """Jobs of four slots each, and what is free."""

    def __init__(self, jobs: list[str], free: int, is_elastic: bool | None = False) -> None:
        self.free, self.is_elastic = free, is_elastic
        self.asked = {job: {"a": 4} for job in jobs}
        self.sent: list[tuple[str, int]] = []

    def observe(self, job: str) -> ObservedJob:
        used = sum(one["a"] for one in self.asked.values())
        now = dict(self.asked[job])
        reported = {"free_slots": self.free, "cluster_slots_used": used, "is_elastic": self.is_elastic}
        return ObservedJob(f"id-{job}", "RUNNING", now, now, **reported)

    def request(self, job: str, job_id: str, parallelism: dict[str, int]) -> None:
        self.sent.append((job, parallelism["a"]))


class Log(MemoryLog):
    def append_all(self, entries: Any, writer: int = 1) -> None:
        super().append_all(entries, writer)


def control(cluster: Cluster, tasks: list[JobTask]) -> dict[str, str]:
    log = Log()
    controller = JobControl(cluster, log, lambda: None, lambda: NOW_S)
    controller.control_jobs(tasks)  # taken over as they are
    return {job: action.reason for job, action in controller.control_jobs(tasks).items()}


def task(job: str, wanted: int, priority: int, origin: Origin = Origin.PLAN, **limits: Any) -> JobTask:
    intention = Intention({"a": wanted}, origin, f"step of {job}", "load rises", math.inf)
    return JobTask(job, intention, lambda: replace(AUTO, **limits), priority=priority)


def test_the_job_with_the_higher_priority_gets_the_slots_that_there_are() -> None:
    for low, high in (("c/a", "c/b"), ("c/b", "c/a")):
        cluster = Cluster([low, high], free=4)
        reasons = control(cluster, [task(low, 8, 0), task(high, 8, 5)])
        assert cluster.sent == [(high, 8)]
        assert reasons == {low: "no_free_slots", high: "plan"}


def test_slots_that_a_job_of_higher_priority_waits_for_are_not_taken_by_others() -> None:
    """Four are free and it needs six: each time some become free another job would take them, for ever."""
    cluster = Cluster(["c/a", "c/b", "c/c"], free=4)
    tasks = [task("c/a", 6, 0), task("c/b", 10, 5), task("c/c", 2, 0)]
    assert control(cluster, tasks) == {"c/a": "no_free_slots", "c/b": "plan", "c/c": "plan"}
    assert cluster.sent == [("c/b", 8), ("c/c", 2)]  # the one that waits gets what there is
    unsure = Cluster(["c/b", "c/c"], free=4, is_elastic=None)  # falls are sent while some are free
    assert control(unsure, tasks[1:]) == {"c/b": "plan", "c/c": "free_slots_unknown"}
    same = Cluster(["c/a", "c/b"], free=4)
    assert control(same, [task("c/a", 6, 5), task("c/b", 10, 5)])["c/a"] == "plan"


def test_priorities_hold_within_a_budget() -> None:
    cluster = Cluster(["c/a", "c/b"], free=100)
    budget = {"cluster_slots_max": 11.0}
    reasons = control(cluster, [task("c/a", 6, 0, **budget), task("c/b", 7, 1, **budget)])
    assert (reasons, cluster.sent) == ({"c/a": "exceeds_budget", "c/b": "plan"}, [("c/b", 7)])
