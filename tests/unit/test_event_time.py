"""A source that shows no backlog: event time tells what arrives and how old records are, in Spark and live alike."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from event_time_job import CATCHES_UP, FALLS_BEHIND, KEEPS_UP, NO_WATERMARK, metrics, polls, run
from live_replies import SOURCE, T0_S, WORK, Job
from vertex_batches import START_S, polled, windows

from models.observing.event_time import find_watermarks_s, measure_event_time
from models.observing.outstanding import JobCounts, measure_outstanding
from models.polling.poll_history import PollHistory
from spark_jobs.job_history.job_shapes import JobShape

SHAPES = {("c", "a"): JobShape({f"a-{SOURCE}": [], f"a-{WORK}": [f"a-{SOURCE}"]})}
Window = tuple[float | None, bool, float | None]  # target data rate, whether it is a lower bound, age in s


def read_live(pace: float | None) -> dict[int, Window]:
    job, made = Job(), PollHistory({"c": 60}, polls=100)
    replies = [job.metrics(at, name, **metrics(values)) for at, name, values in polls(T0_S, pace)]
    assert made.add([*job.start(), *replies]) == []
    result = made.windows(T0_S + 1200)
    rows, bounds = result.observations(0), result.lower_bounds(0)
    target, age_s = rows.target_data_rate_per_s[:, 0], rows.latency_ms[:, 0] / 1000.0
    return {
        int(start_s) - T0_S: (target[place], bool(bounds[place, 0]), age_s[place])
        for place, start_s in enumerate(rows.window_start_s)
    }


def read_spark(pace: float | None) -> dict[int, Window]:
    rows = [
        polled("rides", at, "a", name, **values) | {"vertex_id": f"a-{name}"}
        for at, name, values in sorted(polls(START_S, pace), key=lambda one: one[1:2] + one[:1])
    ]
    return {
        round(row["window_start"].timestamp()) - START_S: (
            row["target_data_rate_per_s"],
            row["target_is_lower_bound"],
            row["age_s"],
        )
        for row in windows(rows, shapes=SHAPES)
        if row["operator"] == SOURCE
    }


@pytest.mark.parametrize("read", [read_live, read_spark])
def test_a_catch_up_is_no_load_and_what_is_not_taken_in_is(read) -> None:
    result, truth = read(1.0), run()
    # What happened in the seconds whose records were worked on then: the catch-up works on those of before.
    for until, arrived in ((KEEPS_UP, 100.0), (FALLS_BEHIND, 200.0), (CATCHES_UP, 200.0)):
        window = until // 60 * 60 - 60
        target, is_lower_bound, age_s = result[window]
        assert target == pytest.approx(arrived, rel=0.02)
        assert not is_lower_bound
        assert age_s == pytest.approx(truth[window + 40].age_s, abs=3.0)
    assert max(target for window, (target, _, _) in result.items() if window >= 960) == pytest.approx(50.0, rel=0.02)


@pytest.mark.parametrize("read", [read_live, read_spark])
def test_while_buffers_fill_the_load_is_what_arrives(read) -> None:
    """The source takes all in, what ends the job lags behind."""
    assert max(target for window, (target, _, _) in read(1.0).items() if 300 <= window < 600) < 210.0


@pytest.mark.parametrize("pace", [None, 0.5, 2.0])
@pytest.mark.parametrize("read", [read_live, read_spark])
def test_without_event_time_as_the_clock_passes_age_and_demand_stay_unknown(read, pace) -> None:
    target, is_lower_bound, age_s = read(pace)[FALLS_BEHIND // 60 * 60 - 60]
    assert is_lower_bound
    assert target == pytest.approx(125.0) if read is read_spark else np.isnan(target)
    assert age_s is None or np.isnan(age_s)


def test_a_recorded_overload_is_read_from_its_watermarks_alone() -> None:
    """700 records/s arrived for six minutes; what the source showed as pending is not used."""
    recording = Path(__file__).parents[1] / "support" / "recordings" / "overload_split.csv"
    with recording.open() as file:
        rows = list(csv.DictReader(file))
    at_s, mark_s, sink, others, quiet, true_s, taken = (
        np.array([float(row[name] or "nan") for row in rows])
        for name in ("at_s", "watermark_s", "sink_taken", "others_taken", "keeps_up", "true_age_s", "source_taken")
    )
    age_s, arriving = measure_event_time(at_s, mark_s, sink + others, quiet > 0)
    assert np.isfinite(age_s).all()
    error = np.abs(age_s - true_s)
    assert np.nanmean(error) < 7.0
    assert error[true_s > 30].mean() < 14.0
    overload = (at_s > at_s[0] + 300.0) & (at_s < at_s[0] + 600.0)
    assert np.nanmean(arriving[overload]) == pytest.approx(700.0, rel=0.1)
    assert np.ptp(taken[overload]) / np.ptp(at_s[overload]) < 600.0


AT_S = 1e9 + np.arange(0.0, 301.0, 10.0)
QUIET = np.ones(len(AT_S), bool)


def test_what_no_watermark_tells_stays_unknown() -> None:
    for untold in (NO_WATERMARK, 2.0**63, 1000.0 * 2e9):
        assert np.isnan(find_watermarks_s(AT_S, np.full((len(AT_S), 2), untold), [[], [0]])).all()
    one_has_none = np.stack([AT_S * np.nan, 1000.0 * (AT_S - 9.0), np.full(len(AT_S), NO_WATERMARK)], axis=1)
    assert np.isnan(find_watermarks_s(AT_S, one_has_none, [[], [0], [0]])).all()
    one_has_none[:, 2] = 1000.0 * (AT_S - 20.0)  # of several ends the last counts
    assert (AT_S - find_watermarks_s(AT_S, one_has_none, [[], [0], [0]])).tolist() == [20.0] * len(AT_S)


def test_a_job_that_never_keeps_up_or_stands_still_tells_nothing() -> None:
    count = 100.0 * (AT_S - 1e9)
    for is_quiet, mark_s in ((~QUIET, AT_S - 4.0), (QUIET, np.full(len(AT_S), 1e9)), (QUIET, AT_S * np.nan)):
        assert np.isnan(measure_event_time(AT_S, mark_s, count, is_quiet)).all()
    age_s, arriving = measure_event_time(AT_S, AT_S - 30.0, count, QUIET)  # watermarks may be 30 s behind anyway
    assert (age_s == 0.0).all()
    assert arriving[1:] == pytest.approx(100.0)


def test_over_a_restart_nothing_tells_what_arrives() -> None:
    count = np.where(AT_S < 1e9 + 100.0, 100.0 * (AT_S - 1e9), 100.0 * (AT_S - 1e9 - 90.0))
    _, arriving = measure_event_time(AT_S, AT_S - 4.0, count, QUIET)
    assert np.isnan(arriving[10:16]).all()
    assert arriving[16:] == pytest.approx(100.0)


def test_of_two_sources_none_is_told_by_the_watermark_of_both() -> None:
    count = 100.0 * (AT_S - 1e9)
    marks = np.stack([AT_S * np.nan, AT_S * np.nan, 1000.0 * (AT_S - 4.0)], axis=1)
    taken, idle = np.stack([count, count, 2.0 * count], axis=1), np.stack([QUIET] * 3, axis=1)
    counts = JobCounts(AT_S, taken, taken, taken * np.nan, ~idle, idle, marks)
    assert np.isnan(measure_outstanding(counts, [[], [], [0, 1]]).age_s).all()


@pytest.mark.parametrize("behind_s", [0.0, 34.0])
def test_what_was_taken_in_before_the_watermark_is_through(behind_s) -> None:
    """The counters claim a sixth of all as under way: what an operator dropped, say."""
    taken = np.stack([600.0 * (AT_S - 1e9), 500.0 * (AT_S - 1e9)], axis=1)
    marks = np.stack([AT_S * np.nan, 1000.0 * (AT_S - behind_s)], axis=1)
    pending = np.stack([AT_S * 0.0, AT_S * np.nan], axis=1)
    counts = JobCounts(AT_S, taken, taken * [1.0, 0.0], pending)
    assert measure_outstanding(counts, [[], [0]]).age_s[-1, 0] == pytest.approx(50.0)
    bounded = JobCounts(AT_S, taken, taken * [1.0, 0.0], pending, watermark_ms=marks)
    assert measure_outstanding(bounded, [[], [0]]).age_s[-1, 0] == pytest.approx(behind_s)
