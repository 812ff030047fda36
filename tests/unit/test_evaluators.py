"""What a process that evaluates jobs leaves as it was, and when it ends."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
from dataclasses import replace

import pytest

from controller.evaluation.evaluators import _end_with_controller, decide_each
from controller.view.job_view import ActiveTarget, EvaluationState, JobView
from include.settings import Settings
from models.control.state import Origin

NOW_S = 1_795_000_000
STANDS = EvaluationState(3.0, ActiveTarget({"map": 4}, Origin.PLAN, "step", "load rises", NOW_S + 600))


@pytest.mark.parametrize("is_enabled", [True, False])
def test_garbage_is_collected_after_an_evaluation_where_it_was_before_and_never_during_it(is_enabled: bool) -> None:
    during = list[bool]()

    def decide(view: JobView, before: EvaluationState, settings: Settings, now_s: int) -> EvaluationState:
        during.append(gc.isenabled())
        return before

    was_enabled = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        assert decide_each(decide, [(JobView("east", "orders"), STANDS)], Settings(), NOW_S) == [None]
        assert (during, gc.isenabled()) == ([False], is_enabled)
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_a_job_that_cannot_be_evaluated_is_left_as_it_is_and_the_next_one_is(caplog: pytest.LogCaptureFixture) -> None:
    def decide(view: JobView, before: EvaluationState, settings: Settings, now_s: int) -> EvaluationState:
        return replace(before, plan_as_of_s=1.0 / (view.job != "odd"))

    jobs = [(JobView("east", name), STANDS) for name in ("odd", "orders")]
    decided = decide_each(decide, jobs, Settings(), NOW_S)
    assert decided == [replace(STANDS, standing=None), replace(STANDS, plan_as_of_s=1.0)]
    assert [(one.levelno, one.message) for one in caplog.records] == [(logging.ERROR, "east/odd is not evaluated")]


class Controller:
    """A process that has ended as soon as somebody waits for it."""

    def __init__(self, events: list[str]) -> None:
        self._events = events

    def join(self) -> None:
        self._events.append("the controller has ended")


@pytest.mark.parametrize("is_of_controller", [True, False])
def test_a_process_ends_with_the_controller_that_began_it(
    is_of_controller: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = list[str]()
    began_it = Controller(events) if is_of_controller else None
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: began_it)
    monkeypatch.setattr(os, "_exit", lambda code: events.append(f"exit {code}"))
    _end_with_controller()
    assert events == (["the controller has ended", "exit 0"] if is_of_controller else [])
