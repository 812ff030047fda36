"""The end of a catch-up between two polls, and intervals that cover what comes."""

import numpy as np
import pytest

from models.recovery.intervals import error_scale, find_factors, is_inside_ahead, standardise_errors
from models.recovery.labels import MOST_CHANGE, count_load_per_s, find_catch_up_s

LOAD, CAPACITY, DOWN_S, LAG_S = 1000.0, 1600.0, 40.0, 5.0
CATCH_UP_S = (DOWN_S - LAG_S) * LOAD / (CAPACITY - LOAD)  # until the backlog is 5 s of input


def found(shown_s: float, unseen_s: float, **changed: float) -> tuple[float, float]:
    """A poll ``shown_s`` after RUNNING, of a job that stood still for DOWN_S and then worked at its capacity."""
    whole_s = DOWN_S * LOAD / (CAPACITY - LOAD)
    emitted = CAPACITY * whole_s + LOAD * (shown_s - whole_s)
    values = {"shown_s": shown_s, "unseen_s": unseen_s, "emitted": emitted, "pending": 0.0}
    values |= {"load_per_s": LOAD, "capacity_per_s": CAPACITY} | changed
    catch_up, resolution = find_catch_up_s(
        **{name: np.array([value]) for name, value in values.items()}, caught_up_lag_s=LAG_S
    )
    return float(catch_up[0]), float(resolution[0])


def test_the_records_tell_when_a_catch_up_ended_between_two_polls() -> None:
    assert found(300.0, 300.0) == (pytest.approx(CATCH_UP_S), 0.0)


def test_what_the_polls_showed_stands_above_what_the_records_tell() -> None:
    assert found(300.0, 100.0)[0] == 200.0  # a poll 200 s after RUNNING still showed the backlog
    assert found(80.0, 80.0, emitted=1e9)[0] == 80.0


@pytest.mark.parametrize("changed", [{"emitted": np.nan}, {"capacity_per_s": np.nan}, {"capacity_per_s": 900.0}])
def test_without_the_records_the_poll_counts_with_its_resolution(changed: dict[str, float]) -> None:
    assert found(300.0, 120.0, **changed) == (300.0, 120.0)


def counted(**changed: float) -> float:
    """The load of 100 s down, 20 s caught up and 40 s since a checkpoint, at 1000 records/s; 300 waited before."""
    values = {"emitted": 150_300.0, "pending": 10_000.0, "pending_before": 300.0, "since_stop_s": 120.0}
    values |= {"replay_s": 40.0, "before_per_s": 900.0, "after_per_s": 1050.0} | changed
    return float(count_load_per_s(**{name: np.array([value]) for name, value in values.items()})[0])


def test_the_load_of_a_recovery_is_counted() -> None:
    assert counted() == pytest.approx(1000.0)
    assert counted(pending_before=np.nan) == pytest.approx(160_300.0 / 160.0)


def test_without_a_count_the_load_lies_between_those_before_and_after() -> None:
    assert counted(emitted=np.nan) == 975.0
    assert counted(replay_s=np.nan, before_per_s=np.nan) == 1050.0
    assert np.isnan(counted(before_per_s=np.nan, after_per_s=np.nan))


def test_what_was_read_again_without_a_checkpoint_is_no_load() -> None:
    assert counted(emitted=1e9) == 1050.0 * MOST_CHANGE
    assert counted(emitted=0.0) == 900.0 / MOST_CHANGE


def test_intervals_are_wide_while_a_downtime_is_the_fleets() -> None:
    observed = np.array([0.0, 2.0, 10.0, 1000.0])
    scale = error_scale(np.full(4, 80.0), np.full(4, 40.0), np.full(4, 0.5), observed)
    assert (np.diff(scale) < 0).all()
    assert scale[0] > 1.5 * scale[-1]


def test_intervals_cover_and_widen_near_saturation() -> None:
    random = np.random.default_rng(1)
    n = 2000
    utilisation = random.uniform(0.2, 0.9, n)
    downtime = np.full(n, 40.0)
    predicted = downtime / (1 - utilisation)
    scale = error_scale(predicted, downtime, utilisation, np.full(n, 50.0))
    observed = predicted * np.exp(1.7 * scale * random.standard_normal(n))
    errors = standardise_errors(observed, predicted, scale)
    assert 0.77 < np.nanmean(is_inside_ahead(errors)[50:, 0]) < 0.83
    assert 0.93 < np.nanmean(is_inside_ahead(errors)[50:, 1]) < 0.97
    assert scale[utilisation.argmax()] > 2 * scale[utilisation.argmin()]


def test_few_events_have_the_factors_of_a_normal_distribution() -> None:
    assert find_factors(np.array([0.1, np.nan])) == (1.2816, 1.96)
