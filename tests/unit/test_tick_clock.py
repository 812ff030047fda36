"""Ticks go on after the clock was set."""

from __future__ import annotations

import pytest
from live_replies import T0_S, Job
from rehearsal import build_rehearsal

NOW_S = float(T0_S + 3600)
JOB = Job()


@pytest.fixture
def clock():
    return {"s": NOW_S}


@pytest.fixture
def ticker(tmp_path, clock, monkeypatch):
    return build_rehearsal(tmp_path, monkeypatch, lambda: clock["s"])


def test_jobs_are_seen_and_evaluated_after_the_clock_was_set_back(ticker, clock):
    ticker.add_records([JOB.job(3595), JOB.plan(3596)])
    assert ticker.tick().seen == 1
    assert not ticker.tick().is_evaluation
    clock["s"] -= 3600
    ticker.add_records(JOB.start())  # not newer than what was polled before
    assert ticker.tick().is_evaluation
    assert not ticker.tick().is_evaluation
    ticker.add_records(JOB.start())
    assert ticker.tick().seen == 1
