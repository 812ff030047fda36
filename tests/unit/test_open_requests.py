"""Slots that were asked for and do not run yet are taken: across jobs, ticks and restarts, by what the cluster did."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from willing_flink import WillingFlink

from controller.decisions import job_control
from controller.decisions.job_control import JobControl, JobTask
from controller.decisions.open_requests import OpenRequests
from controller.log.control_log import LogEntry
from include.settings import Settings
from models.control.case import Case
from models.control.checks import check_pace
from models.control.limits import Limits
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin, Request
from models.policies.memory import dump, load

NOW_S = 1_795_000_000.0
AUTO = Limits(mode=Mode.AUTO, cooldown_s=0.0, confirm_timeout_s=600.0)


class StoredLog:
    """The log as a table keeps it: what is read back was written down."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}

    def append_all(self, entries) -> None:
        self.rows |= {entry.job: dump(entry) for entry in entries}

    def read_last(self, job):
        return load(LogEntry, self.rows[job]) if job in self.rows else None

    def read_history(self, job):
        last = self.read_last(job)
        return JobHistory() if last is None else last.history

    def read_open(self):
        result = {job: self.read_last(job) for job in self.rows}
        return {job: entry for job, entry in result.items() if entry.history.in_flight is not None}


@dataclass
class Cluster(WillingFlink):
    """Jobs under the adaptive scheduler on a number of slots; a rescale takes until somebody lets it happen.

    Attributes:
        total: slots.
        asked, running: of each job; the second is empty while it restarts.
    """

    total: int
    asked: dict[str, int] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    sent: list[tuple[str, int]] = field(default_factory=list)
    others: int = 0  # slots of jobs that nobody decides on

    def start(self, job: str, slots: int) -> None:
        self.asked[job] = self.running[job] = slots

    def fill(self, *jobs: str) -> None:
        for job in jobs or self.asked:
            self.running[job] = self.asked[job]
        self.check()

    def check(self) -> None:
        """What the jobs are asked for, or still have, is never more than there is."""
        most = {job: max(asked, self.running[job]) for job, asked in self.asked.items()}
        assert sum(most.values()) <= self.total, most

    def observe(self, job: str) -> ObservedJob:
        running, asked = ({"v": count} if count else {} for count in (self.running[job], self.asked[job]))
        used = sum(self.running.values()) + self.others
        free = self.total - used
        state = "RUNNING" if running else "RESTARTING"
        return ObservedJob(f"id of {job}", state, running, asked, free_slots=free, cluster_slots_used=used)

    def request(self, job: str, job_id: str, parallelism) -> None:
        self.sent.append((job, parallelism["v"]))
        self.asked[job] = parallelism["v"]
        self.check()


@pytest.fixture
def world():
    """A cluster of 20 slots with four jobs of two, and a controller that may be started again at any time."""
    cluster = Cluster(20)
    jobs = [f"c/{name}" for name in "abcd"]
    for job in jobs:
        cluster.start(job, 2)
    now, log = [NOW_S], StoredLog()

    def start(limits: Limits = AUTO, jobs: int = 0, late_s: dict[str, float] | None = None):
        controller = JobControl(cluster, log, lambda: None, lambda: now[0], jobs=jobs)
        late = late_s or {}

        def tick(**wanted: object) -> dict[str, str]:
            now[0] += 10
            tasks = [
                JobTask(
                    f"c/{name}",
                    None if slots is None else want(slots, name, now[0]),
                    lambda: limits,
                    late_s=late.get(name, 0.0),
                )
                for name, slots in wanted.items()
            ]
            result = {job: action.reason for job, action in controller.control_jobs(tasks).items()}
            return {job.removeprefix("c/"): reason for job, reason in result.items()}

        tick.log = log
        return tick

    start()(a=None, b=None, c=None, d=None)
    return cluster, start


class Rise(int):
    """Slots that the reactive controller wants."""


def want(slots: object, name: str, now_s: float) -> Intention:
    if isinstance(slots, Rise):
        return Intention({"v": int(slots)}, Origin.REACTIVE, name, "it is late", now_s + 3600)
    return Intention({"v": slots}, Origin.PLAN, f"{name}-{slots}", "load rises", now_s + 3600)  # type: ignore[dict-item]


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_asked_about_both", [False, True])
@pytest.mark.covers("harm slots-twice")
def test_free_slots_that_a_request_in_flight_will_take_are_not_free(world, is_restarted, is_asked_about_both) -> None:
    cluster, start = world
    tick = start()
    assert tick(a=10)["a"] == "plan"  # 8 of the 12 free slots; they run later
    tick = start() if is_restarted else tick
    both = {"a": 10} if is_asked_about_both else {}
    assert tick(**both, b=7)["b"] == "plan"  # what fits of it
    assert tick(**both, c=3)["c"] == "no_free_slots"
    cluster.fill("c/a")
    assert tick(a=10, c=3)["c"] == "no_free_slots"  # b's are still on their way
    cluster.fill()
    assert cluster.sent == [("c/a", 10), ("c/b", 6)]


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.covers("harm slots-twice")
def test_the_budget_counts_what_was_asked_for(world, is_restarted) -> None:
    cluster, start = world
    limits = replace(AUTO, cluster_slots_max=12.0)
    tick = start(limits)
    assert tick(a=4)["a"] == "plan"
    tick = start(limits) if is_restarted else tick
    assert tick(b=5)["b"] == "plan"  # what fits of it
    assert tick(c=3)["c"] == "exceeds_budget"
    assert sum(cluster.asked.values()) == 12


@pytest.mark.covers("harm slots-twice")
def test_slots_of_a_job_that_restarts_are_its_own(world) -> None:
    cluster, start = world
    tick = start()
    assert tick(a=10)["a"] == "plan"
    cluster.fill("c/a")
    tick(a=10)
    cluster.running["c/a"] = 0  # it fails; the cluster shows its ten slots as free
    assert tick(a=10, b=8)["b"] == "plan"
    assert cluster.asked["c/b"] == 6  # what fits of it


def test_what_somebody_else_asked_for_is_taken_as_well(world) -> None:
    cluster, start = world
    cluster.asked["c/a"] = 10  # a person
    assert start()(a=None, b=8)["b"] == "plan"
    assert cluster.asked["c/b"] == 6  # what fits of it


def test_a_fall_in_flight_frees_nothing_yet(world) -> None:
    cluster, start = world
    cluster.total = 9
    tick = start()
    assert tick(a=1)["a"] == "plan"
    assert tick(a=1, b=4)["b"] == "plan"
    assert cluster.asked["c/b"] == 3  # what fits of it
    cluster.fill()
    tick(a=1, b=4)
    assert tick(a=1, b=4)["b"] == "plan"
    assert cluster.asked["c/b"] == 4


@pytest.mark.parametrize("is_restarted", [False, True])
def test_so_many_jobs_of_a_cluster_are_rescaled_at_once(world, is_restarted) -> None:
    cluster, start = world
    limits = replace(AUTO, concurrent_rescales=2)
    tick = start(limits)
    assert tick(a=3)["a"] == "plan"
    tick = start(limits) if is_restarted else tick
    assert tick(b=3, c=3, d=3) == {"b": "plan", "c": "concurrent_rescales", "d": "concurrent_rescales"}
    assert tick(a=3, c=3)["c"] == "concurrent_rescales"
    cluster.fill("c/a")
    assert tick(a=3, c=3) == {"a": "runs_as_requested", "c": "concurrent_rescales"}
    assert tick(c=3, d=3) == {"c": "plan", "d": "concurrent_rescales"}
    assert [job for job, _ in cluster.sent] == ["c/a", "c/b", "c/c"]


@pytest.mark.parametrize(("jobs", "at_once"), [(0, 1), (9, 1), (10, 2), (19, 3)])
def test_of_many_jobs_a_share_is_rescaled_at_once(world, jobs: int, at_once: int) -> None:
    cluster, start = world
    cluster.total, cluster.others = 60, 2 * max(jobs - 4, 0)
    tick = start(replace(AUTO, concurrent_rescales=1, concurrent_share=0.2), jobs)
    assert list(tick(a=3, b=3, c=3, d=3).values()).count("plan") == at_once


def test_of_many_slots_a_share_is_rescaled_at_once(world) -> None:
    """Ten jobs of which two may be rescaled at once, with a fifth of the 40 slots: one of them has 7."""
    cluster, start = world
    cluster.total, cluster.others = 60, 25
    cluster.start("c/e", 7)
    tick = start(replace(AUTO, concurrent_rescales=1, concurrent_share=0.2), 10)
    tick(e=None)
    assert tick(a=3, e=8, c=3) == {"a": "plan", "e": "concurrent_rescales", "c": "plan"}
    cluster.fill()
    tick(a=3, c=3)
    assert tick(e=8, b=3) == {"e": "plan", "b": "concurrent_rescales"}


def test_the_latest_jobs_come_first_and_those_that_are_down_need_not_wait(world) -> None:
    cluster, start = world
    tick = start(replace(AUTO, concurrent_rescales=1), late_s={"b": 5.0, "c": 500.0})
    assert tick(a=3, b=3, c=3) == {"c": "plan", "b": "concurrent_rescales", "a": "concurrent_rescales"}
    cluster.running["c/d"] = 0  # it failed meanwhile
    assert tick(a=3, d=Rise(4)) == {"d": "reactive", "a": "concurrent_rescales"}
    cluster.running["c/c"] = 3
    tick(c=None)
    assert tick(a=3)["a"] == "plan"  # that of the job that is down stops nobody


def test_a_job_far_behind_needs_no_turn_and_takes_none(world) -> None:
    tick = world[1](replace(AUTO, concurrent_rescales=1), late_s={"b": 601.0, "c": 602.0, "d": 599.0})
    assert tick(a=3, b=3, c=3, d=3) == {"c": "plan", "b": "plan", "d": "plan", "a": "concurrent_rescales"}


def test_a_job_s_own_rescale_is_none_of_the_others_and_that_of_a_job_that_did_not_run_stops_nothing() -> None:
    runs = ObservedJob("id", "RUNNING", {"v": 2}, {"v": 2})
    sent = Request("step", "id", {"v": 3}, {"v": 2}, {"v": 2}, NOW_S, NOW_S + 600)
    requests = OpenRequests()
    requests.note_observed("c/a", replace(runs, requested={"v": 3}), JobHistory("id", in_flight=sent))
    counted = {job: requests.reserve(job, Case(NOW_S, None, runs, JobHistory(), AUTO)) for job in ("c/a", "c/b")}
    assert {job: case.observed.cluster_rescales for job, case in counted.items()} == {"c/a": 0, "c/b": 1}
    begins = replace(runs, running={})  # some of its vertices are still being deployed
    requests.note_observed("c/d", begins, JobHistory("id", in_flight=replace(sent, running_before={})))
    assert set(requests.rescaling) == {"c/a"}


def test_what_one_question_has_told_of_all_jobs_is_as_old_for_the_last_as_for_the_first(world, monkeypatch) -> None:
    """The clock goes on while they are decided on; the cluster's is right."""
    cluster, _ = world
    clock, log = itertools.count(NOW_S, 20.0), StoredLog()
    control = JobControl(cluster, log, lambda: None, lambda: next(clock))
    observe = cluster.observe
    monkeypatch.setattr(cluster, "observe", lambda job: replace(observe(job), told_at_s=next(clock)))
    jobs = ["c/a", "c/b", "c/c"]
    known = {job: replace(observe(job), told_at_s=NOW_S) for job in jobs}
    control.control_jobs([JobTask(job, None, lambda: AUTO) for job in jobs], known)
    assert [log.read_history(job).ahead_s for job in jobs] == [0.0, 0.0, 0.0]
    control.control_jobs([JobTask("c/d", None, lambda: AUTO)])
    assert log.read_history("c/d").ahead_s == 20.0


def test_forty_jobs_in_need_are_all_asked_within_three_turns(world) -> None:
    """A surge of all: by the default limits each turn takes the jobs that the turn before has left."""
    cluster, start = world
    cluster.total = 400
    defaults = Settings().limits
    limits = replace(AUTO, concurrent_rescales=defaults.concurrent_rescales, concurrent_share=defaults.concurrent_share)
    names = [f"j{number}" for number in range(40)]
    for name in names:
        cluster.start(f"c/{name}", 2)
    tick = start(limits, len(names))
    tick(**dict.fromkeys(names))
    for _ in range(3):
        tick(**{name: Rise(4) for name in names})
        cluster.fill()
        tick(**{name: Rise(4) for name in names})
    assert {job for job, _ in cluster.sent} == {f"c/{name}" for name in names}


def test_the_row_of_a_decision_says_why_the_wish_has_changed(world) -> None:
    tick = world[1](replace(AUTO, in_blackout=True))

    def said() -> str:
        return tick.log.read_last("c/a").wish_changed

    tick(a=Rise(3))
    assert said() == "reactive: it is late"
    tick(a=Rise(3))
    assert said() == "reactive: it is late"  # no other row
    tick(a=5)
    assert said() == "plan: load rises; before: reactive: it is late"
    tick(a=None, b=Rise(3))
    assert said() == "plan: load rises; before: reactive: it is late"


def test_rescales_that_nobody_has_counted_are_too_many() -> None:
    case = Case(NOW_S, None, ObservedJob("j", "RUNNING", {}, {}), JobHistory(), replace(AUTO, concurrent_rescales=3))
    assert check_pace(case).reason == "concurrent_rescales"
    assert check_pace(replace(case, observed=replace(case.observed, cluster_rescales=2))) is None
    assert check_pace(replace(case, limits=AUTO)) is None


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 0, -3, 2.5, "4", None, True, 2**40])
@pytest.mark.covers("harm odd-intention")
def test_an_intention_that_is_none_harms_its_own_job_alone(world, odd) -> None:
    cluster, start = world
    tick = start()
    assert tick(a=4, b=odd if odd is not None else "", c=4) == {"a": "plan", "b": "unusable_intention", "c": "plan"}
    cluster.fill()
    assert tick(a=odd if odd is not None else "", c=4) == {"a": "runs_as_requested", "c": "runs_as_requested"}
    assert [job for job, _ in cluster.sent] == ["c/a", "c/c"]


def test_whole_numbers_of_any_kind_are_parallelisms(world) -> None:
    cluster, start = world
    assert start()(a=np.int64(4), b=4.0) == {"a": "plan", "b": "plan"}
    assert cluster.sent == [("c/a", 4), ("c/b", 4)]


def test_a_job_that_cannot_be_decided_on_keeps_no_other_from_its_turn(world, monkeypatch) -> None:
    cluster, start = world
    decide = job_control.decide_with_readiness

    def fail(inspector, job, case, is_news):
        if case.observed.job_id == "id of c/b":
            raise ZeroDivisionError
        return decide(inspector, job, case, is_news)

    monkeypatch.setattr(job_control, "decide_with_readiness", fail)
    assert start()(a=4, b=4, c=4) == {"a": "plan", "b": "not_decided", "c": "plan"}
    assert [job for job, _ in cluster.sent] == ["c/a", "c/c"]
