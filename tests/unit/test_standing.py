"""Backlogs that nobody can read, told from those that slots work off."""

from __future__ import annotations

import numpy as np

from models.observing.outstanding import JobCounts, measure_outstanding
from models.observing.standing import find_standing


def stands(pending, idle, taken=1000.0):
    values = np.array(pending, float)
    return find_standing(values, np.full(len(values), taken), np.array(idle, bool)).tolist()


def test_a_backlog_that_lasts_while_its_source_has_idle_time_stands():
    assert stands([500_000] * 5, [True] * 5) == [0, 0, 500_000, 500_000, 500_000]
    assert stands([500_003, 500_000, 500_008, 500_001], [True] * 4) == [0, 0, 500_000, 500_000]


def test_a_source_without_idle_time_works_its_backlog_off():
    assert stands([500_000] * 5, [False] * 5) == [0] * 5


def test_a_backlog_that_falls_is_worked_off():
    assert stands([500_000 - 20 * k for k in range(6)], [True] * 6) == [0] * 6
    assert stands([500_000] * 3 + [400_000, 300_000], [True] * 5) == [0, 0, 500_000, 0, 0]


def test_a_burst_stands_at_no_time():
    assert stands([0, 5, 0, 90_000, 60_000, 30_000, 0], [True, True, True, True, False, False, True]) == [0] * 7


def test_what_stood_stands_beneath_an_overload():
    assert stands([500_000] * 3 + [560_000, 620_000], [True] * 3 + [False] * 2) == [0, 0] + [500_000] * 3


def test_what_is_not_known_stands_for_nothing():
    assert stands([np.nan] * 4, [True] * 4) == [0] * 4
    assert stands([7, 7, np.nan, 7, 7], [True] * 5) == [0] * 5
    assert stands([], []) == []


def test_what_stands_has_no_age():
    at_s = np.arange(0.0, 301.0, 20.0)
    taken = np.stack([1000.0 * at_s, 1000.0 * at_s], axis=1)
    pending = np.stack([np.full(len(at_s), 500_000.0), np.full(len(at_s), np.nan)], axis=1)
    idle = np.ones(taken.shape, bool)
    counts = JobCounts(at_s, taken, taken, pending, ~idle, idle)
    result = measure_outstanding(counts, [[], [0]])
    assert result.records[-1, 0] == 0.0
    assert result.age_s[-1, 0] == 0.0
    busy = measure_outstanding(JobCounts(at_s, taken, taken, pending, ~idle, ~idle), [[], [0]])
    assert busy.age_s[-1, 0] == 500.0
