"""A rise whose slots have not come waits for them: it is no harm, no bad step, and withdrawn only when not wanted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from controller.decisions.before_request import needs_readiness, wants_checkpoint
from controller.decisions.open_requests import OpenRequests
from controller.limits.limits_of_job import LimitsReader
from include.settings import check_settings
from models.control.case import Action, Case, Verb
from models.control.history import advance_history
from models.control.limits import Limits
from models.control.missing_slots import count_missing, note_slots
from models.control.readiness import Checkpoints, Readiness
from models.control.reconcile import reconcile
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin, Parallelism, Request

NOW_S = 1_000_000.0
TWO, FOUR = ({"a": n, "b": n} for n in (2, 4))
AUTO = Limits(mode=Mode.AUTO, bad_steps_max=3)
Wish = Callable[[float], Parallelism | None]


@dataclass
class Elastic:
    """A job on a cluster whose new slots come ``slots_s`` after a request for them; Flink then waits ``begins_s``."""

    slots_s: float
    wish: Wish = lambda _: FOUR
    begins_s: float = 0.0
    limits: Callable[[float], Limits] = lambda _: AUTO
    running: Parallelism = field(default_factory=lambda: TWO)
    asked: Parallelism = field(default_factory=lambda: TWO)
    asked_s: float = -math.inf
    history: JobHistory = field(default_factory=lambda: JobHistory("j", known_requested=TWO))
    steps: list[tuple[float, Action]] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)

    def run(self, minutes: int) -> list[tuple[int, str, str]]:
        """Return when something was decided that is no mere wait: minute, verb and reason."""
        for minute in range(minutes):
            self._decide(60.0 * minute)
        return [
            (round(at_s / 60), str(action.verb), str(action.reason))
            for at_s, action in self.steps
            if action.verb is not Verb.WAIT
        ]

    def waits(self) -> list[str]:
        return [action.detail for _, action in self.steps if action.reason == "slots_missing"]

    def _decide(self, at_s: float) -> None:
        has_slots = self.asked == FOUR and at_s - self.asked_s >= self.slots_s
        if has_slots and at_s - self.asked_s >= self.slots_s + self.begins_s:
            self.running = FOUR
        free = 2 if has_slots and self.running == TWO else 0
        ready = Readiness(
            wait_s=130.0, checkpoint_wait_s=30.0, checkpoints=Checkpoints(10.0, NOW_S + at_s, last_id=1), is_fresh=True
        )
        observed = ObservedJob(
            "j", "RUNNING", self.running, self.asked, free_slots=free, is_elastic=True, readiness=ready
        )
        wish = self.wish(at_s)
        wanted = None if wish is None or wish == self.running else wish
        desired = None if wanted is None else Intention(wanted, Origin.REACTIVE, "more", "late", NOW_S + at_s + 60)
        case = Case(NOW_S + at_s, desired, observed, self.history, self.limits(at_s))
        action = reconcile(case)
        self.history = advance_history(case, action)
        self.steps.append((at_s, action))
        self.cases.append(case)
        if action.request is not None and action.verb in {Verb.RESCALE, Verb.ROLL_BACK}:
            self.asked, self.asked_s = dict(action.request.target), at_s


def test_a_rise_whose_slots_come_after_ten_minutes_is_waited_for() -> None:
    job = Elastic(slots_s=590)
    assert job.run(20) == [(0, "rescale", "reactive"), (10, "confirm", "runs_as_requested")]
    assert job.waits()[0] == "2 of 4 slots have come 1 min after the request; it waits for at most 540 s more"
    assert (job.history.blocked, job.history.bad_steps_s) == ((), ())


def test_slots_that_take_an_hour_are_waited_for_as_long_as_they_are_wanted() -> None:
    job = Elastic(slots_s=3600)
    assert [step[1:] for step in job.run(62)] == [("rescale", "reactive"), ("confirm", "runs_as_requested")]
    assert job.waits()[-1] == "2 of 4 slots have come 59 min after the request; it waits as long as they are wanted"


def test_what_is_not_wanted_after_its_time_is_withdrawn_and_may_be_tried_again_at_once() -> None:
    job = Elastic(slots_s=math.inf, wish=lambda at_s: None if 240 <= at_s < 900 else FOUR)
    steps = job.run(20)
    assert steps == [
        (0, "rescale", "reactive"),
        (10, "roll_back", "slots_missing"),
        (11, "confirm", "runs_as_requested"),
        (16, "rescale", "reactive"),
    ]
    assert job.history.bad_steps_s == ()
    withdrawal = job.steps[10][1]
    assert withdrawal.detail.startswith("the request lacks 2 slots, and it is no longer wanted")
    assert not needs_readiness(withdrawal)


def test_a_smaller_wish_ends_the_wait_for_the_larger() -> None:
    three = {"a": 3, "b": 3}
    job = Elastic(slots_s=math.inf, wish=lambda at_s: FOUR if at_s < 300 else three)
    assert job.run(11)[1] == (10, "roll_back", "slots_missing")


def test_the_time_that_flink_may_take_begins_when_the_slots_have_come() -> None:
    job = Elastic(slots_s=1190, begins_s=240)
    assert [step[1:] for step in job.run(26)] == [("rescale", "reactive"), ("confirm", "runs_as_requested")]
    stuck = Elastic(slots_s=1190, begins_s=math.inf)
    steps = stuck.run(28)
    assert steps[1] == (26, "roll_back", "not_filled")  # 20 min, and 130 + 180 s
    assert len(stuck.history.bad_steps_s) == 1
    asks = [wants_checkpoint(case, action) for case, (_, action) in zip(stuck.cases, stuck.steps, strict=True)]
    assert asks[21:26] == [True] * 5


@pytest.mark.parametrize("limits", [replace(AUTO, is_held=True), replace(AUTO, in_blackout=True)])
def test_what_may_not_be_withdrawn_is_no_bad_step(limits: Limits) -> None:
    job = Elastic(slots_s=math.inf, limits=lambda at_s: AUTO if at_s < 300 else limits)
    assert job.run(11)[1] == (10, "refuse", "not_filled")
    assert (job.history.bad_steps_s, job.history.blocked) == ((), ())
    assert job.history.unfilled is not None


def test_a_person_s_pin_is_not_kept_waiting_by_slots() -> None:
    pinned = replace(AUTO, pin_all=2)
    job = Elastic(slots_s=math.inf, limits=lambda at_s: AUTO if at_s < 120 else pinned)
    assert job.run(3)[1] == (2, "roll_back", "slots_missing")
    demanded = Elastic(slots_s=3000, wish=lambda _: None, limits=lambda _: replace(AUTO, pin_all=4))
    assert [step[1:] for step in demanded.run(52)] == [("rescale", "pin"), ("confirm", "runs_as_requested")]


def test_what_a_person_demands_instead_waits_until_something_may_be_sent() -> None:
    pinned = replace(AUTO, pin_all=2)
    job = Elastic(
        slots_s=math.inf,
        limits=lambda at_s: AUTO if at_s < 120 else replace(pinned, is_held=True) if at_s < 300 else pinned,
    )
    assert job.run(6)[1:] == [(5, "roll_back", "slots_missing")]


def test_a_pin_of_more_ends_a_wait_that_has_lasted_its_time() -> None:
    pinned = replace(AUTO, pin_all=5)
    job = Elastic(slots_s=math.inf, limits=lambda at_s: AUTO if at_s < 900 else pinned)
    assert job.run(16)[1:] == [(15, "roll_back", "slots_missing")]


SENT = Request("step", "j", FOUR, TWO, TWO, NOW_S - 60, NOW_S + 120)
LACKS = ObservedJob("j", "RUNNING", TWO, FOUR, free_slots=1, slot_sharing_group={"b": "own"})


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({}, 3),
        ({"running": {"a": 2}}, 1),  # b has finished
        ({"running": {}, "state": "RESTARTING"}, 0),
        ({"requested": TWO}, 0),
        ({"requested": None}, 0),
        ({"free_slots": None}, 0),
        ({"free_slots": 9}, 0),
    ],
)
def test_slots_are_missing_that_flink_was_asked_for_and_a_running_job_has_not(
    changed: dict[str, Any], missing: int
) -> None:
    assert count_missing(SENT, replace(LACKS, **changed)) == missing


def test_of_a_job_that_does_not_run_nobody_knows_whether_its_slots_have_come() -> None:
    short = note_slots(SENT, LACKS, NOW_S)
    assert note_slots(short, replace(LACKS, running={}, state="RESTARTING"), NOW_S + 60) == short
    assert note_slots(short, replace(LACKS, free_slots=4), NOW_S + 60).slots_came_at_s == NOW_S + 60


def test_a_job_that_waits_for_slots_keeps_no_other_from_its_turn() -> None:
    job = Elastic(slots_s=math.inf)
    job.run(3)
    requests = OpenRequests()
    requests.note_observed("c/j", job.cases[-1].observed, job.history)
    assert (set(requests.rescaling), requests.slots) == (set(), {"c/j": 2})
    begins = replace(job.history, in_flight=replace(job.history.in_flight, slots_came_at_s=NOW_S))
    requests.note_observed("c/j", job.cases[-1].observed, begins)
    assert requests.rescaling == {"c/j": 2}


def test_the_time_is_the_cluster_s_setting() -> None:
    settings = check_settings({"clusters": {"c": {"rest_url": "http://j:8081", "slots_wait_s": 90}}})
    reader = LimitsReader(lambda: settings, lambda clusters, now: (), lambda now: (), lambda: NOW_S)
    assert reader.read().limits_of("c", "j", {}, {"c/j"}).slots_wait_s == 90
