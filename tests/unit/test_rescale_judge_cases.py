"""A rescale is kept with what was measured before it and after it, of that step alone."""

from __future__ import annotations

import math

from controller.log.delta_log import DeltaControlLog
from controller.outcomes.judge_rescales import RescaleEvaluator
from controller.outcomes.measure_outcome import measure_outcome
from models.control.case import OutcomeCheck
from models.policies.observations import Observations
from tests.unit.test_rescale_judge import AFTER, BEFORE, SENT_S, confirmed, judged, log, seen, sent, view, windows

__all__ = ["log"]  # a fixture
FINE = OutcomeCheck(False, "fine")


def test_a_judged_rescale_without_measurements_after_it_is_not_kept(log: DeltaControlLog) -> None:
    """The windows that the verdict was made from may be gone; the outcome is kept with the first that come."""
    judge = RescaleEvaluator("live", log, 60.0)
    log.append(sent())
    judge.judge("orders", view(BEFORE))
    log.append_all([confirmed(), judged(FINE)])
    for gone in (None, BEFORE):
        judge.note_outcome("orders", view(gone))
        assert judge.outcomes == []
    judge.note_outcome("orders", view(AFTER))
    assert [one.after is not None for one in judge.outcomes] == [True]


def test_each_step_is_held_against_what_was_measured_before_itself(log: DeltaControlLog) -> None:
    judge = RescaleEvaluator("live", log, 60.0)
    log.append(sent())
    judge.judge("orders", view(BEFORE))
    log.append(sent("step-2"))
    judge.judge("orders", view(windows(SENT_S - 60, SENT_S - 1, rates=700.0)))
    log.append_all([confirmed("step-2"), judged(FINE, "step-2")])
    judge.note_outcome("orders", view(AFTER))
    (outcome,) = judge.outcomes
    assert outcome.before is not None
    assert outcome.before.throughput_per_s == 700.0


def test_a_step_before_which_nothing_was_measured_is_not_held_against_what_was_before_another(
    log: DeltaControlLog,
) -> None:
    judge = RescaleEvaluator("live", log, 60.0)
    log.append(sent())
    judge.judge("orders", view(BEFORE))
    log.append(sent("step-2"))
    judge.judge("orders", view(None))
    log.append_all([confirmed("step-2"), judged(FINE, "step-2")])
    judge.note_outcome("orders", view(AFTER))
    assert judge.outcomes == []


def test_a_request_in_flight_is_not_judged_whatever_was_confirmed_before(log: DeltaControlLog) -> None:
    judge = RescaleEvaluator("live", log, 60.0)
    log.append_all([sent(), confirmed(), judged(FINE)])
    log.append(sent("step-2"))
    judge.judge("orders", view(BEFORE))
    assert judge.judge("orders", view(AFTER)) == OutcomeCheck()


def test_a_job_without_a_window_has_no_measurements() -> None:
    assert measure_outcome(seen(), Observations.nothing(2), math.inf) is None
