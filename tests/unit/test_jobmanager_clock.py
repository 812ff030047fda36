"""A JobManager whose clock is wrong: its stops are as long, and lie where the polls have them."""

from __future__ import annotations

import pytest
from live_replies import ms

from include.flink.raw_format import RawRecord
from models.observing.clocks import find_ahead_ms
from models.observing.job_ends import JobLifetime
from models.observing.stops import Checkpoint, JobRun, RunHistory, find_stops
from models.polling.poll_history import PollHistory
from tests.unit.test_live_stops import JOB, checkpointed, disturbed, failed, stops

CLOCKS_S = [-240, 0, 240]


def polled(at: float, ahead_s: float, running_s: float = -9999, **options: object) -> RawRecord:
    return JOB.job(at, now=ms(at + ahead_s), running_s=running_s + ahead_s, **options)


def history(*records: RawRecord) -> PollHistory:
    made = PollHistory({"c": 60}, polls=60)
    metrics = [JOB.metrics(at, taken=1.0 * at) for at in range(0, 600, 20)]
    assert made.add([*records, JOB.plan(-29), *metrics]) == []
    return made


def until(stopped_s: int, ahead_s: float, running_s: float = -9999) -> list[RawRecord]:
    return [polled(at, ahead_s, running_s) for at in range(-30, stopped_s + 1, 30)]


@pytest.mark.parametrize("ahead_s", CLOCKS_S)
def test_a_rescale_is_down_for_as_long_whatever_the_jobmanager_s_clock_says(ahead_s: float) -> None:
    made = history(*until(180, ahead_s), polled(300, ahead_s, 280))
    assert stops(made) == [(180, 280, None)]
    assert disturbed(made) == [180, 240, 300]


@pytest.mark.parametrize("ahead_s", CLOCKS_S)
def test_failures_and_checkpoints_are_dated_by_the_same_clock(ahead_s: float) -> None:
    polls = [*until(180, ahead_s), polled(300, ahead_s, 280)]
    assert stops(history(*polls, failed(301, (250 + ahead_s, "lost")))) == [(250, 280, "lost")]
    assert stops(history(*polls, checkpointed(301, 220 + ahead_s))) == [(220, 280, None)]


@pytest.mark.parametrize("ahead_s", CLOCKS_S)
def test_a_job_that_was_submitted_before_its_first_poll_started_then(ahead_s: float) -> None:
    assert stops(history(*until(570, ahead_s, -40))) == [(-40, -40, None)]
    assert stops(history(*until(570, ahead_s, -100))) == []


@pytest.mark.parametrize("step_s", [-120, 0, 7200])
def test_a_stop_soon_after_a_clock_was_set_is_dated_by_the_clock_as_it_is(step_s: int) -> None:
    before = [polled(at, 0) for at in range(-30, 300, 10)]
    made = history(*before, *(polled(at + step_s, -step_s, 440 + step_s) for at in range(450, 480, 10)))
    assert stops(made)[-1][1] == 440 + step_s


def test_all_that_flink_tells_is_brought_to_the_clock_of_the_polls() -> None:
    def told(ahead_ms: int) -> RunHistory:
        return RunHistory(
            [JobRun(100_000 + ahead_ms, 101_000, 160_000, "a"), JobRun(200_000 + ahead_ms, 210_000, 300_000, "b")],
            stopped_ms={170_000 + ahead_ms},
            checkpoints={"a": [Checkpoint(150_000 + ahead_ms, 149_000 + ahead_ms), Checkpoint(120_000 + ahead_ms)]},
            facts={
                "a": JobLifetime(end_state="CANCELED", ended_ms=171_000 + ahead_ms, savepoint_ms=165_000 + ahead_ms)
            },
            ahead_ms=ahead_ms,
        )

    right = find_stops(told(0))
    assert len(right) == 1
    assert find_stops(told(240_000)) == find_stops(told(-90_000)) == right


def test_the_age_of_a_reply_is_no_difference_and_one_slow_reply_is_none_either() -> None:
    assert find_ahead_ms([]) == find_ahead_ms([-4900.0, -300.0, -4000.0]) == 0
    assert find_ahead_ms([-240_120, -240_080, -275_000, -240_300]) == -240_000
    assert find_ahead_ms([5000]) == 5000
