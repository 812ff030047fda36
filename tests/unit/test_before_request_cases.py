"""Which decisions ask Flink more about a job, and for which a checkpoint is asked for: only those that send."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from willing_flink import WillingFlink

from controller.decisions.before_request import (
    ask_after_request,
    decide_with_readiness,
    needs_readiness,
    observe_followed,
    wants_checkpoint,
)
from models.control.case import Action, Case, Verb
from models.control.limits import Limits
from models.control.readiness import Failure, Guards, Readiness
from models.control.reasons import Reason
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin, Parallelism, Request

NOW_S = 1_000_000.0
JOB = "c/orders"
TWO, FOUR = {"a": 2, "b": 2}, {"a": 4, "b": 4}
RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
KNOWN = JobHistory(job_id="j", known_requested=TWO)
AUTO = Limits(mode=Mode.AUTO)
DRY_RUN = replace(AUTO, mode=Mode.DRY_RUN)
NO_TRIGGER = replace(AUTO, guards=Guards(triggers_checkpoint=False))
SENT = Request("step", "j", FOUR, TWO, TWO, NOW_S - 60, NOW_S + 120, forced_at_s=NOW_S + 60)
WANTED = Case(NOW_S, Intention(FOUR, Origin.PLAN, "step", "load rises", NOW_S + 600), RUNS, KNOWN, AUTO)
# Flink has the request, and waits for a checkpoint before it begins with it.
WAITING = replace(WANTED, observed=replace(RUNS, requested=FOUR), history=replace(KNOWN, in_flight=SENT))
IN_FLIGHT = Action(Verb.WAIT, Reason.IN_FLIGHT)
CHECKPOINT_FIRST = Action(Verb.WAIT, Reason.CHECKPOINT_FIRST)
FAILURE = Failure(1.0, "a.B: x", "a.B: x")


@dataclass
class Cluster(WillingFlink):
    """A cluster with one job that runs; it counts what it is asked."""

    questions: list[str] = field(default_factory=list)

    def observe(self, job: str) -> ObservedJob:
        return RUNS

    def request(self, job: str, job_id: str, parallelism: Parallelism) -> None:
        raise AssertionError("nothing is sent here")

    def inspect(self, job: str, job_id: str) -> Readiness:
        self.questions.append("inspect")
        return super().inspect(job, job_id)

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...]:
        self.questions.append("failures")
        return (FAILURE,)

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        self.questions.append("checkpoint")


@pytest.mark.parametrize(
    ("verb", "reason", "is_needed"),
    [
        (Verb.RESCALE, Reason.PLAN, True),
        (Verb.RESCALE, Reason.NOT_FILLED, True),
        (Verb.ROLL_BACK, Reason.WORSE_THAN_BEFORE, True),
        (Verb.ROLL_BACK, Reason.NOT_FILLED, False),  # what Flink has not begun restarts nothing
        (Verb.WAIT, Reason.IN_FLIGHT, False),
        (Verb.REFUSE, Reason.NOT_FILLED, False),
        (Verb.CONFIRM, Reason.RUNS_AS_REQUESTED, False),
    ],
)
def test_flink_is_asked_before_what_restarts_a_job(verb: Verb, reason: Reason, is_needed: bool) -> None:
    assert needs_readiness(Action(verb, reason)) is is_needed


@pytest.mark.parametrize(
    ("history", "are_asked"),
    [
        (replace(KNOWN, in_flight=SENT), True),
        (replace(KNOWN, to_judge=SENT), True),
        (KNOWN, False),
        (replace(KNOWN, in_flight=replace(SENT, is_rollback=True)), False),
        (replace(KNOWN, job_id=None, in_flight=SENT), False),
    ],
)
def test_failures_are_asked_for_while_a_request_of_this_job_is_followed_or_judged(
    history: JobHistory, are_asked: bool
) -> None:
    cluster = Cluster()
    observed = observe_followed(cluster, JOB, history)
    assert observed == replace(RUNS, failures=(FAILURE,) if are_asked else None)
    assert cluster.questions == ["failures"] * are_asked


@pytest.mark.parametrize(
    ("case", "is_news", "is_asked"),
    [
        (WANTED, True, True),
        (WANTED, False, True),
        (replace(WANTED, limits=DRY_RUN), True, True),
        (replace(WANTED, limits=DRY_RUN), False, False),  # it was said at the tick before
        (replace(WANTED, desired=None), True, False),
        (WAITING, True, True),
        (replace(WAITING, observed=replace(WAITING.observed, running={"a": 4, "b": 2})), True, False),
        (replace(WAITING, now_s=NOW_S + 120), True, False),  # not filled: the bound is withdrawn
    ],
)
def test_flink_is_asked_once_for_a_step_that_is_news_and_while_it_waits_with_a_request(
    case: Case, is_news: bool, is_asked: bool
) -> None:
    cluster = Cluster()
    asked, _ = decide_with_readiness(cluster, JOB, case, lambda action: is_news)
    assert cluster.questions == ["inspect"] * is_asked
    assert (asked.observed.readiness is not None) is is_asked


@pytest.mark.parametrize(
    ("ready", "limits", "is_wanted"),
    [
        (Readiness(), AUTO, True),
        (Readiness(asked_ago_s=30.0), AUTO, False),  # it was asked for already
        (None, AUTO, False),
        (Readiness(), NO_TRIGGER, False),
    ],
)
def test_a_checkpoint_before_a_request_is_asked_for_once(
    ready: Readiness | None, limits: Limits, is_wanted: bool
) -> None:
    case = replace(WANTED, observed=replace(RUNS, readiness=ready), limits=limits)
    assert wants_checkpoint(case, CHECKPOINT_FIRST) is is_wanted


@pytest.mark.parametrize(
    ("limits", "is_wanted"),
    [
        (AUTO, True),
        (replace(AUTO, mode=Mode.APPROVE), True),
        (DRY_RUN, False),
        (replace(AUTO, mode=Mode.OFF), False),
        (replace(AUTO, is_held=True), False),
        (replace(AUTO, in_blackout=True), False),
        (NO_TRIGGER, False),
    ],
)
def test_a_checkpoint_for_which_flink_waits_is_asked_for_where_requests_may_be_sent(
    limits: Limits, is_wanted: bool
) -> None:
    assert wants_checkpoint(replace(WAITING, limits=limits), IN_FLIGHT) is is_wanted


@pytest.mark.parametrize(
    ("observed", "request_in_flight", "is_wanted"),
    [
        ({}, SENT, True),
        ({"requested": TWO}, SENT, False),  # it has not arrived
        ({"running": {}}, SENT, False),  # Flink has begun
        ({}, replace(SENT, forced_at_s=None), False),  # it waits for none
        ({}, replace(SENT, sent_at_s=NOW_S - 300), True),
        ({}, replace(SENT, sent_at_s=NOW_S - 301), False),
        ({}, None, False),
    ],
)
def test_a_checkpoint_is_asked_for_while_flink_has_a_request_and_has_not_begun_for_five_minutes(
    observed: dict[str, Parallelism], request_in_flight: Request | None, is_wanted: bool
) -> None:
    history = replace(KNOWN, in_flight=request_in_flight)
    case = replace(WAITING, observed=replace(WAITING.observed, **observed), history=history)
    assert wants_checkpoint(case, IN_FLIGHT) is is_wanted
    assert not wants_checkpoint(case, Action(Verb.REFUSE, Reason.SAVEPOINT_IN_PROGRESS))


@pytest.mark.parametrize(
    ("request_sent", "limits", "is_asked"),
    [(SENT, AUTO, True), (replace(SENT, forced_at_s=None), AUTO, False), (SENT, NO_TRIGGER, False)],
)
def test_after_a_request_a_checkpoint_is_asked_for_where_flink_waits_for_it(
    request_sent: Request, limits: Limits, is_asked: bool
) -> None:
    cluster = Cluster()
    ask_after_request(cluster, JOB, replace(WANTED, limits=limits), request_sent)
    assert cluster.questions == ["checkpoint"] * is_asked
