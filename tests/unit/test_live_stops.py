"""When live jobs stopped and started, which windows that disturbs, and what is seen of a job meanwhile."""

from __future__ import annotations

import numpy as np
from live_replies import SOURCE, T0_S, WORK, Job, ms

from include.flink.raw_format import Endpoint
from models.polling.poll_history import PollHistory

JOB = Job()


def history(*records, metrics_every_s=20, until_s=600, **options) -> PollHistory:
    made = PollHistory({"c": 60}, polls=60, **options)
    polls = [JOB.metrics(at, taken=1.0 * at) for at in range(0, until_s, metrics_every_s)]
    assert made.add([*JOB.start(), *polls, *records]) == []
    return made


def disturbed(made: PollHistory, until_s: int = 600) -> list[int]:
    result = made.windows(T0_S + until_s)
    return [int(start) - T0_S for start, is_so in zip(result.window_start_s, result.disturbed, strict=True) if is_so]


def stops(made: PollHistory) -> list[tuple[float, float | None, str | None]]:
    return [
        (stop.started_ms / 1000 - T0_S, stop.ended_ms and stop.ended_ms / 1000 - T0_S, stop.cause)
        for stop in made.jobs()[0].stops
    ]


def failed(at: float, *entries: tuple[float, str]):
    body = {"exceptionHistory": {"entries": [{"stacktrace": f"{t}\n\tat x", "timestamp": ms(s)} for s, t in entries]}}
    return JOB.record(at, Endpoint.EXCEPTIONS, body)


def checkpointed(at: float, *done: float):
    one = [{"status": "COMPLETED", "latest_ack_timestamp": ms(second)} for second in done]
    return JOB.record(at, Endpoint.CHECKPOINTS, {"latest": {"completed": one[-1]}, "history": one})


def test_a_job_that_runs_on_is_never_disturbed():
    assert disturbed(history(*[JOB.job(at) for at in range(0, 600, 60)])) == []


def test_windows_from_a_stop_until_it_has_settled_are_disturbed():
    made = history(JOB.job(100), JOB.job(190, running_s=155))
    assert stops(made) == [(100, 155, None)]  # seen at work until the reply before
    assert disturbed(made) == [60, 120, 180]  # 155 + 30 s lies in the window of 180


def test_a_failure_dates_the_stop_and_names_its_cause():
    made = history(JOB.job(100), JOB.job(300, running_s=280), failed(301, (250, "lost TaskManager")))
    assert stops(made) == [(250, 280, "lost TaskManager")]


def test_the_time_at_which_it_left_running_dates_the_stop():
    made = history(JOB.job(100), JOB.job(300, running_s=280, timestamps={"RESTARTING": ms(270)}))
    assert stops(made) == [(270, 280, None)]


def test_a_checkpoint_shows_that_it_was_still_at_work():
    made = history(JOB.job(100), JOB.job(300, running_s=280), checkpointed(301, 150, 240))
    assert stops(made) == [(240, 280, None)]


def test_two_failures_with_a_checkpoint_between_are_two_stops():
    again = JOB.job(300, running_s=280)
    one = history(JOB.job(100), again, failed(301, (150, "first"), (160, "of the same downtime")))
    assert stops(one) == [(150, 280, "first")]
    two = history(JOB.job(100), again, failed(301, (150, "first"), (260, "second")), checkpointed(302, 230))
    assert stops(two) == [(150, 260, "first"), (260, 280, "second")]


def test_a_cached_reply_of_the_former_run_is_no_second_stop():
    made = history(JOB.job(100), JOB.job(101.5), JOB.job(102, running_s=100.5))
    assert stops(made) == [(97.5, 100.5, None)]


def test_while_it_is_down_all_windows_are_disturbed_until_now():
    made = history(JOB.job(100), JOB.job(200, state="RESTARTING"))
    assert stops(made) == [(100, None, None)]
    assert disturbed(made, 360) == [60, 120, 180, 240, 300]


def test_the_start_of_a_new_job_is_disturbed():
    new, polls = Job(job_id="b" * 32), range(10, 200, 20)
    made = PollHistory({"c": 60})
    made.add([new.job(9, running_s=-10), new.plan(9.5), *[new.metrics(at, taken=1.0 * at) for at in polls]])
    assert disturbed(made, 180) == [0]
    old = PollHistory({"c": 60})
    old.add([new.job(9, running_s=-70), new.plan(9.5), *[new.metrics(at, taken=1.0 * at) for at in polls]])
    assert disturbed(old, 180) == []


def test_what_is_seen_of_a_job_that_runs():
    (observed,) = history(JOB.job(60.25)).jobs()
    assert (observed.state, observed.is_up, observed.restarting, observed.polled_at_ms) == (
        "RUNNING",
        True,
        False,
        ms(60.25),
    )
    assert observed.running == {SOURCE: 1, WORK: 2}
    assert list(observed.vertex_ids.items()) == [(SOURCE, "1" * 32), (WORK, "2" * 32)]
    assert observed.graph is not None
    assert [operator.upstream for operator in observed.graph.operators] == [(), (SOURCE,)]


def test_a_job_that_is_brought_back_shows_what_it_ran_with():
    fresh = Job(parallelism={SOURCE: 1, WORK: 1})  # while it waits for slots Flink shows 1
    (observed,) = history(JOB.job(60), fresh.job(120, state="CREATED")).jobs()
    assert (observed.is_up, observed.restarting, observed.running) == (False, True, {SOURCE: 1, WORK: 2})
    assert observed.polled_at_ms == ms(120)


def test_a_job_that_never_ran_is_not_restarting():
    made = PollHistory({"c": 60})
    made.add([JOB.job(0, state="CREATED")])
    (observed,) = made.jobs()
    assert (observed.restarting, observed.running) == (False, {SOURCE: 1, WORK: 2})


def test_the_own_metrics_of_a_job_are_numbers():
    result = [{"id": "uptime", "value": "17"}, {"id": "numRestarts", "value": "-"}, {"id": "x"}, None]
    (observed,) = history(JOB.record(60, Endpoint.JOB_METRICS, result)).jobs()
    assert observed.metrics == {"uptime": 17.0}


def test_a_time_that_cannot_be_reaches_into_no_other_job():
    other = Job(job_id="b" * 32, name="rides")
    made = history(JOB.job(100), JOB.job(200, timestamps={"RUNNING": 253_402_300_799_999}))
    made.add([*other.start(), *[other.metrics(at, taken=1.0 * at) for at in range(0, 600, 20)]])
    result = made.windows(T0_S + 600)
    assert result.observations(0).disturbed.tolist() == [False] + [True] * 9
    assert result.observations(1).disturbed.tolist() == [False] * 10


def test_one_impossible_time_among_many_replies_disturbs_nothing_for_long():
    made = history(
        JOB.job(100), JOB.job(200, timestamps={"RUNNING": 253_402_300_799_999}), *[JOB.job(at) for at in (260, 320)]
    )
    assert disturbed(made) == []


def test_shorter_windows_are_those_of_a_history_of_that_length():
    long, expected = PollHistory({"c": 300}, polls=60), history().windows(T0_S + 600)
    long.add([*JOB.start(), *[JOB.metrics(at, taken=1.0 * at) for at in range(0, 600, 20)]])
    result = long.windows(T0_S + 600, {"c": 60})
    np.testing.assert_array_equal(result.window_start_s, expected.window_start_s)
    for name, values in expected.measures.items():
        np.testing.assert_array_equal(result.measures[name], values)
    np.testing.assert_array_equal(long.windows(T0_S + 600).window_start_s - T0_S, [0, 300])
