"""Which of the jobs of one name an evaluation starts from."""

from __future__ import annotations

import math

import pytest
from live_replies import T0_S, Job
from rehearsal import build_rehearsal

from controller.outcomes.measure_outcome import find_lateness_s
from controller.view.fleet_view import MISSED_POLLS

LOST, PRESENT = Job(job_id="a" * 32), Job(job_id="b" * 32)
POLL_S = 60  # the default


@pytest.fixture
def clock():
    return {"s": float(T0_S)}


@pytest.fixture
def ticker(tmp_path, clock, monkeypatch):
    return build_rehearsal(tmp_path, monkeypatch, lambda: clock["s"])


def test_a_job_whose_predecessor_was_lost_without_a_word_is_evaluated(ticker, clock):
    """A JobManager that dies takes its jobs with it: their last reply says RUNNING for ever."""
    ticker.add_records([LOST.job(0), LOST.plan(1)])
    assert ticker.tick().seen == 1
    polls = [POLL_S * turn for turn in range(1, MISSED_POLLS + 2)]
    ticker.add_records([PRESENT.plan(POLL_S + 1), *(PRESENT.job(second) for second in polls)])
    clock["s"] += polls[-1]
    assert ticker.tick().seen == 1
    assert ticker.view.jobs["c", "orders"].seen.job_id == PRESENT.job_id
    assert [one.job_id for one in ticker.view.seen["c", "orders"]] == [PRESENT.job_id]


def test_of_two_jobs_of_one_name_that_both_run_none_is_evaluated(ticker, clock):
    """Nobody can say whose plan it is; a job that missed a poll or two is still there."""
    polls = [POLL_S * turn for turn in range(MISSED_POLLS + 1)]
    ticker.add_records([LOST.job(0), LOST.plan(1)])
    ticker.add_records([PRESENT.plan(1), *(PRESENT.job(second) for second in polls)])
    clock["s"] += polls[-1]
    assert ticker.tick().seen == 0
    assert len(ticker.view.seen["c", "orders"]) == 2


def test_a_job_that_ended_by_a_failure_stays_in_view_until_one_of_its_name_runs(ticker, clock):
    ticker.add_records([LOST.job(0), LOST.plan(1), LOST.job(POLL_S, state="FAILED")])
    clock["s"] += POLL_S
    ticker.tick()
    view = ticker.view.jobs["c", "orders"]
    assert (view.has_failed, view.seen) == (True, None)
    assert find_lateness_s(view, clock["s"]) == math.inf
    ticker.add_records([PRESENT.job(2 * POLL_S), PRESENT.plan(2 * POLL_S + 1)])
    clock["s"] += POLL_S
    assert ticker.tick().seen == 1
    assert ticker.view.jobs["c", "orders"].has_failed is False


def test_a_job_that_somebody_stopped_is_gone(ticker, clock):
    ticker.add_records([LOST.job(0), LOST.plan(1), LOST.job(POLL_S, state="CANCELED")])
    clock["s"] += POLL_S
    ticker.tick()
    assert ticker.view.jobs == {}
