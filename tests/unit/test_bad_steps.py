"""A job whose steps go wrong again and again goes back to dry-run by itself, until a person lifts it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from include.utc import DAY_S
from models.control.approval import StepApproval
from models.control.bad_steps import KEPT, effective_mode, name_suspension, note_bad_step
from models.control.case import Case, OutcomeCheck, Verb
from models.control.history import advance_history, end_refused_request
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin
from models.policies.memory import dump, load

NOW_S = 1_795_000_000.0
AUTO = Limits(mode=Mode.AUTO, cooldown_s=0.0, block_s=0.0, foreign_change_hold_s=0.0, bad_steps_max=3)


class World:
    """A job that is wanted at more and more, and where every step ends in the same bad way."""

    def __init__(self, ending: str, limits: Limits = AUTO) -> None:
        self.ending, self.limits = ending, limits
        self.now_s, self.asked, self.running = NOW_S, 2, 2
        self.history = JobHistory(job_id="j", known_requested={"v": 2})
        self.sent: list[int] = []
        self.last = None

    def tick(self, wanted: int | None, outcome: OutcomeCheck = OutcomeCheck()):  # noqa: B008 - frozen
        self.now_s += 60
        desired = None
        if wanted is not None:
            desired = Intention({"v": wanted}, Origin.PLAN, f"to {wanted}", "load rises", self.now_s + 600)
        asked, running = ({"v": count} for count in (self.asked, self.running))
        observed = ObservedJob("j", "RUNNING", running, asked, free_slots=50, cluster_rescales=0)
        case = Case(self.now_s, desired, observed, self.history, self.limits, outcome)
        action = self.last = reconcile(case)
        self.history = load(JobHistory, dump(advance_history(case, action)))
        if action.request is not None and action.verb is not Verb.CONFIRM and not action.is_dry_run:
            self._send(action)
        return action

    def _send(self, action) -> None:
        self.sent.append(action.request.target["v"])
        if self.ending == "refused" and not action.request.is_rollback:
            self.history = end_refused_request(self.history, self.now_s, 0.0)
        elif self.ending != "lost" or action.request.is_rollback:
            self.asked = action.request.target["v"]
            if self.ending != "unfilled" or action.request.is_rollback:
                self.running = self.asked

    def go_wrong(self, wanted: int) -> bool:
        """Let a step be wanted and end; returns whether it was sent."""
        before = len(self.sent)
        self.tick(wanted)
        if len(self.sent) == before:
            return False
        worse = OutcomeCheck(True, "records wait") if self.ending == "worse" else OutcomeCheck()
        self.now_s += 300
        for _ in range(4):
            self.tick(None, worse)
        assert (self.asked, self.history.in_flight) == (2, None)
        return True


@pytest.mark.parametrize("ending", ["worse", "unfilled", "refused"])
def test_after_three_steps_that_went_wrong_within_a_day_nothing_more_is_sent(ending: str) -> None:
    world = World(ending)
    assert [world.go_wrong(4 + number) for number in range(5)] == [True, True, True, False, False]
    assert (world.last.verb, world.last.is_dry_run) == (Verb.RESCALE, True)
    assert "dry-run, since 3 steps rolled back or failed within a day" in world.last.detail
    world.now_s += 30 * DAY_S
    assert not world.go_wrong(9)  # it waits for a person, not for time
    suspension = name_suspension(world.history, world.limits)
    world.limits = replace(world.limits, lifted_blocks=("another", suspension))
    assert [world.go_wrong(10 + number) for number in range(5)] == [True, True, True, False, False]  # counted anew
    world.now_s += 30 * DAY_S
    assert name_suspension(world.history, world.limits) != suspension


def test_requests_that_got_lost_say_nothing_about_their_steps_which_are_sent_again() -> None:
    world = World("lost")
    assert all(world.go_wrong(4) for _ in range(5))
    assert world.history.bad_steps_s == ()


def test_steps_that_went_wrong_on_different_days_are_none_too_many() -> None:
    world = World("refused")
    for number in range(8):
        assert world.go_wrong(4 + number)
        world.now_s += DAY_S / 2


def test_a_clock_that_is_set_back_forgets_no_bad_step() -> None:
    world = World("refused")
    assert world.go_wrong(4)
    world.now_s -= 5 * DAY_S
    assert [world.go_wrong(5), world.go_wrong(6), world.go_wrong(7)] == [True, True, False]


def test_a_suspended_job_asks_nobody_and_what_is_in_flight_is_taken_back() -> None:
    history = JobHistory(job_id="j", known_requested={"v": 2}, bad_steps_s=(1.0, 2.0, 3.0))
    observed = ObservedJob("j", "RUNNING", {"v": 2}, {"v": 2}, free_slots=50)
    wanted = Intention({"v": 4}, Origin.PLAN, "s", "load rises", NOW_S + 600)
    case = Case(NOW_S, wanted, observed, history, replace(AUTO, mode=Mode.APPROVE))
    assert reconcile(case).is_dry_run
    yes = StepApproval("s", {"v": 2}, {"v": 4}, True, NOW_S - 1, NOW_S + 600)
    assert reconcile(replace(case, limits=replace(case.limits, approvals=(yes,)))).is_dry_run
    assert [effective_mode(replace(case, limits=replace(AUTO, mode=mode))) for mode in Mode] == [
        Mode.OFF,
        Mode.DRY_RUN,
        Mode.DRY_RUN,
        Mode.DRY_RUN,
    ]
    world = World("unfilled", replace(AUTO, bad_steps_max=1))
    world.tick(4)
    world.now_s += 300
    assert world.tick(None).verb is Verb.ROLL_BACK
    assert world.asked == 2


def test_a_deployment_anew_forgets_no_bad_step_and_so_many_are_kept() -> None:
    world = World("refused")
    assert world.go_wrong(4)
    observed = ObservedJob("k", "RUNNING", {"v": 2}, {"v": 2})
    case = Case(world.now_s, None, observed, world.history, AUTO)
    assert advance_history(case, reconcile(case)).bad_steps_s == world.history.bad_steps_s != ()
    history = JobHistory()
    for number in range(KEPT + 5):
        history = note_bad_step(history, float(number))
    assert history.bad_steps_s == tuple(map(float, range(5, KEPT + 5)))


def test_a_row_of_before_has_no_bad_steps() -> None:
    assert load(JobHistory, "{}").bad_steps_s == ()
    assert load(Limits, "{}").bad_steps_max == KEPT
