"""Outstanding records and their age, against the true age of two recorded overloads."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from models.observing.outstanding import JobCounts, measure_outstanding

RECORDINGS = Path(__file__).parents[1] / "support" / "recordings"
SPLIT = ("source", "slow", "sink", "others"), [[], [0], [1], [0]]
JOIN = ("source", "join"), [[], [0]]
MEMORY = 60  # polls of a recording that a poll looks back on: ten minutes


def read(name: str, operators: tuple[str, ...]) -> tuple[JobCounts, np.ndarray]:
    """Return what was counted, and (P,) the true age."""
    with (RECORDINGS / f"overload_{name}.csv").open() as file:
        rows = list(csv.DictReader(file))

    def column(key):
        return np.array([float(row[key] or "nan") for row in rows])

    pending = np.full((len(rows), len(operators)), np.nan)
    pending[:, 0] = column("pending")
    taken, sent = (np.stack([column(f"{one}_{what}") for one in operators], axis=1) for what in ("taken", "sent"))
    return JobCounts(column("at_s"), taken, sent, pending), column("true_age_s")


def last(counts: JobCounts, until: int, polls: int) -> JobCounts:
    rows = slice(max(until - polls, 0), until)
    return JobCounts(counts.at_s[rows], counts.taken[rows], counts.sent[rows], counts.pending[rows])


def to_work_off_s(counts: JobCounts) -> np.ndarray:
    """Return (P,) backlog over what was taken in within the last minute, as lateness was read before."""
    taken, at_s = counts.taken[:, 0], counts.at_s
    before = np.maximum(np.searchsorted(at_s, at_s - 60.0), 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return counts.pending[:, 0] / ((taken - taken[before]) / (at_s - at_s[before]))


@pytest.mark.parametrize(
    ("name", "shape", "most_s", "most_old_s"), [("split", SPLIT, 5.0, 8.0), ("join", JOIN, 5.0, 6.0)]
)
def test_the_age_is_the_true_one_where_time_to_work_off_is_not(name, shape, most_s, most_old_s):
    counts, true_s = read(name, shape[0])
    age_s = np.array(
        [measure_outstanding(last(counts, until, MEMORY), shape[1]).age_s[-1, 0] for until in range(1, len(true_s) + 1)]
    )
    known = np.isfinite(age_s) & np.isfinite(true_s)
    known[:6] = False
    is_old = known & (true_s > 30)
    error, before = np.abs(age_s - true_s), np.abs(to_work_off_s(counts) - true_s)
    assert known.sum() > 40
    assert is_old.sum() > 15
    assert error[known].mean() < most_s
    assert error[is_old].mean() < most_old_s
    assert before[is_old].mean() > 4 * error[is_old].mean()


def flow(seconds: int, arrive: float, take: float, pass_on: float, pending: bool = True) -> JobCounts:
    """Return polls of 10 s: a source that takes less than arrives, before an operator that takes less than it sends."""
    at_s = np.arange(0.0, seconds + 1, 10.0)
    taken = np.stack([take * at_s, pass_on * at_s], axis=1)
    waiting = (arrive - take) * at_s if pending else np.full(len(at_s), np.nan)
    return JobCounts(1e9 + at_s, taken, taken * [1.0, 0.0], np.stack([waiting, np.full(len(at_s), np.nan)], axis=1))


def test_records_in_buffers_and_in_the_backlog_are_outstanding():
    result = measure_outstanding(flow(300, 700.0, 600.0, 500.0), [[], [0]])
    assert result.records[-1, 0] == pytest.approx(200.0 * 300)
    assert result.age_s[-1, 0] == pytest.approx(200.0 * 300 / 700.0)
    assert np.isnan(result.age_s[:, 1]).all()


def test_nothing_outstanding_is_no_age_whatever_arrives():
    assert measure_outstanding(flow(300, 0.0, 0.0, 0.0), [[], [0]]).age_s[:, 0] == pytest.approx(0.0)
    assert measure_outstanding(flow(300, 50.0, 50.0, 50.0), [[], [0]]).age_s[:, 0] == pytest.approx(0.0)


def test_selectivity_turns_records_in_buffers_into_those_of_the_source():
    counts = flow(300, 700.0, 600.0, 500.0)
    filtered = JobCounts(counts.at_s, counts.taken * [1.0, 0.1], counts.sent * 0.1, counts.pending)
    wide = measure_outstanding(filtered, [[], [0]])
    assert wide.records[-1, 0] == pytest.approx(200.0 * 300)


def test_an_age_before_the_polls_goes_on_at_their_rate_of_arrivals():
    counts = flow(600, 700.0, 600.0, 500.0)
    late = last(counts, len(counts.at_s), 4)
    assert measure_outstanding(late, [[], [0]]).age_s[-1, 0] == pytest.approx(200.0 * 600 / 700.0)


def test_what_is_not_known_is_not_guessed():
    assert np.isnan(measure_outstanding(flow(300, 700.0, 600.0, 500.0, pending=False), [[], [0]]).age_s).all()
    counts = flow(300, 700.0, 600.0, 500.0)
    counts.taken[-1, 1] = np.nan
    result = measure_outstanding(counts, [[], [0]])
    assert np.isnan(result.records[-1, 0])
    assert result.age_s[-1, 0] == pytest.approx(100.0 * 300 / 700.0)  # of the backlog alone: at least so old


def test_counters_of_two_runs_tell_of_no_buffers():
    """After a restart the source counts anew, and the operator behind it still shows what it had taken before."""
    counts = flow(300, 700.0, 600.0, 500.0)
    run, rest = slice(None, 20), slice(20, None)
    taken, sent = counts.taken.copy(), counts.sent.copy()
    for values in (taken, sent):
        values[rest] -= values[19]
    taken[20, 1], sent[20, 1] = counts.taken[19, 1], counts.sent[19, 1]
    result = measure_outstanding(JobCounts(counts.at_s, taken, sent, counts.pending), [[], [0]])
    assert np.isnan(result.records[20, 0])
    assert np.isfinite(result.records[run, 0]).all()
    since_s = counts.at_s[-1] - counts.at_s[19]
    assert result.records[-1, 0] == pytest.approx(100.0 * 300 + 100.0 * since_s)
    assert result.age_s[-1, 0] == pytest.approx(result.records[-1, 0] / 700.0, rel=0.02)


def test_no_record_in_a_buffer_is_older_than_the_last_checkpoint():
    """A chained sink may count among what its vertex sends: what nobody takes does not wait for ever."""
    counts = flow(300, 600.0, 600.0, 500.0)
    passed_s = np.full(len(counts.at_s), counts.at_s[-1] - 20.0)
    assert measure_outstanding(counts, [[], [0]]).age_s[-1, 0] == pytest.approx(50.0)
    assert measure_outstanding(counts, [[], [0]], passed_s).age_s[-1, 0] == pytest.approx(20.0)


def test_a_checkpoint_of_the_run_before_bounds_nothing():
    counts = flow(300, 600.0, 600.0, 500.0)
    taken, sent = (np.concatenate([values[:20], values[1:12]]) for values in (counts.taken, counts.sent))
    passed_s = np.full(len(counts.at_s), counts.at_s[10])
    result = measure_outstanding(JobCounts(counts.at_s, taken, sent, counts.pending), [[], [0]], passed_s)
    assert result.records[-1, 0] == pytest.approx(100.0 * 110)
    assert result.records[15, 0] == pytest.approx(min(100.0 * 150, 600.0 * 50))
    before = np.full(len(counts.at_s), counts.at_s[0] - 5.0)
    assert measure_outstanding(counts, [[], [0]], before).records[-1, 0] == pytest.approx(100.0 * 300)


def test_two_sources_share_what_waits_before_their_join_and_branches_count_once():
    at_s = np.arange(0.0, 301.0, 10.0)
    rates = np.array([300.0, 100.0, 320.0, 0.0])
    taken = at_s[:, None] * rates
    taken[:, 3] = 240.0 * at_s
    sent = at_s[:, None] * [300.0, 100.0, 320.0, 0.0]
    pending = np.full(taken.shape, np.nan)
    pending[:, :2] = 0.0
    result = measure_outstanding(JobCounts(at_s, taken, sent, pending), [[], [], [0, 1], [2]])
    assert result.records[-1, :2] == pytest.approx([0.4 * 300 * 300, 0.4 * 100 * 300])
    assert result.age_s[-1, :2] == pytest.approx([0.4 * 300, 0.4 * 300])


def test_outputs_that_are_copied_show_nothing_in_buffers():
    counts = flow(300, 600.0, 600.0, 600.0)
    taken = np.stack([counts.taken[:, 0]] * 3, axis=1)
    pending = np.stack([counts.pending[:, 0], *[counts.pending[:, 1]] * 2], axis=1)
    result = measure_outstanding(JobCounts(counts.at_s, taken, taken * [1.0, 0.0, 0.0], pending), [[], [0], [0]])
    assert result.age_s[:, 0] == pytest.approx(0.0)
