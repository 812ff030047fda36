"""Stops, their kinds and the windows that they disturb, from what replies tell of the runs of a job."""

from __future__ import annotations

import numpy as np
import pytest

from models.observing.disturbances import find_disturbed_spans, find_restores, is_fresh_start
from models.observing.job_ends import JobLifetime
from models.observing.stop_kinds import cause_kind, event_kind
from models.observing.stops import Checkpoint, JobRun, RunHistory, find_open_stop, find_stops, is_outage

ONE, TWO = (("1", 1, "map"),), (("1", 2, "map"),)
FIRST = JobRun(100_000, 101_000, 160_000, "a", ONE)


def again(job_id: str = "a", vertices=ONE) -> JobRun:
    return JobRun(200_000, 210_000, 300_000, job_id, vertices)


def kinds(before: JobRun, after: JobRun, **signs) -> list[tuple[str, str]]:
    return [(event_kind(stop), cause_kind(stop)) for stop in find_stops(RunHistory([after, before], **signs))]


def test_without_a_sign_it_stopped_when_it_was_last_seen_at_work():
    (stop,) = find_stops(RunHistory([FIRST, again()]))
    assert (stop.started_ms, stop.ended_ms, stop.cause, stop.is_followed) == (160_000, 200_000, None, False)
    done = {"a": [Checkpoint(170_000, 169_000, 5.0)], "b": [Checkpoint(180_000)]}
    (later,) = find_stops(RunHistory([FIRST, again()], checkpoints=done))
    assert (later.started_ms, later.checkpoint) == (170_000, done["a"][0])


def test_only_the_last_stop_of_several_ran_again():
    done = {"a": [Checkpoint(165_000), Checkpoint(180_000)]}
    stops = find_stops(RunHistory([FIRST, again()], failures={170_000: "one", 190_000: "two"}, checkpoints=done))
    assert [(one.started_ms, one.ended_ms, one.is_followed) for one in stops] == [
        (170_000, 190_000, True),
        (190_000, 200_000, False),
    ]
    assert [one.checkpoint for one in stops] == done["a"]


@pytest.mark.parametrize(
    ("after", "failures", "kind"),
    [
        (again(), {}, ("restart", "job_failure")),
        (again(vertices=TWO), {}, ("rescale", "rescale")),
        (again(vertices=(("1", 1, "renamed"),)), {}, ("restart", "job_failure")),
        (again(vertices=None), {}, ("restart", "job_failure")),
        (again(vertices=TWO), {170_000: "boom"}, ("restart", "job_failure")),
        (again(), {170_000: "TaskManager with id x is no longer reachable."}, ("restart", "taskmanager_lost")),
        (again(), {170_000: "Heartbeat of TaskManager x timed out"}, ("restart", "taskmanager_lost")),
        (again("b", TWO), {}, ("rescale", "upgrade")),
    ],
)
def test_the_kind_of_a_stop(after, failures, kind):
    assert kinds(FIRST, after, failures=failures) == [kind]


def test_from_an_end_to_another_run_there_is_no_stop():
    batch = {"a": JobLifetime(is_batch=True, end_state="FINISHED", ended_ms=170_000)}
    assert find_stops(RunHistory([FIRST, again("b")], facts=batch)) == []
    assert len(find_stops(RunHistory([FIRST, again("b")]))) == 1


@pytest.mark.parametrize(
    ("state", "is_open", "is_down"),
    [("RUNNING", False, False), ("RESTARTING", True, True), ("FINISHED", True, False), ("FAILED", True, True)],
)
def test_a_job_that_does_not_run(state, is_open, is_down):
    assert (find_open_stop(state, 5) is not None, is_outage(state)) == (is_open, is_down)
    assert find_open_stop(state, None) is None


def test_a_job_that_ran_for_a_minute_before_its_first_poll_is_fresh():
    assert is_fresh_start(61_999, 1_000)
    assert not is_fresh_start(62_000, 1_999)


def test_restores_last_until_the_next_reply_without_one():
    assert list(find_restores([(1, False), (2, True), (3, True), (4, False), (5, True)])) == [(2, 4), (5, 5)]
    assert list(find_restores([(2, True), (4, False), (5, True), (9, True)])) == [(2, 4), (5, 9)]
    assert list(find_restores([])) == []


def test_windows_are_disturbed_from_the_one_of_the_stop_until_it_has_settled():
    started, ended = np.array([100, 100, 250]), np.array([130.0, np.nan, 200.0])
    first, last = find_disturbed_spans(started, ended, np.array([60, 60, 100]), settle_s=30, until_s=600)
    assert (first.tolist(), last.tolist()) == ([60, 60, 200], [160, 600, 250])
