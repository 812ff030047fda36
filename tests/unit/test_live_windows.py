"""Polls to windows: one rule of silver.observations each."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from live_replies import SOURCE, T0_S, WORK, Job

from include.flink.raw_format import Endpoint, RawRecord
from models.policies.observations import Observations
from models.polling.faults import Rule
from models.polling.poll_history import PollHistory

JOB = Job()
MINUTE = {"c": 60}


def history(*records, window_s=MINUTE, **options) -> PollHistory:
    made = PollHistory(window_s, **options)
    assert made.add([*JOB.start(), *records]) == []
    return made


def seen(made: PollHistory, until_s: float, job: int = 0) -> Observations:
    return made.windows(T0_S + until_s).observations(job)


def column(values: np.ndarray, operator: str = WORK) -> list[float | None]:
    place = [SOURCE, WORK].index(operator)
    return [None if np.isnan(value) else round(float(value), 9) for value in values[:, place]]


def began(found: Observations) -> list[int]:
    return [int(start) - T0_S for start in found.window_start_s]


def test_rates_are_differences_of_counters_over_the_time_between_polls():
    polls = [JOB.metrics(at, taken=10.0 * at, sent=5.0 * at) for at in (0, 20, 40, 70, 100)]
    result = seen(history(*polls), 120)
    assert began(result) == [0, 60]
    assert column(result.processing_rate_per_s) == [10.0, 10.0]
    assert column(result.output_rate_per_s) == [5.0, 5.0]
    assert column(result.processing_rate_per_s, SOURCE) == [None, None]


def test_a_source_processes_what_it_emits():
    result = seen(history(*[JOB.metrics(at, SOURCE, taken=0.0, sent=7.0 * at) for at in (0, 30)]), 60)
    assert column(result.processing_rate_per_s, SOURCE) == [7.0]


def test_shares_of_time_and_true_rates():
    polls = [
        JOB.metrics(at, taken=100.0 * at, sent=50.0 * at, busy_ms=400 * at, idle_ms=350 * at, backpressured_ms=250 * at)
        for at in (0, 30, 50)
    ]
    result = seen(history(*polls), 60)
    assert column(result.busy_share) == [0.4]
    assert column(result.idle_share) == [0.35]
    assert column(result.backpressured_share) == [0.25]
    assert column(result.true_processing_rate_per_s) == [250.0]
    assert column(result.true_output_rate_per_s) == [125.0]


def test_a_share_that_was_not_measured_is_unknown_and_gives_no_true_rate():
    result = seen(history(*[JOB.metrics(at, taken=10.0 * at, busyTimeMsPerSecond="NaN") for at in (0, 30)]), 60)
    assert column(result.busy_share) == [None]
    assert column(result.true_processing_rate_per_s) == [None]


def test_a_share_never_exceeds_one():
    result = seen(history(*[JOB.metrics(at, taken=1.0 * at, busy_ms=1010.0 * at) for at in (0, 30)]), 60)
    assert column(result.busy_share) == [1.0]


def test_gauges_stand_in_where_no_counters_are():
    polls = [JOB.metrics(at, numRecordsInPerSecond=float(at), busyTimeMsPerSecond=500.0) for at in (10, 30)]
    result = seen(history(*polls), 60)
    assert column(result.processing_rate_per_s) == [20.0]  # their mean
    assert column(result.busy_share) == [0.5]


def test_a_counter_that_fell_leaves_its_difference_out():
    polls = [JOB.metrics(at, taken=taken) for at, taken in ((0, 0.0), (20, 200.0), (40, 10.0), (50, 60.0))]
    result = seen(history(*polls), 60)
    assert column(result.processing_rate_per_s) == [pytest.approx((200 + 50) / 30)]


def test_one_counter_that_fell_leaves_out_all_of_the_reply():
    polls = [JOB.metrics(0, taken=0.0, sent=900.0), JOB.metrics(30, taken=300.0, sent=1.0)]
    result = seen(history(*polls), 60)
    assert column(result.processing_rate_per_s) == [None]


def test_busy_time_that_falls_by_some_ms_leaves_the_records_of_its_reply():
    busy_ms = ((0, 4_246.0), (15, 4_199.0), (30, 4_210.0))
    result = seen(history(*[JOB.metrics(at, taken=100.0 * at, busy_ms=spent) for at, spent in busy_ms]), 60)
    assert column(result.processing_rate_per_s) == [100.0]
    assert column(result.busy_share) == [0.0]
    restarted = seen(history(*[JOB.metrics(at, taken=100.0 * at, busy_ms=50_000.0 - 1_000 * at) for at in (0, 30)]), 60)
    assert column(restarted.processing_rate_per_s) == [None]


def test_a_task_that_initialises_is_no_fault():
    made = PollHistory(MINUTE)
    made.add(JOB.start())
    assert made.add([JOB.metrics(0, taken=0.0, accumulateBusyTimeMs="NaN", busyTimeMsPerSecond="NaN")]) == []


def test_a_difference_over_more_than_two_windows_is_left_out():
    polls = [JOB.metrics(at, taken=10.0 * at) for at in (0, 30, 30 + 121, 30 + 121 + 20)]
    result = seen(history(*polls), 180)
    assert began(result) == [0, 120]
    assert column(result.processing_rate_per_s) == [10.0, 10.0]
    lone = seen(history(*polls[:3]), 180)
    assert column(lone.processing_rate_per_s) == [10.0, None]


def timed(at: float, ran_s: float, sent: float, **values: float):
    spent = {"busy_ms": 500.0 * ran_s, "idle_ms": 500.0 * ran_s, "backpressured_ms": 0.0}
    return JOB.metrics(at, SOURCE, sent=sent, **spent, **values)


def test_metrics_that_stand_still_are_no_measurement_and_an_idle_job_is_one():
    moving = [timed(at, at, 100.0 * at, pending=50.0) for at in (0, 30, 60, 90)]
    still = [timed(at, 90, 9000.0, pending=50.0) for at in range(120, 360, 30)]
    idle = [timed(at, at, 9000.0, pending=0.0) for at in range(360, 480, 30)]
    made = history(*moving, *still, *idle)
    result = seen(made, 480)
    assert dict(zip(began(result), column(result.target_data_rate_per_s, SOURCE), strict=True)) == {
        0: 100.0,
        60: 100.0,
        360: 0.0,
        420: 0.0,
    }


@pytest.mark.parametrize("ahead_s", [0, 90, 7200])
def test_rates_and_ages_are_the_same_over_a_clock_that_was_set_ahead(ahead_s: int) -> None:
    """100 records/s from five seconds ago, by a gauge 60: the clock is set after 200 s."""
    fixed = {"numRecordsOutPerSecond": 60.0, "pending": 500.0, "idle_ms": 0.0, "backpressured_ms": 0.0}
    times = [(at, at + ahead_s * (at > 200)) for at in range(20, 420, 20)]
    polls = [JOB.metrics(by_clock, SOURCE, sent=100.0 * at, busy_ms=1000.0 * at, **fixed) for at, by_clock in times]
    result = seen(history(*polls, polls=30), 420 + ahead_s)
    rates, ages_ms = (column(one, SOURCE)[1:] for one in (result.processing_rate_per_s, result.latency_ms))
    assert rates == [pytest.approx(100.0)] * len(rates)
    assert ages_ms == [pytest.approx(5000.0)] * len(ages_ms)


def test_target_data_rate_is_what_is_emitted_and_the_growth_of_the_backlog():
    polls = [JOB.metrics(at, SOURCE, sent=50.0 * at, pending=20.0 * at) for at in (0, 20, 40)]
    made = history(*polls)
    result = seen(made, 60)
    assert column(result.target_data_rate_per_s, SOURCE) == [70.0]
    assert column(result.pending_records, SOURCE) == [800.0]
    assert column(result.latency_ms, SOURCE) == [pytest.approx(1000 * 800 / 70)]
    to_work_off = made.windows(T0_S + 60).measures["latency_ms"]
    assert to_work_off[0] == pytest.approx(1000 * 800 / 50)
    assert column(result.target_data_rate_per_s, WORK) == [None]
    assert not made.windows(T0_S + 60).lower_bounds(0).any()


def test_records_that_an_operator_has_not_taken_yet_are_late_with_nothing_pending():
    polls = [
        reply
        for at in range(0, 301, 20)
        for reply in (
            JOB.metrics(at, SOURCE, sent=700.0 * at, pending=0.0),
            JOB.metrics(at + 0.5, taken=500.0 * at, sent=500.0 * at),
        )
    ]
    made = history(*polls)
    result = seen(made, 300)
    assert column(result.latency_ms[-1:], SOURCE) == [pytest.approx(1000 * 200 * 280 / 700)]
    assert column(result.waiting_records[-1:], SOURCE) == [pytest.approx(200 * 280)]
    assert column(result.pending_records[-1:], SOURCE) == [0.0]
    assert made.windows(T0_S + 300).measures["latency_ms"][-2] == 0.0  # to work off, by what the source takes in
    assert column(seen(made, 300).latency_ms) == [None] * 4


@pytest.mark.parametrize(("kind", "most_s"), [("CHECKPOINT", 40.0), ("UNALIGNED_CHECKPOINT", None)])
def test_an_aligned_checkpoint_has_pushed_the_records_before_it_through(kind, most_s):
    """The source seems to send what nobody takes, as where a chained sink counts among what its vertex sends."""
    done = {
        "status": "COMPLETED",
        "checkpoint_type": kind,
        "trigger_timestamp": 1000 * (T0_S + 240),
        "latest_ack_timestamp": 1000 * (T0_S + 250),
    }
    polls = [
        reply
        for at in range(0, 281, 20)
        for reply in (JOB.metrics(at, SOURCE, sent=700.0 * at, pending=0.0), JOB.metrics(at, taken=500.0 * at))
    ]
    made = history(*polls, JOB.record(280, Endpoint.CHECKPOINTS, {"latest": {"completed": done}}))
    result = seen(made, 300)
    assert column(result.latency_ms[-1:], SOURCE) == [pytest.approx(1000 * (most_s or 200 * 280 / 700))]
    assert column(result.latency_ms[-2:-1], SOURCE) == [pytest.approx(1000 * 200 * 220 / 700)]  # not completed yet


@pytest.mark.parametrize(("idle_ms", "busiest_ms", "age_s"), [(300, 700, 0.0), (20, 980, 80.0), (300, 1000, 80.0)])
def test_nothing_waits_before_an_operator_whose_subtasks_all_have_idle_time(idle_ms, busiest_ms, age_s):
    polls = []
    for at in range(0, 281, 20):
        work = JOB.metrics(at, taken=500.0 * at, idle_ms=idle_ms * at, backpressured_ms=0.0)
        busy = {"id": "accumulateBusyTimeMs", "avg": (1000 - idle_ms) * at, "max": busiest_ms * at}
        body = json.dumps([*json.loads(work.body), busy])
        polls += [JOB.metrics(at, SOURCE, sent=700.0 * at, pending=0.0), replace(work, body=body)]
    assert column(seen(history(*polls), 300).latency_ms[-1:], SOURCE) == [pytest.approx(1000 * age_s)]


def test_an_operator_whose_counters_are_of_another_time_leaves_the_age_of_the_backlog_alone():
    polls = [JOB.metrics(at, SOURCE, sent=50.0 * at, pending=20.0 * at) for at in (0, 20, 40)]
    result = seen(history(*polls, JOB.metrics(8, taken=0.0), JOB.metrics(50, taken=100.0)), 60)
    assert column(result.latency_ms, SOURCE) == [pytest.approx(1000 * 800 / 70)]


def test_a_backlog_that_shrinks_faster_than_records_are_emitted_leaves_no_target_below_zero():
    polls = [JOB.metrics(at, SOURCE, sent=1.0 * at, pending=1000.0 - 20.0 * at) for at in (0, 20)]
    assert column(seen(history(*polls), 60).target_data_rate_per_s, SOURCE) == [0.0]


def test_a_source_that_restores_shows_the_backlog_of_the_run_before():
    """A TaskManager was lost: 44,102 records waited where the first poll of the new run showed 1, of the old run."""
    before = [(at, 513.0 * at, 1.0) for at in (0, 15, 30, 45)]
    since = [(60, 0.0, 1.0), (75, 9541.0, 44_102.0), (90, 11_140.0, 47_782.0), (105, 12_735.0, 53_560.0)]
    polls = [JOB.metrics(at, SOURCE, sent=sent, pending=pending) for at, sent, pending in (*before, *since)]
    result = seen(history(*polls, *(JOB.metrics(at, taken=0.0) for at, _, _ in since)), 120)
    arrived_per_s = [(11_140 - 9541 + 47_782 - 44_102) / 15, (12_735 - 11_140 + 53_560 - 47_782) / 15]
    assert column(result.target_data_rate_per_s, SOURCE)[1] == pytest.approx(np.mean(arrived_per_s))
    restoring = history(*polls[:5], *(JOB.metrics(at, taken=0.0) for at in (60, 75)))
    assert column(seen(restoring, 120).latency_ms, SOURCE) == [pytest.approx(1000 / 513, rel=1e-4), None]


def test_an_empty_backlog_has_no_age_even_without_output():
    polls = [JOB.metrics(at, SOURCE, sent=0.0, pending=0.0) for at in (0, 20)]
    assert column(seen(history(*polls), 60).latency_ms, SOURCE) == [0.0]


@pytest.mark.parametrize(
    ("backpressured", "pending", "is_lower_bound"),
    [(0.98, None, True), (0.11, None, True), (0.1, None, False), (0.0, None, False), (0.98, 500.0, False)],
)
def test_demand_above_what_a_backpressured_source_emitted_is_unknown(backpressured, pending, is_lower_bound):
    """Without pendingRecords the target is what was emitted: under backpressure no more than a lower bound."""
    shown = {} if pending is None else {"pending": pending}
    polls = [
        JOB.metrics(at, SOURCE, sent=100.0 * at, busy_ms=0.0, backpressured_ms=1000.0 * backpressured * at, **shown)
        for at in (0, 30)
    ]
    made = history(*polls, *[JOB.metrics(at, taken=100.0 * at, backpressured_ms=980.0 * at) for at in (0, 30)])
    (target,) = column(seen(made, 60).target_data_rate_per_s, SOURCE)
    assert target == (None if is_lower_bound else 100.0)
    assert made.windows(T0_S + 60).lower_bounds(0).tolist() == [[is_lower_bound, False]]


def test_a_window_that_has_not_ended_is_not_given():
    made = history(*[JOB.metrics(at, taken=1.0 * at) for at in (0, 30, 70)])
    assert began(seen(made, 119.9)) == [0]
    assert began(seen(made, 120)) == [0, 60]


def test_a_window_that_lost_polls_is_not_given():
    made = history(*[JOB.metrics(at, taken=1.0 * at) for at in range(10, 250, 20)], polls=5)
    result = seen(made, 240)  # kept: 150, ..., 230; the poll at 130 is gone
    assert began(result) == [180]
    assert column(result.processing_rate_per_s) == [1.0]


def test_windows_are_as_long_as_their_cluster_wants():
    other = Job(job_id="b" * 32, cluster="d")
    made = history(*[job.metrics(at, taken=1.0 * at) for at in range(0, 600, 60) for job in (JOB,)])
    made.add([*other.start(), *[other.metrics(at, taken=2.0 * at) for at in range(0, 600, 60)]])
    assert [job.cluster for job in made.jobs()] == ["c", "d"]
    assert began(seen(made, 600)) == list(range(0, 600, 60))
    assert began(seen(made, 600, 1)) == [0, 300]
    assert column(seen(made, 600, 1).processing_rate_per_s) == [2.0, 2.0]


def test_parallelism_is_that_at_the_end_of_the_window():
    more = Job(parallelism={SOURCE: 1, WORK: 5})
    waiting = Job(parallelism={SOURCE: 1, WORK: 1}).job(100, state="CREATED")
    polls = [JOB.metrics(at, taken=1.0 * at) for at in range(0, 180, 20)]
    made = history(*polls, waiting, more.job(120))  # seen at the very end of the second window: of the third
    assert column(seen(made, 180).parallelism.astype(float)) == [2.0, 2.0, 5.0]


def test_windows_of_a_job_are_one_array_for_all_of_its_operators():
    made = history(JOB.metrics(10, SOURCE, sent=1.0), JOB.metrics(130, taken=1.0))
    result = seen(made, 180)
    assert began(result) == [0, 120]
    assert result.parallelism.tolist() == [[1, 0], [0, 2]]


def test_two_running_jobs_of_one_name_stay_two():
    other = Job(job_id="b" * 32)
    made = history(*[JOB.metrics(at, taken=1.0 * at) for at in (0, 30)])
    assert made.add([*other.start(), *[other.metrics(at, taken=9.0 * at) for at in (0, 30)]]) == []
    assert [(job.job, job.job_id) for job in made.jobs()] == [("orders", "a" * 32), ("orders", "b" * 32)]
    assert column(seen(made, 60).processing_rate_per_s) == [1.0]
    assert column(seen(made, 60, 1).processing_rate_per_s) == [9.0]


def test_a_job_that_is_forgotten_leaves_the_others_as_they_are():
    other = Job(job_id="b" * 32, name="rides")
    made = history(*[JOB.metrics(at, taken=1.0 * at) for at in (0, 30)])
    made.add([*other.start(), other.job(40), *[other.metrics(at, taken=9.0 * at) for at in (0, 30)]])
    assert made.forget(1000 * T0_S) == [("c", "a" * 32)]
    assert [job.job for job in made.jobs()] == ["rides"]
    assert made.add([other.metrics(50, taken=450.0)]) == []
    assert column(seen(made, 60).processing_rate_per_s) == [9.0]


def test_an_application_that_is_deployed_anew_with_the_same_id_keeps_its_last_vertices_alone():
    made = history()
    first = made.nbytes
    for minute in range(1, 60):
        job = Job(vertices={SOURCE: f"{minute:032x}", WORK: f"{minute:031x}f"})
        polls = [job.metrics(60 * minute + at, taken=5.0 * at) for at in (0, 30)]
        faults = made.add([job.job(60 * minute), job.plan(60 * minute), *polls])
        assert [one.rule for one in faults] == [Rule.BAD_GRAPH]  # until the new plan comes
        assert made.forget(0) == []
        assert made.nbytes <= first
    assert column(seen(made, 3600).processing_rate_per_s) == [5.0]


def test_a_job_whose_vertices_are_not_told_for_a_while_keeps_its_windows():
    made = history(*[JOB.metrics(at, taken=1.0 * at) for at in (0, 30)])
    initialises = JOB.record(40, Endpoint.JOB, {**JOB.body(state="INITIALIZING"), "vertices": []})
    assert [one.rule for one in made.add([initialises])] == [Rule.BAD_GRAPH]
    assert made.forget(0) == []
    assert made.add([JOB.job(50)]) == []
    assert column(seen(made, 60).processing_rate_per_s) == [1.0]


def test_a_job_that_was_polled_before_the_clock_was_set_back_is_begun_anew():
    made = history(JOB.job(3600))
    assert [one.rule for one in made.add([JOB.job(10)])] == ["not_newer"]
    assert made.forget(0, 1000.0 * (T0_S + 3600)) == []
    assert made.forget(0, 1000.0 * (T0_S + 60)) == [("c", "a" * 32)]
    assert made.add([JOB.job(20), JOB.plan(21)]) == []
    assert [job.polled_at_ms for job in made.jobs()] == [1000 * (T0_S + 20)]


def test_nothing_gives_nothing():
    made = PollHistory(MINUTE)
    assert (made.add([]), made.jobs(), made.forget(0)) == ([], [], [])
    assert len(made.windows(T0_S).window_start_s) == 0
    assert len(seen(history(), 600)) == 0


def test_arrays_grow_with_the_fleet():
    made = PollHistory(MINUTE)
    jobs = [Job(job_id=f"{number:032x}", name=f"job-{number}") for number in range(200)]
    for at in (0, 30):
        polled = [record for job in jobs for record in (job.job(at), job.plan(at + 1))]
        assert made.add([*polled, *[job.metrics(at + 5, taken=at * n) for n, job in enumerate(jobs)]]) == []
    result = made.windows(T0_S + 60)
    assert [float(result.observations(n).processing_rate_per_s[0, 1]) for n in (0, 63, 64, 199)] == [0, 63, 64, 199]
    assert made.nbytes > 0


@pytest.mark.parametrize("written", [float, int, str])
def test_aggregates_over_fewer_subtasks_are_no_measurement_however_their_numbers_are_written(written):
    def poll(at: int, subtasks: int) -> RawRecord:
        each = 1000 * at + 1000
        totals = {"avg": written(each), "sum": written(each * subtasks), "min": written(each), "max": written(each)}
        return JOB.record(at, Endpoint.VERTEX_METRICS, [{"id": "numRecordsIn", **totals}], JOB.vertices[WORK])

    made = PollHistory(MINUTE)
    # Two in a row lack a subtask: the rise after them would be as wrong as the fall before.
    counted = [poll(at, 1 if at in (70, 80) else 2) for at in range(0, 120, 10)]
    faults = made.add([*JOB.start(), *counted])
    assert [fault.rule for fault in faults] == [Rule.MISSING_SUBTASKS] * 2
    assert column(seen(made, 120).processing_rate_per_s) == [2000.0, 2000.0]
