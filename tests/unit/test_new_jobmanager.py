"""A JobManager that was lost takes a request with it: its successor's job is judged afresh, and nobody is blamed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from models.control.case import Action, Case, Verb
from models.control.history import advance_history
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.state import BlockedTarget, Intention, JobHistory, Mode, ObservedJob, Origin, Request

NOW_S = 1_000_000.0
TWO, FOUR, SIX = ({"a": n, "b": n} for n in (2, 4, 6))
SENT = Request("step", "j", FOUR, TWO, TWO, NOW_S - 30, NOW_S + 270, arrived_at_s=NOW_S - 20, running_since_s=100.0)
BLOCKED = BlockedTarget(SIX, NOW_S + 900)
KNOWN = JobHistory("j", in_flight=SENT, known_requested=TWO, submitted_at_s=100.0, blocked=(BLOCKED,), last_sent=SENT)
RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8, submitted_at_s=100.0, running_since_s=100.0)
SUCCESSOR = {"submitted_at_s": 900.0, "running_since_s": 901.0}
WANTED = Intention(FOUR, Origin.REACTIVE, "more", "late", NOW_S + 900)


def follow(observed: ObservedJob, looks: int = 2) -> tuple[list[Action], JobHistory]:
    history, actions = KNOWN, []
    for look in range(looks):
        case = Case(NOW_S + 15 * look, WANTED, observed, history, Limits(mode=Mode.AUTO))
        actions.append(reconcile(case))
        history = advance_history(case, actions[-1])
    return actions, history


def test_a_request_that_a_jobmanager_took_with_it_is_sent_again_at_once() -> None:
    """It had shown the bounds; its successor came back from before they were stored."""
    (first, second), history = follow(replace(RUNS, **SUCCESSOR))
    assert (first.verb, first.reason) == (Verb.WAIT, "new_job_id")
    assert (second.verb, second.request.target) == (Verb.RESCALE, FOUR)
    assert (history.held_until_s, history.bad_steps_s) == (0.0, ())


@pytest.mark.parametrize("running", [TWO, FOUR, {}])
def test_one_that_the_successor_has_is_what_is_known(running: dict[str, int]) -> None:
    _, history = follow(replace(RUNS, running=running, requested=FOUR, **SUCCESSOR), looks=1)
    assert (history.known_requested, history.in_flight, history.held_until_s) == (FOUR, None, 0.0)


def test_the_same_jobmanager_with_the_bounds_of_before_is_a_change_of_somebody() -> None:
    (first, second), history = follow(RUNS)
    assert (first.reason, second.reason) == ("foreign_change", "held")
    assert history.held_until_s > NOW_S


def test_another_parallelism_is_a_change_under_a_new_jobmanager_too() -> None:
    _, history = follow(replace(RUNS, requested=SIX, running=SIX, **SUCCESSOR))
    assert history.held_until_s > NOW_S


def test_what_did_harm_and_what_may_be_undone_are_of_the_job_and_not_of_its_jobmanager() -> None:
    _, history = follow(replace(RUNS, **SUCCESSOR), looks=1)
    assert (history.blocked, history.last_sent) == ((BLOCKED,), SENT)
    case = Case(NOW_S, WANTED, replace(RUNS, job_id="k", **SUCCESSOR), KNOWN, Limits(mode=Mode.AUTO))
    anew = advance_history(case, reconcile(case))
    assert (anew.blocked, anew.last_sent) == ((), None)
    assert math.isclose(anew.submitted_at_s or 0.0, 900.0)
