"""What polls of sources show after a stop: catch-ups, records and loads."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from models.observing.catch_ups import EffectWindow, SourcePolls, StopEffects, find_effects

SPAN = EffectWindow(started_ms=35_000, running_ms=205_000, until_ms=3_600_000, window_s=300, longest_gap_s=600.0)
NAN = math.nan


def polls(*rows: tuple[float, ...]) -> SourcePolls:
    """Rows: second, since_last_s, age_s, target_per_s, taken_total, pending."""
    at_s, *values = np.array(rows, float).T
    return SourcePolls(np.rint(1000 * at_s).astype(np.int64), *values)


BIG = (
    (0, 300.0, 0.3, 90.0, 9e9, 30.0),
    (230, NAN, 0.3, NAN, 4000.0, 50.0),
    (290, 60.0, 0.6, 100.0, 10_000.0, 60.0),
    (590, 300.0, 0.6, 110.0, 40_000.0, 60.0),
)
SMALL = (
    (0.02, 300.0, 0.4, 10.0, 1e9, 4.0),
    (230.02, NAN, 56.0, NAN, 400.0, 900.0),
    (290.02, 60.0, 0.4, 20.0, 1500.0, 8.0),
    (590.02, 300.0, 0.4, 30.0, 4500.0, 8.0),
)


def test_what_all_sources_did_until_the_last_had_caught_up_is_added_up():
    effects = find_effects(SPAN, {"small": polls(*SMALL), "big": polls(*BIG)}, 5.0)
    assert (effects.caught_up_ms, effects.unseen_s) == (290_020, 60.0)
    assert (effects.emitted_records, effects.pending_records) == (11_500.0, 68.0)
    assert effects.pending_before_records == 34.0
    assert (effects.load_per_s, effects.load_after_per_s) == (100.0, 130.0)
    assert effects.source_load_per_s == {"big": 97.5, "small": 17.5}


def test_records_of_another_poll_are_not_added():
    effects = find_effects(SPAN, {"big": polls(*BIG[:2], BIG[3]), "small": polls(*SMALL)}, 5.0)
    assert effects.caught_up_ms == 290_020
    assert math.isnan(effects.emitted_records)
    assert math.isnan(effects.pending_records)


def test_a_source_that_is_behind_leaves_the_catch_up_unknown():
    behind = tuple((*row[:2], 90.0, *row[3:]) for row in SMALL)
    effects = find_effects(SPAN, {"big": polls(*BIG), "small": polls(*behind)}, 5.0)
    assert effects.caught_up_ms is None
    assert math.isnan(effects.unseen_s)
    assert effects.load_per_s == 100.0


@pytest.mark.parametrize(("longest_gap_s", "caught_up_ms"), [(60.0, 290_000), (59.0, None)])
def test_a_catch_up_that_nothing_measured_has_no_time(longest_gap_s, caught_up_ms):
    span = replace(SPAN, longest_gap_s=longest_gap_s)
    late = polls(BIG[0], (230, NAN, 90.0, NAN, 4000.0, 9e5), *BIG[2:])
    assert find_effects(span, {"big": late}, 5.0).caught_up_ms == caught_up_ms


def test_right_after_a_start_replies_still_show_the_tasks_that_are_gone():
    stale = (206.9, 60.0, 0.1, 100.0, 9e9, 1.0)
    assert find_effects(SPAN, {"big": polls(BIG[0], stale, *BIG[1:])}, 5.0).caught_up_ms == 230_000


@pytest.mark.parametrize("taken_total", [716_658.0, 716_000.0])
def test_a_counter_that_has_not_fallen_is_the_former_run_s_however_old_it_is(taken_total):
    """At Flink's defaults metrics are fetched every ten seconds: 86,815 pending were worked off in 5.8 s."""
    before = (30, 60.0, 100.0, 1000.0, 716_000.0, 86_000.0)
    stale = [(205 + age_s, NAN, NAN, NAN, taken_total, 86_815.0) for age_s in (5.76, 21.0)]
    own = [(265, NAN, NAN, NAN, 50_000.0, 200_000.0), (325, 60.0, 1.0, 1000.0, 280_000.0, 900.0)]
    caught_up = find_effects(SPAN, {"q3": polls(before, *stale, *own)}, 5.0)
    assert (caught_up.caught_up_ms, caught_up.emitted_records) == (325_000, 280_000.0)
    later = (385, 60.0, 1.0, 1000.0, 800_000.0, 900.0)  # past the former run's, long after it was below
    behind = (265, NAN, 100.0, NAN, 50_000.0, 200_000.0)
    assert find_effects(SPAN, {"q3": polls(before, *stale, behind, later)}, 5.0).caught_up_ms == 385_000
    assert find_effects(SPAN, {"q3": polls(before, *stale)}, 5.0).caught_up_ms is None


def test_polls_after_the_next_stop_are_not_looked_at():
    effects = find_effects(replace(SPAN, until_ms=230_000), {"big": polls(*BIG)}, 5.0)
    assert effects.caught_up_ms is None
    assert (effects.load_per_s, effects.source_load_per_s) == (90.0, {"big": 90.0})
    assert math.isnan(effects.load_after_per_s)


def test_a_job_that_was_not_seen_running_has_a_load_before_alone():
    effects = find_effects(replace(SPAN, running_ms=None), {"big": polls(*BIG)}, 5.0)
    assert (effects.caught_up_ms, effects.load_per_s) == (None, 90.0)


def test_without_polls_nothing_is_known():
    assert find_effects(replace(SPAN, until_ms=0), {"big": polls(*BIG)}, 5.0).caught_up_ms is None
    assert find_effects(SPAN, {}, 5.0).source_load_per_s == StopEffects().source_load_per_s == {}
